package db_test

import (
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// Ids of a process grow, whatever happens to its wall clock: lists are sorted by them.
func TestIDsGrowWhileTheClockIsSet(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		last := d.NewID()
		for _, step := range []time.Duration{-20 * time.Second, -time.Hour, 10 * time.Minute, -24 * time.Hour} {
			d.SetWall(step)
			if _, err := d.ClockStep(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 10_000 { // more than a millisecond has
				id := d.NewID()
				if id <= last {
					t.Fatalf("after a step of %s: %d follows %d", step, id, last)
				}
				last = id
			}
		}
	})
}

// Nor does a restart make them smaller, with a clock that was set back while no process ran. A time
// that is far ahead is not believed.
func TestIDsContinueAfterARestart(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		far := db.IDAt(d.Now() + (48 * time.Hour).Microseconds())
		last := db.IDAt(d.Now() + time.Hour.Microseconds()) // of before the clock was set back
		for _, id := range []int64{last, far} {
			execute(t, d, "INSERT INTO supplier_accounts (id, name) VALUES (?, ?)", id, id)
		}
		if id := d.NewID(); id > last {
			t.Fatalf("%d is above %d before they are continued", id, last)
		}
		if err := d.ContinueIDs(t.Context(), "supplier_accounts"); err != nil {
			t.Fatal(err)
		}
		if id := d.NewID(); id <= last || id >= far {
			t.Errorf("%d does not follow %d, or follows %d", id, last, far)
		}
	})
}
