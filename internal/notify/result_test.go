package notify_test

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"
	"backstop/internal/report"
)

// storedTwice counts the attempts that are stored more than once, as I7 of verify does.
const storedTwice = "SELECT count(*) FROM (SELECT 1 FROM " + notify.AllAttempts +
	" AS na GROUP BY delivery_id, number HAVING count(*) > 1) AS twice"

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
			if err := notify.CommitTwice(t.Context(), here, false, class, nudges...); err != nil {
				t.Fatal(err)
			}
		}
		f.Want(t, 3*orders, "SELECT count(*) FROM "+notify.AllAttempts+" AS na")
		f.Want(t, 0, storedTwice)
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

// The negative control: a repeat that does not look for its own result stores first attempts twice.
func TestANaiveRepeatOfACommitIsSeen(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n"})
		nudges := paid(t, f, 5)
		if err := notify.CommitTwice(t.Context(), dispatcher(t, f, &fakeChannel{}, 1), true, notify.OK, nudges...); err != nil {
			t.Fatal(err)
		}
		f.Want(t, 5, storedTwice)
	})
}

// One answer to a commit in three is lost while merchants are notified: every attempt is stored and
// counted once, and everything is delivered.
func TestLostAnswersToCommitsCountNothingTwice(t *testing.T) {
	t.Parallel()
	from := rand.Uint64()
	t.Logf("seed %d", from)
	dbtest.EachCut(t, from, func(t *testing.T, d *db.DB, c *dbtest.Cuts) {
		const cuts = 40
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: slices.Repeat([]int64{20}, 200)})
		var over atomic.Bool
		ch := &fakeChannel{answer: func(int, notify.Message) notify.Result {
			if over.Load() {
				return notify.Result{Class: notify.OK, Status: 200}
			}
			return notify.Result{Class: notify.BadStatus, Status: 500}
		}}
		var nudges []queue.Nudge
		// Of a claim whose answer is lost the lease has to pass.
		dueAgain := func() {
			if _, err := d.NewRaw("UPDATE deliveries SET next_at = ?, lease_until = ? WHERE status IN ('sending', 'retry_wait')",
				d.Now()-1, d.Now()-1).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for made := 0; made < cuts; made = c.Made() {
			disp := dispatcher(t, f, ch, 8)
			// Only first attempts are stored in their deliveries, so there are new ones each time.
			nudges = append(nudges, paid(t, f, 10)...)
			before := ch.count()
			c.Every(3)
			disp.Offer(nudges)
			// If the answers to all claims are lost, nothing happens until their leases have passed.
			waittest.Within(time.Second, func() bool { return ch.count() >= before+10 || c.Made() > made+5 })
			c.Every(0)
			stop(disp, 5*time.Second)
			dueAgain()
		}
		over.Store(true)
		disp := dispatcher(t, f, ch, 8)
		disp.Offer(nudges)
		waittest.Until(t, "all are delivered", func() bool { return delivered(f, t) == f.Count(t, "SELECT count(*) FROM deliveries") })
		f.Want(t, 0, storedTwice)
		f.Want(t, 0, "SELECT count(*) FROM (SELECT 1 FROM "+notify.AllAttempts+" AS na WHERE class = 'ok' GROUP BY delivery_id"+
			" HAVING count(*) > 1) AS twice")
		for {
			if n, err := report.Fold(t.Context(), d, time.UTC); err != nil || n == 0 {
				break
			}
		}
		f.Want(t, f.Count(t, "SELECT count(*) FROM "+notify.AllAttempts+" AS na"),
			"SELECT sum(ok + retried + failed) FROM report_hours WHERE recipient_id = 0")
		if wrong, err := report.Recount(t.Context(), d); err != nil || len(wrong) != 0 {
			t.Errorf("unnotified money: %+v, %v", wrong, err)
		}
		t.Logf("%d answers lost, %d attempts sent", c.Made(), ch.count())
	})
}
