package compensation

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Assigned is the state of what somebody has taken in hand.
const Assigned = "assigned"

// ErrOver says that an exception is over, or that it was changed meanwhile.
var ErrOver = errors.New("the exception is not open any more, or was changed meanwhile: look again")

// ErrNoException says that there is no such exception.
var ErrNoException = errors.New("no such exception")

// Assign gives an open exception to a person; "" gives it back to everybody.
// Errors: ErrNoException, ErrOver.
func Assign(ctx context.Context, tx db.Tx, d *db.DB, id int64, person string) error {
	state := Assigned
	if person == "" {
		state = Opened
	}
	return work(ctx, tx, id, ErrOver, tx.NewRaw("UPDATE exceptions SET state = ?, assignee = ?, updated_at = ? WHERE id = ? AND state IN (?)",
		state, person, d.Now(), id, bun.List(workable)))
}

// workable are the states in which people work on an exception.
var workable = []string{Opened, Assigned}

// work runs a compare-and-set on one exception; lost says that it was too late.
func work(ctx context.Context, tx db.Tx, id int64, lost error, q *bun.RawQuery) error {
	res, err := q.Exec(ctx)
	if err != nil {
		return fmt.Errorf("change an exception: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return err
	}
	var there []int64
	if err := tx.NewRaw("SELECT id FROM exceptions WHERE id = ?", id).Scan(ctx, &there); err != nil {
		return fmt.Errorf("look for an exception: %w", err)
	}
	if len(there) == 0 {
		return ErrNoException
	}
	return lost
}
