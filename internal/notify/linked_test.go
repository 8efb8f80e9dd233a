package notify_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"
)

// line is a node's end of a channel that merchants connect to.
type line struct {
	connected atomic.Bool
	asked     atomic.Int64
}

func (l *line) Linked(int64) bool { return l.connected.Load() }

func (l *line) Connected() []int64 {
	if l.connected.Load() {
		return []int64{1}
	}
	return nil
}

func (l *line) Send(context.Context, notify.Message) notify.Result {
	l.asked.Add(1)
	if l.connected.Load() {
		return notify.Result{Class: notify.OK}
	}
	return notify.Result{Class: notify.NotConnected, Error: "the merchant is not connected to this node"}
}

func nodeWith(t *testing.T, f *paymenttest.Fixture, l *line, change ...func(*notify.Options)) *notify.Dispatcher {
	o := notify.Options{
		DB: f.DB, Breakers: breaker.NewCache(f.DB, func(recipient.Recipient) breaker.Policy { return never }),
		Directory: f.Settings.Merchants,
		Channels:  map[string]notify.Channel{notify.Websocket: l, notify.Webhook: l}, Nudger: f.Nudger, Concurrency: 10,
		Timeout: 2 * time.Second,
		Log:     slog.New(slog.NewTextHandler(testOut{t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	for _, f := range change {
		f(&o)
	}
	d := notify.NewDispatcher(o)
	t.Cleanup(func() { stop(d, 5*time.Second) })
	return d
}

func TestOnlyTheNodeWithTheConnectionTakesItsRows(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		nudges := paid(t, f, 2)
		over, here := nudges[0], nudges[1]
		if _, err := d.NewRaw("UPDATE deliveries SET channel = 'websocket', url = 'websocket:' WHERE id = ?",
			here.Delivery).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		var without, with line
		with.connected.Store(true)
		other, node := nodeWith(t, f, &without), nodeWith(t, f, &with)
		// The node without the connection takes what needs none, in the same claim.
		other.Offer([]queue.Nudge{here, over})
		waittest.Until(t, "the other row delivered or tried", func() bool { return without.asked.Load() == 1 })
		f.Want(t, 1, "SELECT count(*) FROM deliveries WHERE id = ? AND attempts = 0 AND status = 'queued'", here.Delivery)
		waittest.Until(t, "delivered by the node with the connection", func() bool {
			other.Pull([]int64{here.Recipient})
			node.Pull([]int64{here.Recipient})
			return f.Count(t, "SELECT count(*) FROM deliveries WHERE id = ? AND status = 'delivered' AND attempts = 1", here.Delivery) == 1
		})
	})
}

// A process without workers notifies the merchants connected to it, and leaves everything else
// to processes with workers.
func TestANodeWithoutWorkersSendsOverItsConnectionsOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		nudges := paid(t, f, 2)
		over, here := nudges[0], nudges[1]
		if _, err := d.NewRaw("UPDATE deliveries SET channel = 'websocket', url = 'websocket:' WHERE id = ?",
			here.Delivery).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Nothing has picked them up for a long time.
		if _, err := d.NewRaw("UPDATE deliveries SET next_at = ?", d.Now()-2*time.Hour.Microseconds()).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		var l line
		door := nodeWith(t, f, &l, func(o *notify.Options) { o.LinkedOnly = true })
		if door.HasWork() || !nodeWith(t, f, &line{}).HasWork() {
			t.Error("only a node without workers has nothing to do while no merchant is connected")
		}
		door.Pull([]int64{here.Recipient})
		door.Offer([]queue.Nudge{here, over})
		waittest.Until(t, "it has looked at them", func() bool { return notify.Left(door) == "" })
		f.Want(t, 2, "SELECT count(*) FROM deliveries WHERE attempts = 0 AND status = 'queued'")

		l.connected.Store(true)
		if !door.HasWork() {
			t.Error("a merchant is connected")
		}
		door.Offer([]queue.Nudge{over})
		door.Pull([]int64{here.Recipient})
		waittest.Until(t, "what goes over the connection is delivered", func() bool {
			return f.Count(t, "SELECT count(*) FROM deliveries WHERE id = ? AND status = 'delivered' AND attempts = 1", here.Delivery) == 1
		})
		waittest.Until(t, "it has looked at them", func() bool { return notify.Left(door) == "" })
		f.Want(t, 1, "SELECT count(*) FROM deliveries WHERE id = ? AND attempts = 0 AND status = 'queued'", over.Delivery)
	})
}

// The attempts for a merchant that never connects end: its notification is exhausted and opens
// an exception.
func TestWhoNeverConnectsIsNotWaitedForWithoutEnd(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{10}})
		n := paid(t, f, 1)[0]
		late := func() {
			if _, err := d.NewRaw(
				"UPDATE deliveries SET channel = 'websocket', url = 'websocket:', next_at = ? WHERE id = ? AND next_at IS NOT NULL",
				d.Now()-time.Minute.Microseconds()-1, n.Delivery).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var l line
		node := nodeWith(t, f, &l)
		waittest.Until(t, "exhausted", func() bool {
			if f.Count(t, "SELECT count(*) FROM deliveries WHERE status <> 'sending' AND next_at IS NOT NULL") == 1 {
				late()
			}
			node.Pull([]int64{n.Recipient})
			return f.Count(t,
				"SELECT count(*) FROM deliveries WHERE status = 'exhausted' AND attempts = 2 AND last_class = 'not_connected'") == 1
		})
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'notify_exhausted'")
	})
}

// The probe of a merchant that connects falls to the node that it is connected to: any other
// node would find no connection, and leave the merchant parked for another round.
func TestTheNodeWithTheConnectionProbes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		m := *f.M1
		m.Endpoints = []merchant.Endpoint{{Name: "line", Channel: notify.Websocket, URL: "websocket:", Weight: 1}}
		book := merchant.NewDirectory([]*merchant.Merchant{&m}, nil)
		paid(t, f, 1)
		if _, err := d.NewRaw("UPDATE deliveries SET channel = 'websocket', next_at = ?",
			d.Now()-10*time.Minute.Microseconds()).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		row := breaker.Row{
			OwnerID: m.ID, OwnerKind: recipient.Merchant, State: breaker.Open, Generation: 1, OpenUntil: d.Now() - 1,
			UpdatedAt: d.Now(),
		}
		if _, err := d.NewInsert().Model(&row).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		node := func(l *line) *notify.Dispatcher {
			b := newBreakers(f, breaker.Policy{Failures: 3, Open: time.Hour, Window: time.Minute})
			if err := b.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			n := notify.NewDispatcher(notify.Options{
				DB: d, Breakers: b, Directory: func() *merchant.Directory { return book },
				Channels: map[string]notify.Channel{notify.Websocket: l},
				Nudger:   f.Nudger, Concurrency: 10, Timeout: 2 * time.Second, Log: slog.New(slog.DiscardHandler),
			})
			t.Cleanup(func() { stop(n, 5*time.Second) })
			return n
		}
		var without, with line
		with.connected.Store(true)
		other := node(&without)
		waittest.Stays(t, "no node without the connection claims the probe", 100*time.Millisecond, func() bool {
			other.Pull([]int64{m.ID})
			return without.asked.Load() == 0 && f.Count(t, "SELECT count(*) FROM breaker_history") == 0
		})
		here := node(&with)
		waittest.Until(t, "delivered", func() bool {
			here.Pull([]int64{m.ID})
			return delivered(f, t) == 1
		})
	})
}

// A merchant that is notified slowly, by the node of its connection, has rows that are long
// due. They are not taken by nodes that have no connection to it.
func TestABacklogIsLeftToTheNodeThatWorksOnIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		late, told time.Duration // ago
		tries      bool
	}{
		"it is being notified": {10 * time.Minute, 10 * time.Second, false},
		"no one does":          {10 * time.Minute, 10 * time.Minute, true},
		"it takes very long":   {2 * time.Hour, 10 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{60_000}})
				n := paid(t, f, 1)
				if _, err := d.NewRaw("UPDATE deliveries SET channel = 'websocket', url = 'websocket:', next_at = ?",
					d.Now()-c.late.Microseconds()).Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := d.NewRaw("INSERT INTO report_recipients (recipient_id, last_ok_at, last_failed_at) VALUES (?, ?, 0)", f.M1.ID,
					d.Now()-c.told.Microseconds()).Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
				var l line
				node := nodeWith(t, f, &l)
				tried := func() bool {
					node.Pull([]int64{f.M1.ID})
					node.Offer(n)
					return l.asked.Load() > 0
				}
				if c.tries {
					waittest.Until(t, "this node tries", tried)
				} else {
					waittest.Stays(t, "this node does not try", 100*time.Millisecond, func() bool { return !tried() })
				}
				waittest.Until(t, "claims are over", func() bool { return node.InFlight() == 0 })
			})
		})
	}
}
