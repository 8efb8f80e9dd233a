package notify_test

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
)

// busy is a fake channel whose hosts ask to be left alone, each once and for so long.
type busy struct {
	fakeChannel
	mu    sync.Mutex
	after map[string]time.Duration
}

func newBusy(after map[string]time.Duration) *busy {
	b := &busy{after: after}
	b.answer = func(_ int, m notify.Message) notify.Result {
		b.mu.Lock()
		defer b.mu.Unlock()
		u, err := url.Parse(m.URL)
		if err != nil {
			return notify.Result{Class: notify.Internal, Error: err.Error()}
		}
		if wait := b.after[u.Host]; wait > 0 {
			delete(b.after, u.Host)
			return notify.Result{Class: notify.BadStatus, Status: 429, Error: "answered 429", RetryAfter: wait}
		}
		return notify.Result{Class: notify.OK, Status: 200}
	}
	return b
}

// asksToWait sends one order's notification, to which the address answers that it wants to wait.
func asksToWait(t *testing.T, f *paymenttest.Fixture, disp *notify.Dispatcher) {
	t.Helper()
	disp.Offer(paid(t, f, 1))
	waittest.Until(t, "the first answer is stored", func() bool {
		return f.Count(t, "SELECT count(*) FROM endpoint_waits") == 1 && disp.InFlight() == 0
	})
}

// due counts what a node could claim now, or has claimed.
func due(t *testing.T, f *paymenttest.Fixture) int64 {
	return f.Count(t, "SELECT count(*) FROM deliveries WHERE next_at <= ? OR status = 'sending'", f.DB.Now())
}

func TestAnAddressThatAsksToWaitGetsNothingMeanwhile(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const others = 30
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{10}})
		ch := newBusy(map[string]time.Duration{"m1.test": time.Hour})
		disp := dispatcher(t, f, ch, 10)
		asksToWait(t, f, disp)
		f.Want(t, 1, "SELECT count(*) FROM deliveries WHERE status = 'retry_wait' AND attempts = 1 AND next_at ="+
			" (SELECT w.until FROM endpoint_waits AS w WHERE w.origin = 'http://m1.test' AND w.recipient_id = ?)", f.M1.ID)
		nudges := paid(t, f, others)
		disp.Offer(nudges)
		pull := func() { disp.Offer(nudges); disp.Pull([]int64{f.M1.ID}) }
		waittest.Until(t, "nothing is due", func() bool { pull(); return due(t, f) == 0 && disp.InFlight() == 0 })
		waittest.Stays(t, "none is claimed", 200*time.Millisecond, func() bool {
			pull()
			return ch.count() == 1 && f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'queued' AND attempts = 0") == others
		})
	})
}

func TestAfterTheWaitEverythingIsSent(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const others, asked = 10, time.Second
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{10}})
		ch := newBusy(map[string]time.Duration{"m1.test": asked})
		disp := dispatcher(t, f, ch, 10)
		asksToWait(t, f, disp)
		paid(t, f, others)
		waittest.Until(t, "all are notified", func() bool { disp.Pull([]int64{f.M1.ID}); return delivered(f, t) == others+1 })
		if waited := ch.times[1].Sub(ch.times[0]); waited < asked-50*time.Millisecond {
			t.Errorf("the next attempt came after %s", waited)
		}
		f.Want(t, others, "SELECT count(*) FROM deliveries WHERE attempts = 1")
		f.Want(t, others+2, "SELECT count(*) FROM "+notify.AllAttempts+" AS na")
	})
}

// The schedule holds if it is longer.
func TestTheLaterOfScheduleAndWaitCounts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{3_600_000}})
		disp := dispatcher(t, f, newBusy(map[string]time.Duration{"m1.test": time.Minute}), 10)
		asksToWait(t, f, disp)
		f.Want(t, 1, "SELECT count(*) FROM deliveries WHERE next_at > ?", d.Now()+50*time.Minute.Microseconds())
	})
}

// A node learns from the database what another one was asked, as it starts or while it runs.
func TestAllNodesWait(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{10}})
		ch := newBusy(map[string]time.Duration{"m1.test": time.Hour})
		one, two := dispatcher(t, f, ch, 10), dispatcher(t, f, ch, 10)
		asksToWait(t, f, one)
		waittest.Until(t, "the other node has read it", func() bool { return notify.AddressWaits(two) == 1 })
		three := dispatcher(t, f, ch, 10)
		for _, n := range []*notify.Dispatcher{two, three} {
			n.Offer(paid(t, f, 5))
			waittest.Until(t, "nothing is due", func() bool { return due(t, f) == 0 && n.InFlight() == 0 })
		}
		f.Want(t, 10, "SELECT count(*) FROM deliveries WHERE status = 'queued' AND attempts = 0")
		if ch.count() != 1 {
			t.Errorf("%d attempts, want 1", ch.count())
		}
	})
}

// A wait ends when its latest answer said: an earlier, longer one is not shortened.
func TestAWaitOnlyGrows(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{10}})
		ch := newBusy(map[string]time.Duration{"m1.test": time.Hour})
		one := dispatcher(t, f, ch, 10)
		asksToWait(t, f, one)
		first := f.Count(t, "SELECT until FROM endpoint_waits")
		for _, wait := range []time.Duration{time.Minute, 2 * time.Hour} {
			ch.mu.Lock()
			ch.after["m1.test"] = wait
			ch.mu.Unlock()
			n := ch.count()
			resendByPerson(t, f, one, f.Count(t, "SELECT min(id) FROM deliveries"))
			waittest.Until(t, "it was sent", func() bool { return ch.count() == n+1 && one.InFlight() == 0 })
			if until := f.Count(t, "SELECT until FROM endpoint_waits"); (until > first) != (wait > time.Hour) {
				t.Errorf("after %s: %d s later", wait, (until-first)/1e6)
			}
		}
	})
}

func TestOtherAddressesAreUsedMeanwhile(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{WaitsMS: []int64{10, 10}})
		routed(t, f, func(s *merchant.Settings) { s.URLs = []string{"http://a.test/n", "http://b.test/n"} })
		ch := newBusy(map[string]time.Duration{"a.test": 2 * time.Hour})
		disp := dispatcher(t, f, ch, 1)
		paid(t, f, 10)
		drain(t, f, disp)
		f.Want(t, 10, "SELECT count(*) FROM deliveries WHERE status = 'delivered'")
		f.Want(t, 11, "SELECT sum(attempts) FROM deliveries") // the one that was answered by 429 went on to the other address
		for _, m := range ch.sent[1:] {
			if m.URL != "http://b.test/n" {
				t.Errorf("sent to %s", m.URL)
			}
		}
		// The other one asks as well: now all wait, for the wait that ends first.
		ch.mu.Lock()
		ch.after["b.test"] = time.Hour
		ch.mu.Unlock()
		disp.Offer(paid(t, f, 1))
		waittest.Until(t, "it waits uncounted", func() bool {
			disp.Pull([]int64{f.M1.ID})
			return f.Count(t, "SELECT count(*) FROM deliveries WHERE attempts = 1 AND next_at ="+
				" (SELECT w.until FROM endpoint_waits AS w WHERE w.origin = 'http://b.test')") == 1
		})
	})
}

// Scheme, host and port are the address: whichever endpoint or order it belongs to, and of one
// recipient only.
func TestAnAddressIsAnOriginOfARecipient(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{10}})
		subscribe(t, f, "crm", "order.paid")
		reconfigure(t, f, "UPDATE subscriptions SET notify = ?",
			`{"urls":["http://m1.test/crm"],"ack":"status","waits_ms":[10],"timeout_ms":2000,"max_in_flight":5}`)
		disp := dispatcher(t, f, newBusy(map[string]time.Duration{"m1.test": time.Hour}), 1)
		own := []string{
			"http://m1.test/n", "http://M1.test:80/other?order=1", "http://m1.test?x", // wait
			"https://m1.test/n", "http://m1.test:8080/n", "http://m1.test.example/n", "http://other.test/n",
		}
		nudges := slices.DeleteFunc(paid(t, f, len(own)), func(n queue.Nudge) bool { return n.Recipient != f.M1.ID })
		for i, n := range nudges {
			if _, err := d.NewRaw("UPDATE deliveries SET url = ? WHERE id = ?", own[i], n.Delivery).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		disp.Offer(nudges[:1])
		waittest.Until(t, "the first answer is stored", func() bool { return f.Count(t, "SELECT count(*) FROM endpoint_waits") == 1 })
		drainBut(t, f, disp, 3)
		f.Want(t, 3, "SELECT count(*) FROM deliveries WHERE NOT to_subscriber AND next_at = (SELECT w.until FROM endpoint_waits AS w)"+
			" AND url IN ('http://m1.test/n', 'http://M1.test:80/other?order=1', 'http://m1.test?x')")
		f.Want(t, 7, "SELECT count(*) FROM deliveries WHERE to_subscriber AND status = 'delivered'")
	})
}

// drainBut delivers until only so many wait.
func drainBut(t *testing.T, f *paymenttest.Fixture, disp *notify.Dispatcher, n int64) {
	t.Helper()
	waittest.Until(t, "only some wait", func() bool {
		owners, _, err := notify.DueRecipients(t.Context(), f.DB, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		disp.Pull(owners)
		return f.Count(t, "SELECT count(*) FROM deliveries WHERE next_at IS NOT NULL OR status = 'sending'") == n && due(t, f) == 0
	})
}

// resendByPerson resends deliveries in one act.
func resendByPerson(t *testing.T, f *paymenttest.Fixture, disp *notify.Dispatcher, ids ...int64) {
	t.Helper()
	kind := notify.Acts{DB: f.DB, Directory: f.Settings.Merchants, Breakers: forgiving(f.DB), Nudge: disp.Offer}.Kinds()[0]
	params, err := kind.Params.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	refs := make([]act.Ref, len(ids))
	for i, id := range ids {
		refs[i].Row = id
	}
	err = f.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		subjects, err := kind.Load(ctx, tx, refs)
		if err == nil {
			_, err = kind.Do(ctx, tx, act.Input{Params: params}, subjects)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatAPersonResendsDoesNotWaitAndABatchDoes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{10}})
		ch := newBusy(map[string]time.Duration{"m1.test": time.Hour})
		disp := dispatcher(t, f, ch, 10)
		asksToWait(t, f, disp)
		disp.Offer(paid(t, f, 3))
		waittest.Until(t, "all wait", func() bool { return due(t, f) == 0 && disp.InFlight() == 0 })
		var ids []int64
		if err := d.NewRaw("SELECT id FROM deliveries ORDER BY id").Scan(t.Context(), &ids); err != nil {
			t.Fatal(err)
		}
		resendByPerson(t, f, disp, ids[2], ids[3])
		waittest.Until(t, "a batch waits", func() bool { return due(t, f) == 0 && disp.InFlight() == 0 })
		f.Want(t, 2, "SELECT count(*) FROM deliveries WHERE id IN (?, ?) AND attempts = 0", ids[2], ids[3])
		resendByPerson(t, f, disp, ids[0]) // keeps its place in the schedule
		resendByPerson(t, f, disp, ids[1]) // was never tried
		waittest.Until(t, "they are notified", func() bool { return delivered(f, t) == 2 })
		f.Want(t, 2, "SELECT count(*) FROM deliveries WHERE status = 'delivered' AND id IN (?, ?) AND last_class = 'ok'", ids[0], ids[1])
		if ch.count() != 3 {
			t.Errorf("%d attempts, want 3", ch.count())
		}
		f.Want(t, 1, "SELECT count(*) FROM endpoint_waits WHERE until > ?", d.Now()) // a success does not end it

		m := f.Settings.Merchants().ByCode("m1")
		answer, err := notify.Pinger{DB: d, Channels: webhooks(ch)}.Ping(t.Context(), m, &m.Endpoints[0], d.NewID())
		if err != nil || answer.Attempt.Class != notify.OK {
			t.Errorf("a ping: %s, %v", answer.Attempt.Class, err)
		}
	})
}

// What is created meanwhile is due after the wait from the start, without a claim.
func TestWhatIsCreatedMeanwhileIsDueAfterTheWait(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ch := newBusy(map[string]time.Duration{"m1.test": time.Hour})
		f, here := together(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{10}}, ch, 10, forgiving(d))
		pay(t, f)
		waittest.Until(t, "the first answer is stored", func() bool {
			return f.Count(t, "SELECT count(*) FROM endpoint_waits") == 1 && here.InFlight() == 0
		})
		for range 3 {
			pay(t, f)
		}
		f.Want(t, 3, "SELECT count(*) FROM deliveries WHERE status = 'queued' AND attempts = 0 AND next_at = (SELECT w.until FROM endpoint_waits AS w)")
	})
}

// A merchant that asks for fewer notifications is not down; one that answers 503 may be.
func TestTooManyRequestsIsNoFailureForTheBreaker(t *testing.T) {
	t.Parallel()
	for status, opens := range map[int]bool{429: false, 503: true} {
		for _, wait := range []time.Duration{0, time.Minute} {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
				ch := &fakeChannel{answer: func(int, notify.Message) notify.Result {
					return notify.Result{Class: notify.BadStatus, Status: status, RetryAfter: wait}
				}}
				b := newBreakers(f, breaker.Policy{Failures: 3, Open: time.Hour, Window: time.Minute, RatePercent: 50, MinSamples: 3})
				disp := dispatcherWith(t, f, ch, 10, b)
				nudges := paid(t, f, 4)
				waittest.Until(t, "four are exhausted, or it opens", func() bool {
					if _, err := d.NewRaw("DELETE FROM endpoint_waits").Exec(t.Context()); err != nil {
						t.Fatal(err)
					}
					notify.ForgetWaits(disp)
					if _, err := d.NewRaw("UPDATE deliveries SET next_at = ? WHERE next_at > ? AND status = 'queued'", d.Now(), d.Now()).Exec(
						t.Context()); err != nil {
						t.Fatal(err)
					}
					disp.Offer(nudges)
					return f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'exhausted'") == 4 || b.Of(f.M1.Recipient()).Tripped()
				})
				if got := f.Count(t, "SELECT count(*) FROM breakers WHERE state = 'open'") == 1; got != opens {
					t.Errorf("%d, wait %s: the breaker opened: %t", status, wait, got)
				}
			})
		}
	}
}

// A probe that must wait is none: no other attempt is made for it, and none when it is over
// but for the address that works.
func TestAProbeWaitsToo(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{10}})
		ch := newBusy(map[string]time.Duration{"m1.test": 2 * time.Second})
		answer := ch.answer
		ch.answer = func(n int, m notify.Message) notify.Result {
			r := answer(n, m)
			if r.Status == 429 {
				r.Status = 503
			}
			return r
		}
		b := newBreakers(f, breaker.Policy{Failures: 1, Open: 200 * time.Millisecond, Window: time.Minute})
		disp := dispatcherWith(t, f, ch, 10, b)
		tick(t, f, b, disp)
		asksToWait(t, f, disp)
		paid(t, f, 5)
		waittest.Until(t, "all are notified", func() bool { return delivered(f, t) == 6 })
		if waited := ch.times[1].Sub(ch.times[0]); waited < 2*time.Second-50*time.Millisecond {
			t.Errorf("the probe came after %s", waited)
		}
		f.Want(t, 7, "SELECT sum(attempts) FROM deliveries")
	})
}
