package exception

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// ErrEnded says that an exception has ended, or was changed since it was read.
var ErrEnded = errors.New("the exception is not open any more, or was changed meanwhile: look again")

// Assign gives an open exception to an operator; "" leaves it unassigned.
// Errors: ErrNotFound, ErrEnded.
func Assign(ctx context.Context, tx db.Tx, d *db.DB, id int64, assignee string) error {
	to := Assigned
	if assignee == "" {
		to = Opened
	}
	return change(ctx, tx, id, ErrEnded, tx.NewRaw("UPDATE exceptions SET state = ?, assignee = ?, updated_at = ? WHERE id = ? AND state IN (?)",
		to, assignee, d.Now(), id, bun.List(Moves.From(to, Opened, Assigned))))
}

// change runs a compare-and-set on one exception; stale is its error where the
// exception was in another state.
func change(ctx context.Context, tx db.Tx, id int64, stale error, q *bun.RawQuery) error {
	res, err := q.Exec(ctx)
	if err != nil {
		return fmt.Errorf("change an exception: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return err
	}
	var found []int64
	if err := tx.NewRaw("SELECT id FROM exceptions WHERE id = ?", id).Scan(ctx, &found); err != nil {
		return fmt.Errorf("find an exception: %w", err)
	}
	if len(found) == 0 {
		return ErrNotFound
	}
	return stale
}
