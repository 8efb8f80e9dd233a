package notify_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
)

// A merchant that is slow for one node is slow for all that look it up, for as long as that
// node lives; nothing is written while nothing changes.
func TestAllNodesKnowWhoIsSlow(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		var quick atomic.Bool
		ch := &fakeChannel{answer: func(int, notify.Message) notify.Result {
			r := notify.Result{Class: notify.OK, Status: 200}
			if !quick.Load() {
				r.Took = 4 * time.Second // as it says
			}
			return r
		}}
		disp := dispatcher(t, f, ch, 10)
		run := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		tell := func(want ...int64) {
			t.Helper()
			if err := disp.PublishSlow(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, err := notify.SlowRecipients(t.Context(), d); err != nil || !slices.Equal(got, want) {
				t.Errorf("slow are %v, %v, want %v", got, err, want)
			}
		}
		tell()
		disp.Offer(paid(t, f, 1))
		waittest.Until(t, "it is slow", func() bool { return disp.IsSlow(f.M1.ID) })
		tell(f.M1.ID)

		now := d.Now()
		run("INSERT INTO nodes (slot, newest_migration, name, boot, started_at, seen_at, slow) VALUES (500, 'x', 'other', 1, 1, ?, ?)", now,
			fmt.Sprintf("[7,%d]", f.M1.ID))
		tell(7, f.M1.ID)
		run("UPDATE nodes SET seen_at = ? WHERE boot = 1", now-time.Minute.Microseconds())
		tell(f.M1.ID)
		run("UPDATE nodes SET slow = '[8]' WHERE boot = ?", d.Boot())
		tell(8) // it wrote nothing

		waittest.Until(t, "delivered", func() bool { return delivered(f, t) == 1 })
		quick.Store(true)
		disp.Offer(paid(t, f, 5))
		waittest.Until(t, "it is quick again", func() bool { return delivered(f, t) == 6 && !disp.IsSlow(f.M1.ID) })
		tell()
	})
}
