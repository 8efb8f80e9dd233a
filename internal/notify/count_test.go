package notify_test

import (
	"context"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/report"
)

// TestCountersEqualARecount lets two nodes deliver, fail and give up at random,
// and folds meanwhile: whenever one looks, the counter and the tail that is not
// folded yet are what a recount of the rows says.
func TestCountersEqualARecount(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", WaitsMS: []int64{20, 20}, MaxInFlight: 20})
		ch := &fakeChannel{answer: func(n int, _ notify.Message) notify.Result {
			if n%7 < 3 {
				return notify.Result{Class: notify.BadStatus, Status: 500, Took: 30 * time.Millisecond}
			}
			return notify.Result{Class: notify.OK, Status: 200, Took: 3 * time.Millisecond}
		}}
		same := func(when string) {
			t.Helper()
			if wrong, err := report.Recount(t.Context(), d); err != nil || len(wrong) != 0 {
				t.Errorf("%s: %+v, %v", when, wrong, err)
			}
			if wrong, err := report.RecountOrders(t.Context(), d, 100*time.Hour); err != nil || len(wrong) != 0 {
				t.Errorf("%s, orders notified: %+v, %v", when, wrong, err)
			}
		}
		a, b := dispatcher(t, f, ch, 20), dispatcher(t, f, ch, 20)
		nudges := paid(t, f, 80)
		same("before any notification")
		waittest.Until(t, "all over", func() bool {
			a.Offer(nudges)
			b.Offer(nudges)
			if _, err := report.Fold(t.Context(), d, time.UTC); err != nil && !db.IsConflict(err) {
				t.Error(err)
			}
			same("meanwhile")
			return f.Count(t, "SELECT count(*) FROM deliveries WHERE next_at IS NOT NULL") == 0
		})
		// What was offered last may still be on its way to a claim: it would take a row
		// that is sent again below.
		waittest.Until(t, "both nodes rest", func() bool { return a.InFlight()+b.InFlight() == 0 })
		for {
			if n, err := report.Fold(t.Context(), d, time.UTC); err != nil || n == 0 {
				break
			}
		}
		same("at the end")
		f.Want(t, 0, "SELECT count(*) FROM report_unnotified WHERE orders <> 0 OR amount <> 0")
		f.Want(t, 80, "SELECT CAST(sum(n) AS BIGINT) FROM report_callbacks WHERE outcome = 'paid'")
		points, err := report.Outcomes(t.Context(), d, f.M1.ID, d.Now()-120_000_000, d.Now(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		p := report.Total(points)
		f.Want(t, p.Attempts(), "SELECT count(*) FROM "+notify.AllAttempts+" AS na")
		f.Want(t, p.OK, "SELECT count(*) FROM "+notify.AllAttempts+" AS na WHERE class = 'ok'")
		f.Want(t, p.Failed, "SELECT count(*) FROM exceptions WHERE kind = 'notify_exhausted'")
		f.Want(t, p.TookUS, "SELECT CAST(sum(took_us) AS BIGINT) FROM "+notify.AllAttempts+" AS na")
		if p.Lag.Count() != 80 || p.Retried == 0 {
			t.Errorf("%d first attempts, %d retried", p.Lag.Count(), p.Retried)
		}
		notified := func(when string, want int64) {
			t.Helper()
			all, err := report.Orders(t.Context(), d, d.Now()-120_000_000, d.Now(), time.Minute)
			if err != nil || len(all) != 1 || all[0].Raised != 80 || all[0].Notified != want ||
				all[0].NotifiedAmount*80 != all[0].RaisedAmount*want {
				t.Errorf("%s: %+v, %v, want %d of 80", when, all, err, want)
			}
			steps, err := report.OrderSteps(t.Context(), d, d.Now()-120_000_000, d.Now(), time.Minute)
			raised, told := int64(0), int64(0)
			for _, s := range steps {
				raised, told = raised+s.Raised, told+s.Notified
				f.Want(t, s.Raised, "SELECT count(*) FROM deliveries WHERE counted AND created_at >= ? AND created_at < ?", s.Start,
					s.Start+time.Minute.Microseconds())
			}
			if err != nil || raised != 80 || told != want {
				t.Errorf("%s, by minute: %+v, %v, want %d of 80", when, steps, err, want)
			}
		}
		notified("delivered", p.OK)
		again(t, f, "exhausted", p.Failed)
		same("sent again by a person")
		again(t, f, "delivered", p.OK) // the merchant knows of that money
		same("notified twice")
		waittest.Until(t, "all over once more", func() bool {
			var ids []queue.Nudge
			if err := d.NewRaw("SELECT id AS delivery, recipient_id AS recipient FROM deliveries WHERE next_at IS NOT NULL").Scan(
				t.Context(), &ids); err != nil {
				t.Error(err)
			}
			a.Offer(ids)
			return len(ids) == 0
		})
		waittest.Until(t, "folded", func() bool {
			n, err := report.Fold(t.Context(), d, time.UTC)
			return err == nil && n == 0
		})
		same("at the end of the second round")
		f.Want(t, 0, "SELECT count(*) FROM deliveries WHERE NOT counted")
		var second int64
		if err := d.NewRaw("SELECT count(*) FROM deliveries WHERE status = 'delivered' OR currency = ''").Scan(t.Context(),
			&second); err != nil {
			t.Fatal(err)
		}
		notified("sent again", second)
	})
}

// again sends all deliveries of a status again; those that were exhausted are
// unnotified once more.
func again(t *testing.T, f *paymenttest.Fixture, status notify.Status, n int64) {
	t.Helper()
	var ids []int64
	if err := f.DB.NewRaw("SELECT id FROM deliveries WHERE status = ?", status).Scan(t.Context(), &ids); err != nil ||
		int64(len(ids)) != n {
		t.Fatalf("%d are %s, want %d (%v)", len(ids), status, n, err)
	}
	err := f.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		nudges, refused, err := notify.ResendAll(ctx, tx, f.DB, asTheyAre(ids))
		if err == nil && (len(nudges) != len(ids) || len(refused) > 0) {
			t.Errorf("%d of %d are sent again, refused %v", len(nudges), len(ids), refused)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// asTheyAre are deliveries in whichever status.
func asTheyAre(ids []int64) map[int64]notify.Status {
	as := map[int64]notify.Status{}
	for _, id := range ids {
		as[id] = ""
	}
	return as
}
