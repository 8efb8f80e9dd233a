package notify_test

import (
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"
	"backstop/internal/report"
)

// The commit of results is not confirmed, and they are committed again: each attempt is stored
// once and counts once, for the figures and for the breaker.
func TestAResultCommittedTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const orders = 5
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{20, 20}})
		// Its window reaches over the whole test.
		policy := breaker.Policy{Failures: 1 << 30, Open: time.Minute, Window: time.Hour}
		b := breaker.NewCache(d, func(recipient.Recipient) breaker.Policy { return policy })
		nudges := paid(t, f, orders)
		here := dispatcherWith(t, f, &fakeChannel{}, 1, b)
		for _, class := range []notify.Class{notify.BadStatus, notify.Timeout, notify.OK} { // the first is stored in its delivery
			if _, err := d.NewRaw("UPDATE deliveries SET next_at = ?", d.Now()-1).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := notify.CommitTwice(t.Context(), here, class, nudges...); err != nil {
				t.Fatal(err)
			}
		}
		f.Want(t, 3*orders, "SELECT count(*) FROM "+notify.AllAttempts+" AS na")
		f.Want(t, 2*orders, "SELECT window_failed FROM breakers")
		f.Want(t, orders, "SELECT count(*) FROM deliveries WHERE status = 'delivered' AND attempts = 3")
		for {
			if n, err := report.Fold(t.Context(), d, time.UTC); err != nil || n == 0 {
				break
			}
		}
		f.Want(t, 3*orders, "SELECT ok + retried + failed FROM report_hours WHERE recipient_id = 0")
		if wrong, err := report.Recount(t.Context(), d); err != nil || len(wrong) != 0 {
			t.Errorf("unnotified money: %+v, %v", wrong, err)
		}
	})
}
