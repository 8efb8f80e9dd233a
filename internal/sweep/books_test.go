package sweep

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

// A counter below zero is noticed, as soon as everything is folded, and corrected with words
// that name it.
func TestACounterBelowZeroIsCorrected(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		write := func(orders, amount int64) {
			t.Helper()
			x := report.NewDelta(d.Now())
			x.Unnotified(7, "CNY", orders, amount)
			err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				w := tx.Writes()
				x.Write(w, d)
				return w.Exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		below := func(want bool) {
			t.Helper()
			if is, err := report.BelowZero(t.Context(), d); err != nil || is != want {
				t.Errorf("below zero: %v, %v, want %v", is, err, want)
			}
		}
		fold := func() {
			t.Helper()
			if _, err := report.Fold(t.Context(), d, time.UTC); err != nil {
				t.Fatal(err)
			}
		}
		write(-20, -96999)
		fold()
		below(true)
		write(20, 96999) // which an older transaction may have written
		below(false)
		fold()
		write(-20, -96999)
		fold()
		below(true)
		r := New(Options{DB: d, Log: slog.New(slog.DiscardHandler), Keep: 100 * time.Hour})
		found, err := r.Figures(t.Context())
		want := "1 figures differed and were corrected; merchant 7: 0 orders, 0.00 CNY by the rows, -20 orders, -969.99 CNY by the counter"
		if err != nil || len(found) != 1 || found[0].Detail != want {
			t.Errorf("%+v, %v, want %q", found, err, want)
		}
		fold()
		below(false)
	})
}

func TestNightPutsFiguresRightAndSaysSo(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := New(Options{DB: d, Log: slog.New(slog.DiscardHandler), Keep: 100 * time.Hour})
		if found, err := r.Figures(t.Context()); err != nil || len(found) > 0 { // nothing is wrong
			t.Fatal(found, err)
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
		for i, want := range []int{2, 0} { // the second night finds nothing
			if found, err := r.Figures(t.Context()); err != nil || len(found) != want {
				t.Fatalf("night %d: %+v, %v", i, found, err)
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
		var rung, opened []string
		if err := d.NewRaw("SELECT rule || ' ' || subject FROM alerts ORDER BY id").Scan(t.Context(), &rung); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(rung, []string{alert.CountersDiffer + " untold", alert.CountersDiffer + " orders notified"}) {
			t.Errorf("alerts %v, want one %s for each figure", rung, alert.CountersDiffer)
		}
		if err := d.NewRaw("SELECT kind || ' ' || subject || ' ' || seen FROM exceptions ORDER BY subject").Scan(t.Context(),
			&opened); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(opened, []string{"books_differ orders notified 1", "books_differ untold 1"}) {
			t.Errorf("exceptions %v, want one of each figure", opened)
		}
	})
}
