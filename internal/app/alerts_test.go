package app

import (
	"context"
	"testing"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/report"
	"backstop/internal/settings"
)

// Responses within a limit do not count as above it, whatever the histogram's buckets.
func TestAnswersWithinALimitAreNotAboveIt(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := &App{db: d, settings: settings.NewStore(d, nil, nil, nil)}
		x := report.NewDelta(d.Now())
		for i := range 20 {
			x.Attempt(1, report.OK, 2300*time.Millisecond+time.Duration(i)*15*time.Millisecond)
			x.Attempt(2, report.OK, 3000*time.Millisecond)
			x.Attempt(3, report.OK, 3001*time.Millisecond)
			x.Attempt(4, report.Retried, 10*time.Second)
		}
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			x.Write(w, d)
			return w.Exec(ctx)
		})
		if err == nil {
			_, err = report.Fold(t.Context(), d, time.UTC)
		}
		if err != nil {
			t.Fatal(err)
		}
		rules, err := alert.Rules(t.Context(), d.Read)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		for _, r := range a.readAttempts(t.Context(), windows(rules)) {
			got[r.Rule+" "+r.Subject] = r.Value
		}
		const limit = 3000
		for subject, above := range map[string]bool{"1": false, "2": false, "3": true, "4": true} {
			v, read := got[alert.SlowMerchant+" "+subject]
			if !read || (v > limit) != above {
				t.Errorf("merchant %s is read as %d ms (%t), above %d: want %t", subject, v, read, limit, above)
			}
		}
		if mean := got[alert.AnswerTime+" all"]; mean != (2442+3000+3001+10_000)/4 {
			t.Errorf("the mean is read as %d ms", mean)
		}
	})
}
