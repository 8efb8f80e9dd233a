package compensation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/moves/movestest"
	"backstop/internal/base/waittest"
	"backstop/internal/compensation"
	"backstop/internal/exception"
)

// quick is a schedule of three tries with short waits.
var quick = compensation.Schedule{time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond}

// bench is a database and a kind that does what a test says.
type bench struct {
	*testing.T
	d    *db.DB
	do   func(ctx context.Context, x compensation.Item) compensation.Result
	runs atomic.Int64
	next atomic.Int64 // subjects
}

func newBench(t *testing.T, d *db.DB, do func(context.Context, compensation.Item) compensation.Result) *bench {
	movestest.Enforce(t, d, compensation.Moves)
	return &bench{T: t, d: d, do: do}
}

func (b *bench) kind(name string) compensation.Kind {
	return compensation.Kind{
		Name: name,
		Check: func(raw json.RawMessage) error {
			var p struct{ N int }
			return compensation.ReadPayload(raw, &p)
		},
		Run: func(ctx context.Context, x compensation.Item) compensation.Result {
			b.runs.Add(1)
			return b.do(ctx, x)
		},
	}
}

func (b *bench) runner(size int) *compensation.Runner {
	b.Helper()
	r := compensation.NewRunner(compensation.Options{
		DB: b.d, Kinds: []compensation.Kind{b.kind(compensation.Resend), b.kind(compensation.Rerun)}, Schedule: quick, Concurrency: size,
		PerLane: 8,
		Time:    5 * time.Second, Log: slog.New(slog.DiscardHandler),
	})
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		r.Close(ctx)
	})
	return r
}

// open opens an item with a subject of its own.
func (b *bench) open(change func(x *compensation.Item)) *compensation.Item {
	b.Helper()
	x := &compensation.Item{
		Kind: compensation.Rerun, Cause: compensation.SupplierTimeout, SubjectKind: compensation.OfOrder, SubjectID: b.next.Add(1) + 1000,
		OrderNo: "O1", SupplierID: 7, MerchantID: 1, Amount: 1998, Currency: "CNY", MadeBy: "test",
	}
	if change != nil {
		change(x)
	}
	if err := b.put(x); err != nil {
		b.Fatal(err)
	}
	return x
}

func (b *bench) put(items ...*compensation.Item) error {
	return b.d.Tx(b.Context(), func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		quick.Open(w, b.d, items...)
		return w.Exec(ctx)
	})
}

func (b *bench) find(id int64) (*compensation.Item, []compensation.Try) {
	b.Helper()
	x, tries, err := compensation.Find(b.Context(), b.d.Read, id)
	if err != nil || x == nil {
		b.Fatalf("find %d: %v", id, err)
	}
	return x, tries
}

// over runs due items until none is open.
func (b *bench) over(runners ...*compensation.Runner) {
	b.Helper()
	waittest.Until(b, "none is open", func() bool {
		lanes, _, err := compensation.DueLanes(b.Context(), b.d, 0, 100)
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range runners {
			r.Pull(lanes)
		}
		var n int
		if err := b.d.Read.NewRaw("SELECT count(*) FROM compensations WHERE next_at IS NOT NULL").Scan(b.Context(), &n); err != nil {
			b.Fatal(err)
		}
		return n == 0
	})
}

func (b *bench) exceptions() (all []exception.Item) {
	b.Helper()
	if err := b.d.Read.NewSelect().Model(&all).OrderExpr("x.id").Scan(b.Context()); err != nil {
		b.Fatal(err)
	}
	return all
}

func classes(tries []compensation.Try) string {
	var all []string
	for _, t := range tries {
		all = append(all, string(t.Class))
	}
	return strings.Join(all, " ")
}

func TestAnItemRunsUntilItIsDone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBench(t, d, func(_ context.Context, x compensation.Item) compensation.Result {
			if x.Attempts < 3 {
				return compensation.Later(compensation.SupplierTimeout, "no answer").WithCall(5)
			}
			return compensation.Succeeded("paid")
		})
		x := b.open(nil)
		b.over(b.runner(4))
		got, tries := b.find(x.ID)
		if got.State != compensation.Done || got.Attempts != 3 || got.LastClass != compensation.OK || got.FinishedAt == nil ||
			got.Cause != compensation.SupplierTimeout {
			t.Errorf("it is %+v", got)
		}
		if classes(tries) != "supplier_timeout supplier_timeout ok" || tries[0].CallID != 5 || tries[2].Error != "paid" ||
			tries[1].Number != 2 {
			t.Errorf("its tries are %+v", tries)
		}
		if all := b.exceptions(); len(all) != 0 {
			t.Errorf("there are exceptions: %+v", all)
		}
	})
}

func TestWhatIsOutOfTriesIsDeadWithItsException(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBench(t, d, func(_ context.Context, x compensation.Item) compensation.Result {
			return compensation.Later(compensation.SupplierUnknown, "garbage")
		})
		x := b.open(nil)
		b.over(b.runner(4))
		got, tries := b.find(x.ID)
		if got.State != compensation.Dead || got.Attempts != 3 || got.Cause != compensation.SupplierUnknown || len(tries) != 3 {
			t.Errorf("it is %+v with %d tries", got, len(tries))
		}
		all := b.exceptions()
		if len(all) != 1 {
			t.Fatalf("%d exceptions", len(all))
		}
		if e := all[0]; e.Kind != exception.CompensationDead || e.Amount != 1998 || e.Currency != "CNY" || e.OrderNo != "O1" ||
			e.OrderID != x.SubjectID || e.Subject != fmt.Sprint(x.ID) {
			t.Errorf("the exception is %+v", e)
		}
	})
}

// Nothing else makes the calls of a payout: its item is tried daily when the tries are used up,
// with the exception, which ends with it. The items of orders above are the control.
func TestTheOnlyScheduleOfAPayoutNeverDies(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var well atomic.Bool
		b := newBench(t, d, func(_ context.Context, x compensation.Item) compensation.Result {
			if well.Load() {
				return compensation.Succeeded("paid")
			}
			return compensation.DeadLetter(compensation.Payload, "a bug")
		})
		x := b.open(func(x *compensation.Item) { x.SubjectKind = compensation.OfPayout })
		r := b.runner(4)
		until := func(what string, holds func(got *compensation.Item) bool) {
			t.Helper()
			waittest.Until(t, what, func() bool {
				r.Pull([]int64{x.Lane})
				got, _ := b.find(x.ID)
				return holds(got)
			})
		}
		for try := range int64(5) {
			until("tried", func(got *compensation.Item) bool { return got.Attempts == try+1 && got.State != compensation.Running })
			got, _ := b.find(x.ID)
			if got.State != compensation.Waiting || got.NextAt == nil || *got.NextAt < d.Now()+(23*time.Hour).Microseconds() ||
				got.FinishedAt != nil {
				t.Fatalf("after try %d it is %+v", try+1, got)
			}
			if all := b.exceptions(); len(all) != 1 || all[0].State != exception.Opened || all[0].Kind != exception.CompensationDead {
				t.Fatalf("after try %d: %+v", try+1, all)
			}
			well.Store(try == 3)
			if _, err := d.NewRaw("UPDATE compensations SET next_at = 1 WHERE id = ?", x.ID).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			if try == 3 {
				break
			}
		}
		until("done", func(got *compensation.Item) bool { return got.State == compensation.Done })
		if all := b.exceptions(); all[0].State != exception.Resolved {
			t.Errorf("its exception is %s", all[0].State)
		}
	})
}

// Tries that ended with their node say nothing about the supplier: a refund that was running
// whenever a node was killed is tried soon again, not in hours.
func TestKillsUseUpNoWaitOfMoneyOnItsWay(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBench(t, d, func(context.Context, compensation.Item) compensation.Result {
			return compensation.Failed(errors.New("the write failed"))
		})
		for kills, want := range map[int]struct {
			most time.Duration
			left int64
		}{2: {132 * time.Second, 0}, 11: {10 * time.Second, 3}} {
			x := b.open(func(x *compensation.Item) { x.SubjectKind = compensation.OfRefund })
			for range kills {
				if _, err := d.NewRaw("UPDATE compensations SET state = 'running', attempts = attempts + 1, lease_owner = 99, next_at = 1"+
					" WHERE id = ?", x.ID).Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := compensation.ReleaseLeases(t.Context(), d, []int64{99}); err != nil {
					t.Fatal(err)
				}
			}
			// A runner that ran before would try it between two kills.
			r := compensation.NewRunner(compensation.Options{
				DB: d, Kinds: []compensation.Kind{b.kind(compensation.Rerun)}, Concurrency: 1, PerLane: 1, Time: time.Second,
				Schedule: compensation.Schedule{time.Minute, 2 * time.Minute, 3 * time.Minute}, Log: slog.New(slog.DiscardHandler),
			})
			got := b.tried(r, x)
			r.Close(context.Background())
			wait := time.Duration(*got.NextAt-d.Now()) * time.Microsecond
			if got.State != compensation.Waiting || wait > want.most || got.MaxAttempts-got.Attempts != want.left {
				t.Errorf("after %d kills it waits %s, want at most %s: %+v", kills, wait, want.most, got)
			}
		}
	})
}

// tried pulls an item until a try of it has a result.
func (b *bench) tried(r *compensation.Runner, x *compensation.Item) (got *compensation.Item) {
	b.Helper()
	waittest.Until(b, "it is tried", func() bool {
		r.Pull([]int64{x.Lane})
		var tries []compensation.Try
		got, tries = b.find(x.ID)
		return len(tries) > 0 && got.State != compensation.Running
	})
	return got
}

// A death without its exception would go unnoticed: if one cannot be stored, the other is not
// either.
func TestADeathAndItsExceptionAreOneTransaction(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBench(t, d, func(context.Context, compensation.Item) compensation.Result {
			return compensation.DeadLetter(compensation.NotQueryable, "no query")
		})
		refuse := []string{"CREATE TRIGGER full BEFORE INSERT ON exceptions BEGIN SELECT RAISE(ABORT, 'full'); END"}
		allow := "DROP TRIGGER full"
		if d.IsPostgres() {
			refuse = []string{
				"CREATE FUNCTION is_full() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''full''; END'",
				`CREATE TRIGGER "full" BEFORE INSERT ON exceptions EXECUTE FUNCTION is_full()`,
			}
			allow = `DROP TRIGGER "full" ON exceptions`
		}
		for _, q := range refuse {
			if _, err := d.NewRaw(q).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		x, r := b.open(nil), b.runner(4)
		waittest.Until(t, "it runs", func() bool { r.Pull([]int64{x.Lane}); return b.runs.Load() > 0 })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		r.Close(ctx) // after its last attempt to write the result
		if got, tries := b.find(x.ID); got.State != compensation.Running || len(tries) != 0 || len(b.exceptions()) != 0 {
			t.Errorf("it is %s with %d tries", got.State, len(tries))
		}
		if _, err := d.NewRaw(allow).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Let the lease end.
		if _, err := d.NewRaw("UPDATE compensations SET next_at = 1").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.over(b.runner(4))
		if got, _ := b.find(x.ID); got.State != compensation.Dead || len(b.exceptions()) != 1 {
			t.Errorf("it is %s with %d exceptions", got.State, len(b.exceptions()))
		}
	})
}

func TestAKindThatPanicsStopsNoOther(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBench(t, d, func(_ context.Context, x compensation.Item) compensation.Result {
			if x.Kind == compensation.Resend {
				panic("upside down")
			}
			return compensation.Succeeded("")
		})
		bad, good := b.open(func(x *compensation.Item) { x.Kind, x.MaxAttempts = compensation.Resend, 0 }), b.open(nil)
		// A longer schedule: it is the third panic that ends it, not the last wait.
		if _, err := d.NewRaw("UPDATE compensations SET max_attempts = 3 WHERE id = ?", bad.ID).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.over(b.runner(4))
		got, tries := b.find(bad.ID)
		if got.State != compensation.Dead || got.LastClass != compensation.Class(compensation.Poison) ||
			classes(tries) != "poison poison poison" || !strings.Contains(got.LastError, "upside down") {
			t.Errorf("it is %+v after %q", got, classes(tries))
		}
		if got, _ := b.find(good.ID); got.State != compensation.Done {
			t.Errorf("the other one is %s", got.State)
		}
	})
}

// The third panic ends a schedule that has more tries.
func TestTheThirdPanicIsTheLast(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		long := compensation.Schedule{
			time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond,
			time.Millisecond,
		}
		b := newBench(t, d, func(_ context.Context, x compensation.Item) compensation.Result {
			if x.Attempts == 2 {
				return compensation.Later(compensation.SupplierTimeout, "")
			}
			panic("upside down")
		})
		x := b.open(nil)
		if _, err := d.NewRaw("UPDATE compensations SET max_attempts = 6").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := compensation.NewRunner(compensation.Options{
			DB: d, Kinds: []compensation.Kind{b.kind(compensation.Rerun)}, Schedule: long,
			Concurrency: 1, PerLane: 1, Time: time.Second, Log: slog.New(slog.DiscardHandler),
		})
		defer r.Close(context.Background())
		b.over(r)
		if got, tries := b.find(x.ID); got.State != compensation.Dead || classes(tries) != "poison supplier_timeout poison poison" {
			t.Errorf("it is %s after %q", got.State, classes(tries))
		}
	})
}

func TestAPayloadThatCannotBeReadIsDeadAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBench(t, d, func(context.Context, compensation.Item) compensation.Result { return compensation.Succeeded("") })
		x := b.open(func(x *compensation.Item) { x.Payload = json.RawMessage(`{"n":1,"more":2}`) })
		b.over(b.runner(4))
		if got, tries := b.find(x.ID); got.State != compensation.Dead || got.Cause != compensation.Payload || classes(tries) != "payload" ||
			b.runs.Load() != 0 {
			t.Errorf("it is %+v after %q, %d runs", got, classes(tries), b.runs.Load())
		}
	})
}

// If a crash interrupts the last try, the item is dead, not tried forever.
func TestALastTryThatEndedWithItsNodeIsTheLast(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBench(t, d, func(context.Context, compensation.Item) compensation.Result { return compensation.Succeeded("") })
		last, earlier := b.open(nil), b.open(nil)
		for id, attempts := range map[int64]int{last.ID: 3, earlier.ID: 2} {
			_, err := d.NewRaw("UPDATE compensations SET state = 'running', attempts = ?, lease_owner = 99 WHERE id = ?", attempts,
				id).Exec(t.Context())
			if err != nil {
				t.Fatal(err)
			}
		}
		if n, err := compensation.ReleaseLeases(t.Context(), d, []int64{99, 98}); err != nil || n != 2 {
			t.Fatalf("%d are released, %v", n, err)
		}
		b.over(b.runner(4))
		if got, _ := b.find(last.ID); got.State != compensation.Dead || got.Cause != compensation.Poison {
			t.Errorf("the last try: %+v", got)
		}
		if got, _ := b.find(earlier.ID); got.State != compensation.Done || got.Attempts != 3 {
			t.Errorf("an earlier one: %+v", got)
		}
	})
}

func TestAnItemIsOpenOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBench(t, d, func(context.Context, compensation.Item) compensation.Result { return compensation.Succeeded("") })
		same := func(x *compensation.Item) { x.SubjectID = 5 }
		first := b.open(same)
		b.open(same)
		b.open(func(x *compensation.Item) { x.SubjectID, x.FromVersion = 5, 2 })
		var n int
		count := func(want int) {
			t.Helper()
			if err := d.Read.NewRaw("SELECT count(*) FROM compensations").Scan(t.Context(), &n); err != nil || n != want {
				t.Errorf("%d rows, %v; want %d", n, err, want)
			}
		}
		count(2)
		b.over(b.runner(4))
		again := b.open(same)
		count(3)
		b.over(b.runner(4))
		if x, _ := b.find(again.ID); x.ID == first.ID || x.State != compensation.Done {
			t.Errorf("%+v", x)
		}
	})
}

// Two nodes claim the same rows at the same time: each runs once. The control claims by reading
// first, and runs rows twice.
func TestTwoNodesRunAnItemOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBench(t, d, func(context.Context, compensation.Item) compensation.Result {
			time.Sleep(time.Millisecond) // a run lasts, or two could not overlap
			return compensation.Succeeded("")
		})
		const n = 200
		for i := range n {
			b.open(func(x *compensation.Item) { x.SupplierID = int64(i%5 + 1) })
		}
		b.over(b.runner(16), b.runner(16), b.runner(16))
		if runs := b.runs.Load(); runs != n {
			t.Errorf("%d runs of %d items", runs, n)
		}
	})
}

func TestTheControlOfTheClaimRunsTwice(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	b := newBench(t, d, nil)
	x := b.open(nil)
	var read sync.WaitGroup
	read.Add(2)
	var claims atomic.Int64
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			var due []int64
			err := d.NewRaw("SELECT id FROM compensations WHERE state = 'waiting'").Scan(context.Background(), &due)
			read.Done()
			read.Wait()
			if err != nil || len(due) != 1 {
				t.Errorf("%d due, %v", len(due), err)
			}
			res, err := d.NewRaw("UPDATE compensations SET state = 'running' WHERE id = ?", x.ID).Exec(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			rows, _ := res.RowsAffected()
			claims.Add(rows)
		})
	}
	all.Wait()
	if claims.Load() != 2 {
		t.Errorf("a claim without its condition was made %d times: the test of the real one proves nothing", claims.Load())
	}
}

// A supplier that hangs does not delay the first item of another one, however many of its own wait.
func TestADeadSupplierDelaysNoOther(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		release := make(chan struct{})
		var others sync.WaitGroup
		others.Add(10)
		b := newBench(t, d, func(ctx context.Context, x compensation.Item) compensation.Result {
			if x.SupplierID == 7 {
				select {
				case <-release:
				case <-ctx.Done():
				}
				return compensation.Later(compensation.SupplierTimeout, "")
			}
			others.Done()
			return compensation.Succeeded("")
		})
		var items []*compensation.Item
		for i := range 1000 {
			items = append(items, &compensation.Item{
				Kind: compensation.Rerun, Cause: compensation.SupplierTimeout,
				SubjectKind: compensation.OfOrder, SubjectID: int64(i + 1), SupplierID: 7, MadeBy: "test",
			})
		}
		if err := b.put(items...); err != nil {
			t.Fatal(err)
		}
		r := b.runner(16)
		waittest.Until(t, "the first runs", func() bool { r.Pull([]int64{7}); return b.runs.Load() > 0 })
		for i := range 10 {
			b.open(func(x *compensation.Item) { x.SupplierID, x.MerchantID = 0, int64(i+20) })
		}
		var lanes []int64
		waittest.Until(t, "11 lanes are due", func() bool {
			var err error
			if lanes, _, err = compensation.DueLanes(t.Context(), d, 0, 100); err != nil {
				t.Fatal(err)
			}
			return len(lanes) == 11
		})
		r.Pull(lanes)
		done := make(chan struct{})
		go func() { others.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Error("they wait for the supplier that hangs")
		}
		close(release)
	})
}

func TestNothingRunsWhileItsLaneIsShut(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBench(t, d, func(context.Context, compensation.Item) compensation.Result { return compensation.Succeeded("") })
		var open atomic.Bool
		r := compensation.NewRunner(compensation.Options{
			DB: d, Kinds: []compensation.Kind{b.kind(compensation.Rerun)}, Schedule: quick, Concurrency: 4, PerLane: 4, Time: time.Second,
			Shut: func(lane int64) bool { return lane == 7 && !open.Load() }, Log: slog.New(slog.DiscardHandler),
		})
		defer r.Close(context.Background())
		shut := b.open(nil)
		other := b.open(func(x *compensation.Item) { x.SupplierID = 8 })
		waittest.Until(t, "the other one is done", func() bool {
			r.Pull([]int64{7, 8})
			x, _ := b.find(other.ID)
			return x.State == compensation.Done
		})
		if x, _ := b.find(shut.ID); x.State != compensation.Waiting || x.Attempts != 0 || b.runs.Load() != 1 {
			t.Errorf("it is %s after %d tries, %d runs", x.State, x.Attempts, b.runs.Load())
		}
		open.Store(true)
		b.over(r)
	})
}

// Stopping the runner is not a failure of the item: a run that it cancels does not count.
func TestAStopCutsOffARunUncounted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		began := make(chan struct{}, 1)
		b := newBench(t, d, func(ctx context.Context, x compensation.Item) compensation.Result {
			began <- struct{}{}
			<-ctx.Done()
			return compensation.Failed(errors.New("cut off"))
		})
		x, r := b.open(nil), b.runner(2)
		waittest.Until(t, "it runs", func() bool { r.Pull([]int64{7}); return len(began) > 0 })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.Close(ctx)
		if got, tries := b.find(x.ID); got.State != compensation.Waiting || got.Attempts != 0 || len(tries) != 0 {
			t.Errorf("it is %+v with %d tries", got, len(tries))
		}
	})
}

// A kind that this version does not have is left for a node that has it.
func TestAnUnknownKindIsLeftToOthers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBench(t, d, nil)
		x, r := b.open(func(x *compensation.Item) { x.Kind = "later" }), b.runner(2)
		var got *compensation.Item
		waittest.Until(t, "it is put off", func() bool {
			r.Pull([]int64{7})
			got, _ = b.find(x.ID)
			return *got.NextAt > d.Now()+20e6 && got.State == compensation.Waiting
		})
		if got.State != compensation.Waiting || got.Attempts != 0 {
			t.Errorf("it is %+v", got)
		}
	})
}
