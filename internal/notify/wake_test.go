package notify_test

import (
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
)

func TestConnectingReleasesWhatWaitedForIt(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		nudges := paid(t, f, 3)
		later := d.Now() + time.Hour.Microseconds()
		for i, class := range []notify.Class{notify.NotConnected, notify.BadStatus, notify.NotConnected} {
			status := notify.RetryWait
			if i == 2 {
				status = notify.Sending // somebody tells it just now
			}
			if _, err := d.NewRaw("UPDATE deliveries SET status = ?, last_class = ?, next_at = ? WHERE id = ?",
				status, class, later, nudges[i].Delivery).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := notify.Wake(t.Context(), d, nudges[0].Recipient+1); err != nil || n != 0 {
			t.Errorf("another merchant's connection woke %d, %v", n, err)
		}
		if n, err := notify.Wake(t.Context(), d, nudges[0].Recipient); err != nil || n != 1 {
			t.Errorf("woke %d, %v; want the one that waited for a connection", n, err)
		}
		for i, n := range nudges {
			due := f.Count(t, "SELECT count(*) FROM deliveries WHERE id = ? AND next_at <= ?", n.Delivery, d.Now())
			if want := map[bool]int64{true: 1}[i == 0]; int64(due) != want {
				t.Errorf("notification %d is due: %d, want %d", i, due, want)
			}
		}
	})
}
