package dbtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// What a caller would repeat is repeated, and nothing else.
func TestWhatACallerWouldRepeatIsRepeated(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	fault := errors.New("a fault")
	if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		_, err := tx.NewRaw("LOCK TABLE orders").Exec(ctx)
		return errors.Join(err, lockTimeoutIsRepeated(t, d, fault))
	}); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []error{db.ErrBusy, fmt.Errorf("confirm: %w", db.ErrStale)} {
		tries := 0
		err := dbtest.Repeat(func() error {
			if tries++; tries < 3 {
				return lost
			}
			return fault
		})
		if tries != 3 || !errors.Is(err, fault) {
			t.Errorf("%v: %d tries, then %v", lost, tries, err)
		}
	}
}

// lockTimeoutIsRepeated waits in vain for a table that its caller has locked.
func lockTimeoutIsRepeated(t *testing.T, d *db.DB, fault error) error {
	tries := 0
	err := dbtest.Repeat(func() error {
		if tries++; tries == 2 {
			return fault
		}
		return d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			_, err := tx.NewRaw("SET LOCAL lock_timeout = '10ms'; LOCK TABLE orders").Exec(ctx)
			return err
		})
	})
	if tries != 2 || !errors.Is(err, fault) {
		return fmt.Errorf("a lock timeout: %d tries, then %w", tries, err)
	}
	return nil
}
