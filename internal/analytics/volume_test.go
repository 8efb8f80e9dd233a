package analytics

import (
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// The clock moves on while a forecast is read, and the last complete step has orders: each step
// has its place, however often it is read.
func TestVolumeIsReadAtOneMoment(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		step := VolumeStep.Microseconds()
		now := d.Now()
		for i := range int64(4) { // with the steps that begin while this runs
			if _, err := d.NewRaw("INSERT INTO report_orders VALUES (300, ?, 'CNY', 7, 700, 7, 700)",
				now-now%step+(i-2)*step).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for range 200 {
			e, err := Volume(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			if last := e.Behind[len(e.Behind)-1]; last != 7 || e.Known {
				t.Fatalf("the last complete step has %d orders, want 7; known %v", last, e.Known)
			}
		}
	})
}
