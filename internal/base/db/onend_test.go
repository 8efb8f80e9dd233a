package db_test

import (
	"context"
	"errors"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

func TestWhatWaitsForTheEndHearsHowItEnded(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var heard []error
		tx := func(f func() error) (err error) {
			defer func() {
				if recover() != nil {
					err = errors.New("panicked")
				}
			}()
			return d.Tx(t.Context(), func(_ context.Context, tx db.Tx) error {
				tx.OnEnd(func(err error) { heard = append(heard, err) })
				return f()
			})
		}
		no := errors.New("no")
		if err := tx(func() error { return nil }); err != nil || len(heard) != 1 || heard[0] != nil {
			t.Errorf("committed (%v): heard %v", err, heard)
		}
		if err := tx(func() error { return no }); !errors.Is(err, no) || len(heard) != 2 || !errors.Is(heard[1], no) {
			t.Errorf("rolled back (%v): heard %v", err, heard)
		}
		if err := tx(func() error { panic("no") }); err == nil || len(heard) != 3 || heard[2] == nil {
			t.Errorf("panicked (%v): heard %v", err, heard)
		}
	})
}
