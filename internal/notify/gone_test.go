package notify_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
)

// What waits for a merchant whose breaker is open, and who then is disabled or has no address
// left, cannot be delivered: it goes to the desk instead of being parked with one notification
// per probe without end.
func TestARecipientThatCannotBeCalledIsNotParked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*merchant.Merchant){
		"disabled": func(m *merchant.Merchant) { m.Disabled = true },
		"no address left": func(m *merchant.Merchant) {
			for i := range m.Endpoints {
				m.Endpoints[i].Disabled = true
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
				well := *f.M1
				well.Settings.WaitsMS = []int64{10}
				well.Endpoints = well.Settings.Addresses()
				changed := well
				changed.Endpoints = slices.Clone(well.Endpoints)
				change(&changed)
				var book atomic.Pointer[merchant.Directory]
				book.Store(merchant.NewDirectory([]*merchant.Merchant{&well}, nil))
				nudges := paid(t, f, 8)
				b := newBreakers(f, breaker.Policy{Failures: 1, Open: time.Hour, Window: time.Minute})
				ch := &fakeChannel{answer: func(int, notify.Message) notify.Result {
					return notify.Result{
						Class:  notify.BadStatus,
						Status: 500,
					}
				}}
				disp := crowdWith(t, f, book.Load, ch, 10, b)
				disp.Offer(nudges)
				waittest.Until(t, "it opens", func() bool { return b.Of(well.Recipient()).Tripped() && disp.InFlight() == 0 })
				sent := ch.count()
				disp.Pull([]int64{well.ID})
				waittest.Stays(t, "the breaker that is open parks", 50*time.Millisecond, func() bool { return ch.count() == sent })
				book.Store(merchant.NewDirectory([]*merchant.Merchant{&changed}, nil))
				waittest.Until(t, "all stand on the desk", func() bool {
					// A merchant that is disabled has a schedule of a day: skip the time.
					if _, err := d.NewRaw("UPDATE deliveries SET next_at = ? WHERE status = 'retry_wait'",
						d.Now()).Exec(t.Context()); err != nil {
						t.Error(err)
					}
					disp.Pull([]int64{well.ID})
					return f.Count(t, "SELECT count(*) FROM deliveries WHERE next_at IS NOT NULL") == 0
				})
				f.Want(t, 8, "SELECT count(*) FROM exceptions WHERE kind = 'notify_exhausted' AND state = 'open'")
				if ch.count() != sent {
					t.Errorf("%d were sent", ch.count()-sent)
				}
			})
		})
	}
}

// The orders of a merchant whose own addresses are all disabled may name another
// one. The breaker protects that too, and those without one still go to the desk.
func TestAnOrdersOwnURLIsProtectedWhereAllEndpointsAreDisabled(t *testing.T) {
	t.Parallel()
	const orders, desk = 12, 4
	begin := func(t *testing.T, d *db.DB, open time.Duration, answer func(int, notify.Message) notify.Result) (*paymenttest.Fixture,
		*fakeChannel, *notify.Dispatcher, func(),
	) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		m := *f.M1
		m.Settings.WaitsMS = slices.Repeat([]int64{10}, 100)
		m.Endpoints = m.Settings.Addresses()
		for i := range m.Endpoints {
			m.Endpoints[i].Disabled = true
		}
		book := merchant.NewDirectory([]*merchant.Merchant{&m}, nil)
		nudges := paid(t, f, orders)
		for i, n := range nudges {
			own := "http://own.test/n"
			if i < desk {
				own = ""
			}
			if _, err := d.NewRaw("UPDATE deliveries SET url = ? WHERE id = ?", own, n.Delivery).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ch := &fakeChannel{answer: answer}
		disp := crowdWith(t, f, func() *merchant.Directory { return book }, ch, 10,
			newBreakers(f, breaker.Policy{Failures: 1, Open: open, Window: time.Minute}))
		return f, ch, disp, func() { disp.Pull([]int64{m.ID}) }
	}
	refused := notify.Result{Class: notify.BadStatus, Status: 500}
	t.Run("open", func(t *testing.T) {
		dbtest.Each(t, func(t *testing.T, d *db.DB) {
			f, ch, _, pull := begin(t, d, time.Hour, func(int, notify.Message) notify.Result { return refused })
			pull()
			waittest.Until(t, "the one without an address has an open exception, and nothing else is due", func() bool {
				pull()
				return f.Count(t, "SELECT count(*) FROM deliveries WHERE next_at < ?", d.Now()+time.Minute.Microseconds()) == 0
			})
			f.Want(t, desk, "SELECT count(*) FROM exceptions WHERE kind = 'notify_exhausted' AND state = 'open'")
			f.Want(t, orders-desk,
				"SELECT count(*) FROM deliveries WHERE status IN ('queued', 'retry_wait') AND url <> '' AND lease_owner = 0")
			// Those that began before it opened, and no more.
			sent := int64(ch.count())
			if sent > 5 {
				t.Errorf("%d were called", sent)
			}
			f.Want(t, sent, "SELECT sum(attempts) FROM deliveries WHERE url <> ''")
		})
	})
	t.Run("probed", func(t *testing.T) {
		dbtest.Each(t, func(t *testing.T, d *db.DB) {
			const failing = 6
			f, ch, _, pull := begin(t, d, 100*time.Millisecond, func(n int, _ notify.Message) notify.Result {
				if n <= failing {
					return refused
				}
				return notify.Result{Class: notify.OK, Status: 200}
			})
			waittest.Until(t, "all are notified", func() bool {
				// What waits for the answer of a probe does so for as long as that may take.
				if _, err := d.NewRaw("UPDATE deliveries SET next_at = ? WHERE status IN ('queued', 'retry_wait') AND url <> ''",
					d.Now()).Exec(t.Context()); err != nil {
					t.Error(err)
				}
				pull()
				return delivered(f, t) == orders-desk
			})
			probes := f.Count(t, "SELECT count(*) FROM breaker_history WHERE to_state = 'half_open'")
			if first := failing + 1 - probes; first > 5 || first < 1 {
				t.Errorf("%d probes, so %d calls when it was not open", probes, first)
			}
			f.Want(t, 1, "SELECT count(*) FROM breaker_history WHERE cause = 'probe_taken'")
			if n := ch.count(); n != failing+orders-desk {
				t.Errorf("%d calls", n)
			}
		})
	})
}

// A process that was stopped for longer than its attempts may take finds them all timed out
// when it goes on. That parks no merchant; time-outs caused by merchants still do.
func TestAStandstillOfOursOpensNoBreaker(t *testing.T) {
	t.Parallel()
	for took, parks := range map[time.Duration]bool{2 * time.Second: true, 40 * time.Second: false} {
		t.Run(took.String(), func(t *testing.T) {
			f := paymenttest.New(t, dbtest.SQLite(t), paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{10, 10}})
			nudges := paid(t, f, 5)
			ch := &fakeChannel{answer: func(n int, _ notify.Message) notify.Result {
				if n <= 5 {
					return notify.Result{Class: notify.Timeout, Took: took}
				}
				return notify.Result{Class: notify.OK, Status: 200}
			}}
			b := newBreakers(f, breaker.Policy{Failures: 5, Open: time.Hour, Window: time.Minute})
			disp := dispatcherWith(t, f, ch, 10, b)
			disp.Offer(nudges)
			if parks {
				waittest.Until(t, "it opens", func() bool { return b.Of(f.M1.Recipient()).Tripped() })
				return
			}
			waittest.Until(t, "all are notified", func() bool { disp.Pull([]int64{f.M1.ID}); return delivered(f, t) == 5 })
			f.Want(t, 10, "SELECT count(*) FROM "+notify.AllAttempts+" AS na") // each try is on record
			f.Want(t, 0, "SELECT count(*) FROM breaker_history")
		})
	}
}

// A node whose own clock is wrong signs by the database's, or every merchant would
// refuse it. The node's clock leaves its monotonic reading in a time.
func TestAttemptsAreSignedByTheClockOfTheDatabase(t *testing.T) {
	t.Parallel()
	f := paymenttest.New(t, dbtest.SQLite(t), paymenttest.Options{URL: "http://m1.test/n"})
	nudges := paid(t, f, 1)
	ch := &fakeChannel{}
	dispatcher(t, f, ch, 10).Offer(nudges)
	waittest.Until(t, "it is notified", func() bool { return ch.count() == 1 })
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if at := ch.sent[0].At; strings.Contains(at.String(), " m=") || f.DB.NowTime().Sub(at).Abs() > time.Minute {
		t.Errorf("it is signed for %s", at)
	}
}

// An attempt that makes the code of its channel panic ends like any other: the node, and with
// it all other notifications, goes on.
func TestAChannelThatPanicsFailsItsAttemptOnly(t *testing.T) {
	t.Parallel()
	f := paymenttest.New(t, dbtest.SQLite(t), paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{10}})
	nudges := paid(t, f, 20)
	poisoned := notify.PublicID(f.Count(t, "SELECT min(subject_id) FROM deliveries"), "order.paid")
	ch := &fakeChannel{answer: func(_ int, m notify.Message) notify.Result {
		if m.ID == poisoned {
			panic("secret-canary")
		}
		return notify.Result{Class: notify.OK, Status: 200}
	}}
	disp := dispatcher(t, f, ch, 10)
	disp.Offer(nudges)
	waittest.Until(t, "all others are notified", func() bool { return delivered(f, t) == 19 })
	waittest.Until(t, "its exception is open", func() bool {
		disp.Pull([]int64{f.M1.ID})
		return f.Count(t, "SELECT count(*) FROM exceptions WHERE kind = 'notify_exhausted'") == 1
	})
	f.Want(t, 2, "SELECT count(*) FROM "+notify.AllAttempts+" AS na WHERE class = 'internal' AND error NOT LIKE '%canary%'")
	waittest.Until(t, "nothing is left", func() bool { return notify.Left(disp) == "" })
}
