package db_test

import (
	"context"
	"errors"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

func TestWhatWaitsForTheEndHearsHowItEnded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var received []error
		tx := func(f func() error) (err error) {
			defer func() {
				if recover() != nil {
					err = errors.New("panicked")
				}
			}()
			return d.Tx(t.Context(), func(_ context.Context, tx db.Tx) error {
				tx.OnEnd(func(err error) { received = append(received, err) })
				return f()
			})
		}
		no := errors.New("no")
		if err := tx(func() error { return nil }); err != nil || len(received) != 1 || received[0] != nil {
			t.Errorf("committed (%v): received %v", err, received)
		}
		if err := tx(func() error { return no }); !errors.Is(err, no) || len(received) != 2 || !errors.Is(received[1], no) {
			t.Errorf("rolled back (%v): received %v", err, received)
		}
		if err := tx(func() error { panic("no") }); err == nil || len(received) != 3 || received[2] == nil {
			t.Errorf("panicked (%v): received %v", err, received)
		}
	})
}
