package notify_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
)

func resend(t *testing.T, d *db.DB, id int64) (n queue.Nudge, err error) {
	t.Helper()
	err = d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		n, err = notify.Resend(ctx, tx, d, id)
		return err
	})
	return n, err
}

func TestSendingAgainBeginsTheScheduleAnewAndClearsTheDesk(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{10}}) // two attempts
		var works atomic.Bool
		ch := &fakeChannel{answer: func(int, notify.Message) notify.Result {
			if works.Load() {
				return notify.Result{Class: notify.OK, Status: 200}
			}
			return notify.Result{Class: notify.BadStatus, Status: 500}
		}}
		disp := dispatcher(t, f, ch, 50)
		first := paid(t, f, 1)[0]
		id := first.Delivery
		exhausted := func(attempts int64) {
			t.Helper()
			waittest.Until(t, "exhausted", func() bool {
				disp.Pull([]int64{first.Recipient})
				return f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'exhausted' AND attempts = ?", attempts) == 1 &&
					disp.InFlight() == 0
			})
		}
		disp.Offer([]queue.Nudge{first})
		exhausted(2)
		for _, attempts := range []int64{4, 6} { // each time a whole schedule
			n, err := resend(t, d, id)
			if err != nil {
				t.Fatal(err)
			}
			disp.Offer([]queue.Nudge{n})
			exhausted(attempts)
		}
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'notify_exhausted' AND state = 'open' AND seen = 3")
		works.Store(true)
		n, err := resend(t, d, id)
		if err != nil {
			t.Fatal(err)
		}
		disp.Offer([]queue.Nudge{n})
		waittest.Until(t, "delivered", func() bool { return f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'delivered'") == 1 })
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE state = 'resolved' AND resolved_at IS NOT NULL")
		ch.mu.Lock()
		defer ch.mu.Unlock()
		for _, m := range ch.sent {
			if m.ID != ch.sent[0].ID {
				t.Errorf("one notification had the ids %s and %s", ch.sent[0].ID, m.ID)
			}
		}
	})
}

func TestWhatIsBeingSentIsNotSentAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		id := paid(t, f, 1)[0].Delivery
		if _, err := d.NewRaw("UPDATE deliveries SET status = 'sending'").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := resend(t, d, id); !errors.Is(err, notify.ErrSending) {
			t.Errorf("while sending: %v", err)
		}
		if _, err := resend(t, d, 12345); !errors.Is(err, notify.ErrNoDelivery) {
			t.Errorf("of nothing: %v", err)
		}
	})
}

// What a node holds in memory until its time is sent at once when it is resent.
func TestWhatWaitsForItsMomentIsSentAtOnceWhenItIsSentAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{50_000}})
		ch := &fakeChannel{answer: func(n int, _ notify.Message) notify.Result {
			if n == 1 {
				return notify.Result{Class: notify.BadStatus, Status: 500}
			}
			return notify.Result{Class: notify.OK, Status: 200}
		}}
		disp := dispatcher(t, f, ch, 10)
		n := paid(t, f, 1)[0]
		disp.Offer([]queue.Nudge{n})
		waittest.Until(t, "it waits", func() bool {
			return f.Count(t, "SELECT count(*) FROM deliveries WHERE status = 'retry_wait'") == 1 && disp.InFlight() == 0
		})
		n.At = f.Count(t, "SELECT next_at FROM deliveries")
		disp.Offer([]queue.Nudge{n})
		again, err := resend(t, d, n.Delivery)
		if err != nil {
			t.Fatal(err)
		}
		disp.Offer([]queue.Nudge{again})
		waittest.Until(t, "it is sent", func() bool { return delivered(f, t) == 1 })
	})
}
