package jobs

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/report"
	"backstop/internal/sweep"
)

// Folding corrects a counter below zero, by day and without a sweep.
func TestFoldingCorrectsACounterBelowZero(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		log := slog.New(slog.DiscardHandler)
		j := &Jobs{o: Options{DB: d, Log: log, Zone: time.UTC, Sweeps: sweep.New(sweep.Options{DB: d, Log: log, Keep: 100 * time.Hour})}}
		x := report.NewDelta(d.Now())
		x.Unnotified(7, "CNY", -20, -96999)
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			x.Write(w, d)
			return w.Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second run folds the correction
			if err := j.report(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var wrong int
		if err := d.NewRaw("SELECT count(*) FROM report_unnotified WHERE orders <> 0 OR amount <> 0").Scan(t.Context(), &wrong); err != nil {
			t.Fatal(err)
		}
		if wrong != 0 {
			t.Errorf("%d counters are not corrected", wrong)
		}
	})
}
