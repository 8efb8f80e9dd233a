package notify_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"
)

// wanted is a merchant with an open breaker and notifications that wait for it. The node that
// takes the operator's acts is not the one that sends.
type wanted struct {
	*paymenttest.Fixture
	t           *testing.T
	here, there *breaker.Cache
	ch          *fakeChannel
	says        atomic.Pointer[func(int, notify.Message) notify.Result]
	ids         []int64 // of the deliveries, oldest first
}

func newWanted(t *testing.T, d *db.DB) *wanted {
	f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{3_600_000, 3_600_000, 3_600_000, 3_600_000}})
	p := breaker.Policy{Failures: 3, Open: time.Hour, Window: time.Minute}
	w := &wanted{Fixture: f, t: t, here: newBreakers(f, p), there: newBreakers(f, p)}
	w.answer(func(int, notify.Message) notify.Result { return notify.Result{Class: notify.BadStatus, Status: 500} })
	w.ch = &fakeChannel{answer: func(n int, m notify.Message) notify.Result { return (*w.says.Load())(n, m) }}
	disp := dispatcherWith(t, f, w.ch, 10, w.there)
	for _, n := range paid(t, f, 8) {
		w.ids = append(w.ids, n.Delivery)
	}
	disp.Pull([]int64{f.M1.ID})
	waittest.Until(t, "the breaker opens", func() bool { return w.there.Of(f.M1.Recipient()).Tripped() && disp.InFlight() == 0 })
	if err := w.here.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	tick(t, f, w.there, disp)
	return w
}

// probe makes one delivery due and leases the probe for it.
func (w *wanted) probe(id int64) error {
	w.t.Helper()
	return w.DB.Tx(w.t.Context(), func(ctx context.Context, tx db.Tx) error {
		if _, err := notify.Resend(ctx, tx, w.DB, id); err != nil {
			return err
		}
		return w.here.ProbeWith(ctx, tx, w.M1.Recipient(), id, "operator:li", "their server is back")
	})
}

// answer is what the merchant says from now on.
func (w *wanted) answer(with func(int, notify.Message) notify.Result) { w.says.Store(&with) }

// attempts is how often a delivery was tried.
func (w *wanted) attempts(id int64) int64 {
	return w.Count(w.t, "SELECT attempts FROM deliveries WHERE id = ?", id)
}

func TestTheNotificationThatAnOperatorChoosesIsTheProbe(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWanted(t, d)
		sent, mine := w.ch.count(), w.ids[5]
		before := w.attempts(mine)
		if err := w.probe(mine); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "it was tried, and the breaker is open again", func() bool {
			r, err := breaker.Read(t.Context(), d, w.M1.Recipient())
			if err != nil {
				t.Fatal(err)
			}
			return r.State == breaker.Open && r.Cause == breaker.ProbeFailed
		})
		if w.ch.count() != sent+1 || w.attempts(mine) != before+1 {
			t.Errorf("%d were sent, the one that was wanted %d times", w.ch.count()-sent, w.attempts(mine)-before)
		}
		history, err := breaker.History(t.Context(), d, w.M1.Recipient(), 2)
		if err != nil || history[1].To != breaker.HalfOpen || history[1].Actor != "operator:li" || history[1].Reason == "" {
			t.Errorf("the history is %+v, %v", history, err)
		}
		w.answer(func(int, notify.Message) notify.Result { return notify.Result{Class: notify.OK, Status: 200} })
		if err := w.probe(w.ids[6]); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "the breaker is closed", func() bool {
			return w.Count(t, "SELECT count(*) FROM breakers WHERE state = 'closed' AND cause = 'probe_taken'") == 1
		})
		w.Want(t, 1, "SELECT count(*) FROM deliveries WHERE id = ? AND status = 'delivered'", w.ids[6])
	})
}

// Of two that request a probe, one comes first. A probe that never ends, as its node died, is
// over when its lease is, and then the breaker goes on by itself.
func TestAWantedProbeIsLeasedAndItsLeaseEnds(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWanted(t, d)
		begun, goOn := make(chan string, 1), make(chan struct{})
		defer close(goOn)
		var hangs atomic.Bool
		hangs.Store(true)
		w.answer(func(_ int, m notify.Message) notify.Result {
			if hangs.Swap(false) {
				begun <- m.ID
				<-goOn
			}
			return notify.Result{Class: notify.BadStatus, Status: 500}
		})
		if err := w.probe(w.ids[3]); err != nil {
			t.Fatal(err)
		}
		<-begun
		sent := w.ch.count()
		if err := w.probe(w.ids[4]); !errors.Is(err, breaker.ErrProbing) {
			t.Errorf("a second probe: %v", err)
		}
		waittest.Stays(t, "nothing is sent besides it for four ticks", 200*time.Millisecond, func() bool { return w.ch.count() == sent })
		for _, q := range []string{"UPDATE breakers SET probe_until = ?", "UPDATE deliveries SET next_at = ? WHERE status <> 'sending'"} {
			if _, err := d.NewRaw(q, d.Now()).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		waittest.Until(t, "another one is the probe and fails", func() bool {
			return w.ch.count() == sent+1 && w.Count(t, "SELECT count(*) FROM breakers WHERE state = 'open'") == 1
		})
		if err := w.probe(w.ids[4]); err != nil {
			t.Errorf("and then: %v", err)
		}
	})
}

// A node of an earlier version moves breakers on without looking at requested probes.
func TestWhatWasWantedInAnEarlierGenerationSaysNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		b := newBreakers(f, strict)
		for _, q := range []string{
			"INSERT INTO breakers (owner_id, state, generation, probe_until, updated_at) VALUES (1, 'half_open', 4, 9223372036854775807, 1)",
			"INSERT INTO breaker_probes (owner_id, generation, delivery_id) VALUES (1, 3, 77)",
		} {
			if _, err := d.NewRaw(q).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		gate := func() breaker.Gate {
			t.Helper()
			if err := b.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			return b.Gate(recipient.OfMerchant(1))
		}
		if g := gate(); g.Probe || g.Delivery != 0 {
			t.Errorf("it is still wanted: %+v", g)
		}
		if _, err := d.NewRaw("UPDATE breaker_probes SET generation = 4").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if g := newBreakers(f, strict); g.Refresh(t.Context()) != nil || g.Gate(recipient.OfMerchant(1)).Delivery != 77 {
			t.Errorf("%+v: this test tests nothing", g.Gate(recipient.OfMerchant(1)))
		}
		// A node that has leased the probe for itself sends what it chooses.
		if _, err := d.NewRaw("UPDATE breakers SET probe_owner = 9").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if g := newBreakers(f, strict); g.Refresh(t.Context()) != nil || g.Gate(recipient.OfMerchant(1)).Probe {
			t.Errorf("%+v", g.Gate(recipient.OfMerchant(1)))
		}
	})
}
