package breaker_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"

	"github.com/uptrace/bun"
)

func newCache(d *db.DB, open time.Duration) *breaker.Cache {
	return breaker.NewCache(d, func(int64) breaker.Policy {
		return breaker.Policy{Failures: 3, Open: open, RatePercent: 50, Window: time.Minute, Least: 10}
	})
}

func fold(t testing.TB, d *db.DB, b *breaker.Cache, samples ...breaker.Sample) []*breaker.Change {
	t.Helper()
	var f *breaker.Folded
	err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
		f, err = b.Fold(ctx, tx, samples)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Committed(f)
	return f.Changes
}

func refresh(t testing.TB, b *breaker.Cache) {
	t.Helper()
	if err := b.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func results(b *breaker.Cache, merchant int64, r breaker.Result, n int) []breaker.Sample {
	all := make([]breaker.Sample, n)
	for i := range all {
		all[i] = breaker.Sample{MerchantID: merchant, Generation: b.Gate(merchant).Generation, Result: r}
	}
	return all
}

func count(t testing.TB, d *db.DB, query string) int64 {
	t.Helper()
	var n int64
	if err := d.NewRaw(query).Scan(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAWellMerchantCostsNoRow(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newCache(d, time.Minute)
		fold(t, d, b, results(b, 1, breaker.Taken, 50)...)
		if n := count(t, d, "SELECT count(*) FROM breakers"); n != 0 {
			t.Errorf("%d rows", n)
		}
		// What it took counts as soon as something fails: 9 of 59 is no rate that opens.
		two := results(b, 1, breaker.Failed, 2)
		ok := results(b, 1, breaker.Taken, 1)
		for range 4 {
			fold(t, d, b, append(two, ok...)...)
		}
		if r := b.Of(1); r.State != breaker.Closed || r.WindowOK < 50 {
			t.Errorf("%+v", r)
		}
	})
}

func TestTwoNodesShareOneBreaker(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, b := newCache(d, 200*time.Millisecond), newCache(d, 200*time.Millisecond)
		fold(t, d, a, results(a, 1, breaker.Failed, 2)...)
		changes := fold(t, d, b, results(b, 1, breaker.Failed, 1)...) // the third in a row, seen by the other node
		if len(changes) != 1 || changes[0].To != breaker.Open || changes[0].Failures != 3 {
			t.Fatalf("changes %+v", changes)
		}
		if a.Of(1).Tripped() {
			t.Fatal("the first node cannot know yet")
		}
		refresh(t, a)
		if !a.Of(1).Tripped() || a.Gate(1) != (breaker.Gate{Generation: 1}) {
			t.Fatalf("the first node does not park: %+v", a.Gate(1))
		}
		fold(t, d, a, breaker.Sample{MerchantID: 1, Generation: 0, Result: breaker.Taken}) // began before it opened
		if r := a.Of(1); r.State != breaker.Open {
			t.Fatalf("a stale success closed it: %+v", r)
		}
		time.Sleep(250 * time.Millisecond)
		// Both want the probe; one gets it.
		won := make([]bool, 8)
		var wg sync.WaitGroup
		for i := range won {
			wg.Go(func() {
				book := a
				if i%2 == 1 {
					book = b
				}
				var err error
				if won[i], err = book.LeaseProbe(context.Background(), 1, time.Second); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		n := 0
		for _, w := range won {
			if w {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%d probes were leased", n)
		}
		refresh(t, a)
		changes = fold(t, d, a, results(a, 1, breaker.Taken, 2)...) // the second one is stale by then
		if len(changes) != 1 || changes[0].To != breaker.Closed {
			t.Fatalf("changes %+v", changes)
		}
		refresh(t, b)
		if g := b.Gate(1); !g.Flow || g.Release.PerSecond == 0 {
			t.Errorf("the other node lets it flow at once: %+v", g)
		}
		history, err := breaker.History(t.Context(), d, 1, 0, 10)
		if err != nil || len(history) != 3 || history[0].Cause != breaker.ProbeTaken || history[2].Cause != breaker.InARow {
			t.Errorf("history %+v, %v", history, err)
		}
		var heard []breaker.Change
		for range 2 {
			err = d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
				more, err := breaker.Unheard(ctx, tx, d)
				heard = append(heard, more...)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(heard) != 2 { // opened and closed; a probe is no news
			t.Errorf("heard %+v", heard)
		}
	})
}

func TestAPersonsBreakerStaysUntilAPersonClosesIt(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newCache(d, time.Millisecond)
		act := func(what breaker.Act) error {
			return d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				return b.ByPerson(ctx, tx, 5, what, "wang.min", "their server is being moved")
			})
		}
		if err := act(breaker.CloseIt); !errors.Is(err, breaker.ErrAlready) {
			t.Errorf("closing what is closed: %v", err)
		}
		if err := act(breaker.OpenIt); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		if g := b.Gate(5); g.Due || g.Flow {
			t.Errorf("it would be probed although a person opened it: %+v", g)
		}
		if won, err := b.LeaseProbe(t.Context(), 5, time.Second); won || err != nil {
			t.Errorf("probe leased: %t, %v", won, err)
		}
		if err := act(breaker.ProbeIt); err != nil {
			t.Fatal(err)
		}
		if g := b.Gate(5); !g.Due {
			t.Errorf("a person's probe: %+v", g)
		}
		if err := act(breaker.CloseIt); err != nil {
			t.Fatal(err)
		}
		// It survives a restart: another book reads the same.
		again := newCache(d, time.Minute)
		refresh(t, again)
		if g := again.Gate(5); !g.Flow || g.Release.PerSecond == 0 {
			t.Errorf("after a restart: %+v", g)
		}
		h, err := breaker.History(t.Context(), d, 5, 0, 10)
		if err != nil || len(h) != 3 || h[2].Actor != "wang.min" || h[2].Reason == "" {
			t.Errorf("history %+v, %v", h, err)
		}
	})
}

func TestFoldsOfTwoNodesDoNotDeadlock(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		caches := []*breaker.Cache{newCache(d, time.Minute), newCache(d, time.Minute)}
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				for range 20 {
					b := caches[n%2]
					var samples []breaker.Sample
					for m := int64(9); m > 0; m-- {
						if n%3 == 0 {
							samples = append(samples, breaker.Sample{MerchantID: 10 - m, Result: breaker.Failed})
						} else {
							samples = append(samples, breaker.Sample{MerchantID: m, Result: breaker.Failed})
						}
					}
					fold := func() error {
						return d.Tx(context.Background(), func(ctx context.Context, tx db.Tx) error {
							_, err := b.Fold(ctx, tx, samples)
							return err
						})
					}
					err := fold()
					for err != nil && strings.Contains(err.Error(), "55P03") { // it waited too long on a slow machine, which is no deadlock
						err = fold()
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if n := count(t, d, "SELECT count(*) FROM breaker_history"); n != 9 {
			t.Errorf("%d changes, want one per merchant", n)
		}
	})
}

// A breaker that has been closed for a while leaves the nodes' copies. What fails
// from then on counts from the first failure, as for a merchant without a row.
func TestFailuresCountAgainLongAfterItClosed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newCache(d, time.Millisecond)
		fold(t, d, b, results(b, 1, breaker.Failed, 3)...)
		time.Sleep(2 * time.Millisecond)
		if ok, err := b.LeaseProbe(t.Context(), 1, time.Second); !ok || err != nil {
			t.Fatalf("%t, %v", ok, err)
		}
		fold(t, d, b, results(b, 1, breaker.Taken, 1)...)
		if _, err := d.NewRaw("UPDATE breakers SET updated_at = 1, changed_at = 1").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		fresh := newCache(d, time.Hour)
		refresh(t, fresh)
		if r := fresh.Of(1); r != nil {
			t.Fatalf("it is still in the copy: %+v", r)
		}
		early := results(fresh, 1, breaker.Failed, 3) // they all began before any was known
		fold(t, d, fresh, early...)
		if r := fresh.Of(1); r.State != breaker.Open {
			t.Errorf("after three failures in a row: %+v", r)
		}
		// What began as early and comes in later changes nothing any more.
		fold(t, d, fresh, early...)
		if n := count(t, d, "SELECT count(*) FROM breaker_history WHERE to_state = 'open'"); n != 2 {
			t.Errorf("opened %d times", n)
		}
	})
}

// after runs something once, when the next query is over.
type after struct {
	once sync.Once
	do   func()
}

func (a *after) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (a *after) AfterQuery(context.Context, *bun.QueryEvent) {
	a.once.Do(a.do)
}

// What this node writes down while it reads is in its copy after that: a breaker
// that has just opened must not flow until the next look.
func TestARefreshLosesNothingThatIsWrittenMeanwhile(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newCache(d, time.Hour)
		read := d.Read
		d.Read = d.Read.WithQueryHook(&after{do: func() { fold(t, d, b, results(b, 1, breaker.Failed, 3)...) }})
		refresh(t, b)
		if b.Gate(1).Flow {
			t.Error("it has opened, and flows")
		}
		d.Read = read
		refresh(t, b)
		if b.Gate(1).Flow {
			t.Error("it is open, and flows")
		}
	})
}
