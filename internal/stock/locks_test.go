package stock_test

import (
	"context"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/stock"
)

// Two transactions that need the same articles must not deadlock: one that waits for an article
// holds none of a higher id, in whatever order they were requested and in whatever order the
// rows lie. SQLite has one writer.
func TestWhoWaitsForAnArticleHoldsNoneBehindIt(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(s shelf, id int64) func(context.Context, db.Tx) error{
		"reserve": func(s shelf, _ int64) func(context.Context, db.Tx) error {
			return func(ctx context.Context, tx db.Tx) error {
				_, refused, err := stock.Reserve(ctx, tx, s.d, [][]stock.Line{{line("high", 1), line("low", 1)}})
				if err == nil {
					err = refused[0]
				}
				return err
			}
		},
		"deduct": func(s shelf, id int64) func(context.Context, db.Tx) error {
			return func(ctx context.Context, tx db.Tx) error { return stock.Deduct(ctx, tx, s.d, []int64{id}) }
		},
		"release": func(s shelf, id int64) func(context.Context, db.Tx) error {
			return func(ctx context.Context, tx db.Tx) error { return stock.Release(ctx, tx, s.d, []int64{id}) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := shelf{t, dbtest.Postgres(t)}
			s.has(2, "high", 10)
			s.has(1, "low", 10)
			run := act(s, s.reserved([]stock.Line{line("high", 1), line("low", 1)})[0])
			var ended <-chan error
			err := s.d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				if _, err := tx.NewRaw("SELECT id FROM skus WHERE id = 1 FOR UPDATE").Exec(ctx); err != nil {
					return err
				}
				ended = dbtest.TxBeside(t, s.d, run)
				_, err := tx.NewRaw("SELECT id FROM skus WHERE id = 2 FOR UPDATE NOWAIT").Exec(ctx)
				return err
			})
			if ended == nil {
				t.Fatal(err)
			}
			if err != nil {
				t.Errorf("a row behind the lock is held, too: %v", err)
			}
			if err := <-ended; err != nil {
				t.Errorf("the waiting buyer got %v", err)
			}
		})
	}
}
