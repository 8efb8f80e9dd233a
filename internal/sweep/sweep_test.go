package sweep

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/internal/base/waittest"
	"backstop/internal/compensation"
	"backstop/internal/compensation/rerun"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/orderquery"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

var (
	steps    = payment.Steps{Query: []time.Duration{time.Minute}, Close: []time.Duration{0, 10 * time.Second}}
	schedule = compensation.Schedule{0, time.Second}
)

const hour = int64(time.Hour / time.Microsecond)

// fixture is a Processor with two suppliers that can be queried, and a Runner.
type fixture struct {
	*paymenttest.Fixture
	t testing.TB
	r *Runner
}

func each(t *testing.T, test func(t *testing.T, f *fixture)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(t, open(t, d)) })
}

func open(t testing.TB, d *db.DB) *fixture {
	f := &fixture{t: t, Fixture: paymenttest.New(t, d, paymenttest.Options{
		Fakes: paymenttest.NewFakes("f1", "f2"), Steps: steps,
		URL: "http://127.0.0.1:1/n",
	})}
	f.r = f.runner(100_000)
	return f
}

func (f *fixture) runner(rate int) *Runner {
	keys, err := seal.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		f.t.Fatal(err)
	}
	return New(Options{
		DB: f.DB, Settings: f.Settings, Schedule: schedule, Keys: keys, Rate: rate, Keep: 100 * time.Hour,
		Log: slog.New(slog.DiscardHandler),
	})
}

func (f *fixture) exec(query string, args ...any) {
	f.t.Helper()
	if _, err := f.DB.NewRaw(query, args...).Exec(context.Background()); err != nil {
		f.t.Fatalf("%s: %v", query, err)
	}
}

// tick waits until what was created is older than a sweep that begins now: a sweep leaves out
// what was created when it began, and the database's clock may step back.
func (f *fixture) tick() {
	last := f.DB.NewID()
	waittest.Until(f.t, "the clock is behind it", func() bool { return db.IDAt(f.DB.Now()) > last })
}

// begin makes the row of a sweep.
func (f *fixture) begin() *Sweep {
	f.t.Helper()
	f.tick()
	var s *Sweep
	err := f.DB.Tx(context.Background(), func(ctx context.Context, tx db.Tx) (err error) {
		s, err = Begin(ctx, tx, f.DB, Request{Days: 3, By: "operator:li", Reason: "a test of the sweep"})
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// sweep runs one to its end.
func (f *fixture) sweep() *Sweep {
	f.t.Helper()
	s := f.begin()
	if err := f.r.Continue(context.Background()); err != nil {
		f.t.Fatal(err)
	}
	return f.find(s)
}

func (f *fixture) find(s *Sweep) *Sweep {
	f.t.Helper()
	again, err := Find(context.Background(), f.DB, s.ID)
	if err != nil {
		f.t.Fatal(err)
	}
	return again
}

// order makes an order of a supplier that is pending or, where it is paid for, paying.
func (f *fixture) order(code string, paid bool) *order.Order {
	f.t.Helper()
	ctx := context.Background()
	o, _, err := f.Processor.Create(ctx, f.M1, payment.CreateRequest{
		OutTradeNo: f.Out(), Amount: 1999, Currency: "CNY", Supplier: code,
		Subject: "tea",
	})
	if err == nil && paid {
		_, err = f.Processor.Pay(ctx, f.M1, o.OrderNo, payment.PayRequest{})
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return o
}

func (f *fixture) closing(code string) *order.Order {
	f.t.Helper()
	o := f.order(code, true)
	if _, err := f.Processor.Cancel(context.Background(), f.M1, o.OrderNo); err != nil {
		f.t.Fatal(err)
	}
	return o
}

// closed makes an order that was closed an hour ago, for a cause.
func (f *fixture) closed(code string, cause order.Cause) *order.Order {
	o, at := f.order(code, false), f.DB.Now()-hour
	f.exec("UPDATE orders SET status = 'closed', version = 2, closed_at = ?, close_reason = ? WHERE id = ?", at, cause, o.ID)
	f.exec("INSERT INTO order_history (id, order_id, version, from_status, to_status, cause, actor, created_at) VALUES (?, ?, 2, 'pending', 'closed', ?, 'clock', ?)", f.DB.NewID(), o.ID, cause, at)
	return o
}

// delivery makes one by a payment, and changes it.
func (f *fixture) delivery(set string, args ...any) {
	f.t.Helper()
	o := f.order("sp-main", false)
	if _, err := f.Processor.Submit(context.Background(), f.Callback(o.OrderNo, "T-"+o.OrderNo, o.Amount)); err != nil {
		f.t.Fatal(err)
	}
	if set != "" {
		f.exec("UPDATE deliveries SET "+set+" WHERE subject_id = ?", append(args, o.ID)...)
	}
}

func (f *fixture) compensation(set string, args ...any) int64 {
	f.t.Helper()
	x := &compensation.Item{
		Kind: compensation.Resend, SubjectKind: compensation.OfMerchant, SubjectID: f.DB.NewID(),
		SupplierID: f.Entry(f.t, "f2").ID, MadeBy: "test",
	}
	err := f.DB.Tx(context.Background(), func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		schedule.Open(w, f.DB, x)
		return w.Exec(ctx)
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.exec("UPDATE compensations SET "+set+" WHERE id = ?", append(args, x.ID)...)
	return x.ID
}

// lost creates rows of all kinds that no worker would pick up, and returns how many.
func (f *fixture) lost(rounds int) map[string]int64 {
	now := f.DB.Now()
	f.exec("UPDATE settings SET value = ? WHERE name = 'orders_due_from'", now-hour/6)
	want := map[string]int64{}
	for range rounds {
		f.exec("UPDATE orders SET next_at = NULL WHERE id = ?", f.order("f1", true).ID)
		f.exec("UPDATE orders SET next_at = ? WHERE id = ?", now-hour, f.closing("f1").ID)
		f.exec("UPDATE orders SET next_at = ? WHERE id = ?", now-hour, f.order("f1", true).ID)
		// Its supplier is away, and it would be forgotten when that is back.
		f.exec("UPDATE orders SET next_at = ? WHERE id = ?", now-hour, f.closing("f2").ID)
		want[OpenOrders] += 4
		f.exec("UPDATE orders SET expires_at = ?, next_at = ? WHERE id = ?", now-hour, now+24*hour, f.order("f1", false).ID)
		f.exec("UPDATE orders SET expires_at = ?, next_at = NULL WHERE id = ?", now-hour, f.order("sp-main", false).ID)
		f.exec("UPDATE orders SET expires_at = ?, next_at = ? WHERE id = ?", now-hour, now-hour, f.order("sp-main", false).ID)
		want[ExpiredOrders] += 3
		f.closed("f1", order.ByTimeout)
		f.closed("f1", order.ByCancel)
		f.closed("f1", order.ByGrace)
		want[ClosedOrders] += 3
		f.delivery("next_at = NULL, created_at = ?", now-hour)
		f.delivery("next_at = NULL, created_at = ?, status = 'sending', lease_until = ?", now-hour, now-hour)
		want[Deliveries] += 2
		f.compensation("next_at = NULL")
		f.compensation("state = 'running', lease_until = ?, next_at = ?", now-hour, now+hour)
		f.compensation("supplier_id = 0, next_at = ?", now-hour)
		want[Compensations] += 3
	}
	f.tick()
	return want
}

// healthy makes rows of all sorts that somebody goes on with, or that are over.
func (f *fixture) healthy() {
	now := f.DB.Now()
	f.order("f1", true)
	f.order("f1", false)
	f.order("sp-main", false)
	f.exec("UPDATE orders SET next_at = ? WHERE id = ?", now-1, f.closing("f1").ID)
	// Its supplier is away, and it is found when that is back.
	f.exec("UPDATE orders SET next_at = ? WHERE id = ?", now-hour/10, f.closing("f2").ID)
	// It could not be closed a minute ago.
	f.exec("UPDATE orders SET expires_at = ?, next_at = ?, close_tries = 1 WHERE id = ?", now-hour, now+hour/60,
		f.order("sp-main", false).ID)
	f.exec("UPDATE orders SET queried_at = ? WHERE id = ?", now, f.closed("f1", order.ByTimeout).ID)
	f.closed("f1", order.BySupplier)
	f.closed("f1", order.ByQuery)
	f.closed("sp-main", order.ByTimeout) // it cannot be asked
	f.delivery("")
	f.delivery("status = 'retry_wait', next_at = ?", now+hour)
	f.delivery("status = 'sending', next_at = NULL, lease_until = ?", now+hour/60)
	f.compensation("next_at = ?", now+hour)
	f.compensation("next_at = ?", now-hour) // its supplier is away
	f.compensation("state = 'running', lease_until = ?, next_at = ?", now+hour/60, now+hour/60)
	f.compensation("state = 'done', next_at = NULL")
}

// away opens the breaker of a supplier.
func (f *fixture) away(code string) {
	now := f.DB.Now()
	f.exec("INSERT INTO breakers (owner_id, state, changed_at, open_until, updated_at) VALUES (?, 'open', ?, ?, ?)", f.Entry(f.t, code).ID,
		now, now+hour, now)
}

func counts(s *Sweep) map[string]int64 {
	all := map[string]int64{}
	for _, p := range s.Pushed() {
		all[p.What] += p.Count
	}
	return all
}

func TestEveryLostRowIsPushedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.away("f2")
		f.healthy()
		want := f.lost(2)
		dry, err := f.r.Dry(t.Context(), 3, nil)
		if err != nil || !maps.Equal(counts(dry), want) {
			t.Fatalf("a dry run finds %v, %v, want %v", counts(dry), err, want)
		}
		s := f.sweep()
		if s.State != Done || s.EndedAt == nil || s.LookedAt == 0 || !maps.Equal(counts(s), want) {
			t.Fatalf("%s, looked at %d, pushed %v, want %v", s.State, s.LookedAt, counts(s), want)
		}
		if !slices.IsSortedFunc(s.Pushed(), func(a, b Pushed) int { return slices.Index(Whats, a.What) - slices.Index(Whats, b.What) }) {
			t.Errorf("pushed %v", s.Pushed())
		}
		if s = f.sweep(); s.PushedRows() != 0 {
			t.Errorf("pushed again: %v", counts(s))
		}
		lanes, _, err := notify.DueRecipients(t.Context(), f.DB, 0, 100)
		if err != nil || !slices.Contains(lanes, f.M1.ID) {
			t.Errorf("the deliveries are not due: %v, %v", lanes, err)
		}
		f.Want(t, 0, "SELECT count(*) FROM deliveries WHERE next_at IS NULL AND (lease_until IS NULL OR lease_until < ?)", f.DB.Now())
	})
}

// querier queries by a Worker.
type querier struct {
	f *fixture
	a *orderquery.Worker
}

func (x querier) Query(context.Context, int64) compensation.Result {
	return compensation.DeadLetter(compensation.Payload, "not here")
}

func (x querier) QueryClosed(ctx context.Context, id int64) compensation.Result {
	o, err := order.ByID(ctx, x.f.DB, id)
	if err == nil {
		_, err = x.a.Query(ctx, o.OrderNo)
	}
	if err != nil {
		return compensation.Failed(err)
	}
	return compensation.Succeeded("asked")
}

func TestWhatIsPushedComesToItsEnd(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.lost(1)
		f.exec("DELETE FROM compensations")
		f.Fakes["f1"].Says(supplier.AnswerPaid)
		f.Fakes["f2"].Says(supplier.AnswerPaid)
		// Without the sweep no worker picks them up.
		if _, err := f.Processor.Expire(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.Want(t, 7, "SELECT count(*) FROM orders WHERE status IN ('pending', 'paying', 'closing')")
		f.sweep()
		a := orderquery.New(orderquery.Options{
			DB: f.DB, Settings: f.Settings, Payments: f.Processor, Calls: f.Calls, Steps: steps, Grace: time.Minute, InFlight: 8,
			Log: slog.New(slog.DiscardHandler),
		})
		defer a.Close(context.Background())
		f.Processor.QueryBy(a.Offer)
		c := compensation.NewRunner(compensation.Options{
			DB: f.DB, Kinds: []compensation.Kind{rerun.Kind(querier{f, a})}, Schedule: schedule, Concurrency: 4, PerLane: 4,
			Time: time.Minute,
			Shut: func(int64) bool { return false }, Log: slog.New(slog.DiscardHandler),
		})
		defer c.Close(context.Background())
		waittest.Until(t, "all rows end", func() bool {
			if _, err := f.Processor.Expire(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := a.Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
			lanes, _, err := compensation.DueLanes(t.Context(), f.DB, 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			c.Pull(lanes)
			return f.Count(t,
				"SELECT (SELECT count(*) FROM orders WHERE status IN ('pending', 'paying', 'closing')) + (SELECT count(*) FROM compensations WHERE state <> 'done')") == 0
		})
		f.Want(t, 5, "SELECT count(*) FROM orders WHERE status = 'paid' AND supplier_id <> ?", f.Supplier.ID)
		f.Want(t, 3, "SELECT count(*) FROM exceptions WHERE kind = ?", exception.LatePayment)
		f.Want(t, 3, "SELECT count(*) FROM orders WHERE status = 'closed' AND queried_at > closed_at")
	})
}

// hash is over all rows but those of the sweep itself.
func (f *fixture) hash() string {
	f.t.Helper()
	list := "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
	if !f.DB.IsPostgres() {
		list = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
	}
	var tables []string
	if err := f.DB.NewRaw(list).Scan(context.Background(), &tables); err != nil {
		f.t.Fatal(err)
	}
	slices.Sort(tables)
	var sum strings.Builder
	for _, table := range tables {
		if table == "sweeps" || table == "leases" {
			continue
		}
		rows, err := f.DB.QueryContext(context.Background(), `SELECT * FROM "`+table+`"`)
		if err != nil {
			f.t.Fatal(err)
		}
		columns, _ := rows.Columns()
		var lines []string
		for rows.Next() {
			values := make([]any, len(columns))
			into := make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				f.t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%v", values))
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			f.t.Fatal(err)
		}
		slices.Sort(lines)
		fmt.Fprintf(&sum, "%s %d %x\n", table, len(lines), sha256.Sum256([]byte(strings.Join(lines, "\n"))))
	}
	return sum.String()
}

func TestASweepOverHealthyRowsChangesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.away("f2")
		f.healthy()
		before := f.hash()
		if s := f.sweep(); s.State != Done || s.LookedAt < 10 || s.PushedRows() != 0 {
			t.Errorf("%s, looked at %d, pushed %v", s.State, s.LookedAt, counts(s))
		}
		// The rows were made by hand, so that the books complain.
		f.exec("DELETE FROM exceptions WHERE kind = ?", exception.BooksDiffer)
		f.exec("DELETE FROM alerts")
		f.exec("DELETE FROM incident_events")
		f.exec("DELETE FROM incidents")
		if after := f.hash(); after != before {
			t.Errorf("before:\n%safter:\n%s", before, after)
		}
		f.exec("UPDATE orders SET next_at = NULL WHERE id = ?", f.order("f1", true).ID)
		before = f.hash()
		if f.sweep(); f.hash() == before {
			t.Error("the hash does not see a push")
		}
	})
}

func TestOfTwoNodesEachRowIsPushedByOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		want := f.lost(4)
		s := f.begin()
		// Both have the lease: only the turn is between them.
		var all sync.WaitGroup
		for range 4 {
			r := f.runner(100_000)
			all.Go(func() {
				for range 3 {
					if err := r.Continue(context.Background()); err != nil && !db.IsConflict(err) {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if s = f.find(s); s.State != Done || !maps.Equal(counts(s), want) {
			t.Errorf("%s, pushed %v, want %v", s.State, counts(s), want)
		}
		f.Want(t, 1, "SELECT count(*) FROM sweeps")
		f.Want(t, want[ClosedOrders], "SELECT count(*) FROM compensations WHERE made_by = ?", rerun.MadeBySweep)
	})
}

func TestASweepGoesOnWhereItsNodeStopped(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		want := f.lost(3)
		s := f.begin()
		slow := f.runner(20)
		for stopped := 0; stopped < 3; stopped++ {
			ctx, cancel := context.WithCancel(t.Context())
			before := f.find(s).PushedRows()
			ended := make(chan error)
			go func() { ended <- slow.Continue(ctx) }()
			waittest.Until(t, "a row is pushed", func() bool { return f.find(s).PushedRows() != before })
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Fatalf("stopped: %v", err)
			}
		}
		if at := f.find(s); at.State != Running || at.Turn != 3 {
			t.Fatalf("%s in turn %d", at.State, at.Turn)
		}
		if err := f.r.Continue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s = f.find(s); s.State != Done || !maps.Equal(counts(s), want) {
			t.Errorf("%s, pushed %v, want %v", s.State, counts(s), want)
		}
	})
}

// Negative control: a push that is stored apart from its count, and a node that dies in between.
// The rows are pushed, and no sweep will ever tell.
func TestANaivePushIsNotCounted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		want := f.lost(3)
		s := f.begin()
		orders := &scans[0]
		p, err := f.r.o.page(t.Context(), orders, orders.begin(s), orders.end(s))
		if err != nil || p == nil || len(p.found) == 0 {
			t.Fatalf("page %+v, %v", p, err)
		}
		err = f.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			_, err := p.look.due(ctx, tx, orders.table, p.found[0].rule.lost, p.found[0].ids)
			return err
		})
		if err == nil {
			err = f.r.Continue(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if s = f.find(s); s.State != Done || maps.Equal(counts(s), want) {
			t.Errorf("%s, pushed %v: the lost count was not noticed", s.State, counts(s))
		}
	})
}

func TestThereIsOneSweepAtATime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.begin()
		err := f.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			_, err := Begin(ctx, tx, f.DB, Request{Days: 1})
			return err
		})
		if !errors.Is(err, ErrRunning) {
			t.Errorf("a second one: %v", err)
		}
		if err := f.r.Continue(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.begin() // now there is none
		f.Want(t, 0, "SELECT count(*) FROM leases WHERE name = ? AND until > ?", leaseName, f.DB.Now())
	})
}

func TestASweepEndsItselfAfterSixHours(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.lost(1)
		s := f.begin()
		f.exec("UPDATE sweeps SET began_at = ? WHERE id = ?", f.DB.Now()-6*hour, s.ID)
		if err := f.r.Continue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s = f.find(s); s.State != Stopped || s.EndedAt == nil || s.PushedRows() != 0 {
			t.Errorf("%s, pushed %v", s.State, counts(s))
		}
	})
}

// Refunds and payouts on their way whose compensation is gone get a new one; those that wait for
// people or have ended do not.
func TestMoneyThatNothingMovesOnIsPushed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f1 := f.Entry(t, "f1")
		open := map[int64]string{}
		for status, lost := range map[string]bool{
			"requested": false, "approved": true, "submitted": true, "unknown": true,
			"succeeded": false,
		} {
			id := f.DB.NewID()
			f.exec("INSERT INTO refunds (id, refund_no, supplier_id, account_id, supplier_ref, trade_no, trade_amount, merchant_id, out_refund_no, amount, currency, status, created_at)"+
				" VALUES (?, ?, ?, ?, 'r', ?, 5, ?, ?, 5, 'CNY', ?, 1)", id, fmt.Sprint("R", id), f1.ID, f1.AccountID, f.Out(), f.M1.ID,
				f.Out(), status)
			if lost {
				open[id] = "refund"
			}
		}
		for status, lost := range map[string]bool{"created": false, "crediting": true, "unknown": true, "stuck": true, "reversed": false} {
			id := f.DB.NewID()
			f.exec("INSERT INTO payouts (id, payout_no, merchant_id, out_payout_no, supplier_id, account_id, payout_account_id, account, amount, currency, exponent, request_digest, status, created_at)"+
				" VALUES (?, ?, ?, ?, ?, ?, 1, '{}', 5, 'CNY', 2, '', ?, 1)", id, fmt.Sprint("P", id), f.M1.ID, f.Out(), f1.ID,
				f1.AccountID, status)
			if lost {
				open[id] = "payout"
			}
		}
		if got := counts(f.sweep()); got[Refunds] != 3 || got[Payouts] != 3 {
			t.Errorf("pushed %v", got)
		}
		for id, kind := range open {
			f.Want(t, 1,
				"SELECT count(*) FROM compensations WHERE kind = 'replaycall' AND subject_kind = ? AND subject_id = ? AND payload LIKE ?",
				kind, id, fmt.Sprintf(`%%"op":%q%%`, kind))
		}
		f.Want(t, 6, "SELECT count(*) FROM compensations")
		if got := counts(f.sweep()); got[Refunds] != 0 || got[Payouts] != 0 {
			t.Errorf("pushed again: %v", got)
		}
	})
}
