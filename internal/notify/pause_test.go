package notify_test

import (
	"log/slog"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/notify"
	"backstop/internal/pause"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"
)

// Paused on one node, notifications are sent by neither of two, except the one that was being
// sent; resumed, all are sent once.
func TestPausedNotificationsWaitOnAllNodes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{1000}})
		release := make(chan struct{})
		ch := &fakeChannel{answer: func(n int, _ notify.Message) notify.Result {
			if n == 1 {
				<-release
			}
			return notify.Result{Class: notify.OK, Status: 200}
		}}
		pauses := [2]*pause.Pauses{pause.New(d), pause.New(d)}
		var nodes [2]*notify.Dispatcher
		for i := range nodes {
			nodes[i] = notify.NewDispatcher(notify.Options{
				DB: d, Breakers: breaker.NewCache(d, func(recipient.Recipient) breaker.Policy { return never }),
				Directory: f.Settings.Merchants,
				Channels:  map[string]notify.Channel{notify.Webhook: ch}, Nudger: f.Nudger, Concurrency: 8, Timeout: 10 * time.Second,
				Log:    slog.New(slog.DiscardHandler),
				Paused: func() bool { return pauses[i].Paused(pause.Notifications) },
			})
			t.Cleanup(func() { stop(nodes[i], 5*time.Second) })
		}
		policy, err := access.NewPolicy()
		if err != nil {
			t.Fatal(err)
		}
		registry := act.New(d, audit.New(d, sealtest.Ring(t, 1)), policy, pauses[0].Acts()...)
		run := func(kind string) {
			t.Helper()
			_, err := registry.Run(t.Context(), act.Call{
				Kind: kind, By: act.Actor{Name: "operator:li.hang", ID: 1, Roles: access.Ops}, Ref: act.Ref{ID: pause.Notifications},
				Reason: "they asked us to wait",
			})
			if err == nil {
				err = pauses[1].Refresh(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		nodes[0].Offer(paid(t, f, 1))
		waittest.Until(t, "the first is being sent", func() bool { return ch.count() == 1 })
		run(pause.PauseAct)
		nudges := paid(t, f, 6)
		for _, n := range nodes {
			n.Offer(nudges)
			n.Pull([]int64{f.M1.ID})
			if lane, queued := n.Lane(f.M1.ID); queued {
				t.Errorf("its tasks go to %q", lane)
			}
		}
		close(release)
		waittest.Until(t, "the first is delivered", func() bool { return delivered(f, t) == 1 })
		for _, n := range nodes { // the slot that became free is not used either
			n.Pull([]int64{f.M1.ID})
		}
		if n := ch.count(); n != 1 {
			t.Errorf("%d were sent while paused", n)
		}
		if n := f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'queued' AND attempts = 0"); n != 6 {
			t.Errorf("%d wait untouched", n)
		}
		run(pause.ResumeAct)
		waittest.Until(t, "all are delivered", func() bool {
			for _, n := range nodes {
				n.Pull([]int64{f.M1.ID})
			}
			return delivered(f, t) == 7
		})
		if n := ch.count(); n != 7 {
			t.Errorf("%d sent, want each of 7 once", n)
		}
	})
}
