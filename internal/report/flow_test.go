package report_test

import (
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/report"
)

func TestASuppliersFlowIsComparedWithTheSameHour(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		add := func(ago time.Duration, supplier, n int64) {
			t.Helper()
			start := d.Now() - ago.Microseconds()
			start -= start % time.Minute.Microseconds()
			if _, err := d.NewRaw("INSERT INTO report_callbacks (start, supplier_id, outcome, n) VALUES (?, ?, 'paid', ?)", start, supplier,
				n).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		day := 24 * time.Hour
		add(day+5*time.Minute, 1, 30)
		add(2*day+5*time.Minute, 1, 50)
		add(day+5*time.Hour, 1, 999) // another hour
		add(5*time.Minute, 1, 2)
		add(5*time.Minute, 2, 7) // never seen at this hour
		got, err := report.Flows(t.Context(), d, 10*time.Minute)
		if err != nil || len(got) != 1 || got[0] != (report.Flow{Supplier: 1, Now: 2, Usual: 40, Span: 10 * time.Minute}) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
