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
