package jobs

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/report"
)

func TestNightPutsFiguresRightAndSaysSo(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		j := &Jobs{o: Options{DB: d, Log: slog.New(slog.DiscardHandler), Retention: Retention{Reports: 100 * time.Hour, Notifications: 100 * time.Hour}}}
		if err := j.recount(t.Context()); err != nil { // nothing is wrong
			t.Fatal(err)
		}
		// Somebody deleted a row by hand: the counter knows of money that is not there.
		x := report.NewDelta(d.Now())
		x.Unnotified(7, "CNY", 1, 1999)
		x.Raised(d.Now(), "CNY", 1999)
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			x.Write(w, d)
			return w.Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second night finds nothing
			if err := j.recount(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wrong, err := report.Recount(t.Context(), d)
		if err != nil || len(wrong) != 0 {
			t.Errorf("still wrong: %+v, %v", wrong, err)
		}
		orders, err := report.RecountOrders(t.Context(), d, 100*time.Hour)
		if err != nil || len(orders) != 0 {
			t.Errorf("orders notified are still wrong: %+v, %v", orders, err)
		}
		var rung []string
		if err := d.NewRaw("SELECT rule || ' ' || subject FROM alerts ORDER BY id").Scan(t.Context(), &rung); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(rung, []string{alert.CountersDiffer + " untold", alert.CountersDiffer + " orders notified"}) {
			t.Errorf("alerts %v, want one %s for each figure", rung, alert.CountersDiffer)
		}
	})
}
