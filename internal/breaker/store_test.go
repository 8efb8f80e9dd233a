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
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/recipient"

	"github.com/uptrace/bun"
)

var one, five = recipient.OfMerchant(1), recipient.OfMerchant(5)

func newCache(d *db.DB, open time.Duration) *breaker.Cache {
	return breaker.NewCache(d, func(recipient.Recipient) breaker.Policy {
		return breaker.Policy{Failures: 3, Open: open, RatePercent: 50, Window: time.Minute, MinSamples: 10}
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

func results(b *breaker.Cache, to recipient.Recipient, r breaker.Result, n int) []breaker.Sample {
	all := make([]breaker.Sample, n)
	for i := range all {
		all[i] = breaker.Sample{Recipient: to, Generation: b.Gate(to).Generation, Result: r}
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

func TestAHealthyRecipientCostsNoRow(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newCache(d, time.Minute)
		fold(t, d, b, results(b, one, breaker.Succeeded, 50)...)
		if n := count(t, d, "SELECT count(*) FROM breakers"); n != 0 {
			t.Errorf("%d rows", n)
		}
		// Its successes count as soon as something fails: 9 of 59 is not a rate that opens.
		two := results(b, one, breaker.Failed, 2)
		ok := results(b, one, breaker.Succeeded, 1)
		for range 4 {
			fold(t, d, b, append(two, ok...)...)
		}
		if r := b.Of(one); r.State != breaker.Closed || r.WindowOK < 50 {
			t.Errorf("%+v", r)
		}
	})
}

func TestTwoNodesShareOneBreaker(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, b := newCache(d, time.Hour), newCache(d, time.Hour)
		fold(t, d, a, results(a, one, breaker.Failed, 2)...)
		changes := fold(t, d, b, results(b, one, breaker.Failed, 1)...) // the third in a row, seen by the other node
		if len(changes) != 1 || changes[0].To != breaker.Open || changes[0].Failures != 3 {
			t.Fatalf("changes %+v", changes)
		}
		if a.Of(one).Tripped() {
			t.Fatal("the first node cannot have seen it yet")
		}
		refresh(t, a)
		if !a.Of(one).Tripped() || a.Gate(one) != (breaker.Gate{Generation: 1}) {
			t.Fatalf("the first node does not park: %+v", a.Gate(one))
		}
		fold(t, d, a, breaker.Sample{Recipient: one, Generation: 0, Result: breaker.Succeeded}) // began before it opened
		if r := a.Of(one); r.State != breaker.Open {
			t.Fatalf("a stale success closed it: %+v", r)
		}
		// Its time is over.
		if _, err := d.NewRaw("UPDATE breakers SET open_until = ?", d.Now()).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		refresh(t, a)
		refresh(t, b)
		// Both want the probe; one gets it.
		won := make([]bool, 8)
		var wg sync.WaitGroup
		for i := range won {
			wg.Go(func() {
				cache := a
				if i%2 == 1 {
					cache = b
				}
				if err := dbtest.Repeat(func() (err error) {
					won[i], err = cache.LeaseProbe(context.Background(), one, time.Second)
					return err
				}); err != nil {
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
		changes = fold(t, d, a, results(a, one, breaker.Succeeded, 2)...) // the second one is stale by then
		if len(changes) != 1 || changes[0].To != breaker.Closed {
			t.Fatalf("changes %+v", changes)
		}
		refresh(t, b)
		if g := b.Gate(one); !g.Flow || g.PerSecond == 0 {
			t.Errorf("the other node sends without a limit at once: %+v", g)
		}
		history, err := breaker.History(t.Context(), d, one, 10)
		if err != nil || len(history) != 3 || history[0].Cause != breaker.ProbeTaken || history[2].Cause != breaker.InARow {
			t.Errorf("history %+v, %v", history, err)
		}
		var unalerted []breaker.Change
		for range 2 {
			err = d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
				more, err := breaker.TakeUnalerted(ctx, tx, d)
				unalerted = append(unalerted, more...)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(unalerted) != 2 { // opened and closed; probes do not count
			t.Errorf("unalerted are %+v", unalerted)
		}
	})
}

func TestABreakerOpenedByAnOperatorStaysUntilOneClosesIt(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newCache(d, time.Millisecond)
		act := func(what breaker.Act) error {
			return d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				return b.ByOperator(ctx, tx, five, what, "wang.min", "their server is being moved")
			})
		}
		if err := act(breaker.CloseIt); !errors.Is(err, breaker.ErrAlready) {
			t.Errorf("closing what is closed: %v", err)
		}
		if err := act(breaker.OpenIt); err != nil {
			t.Fatal(err)
		}
		waittest.Stays(t, "what an operator opened is not probed", 10*time.Millisecond, func() bool {
			g := b.Gate(five)
			return !g.Due && !g.Flow
		})
		if won, err := b.LeaseProbe(t.Context(), five, time.Second); won || err != nil {
			t.Errorf("probe leased: %t, %v", won, err)
		}
		if err := act(breaker.ProbeIt); err != nil {
			t.Fatal(err)
		}
		if g := b.Gate(five); !g.Due {
			t.Errorf("an operator's probe: %+v", g)
		}
		if err := act(breaker.CloseIt); err != nil {
			t.Fatal(err)
		}
		// It survives a restart: another cache reads the same.
		again := newCache(d, time.Minute)
		refresh(t, again)
		if g := again.Gate(five); !g.Flow || g.PerSecond == 0 {
			t.Errorf("after a restart: %+v", g)
		}
		h, err := breaker.History(t.Context(), d, five, 10)
		if err != nil || len(h) != 3 || h[2].Actor != "wang.min" || h[2].Reason == "" {
			t.Errorf("history %+v, %v", h, err)
		}
	})
}

func TestFoldsOfTwoNodesDoNotDeadlock(t *testing.T) {
	t.Parallel()
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
							samples = append(samples, breaker.Sample{Recipient: recipient.OfMerchant(10 - m), Result: breaker.Failed})
						} else {
							samples = append(samples, breaker.Sample{Recipient: recipient.OfMerchant(m), Result: breaker.Failed})
						}
					}
					fold := func() error {
						return d.Tx(context.Background(), func(ctx context.Context, tx db.Tx) error {
							_, err := b.Fold(ctx, tx, samples)
							return err
						})
					}
					err := fold()
					for err != nil &&
						strings.Contains(err.Error(), "55P03") { // it waited too long on a slow machine, which is not a deadlock
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

// A breaker that has been closed for a while leaves the nodes' copies. From then on failures
// count from the first one, as for a merchant without a row.
func TestFailuresCountAgainLongAfterItClosed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newCache(d, time.Millisecond)
		fold(t, d, b, results(b, one, breaker.Failed, 3)...)
		waittest.Until(t, "a probe is due", func() bool { return b.Gate(one).Due })
		if ok, err := b.LeaseProbe(t.Context(), one, time.Second); !ok || err != nil {
			t.Fatalf("%t, %v", ok, err)
		}
		fold(t, d, b, results(b, one, breaker.Succeeded, 1)...)
		if _, err := d.NewRaw("UPDATE breakers SET updated_at = 1, changed_at = 1").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		fresh := newCache(d, time.Hour)
		refresh(t, fresh)
		if r := fresh.Of(one); r != nil {
			t.Fatalf("it is still in the copy: %+v", r)
		}
		early := results(fresh, one, breaker.Failed, 3) // they all began before any was known
		fold(t, d, fresh, early...)
		if r := fresh.Of(one); r.State != breaker.Open {
			t.Errorf("after three failures in a row: %+v", r)
		}
		// Results that began as early and arrive later change nothing any more.
		fold(t, d, fresh, early...)
		if n := count(t, d, "SELECT count(*) FROM breaker_history WHERE to_state = 'open'"); n != 2 {
			t.Errorf("opened %d times", n)
		}
	})
}

// after runs something once, when the next query has ended.
type after struct {
	once sync.Once
	do   func()
}

func (a *after) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (a *after) AfterQuery(context.Context, *bun.QueryEvent) {
	a.once.Do(a.do)
}

// Rows that this node writes during a refresh are in its copy afterwards: a breaker that has
// just opened must not let anything through until the next refresh.
func TestARefreshLosesNothingThatIsWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newCache(d, time.Hour)
		read := d.Read
		d.Read = d.Read.WithQueryHook(&after{do: func() { fold(t, d, b, results(b, one, breaker.Failed, 3)...) }})
		refresh(t, b)
		if b.Gate(one).Flow {
			t.Error("it has opened, and flows")
		}
		d.Read = read
		refresh(t, b)
		if b.Gate(one).Flow {
			t.Error("it is open, and flows")
		}
	})
}

// The end from which a probe is taken depends on the number of failed probes: every node counts
// those of the others, and all start again when the breaker reopens.
func TestFailedProbesAreCountedOnAllNodesUntilItCloses(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, b := newCache(d, 0), newCache(d, 0)
		probe := func(r breaker.Result) {
			t.Helper()
			if ok, err := a.LeaseProbe(t.Context(), one, time.Second); !ok || err != nil {
				t.Fatalf("%t, %v", ok, err)
			}
			fold(t, d, a, results(a, one, r, 1)...)
		}
		want := func(n int) {
			t.Helper()
			refresh(t, b)
			refresh(t, b) // the same row again counts nothing
			if x, y := a.Of(one), b.Of(one); x.FailedProbes != n || y.FailedProbes != n {
				t.Errorf("counted are %d on the node that probes and %d on the other, want %d", x.FailedProbes, y.FailedProbes, n)
			}
		}
		fold(t, d, a, results(a, one, breaker.Failed, 3)...)
		want(0)
		for n := range 3 {
			probe(breaker.Failed)
			want(n + 1)
		}
		probe(breaker.Succeeded)
		want(0)
		fold(t, d, a, results(a, one, breaker.Failed, 3)...)
		want(0)
		probe(breaker.Unclear)
		want(1)
	})
}

// Subscribers may have other rules than merchants.
func TestAPolicyIsThatOfTheRecipient(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		seller, follower := recipient.OfMerchant(1), recipient.Of(2, true)
		b := breaker.NewCache(d, func(to recipient.Recipient) breaker.Policy {
			p := breaker.Policy{Failures: 3, Open: time.Hour, Window: time.Minute}
			if to.IsSubscriber() {
				p.Failures = 1
			}
			return p
		})
		fold(t, d, b, results(b, seller, breaker.Succeeded, 1)...) // counted without a row
		fold(t, d, b, append(results(b, follower, breaker.Failed, 1), results(b, seller, breaker.Failed, 1)...)...)
		if b.Of(seller).Tripped() || !b.Of(follower).Tripped() {
			t.Errorf("of the merchant %+v, of the subscriber %+v", b.Of(seller), b.Of(follower))
		}
		rows, err := breaker.ReadAll(t.Context(), d.Read, []recipient.Recipient{seller, follower})
		if err != nil || len(rows) != 2 || rows[2].State != breaker.Open {
			t.Errorf("stored are %+v, %v", rows, err)
		}
	})
}
