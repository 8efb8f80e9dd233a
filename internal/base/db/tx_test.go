package db_test

import (
	"context"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// database/sql rolls back by itself when the context of a transaction ends. Later writes must
// not be committed statement by statement.
func TestNothingIsWrittenAfterTheTransactionsContextEnded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if _, err := d.ExecContext(t.Context(), "CREATE TABLE late (id BIGINT PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := d.Tx(ctx, func(_ context.Context, tx db.Tx) error {
			cancel()
			// The transaction has ended when nothing can be read in it any more. The rollback may
			// come a moment later, and undoes what is written until then.
			for tx.NewRaw("SELECT 1").Scan(t.Context(), new(int)) == nil {
			}
			w := tx.Writes()
			w.Add(tx.NewRaw("INSERT INTO late (id) VALUES (1)"))
			return w.Exec(t.Context())
		})
		if err == nil {
			t.Error("committed")
		}
		var n int
		if err := d.NewRaw("SELECT count(*) FROM late").Scan(t.Context(), &n); err != nil || n != 0 {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

// A query that cannot be formatted fails the transaction; otherwise its text would have been
// sent to the database.
func TestAQueryThatCannotBeWrittenDownFailsTheWrites(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			w.Add(tx.NewInsert())
			return w.Exec(ctx)
		})
		if err == nil {
			t.Error("no error")
		}
	})
}
