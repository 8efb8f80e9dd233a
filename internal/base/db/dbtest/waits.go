package dbtest

import (
	"context"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/waittest"
)

// TxBeside starts a transaction on PostgreSQL and returns once it waits for a lock that
// another transaction holds. ended receives its error.
func TxBeside(t testing.TB, d *db.DB, fn func(context.Context, db.Tx) error) (ended <-chan error) {
	t.Helper()
	pid, end := make(chan int64, 1), make(chan error, 1)
	go func() {
		defer close(pid)
		end <- d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			var own int64
			if err := tx.NewRaw("SELECT pg_backend_pid()").Scan(ctx, &own); err != nil {
				return err
			}
			pid <- own
			return fn(ctx, tx)
		})
	}()
	waiter := <-pid
	waittest.Until(t, "the transaction waits for a lock of another one", func() bool {
		var blocked bool
		if err := d.Read.NewRaw("SELECT cardinality(pg_blocking_pids(?)) > 0", waiter).Scan(t.Context(), &blocked); err != nil {
			t.Fatal(err)
		}
		return blocked
	})
	return end
}
