package notify_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
)

// node is a dispatcher as one node has it: with its own settings and channels.
type node struct {
	*notify.Dispatcher
	book atomic.Pointer[merchant.Directory]
}

func newNode(t *testing.T, f *paymenttest.Fixture, book *merchant.Directory, channels map[string]notify.Channel) *node {
	n := &node{}
	n.book.Store(book)
	n.Dispatcher = notify.NewDispatcher(notify.Options{
		DB: f.DB, Breakers: forgiving(f.DB), Directory: n.book.Load, Channels: channels, Nudger: f.Nudger, Concurrency: 20,
		Timeout: 2 * time.Second,
		Log:     slog.New(slog.NewTextHandler(testOut{t}, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	t.Cleanup(func() { stop(n.Dispatcher, 5*time.Second) })
	return n
}

// changed is the fixture's m1 with a change.
func changed(f *paymenttest.Fixture, change func(*merchant.Merchant)) *merchant.Directory {
	m := *f.M1
	m.Endpoints = append([]merchant.Endpoint(nil), m.Endpoints...)
	change(&m)
	return merchant.NewDirectory([]*merchant.Merchant{&m}, nil)
}

func locked(m *merchant.Merchant) { m.Secrets, m.Locked = nil, true }

func webhooks(ch notify.Channel) map[string]notify.Channel {
	return map[string]notify.Channel{notify.Webhook: ch}
}

// blocked is a channel that may not reach the address.
func blocked() *fakeChannel {
	return &fakeChannel{answer: func(int, notify.Message) notify.Result {
		return notify.Result{Class: notify.Blocked, Error: "blocked: 10.0.0.1 is not public"}
	}}
}

// otherRanges pretends that another living node reaches the ranges.
func otherRanges(t *testing.T, d *db.DB, ranges string) {
	t.Helper()
	if err := d.Publish(t.Context(), db.Fingerprint{Ranges: "none"}); err != nil {
		t.Fatal(err)
	}
	_, err := d.NewRaw(
		"INSERT INTO nodes (slot, newest_migration, name, boot, started_at, seen_at, ranges) VALUES (900, 'x', 'n2', 9, 1, ?, ?) ON CONFLICT (slot) DO UPDATE SET ranges = EXCLUDED.ranges",
		d.Now(), ranges).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

// Where nothing can be sent from here, an attempt is neither made nor counted: another node
// sends all of it, and a node alone does so once the cause is gone.
func TestOurOwnFaultCostsNoAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cause notify.Class
		here  func(t *testing.T, f *paymenttest.Fixture) (*merchant.Directory, map[string]notify.Channel)
	}{
		"secrets that do not open": {notify.Locked, func(_ *testing.T, f *paymenttest.Fixture) (*merchant.Directory,
			map[string]notify.Channel,
		) {
			return changed(f, locked), webhooks(&fakeChannel{})
		}},
		"an address whose secrets do not open": {notify.Locked, func(_ *testing.T, f *paymenttest.Fixture) (*merchant.Directory,
			map[string]notify.Channel,
		) {
			return changed(f, func(m *merchant.Merchant) { m.Endpoints[0].Locked = true }), webhooks(&fakeChannel{})
		}},
		"a channel that this build lacks": {notify.NoChannel, func(_ *testing.T, f *paymenttest.Fixture) (*merchant.Directory,
			map[string]notify.Channel,
		) {
			return f.Settings.Merchants(), nil
		}},
		"an address that is blocked on this node": {notify.BlockedHere, func(t *testing.T, f *paymenttest.Fixture) (*merchant.Directory,
			map[string]notify.Channel,
		) {
			otherRanges(t, f.DB, "10.0.0.0/8")
			return f.Settings.Merchants(), webhooks(blocked())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"}) // no waits: the first attempt is the last
				book, channels := c.here(t, f)
				here := newNode(t, f, book, channels)
				const n = 7
				nudges := paid(t, f, n)
				here.Offer(nudges)
				waittest.Until(t, "one says why it waits", func() bool {
					return f.Count(t,
						"SELECT count(*) FROM deliveries WHERE status = 'retry_wait' AND last_class = ? AND last_error <> '' AND lease_owner = 0", c.cause) > 0
				})
				waittest.Stays(t, "none is attempted", 100*time.Millisecond, func() bool {
					here.Pull([]int64{f.M1.ID}) // the tick and the queue come again and again
					here.Offer(nudges)
					return f.Count(t, "SELECT count(*) FROM deliveries WHERE next_at IS NOT NULL AND attempts = 0 OR status = 'sending'") == n
				})
				f.Want(t, 0, "SELECT count(*) FROM "+notify.AllAttempts+" AS na")
				f.Want(t, 0, "SELECT count(*) FROM exceptions")

				ch := &fakeChannel{}
				there := newNode(t, f, f.Settings.Merchants(), webhooks(ch))
				there.Pull([]int64{f.M1.ID})
				waittest.Until(t, "the other node sends all", func() bool {
					there.Pull([]int64{f.M1.ID})
					return delivered(f, t) == n
				})
				f.Want(t, n, "SELECT count(*) FROM deliveries WHERE attempts = 1 AND last_class = 'ok'")
			})
		})
	}
}

// A node that is alone tries again, and sends it once the cause is gone.
func TestANodeAloneComesBackToWhatItCouldNotSend(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		ch := &fakeChannel{}
		here := newNode(t, f, changed(f, locked), webhooks(ch))
		here.Offer(paid(t, f, 3))
		waittest.Until(t, "it gave one back", func() bool {
			return f.Count(t, "SELECT count(*) FROM deliveries WHERE last_class = 'locked'") > 0 && here.InFlight() == 0
		})

		here.book.Store(f.Settings.Merchants())
		here.Pull([]int64{f.M1.ID})
		waittest.Stays(t, "it leaves them alone", 100*time.Millisecond, func() bool { return ch.count() == 0 })
		notify.Elapse(here.Dispatcher, notify.SkipFor)
		waittest.Until(t, "all are sent", func() bool { here.Pull([]int64{f.M1.ID}); return delivered(f, t) == 3 })
		f.Want(t, 3, "SELECT count(*) FROM deliveries WHERE attempts = 1")
	})
}

// Where all living nodes agree, no other node can end it: it counts, and in the end a person
// has to act.
func TestABlockedEndpointCountsWhereAllNodesAgree(t *testing.T) {
	t.Parallel()
	for name, ranges := range map[string]string{"the same ranges": "none", "one that has not published its own yet": ""} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
				otherRanges(t, d, ranges)
				newNode(t, f, f.Settings.Merchants(), webhooks(blocked())).Offer(paid(t, f, 2))
				waittest.Until(t, "they are exhausted",
					func() bool { return f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'exhausted'") == 2 })
				f.Want(t, 2, "SELECT count(*) FROM "+notify.AllAttempts+" AS na WHERE class = 'blocked'")
				f.Want(t, 2, "SELECT count(*) FROM exceptions WHERE kind = 'notify_exhausted'")
			})
		})
	}
}

// A channel that panics may have sent something.
func TestABreakdownOfAChannelCounts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		otherRanges(t, d, "10.0.0.0/8")
		ch := &fakeChannel{answer: func(int, notify.Message) notify.Result { panic("broken") }}
		d2 := newNode(t, f, f.Settings.Merchants(), webhooks(ch))
		d2.Offer(paid(t, f, 1))
		waittest.Until(t, "it is exhausted", func() bool { return f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'exhausted'") == 1 })
		f.Want(t, 1, "SELECT count(*) FROM "+notify.AllAttempts+" AS na WHERE class = 'internal'")
	})
}

// A node that holds the lease meanwhile keeps it.
func TestOnlyTheOwnerReleases(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		otherRanges(t, d, "10.0.0.0/8")
		ch := blocked()
		block := ch.answer
		ch.answer = func(n int, m notify.Message) notify.Result {
			if _, err := d.NewRaw("UPDATE deliveries SET lease_owner = 4242, attempts = 5").Exec(t.Context()); err != nil {
				t.Error(err)
			}
			return block(n, m)
		}
		here := newNode(t, f, f.Settings.Merchants(), webhooks(ch))
		here.Offer(paid(t, f, 1))
		waittest.Until(t, "the node is done with it", func() bool { return ch.count() == 1 && here.InFlight() == 0 })
		f.Want(t, 1, "SELECT count(*) FROM deliveries WHERE status = 'sending' AND lease_owner = 4242 AND attempts = 5 AND last_class = ''")
	})
}

// What cannot go to one address goes to the next, and what can go is not held up.
func TestOneLockedEndpointHoldsNothingElseUp(t *testing.T) {
	t.Parallel()
	for name, balance := range map[string]string{"in turn": merchant.Failover, "each": merchant.All} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := paymenttest.New(t, d, paymenttest.Options{})
				routed(t, f, func(s *merchant.Settings) {
					s.URLs, s.Balance = []string{"http://one.test/n", "http://two.test/n"}, balance
				})
				f.M1 = f.Settings.Merchants().ByCode("m1")
				ch := &fakeChannel{}
				here := newNode(t, f, changed(f, func(m *merchant.Merchant) { m.Endpoints[0].Locked = true }), webhooks(ch))
				const n = 30
				here.Offer(paid(t, f, n))
				waittest.Until(t, "the other address got all", func() bool {
					here.Pull([]int64{f.M1.ID})
					return delivered(f, t) == n
				})
				for _, m := range ch.sent {
					if m.URL != "http://two.test/n" {
						t.Errorf("sent to %s", m.URL)
					}
				}
				if balance == merchant.All {
					waittest.Until(t, "what is locked waits uncounted", func() bool { // each is claimed for a moment
						return f.Count(t, "SELECT count(*) FROM deliveries WHERE attempts = 0 AND next_at IS NOT NULL") == n
					})
				}
			})
		})
	}
}

// An address that is blocked here does not keep a node from the merchant's other one,
// although no attempt is counted.
func TestABlockedEndpointIsPassedOver(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		routed(t, f, func(s *merchant.Settings) { s.URLs = []string{"http://one.test/n", "http://two.test/n"} })
		f.M1 = f.Settings.Merchants().ByCode("m1")
		otherRanges(t, d, "10.0.0.0/8")
		ch := &fakeChannel{answer: func(_ int, m notify.Message) notify.Result {
			if m.URL == "http://one.test/n" {
				return notify.Result{Class: notify.Blocked, Error: "blocked"}
			}
			return notify.Result{Class: notify.OK}
		}}
		here := newNode(t, f, f.Settings.Merchants(), webhooks(ch))
		here.Offer(paid(t, f, 1))
		waittest.Until(t, "it gave it back", func() bool {
			return f.Count(t, "SELECT count(*) FROM deliveries WHERE last_class = 'blocked_here'") == 1 && here.InFlight() == 0
		})
		notify.Elapse(here.Dispatcher, notify.SkipFor)
		waittest.Until(t, "it went to the other address", func() bool { here.Pull([]int64{f.M1.ID}); return delivered(f, t) == 1 })
		f.Want(t, 1, "SELECT attempts FROM deliveries")
	})
}

// What is created while a node holds back such messages is left to the others from the start.
func TestNothingIsCreatedAsClaimedThatCannotBeSent(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		otherRanges(t, d, "10.0.0.0/8")
		ch := blocked()
		f, here := together(t, d, paymenttest.Options{URL: "http://m1.test/n"}, ch, 10, forgiving(d))
		pay(t, f)
		waittest.Until(t, "the first one is given back", func() bool {
			return f.Count(t, "SELECT count(*) FROM deliveries WHERE last_class = 'blocked_here'") == 1
		})
		waittest.Until(t, "the slot is free", func() bool { return here.InFlight() == 0 })
		for range 3 {
			pay(t, f)
		}
		f.Want(t, 3, "SELECT count(*) FROM deliveries WHERE status = 'queued' AND attempts = 0")
		if n := ch.count(); n != 1 {
			t.Errorf("%d tries", n)
		}
	})
}

// Alerts report what waits by its cause, with number and money, for as long as a living node
// reports it.
func TestWhatWaitsForAFaultIsCounted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		here := newNode(t, f, changed(f, locked), webhooks(&fakeChannel{}))
		here.Offer(paid(t, f, 4))
		waittest.Until(t, "it gave one back", func() bool { return f.Count(t, "SELECT count(*) FROM deliveries WHERE last_class = 'locked'") > 0 })
		waittest.Until(t, "nothing is under way", func() bool { return here.InFlight() == 0 })
		waiting := func() []notify.FaultWaiting {
			t.Helper()
			if err := here.PublishFaults(t.Context()); err != nil {
				t.Fatal(err)
			}
			all, err := notify.FaultsWaiting(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		if got := waiting(); len(got) != 0 {
			t.Errorf("within the time that another node needs: %+v", got)
		}
		if _, err := d.NewRaw("UPDATE deliveries SET next_at = ?", d.Now()-6_000_000).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := waiting(); len(got) != 1 || got[0].Cause != notify.Locked || got[0].Count != 4 || got[0].Sums["CNY"] != 40 {
			t.Errorf("%+v, want 4 of CNY 0.40 that wait for secrets", got)
		}
		here.book.Store(f.Settings.Merchants())
		notify.Elapse(here.Dispatcher, notify.SkipFor)
		here.Pull([]int64{f.M1.ID})
		waittest.Until(t, "all are sent", func() bool { return delivered(f, t) == 4 })
		if got := waiting(); len(got) != 0 {
			t.Errorf("after the repair: %+v", got)
		}
		f.Want(t, 0, "SELECT count(*) FROM nodes WHERE faults <> ''")
	})
}
