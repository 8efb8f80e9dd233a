package compensation

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/db"

	"github.com/uptrace/bun"
)

// Assigned is the state of what somebody has taken in hand.
const Assigned = "assigned"

// ErrOver says that an exception is over, or that its end is decided elsewhere.
var ErrOver = errors.New("the exception is not open any more")

// ErrNoException says that there is no such exception.
var ErrNoException = errors.New("no such exception")

// Assign gives an open exception to a person; "" gives it back to everybody.
// Errors: ErrNoException, ErrOver.
func Assign(ctx context.Context, tx bun.Tx, d *db.DB, id int64, person string) error {
	state := Assigned
	if person == "" {
		state = Opened
	}
	return work(ctx, tx, id, tx.NewRaw("UPDATE exceptions SET state = ?, assignee = ?, updated_at = ? WHERE id = ? AND state IN (?)",
		state, person, d.Now(), id, bun.List([]string{Opened, Assigned})))
}

// Settle ends an open exception: somebody put right what it is about. The order
// does not change by it. Reported again, the exception is open again. Errors:
// ErrNoException, ErrOver.
func Settle(ctx context.Context, tx bun.Tx, d *db.DB, id int64) error {
	now := d.Now()
	return work(ctx, tx, id, tx.NewRaw("UPDATE exceptions SET state = ?, resolved_at = ?, updated_at = ? WHERE id = ? AND state IN (?)",
		Resolved, now, now, id, bun.List([]string{Opened, Assigned})))
}

// Ignore ends an open exception of an ignorable kind for good: reported again, it is
// counted and stays as it is. Errors: ErrNoException, ErrOver (also of other kinds).
func Ignore(ctx context.Context, tx bun.Tx, d *db.DB, id int64) error {
	var ignorable []string
	for _, k := range kinds {
		if k.Ignorable {
			ignorable = append(ignorable, k.Name)
		}
	}
	now := d.Now()
	return work(ctx, tx, id, tx.NewRaw("UPDATE exceptions SET state = ?, resolved_at = ?, updated_at = ? WHERE id = ? AND state IN (?) AND kind IN (?)",
		Ignored, now, now, id, bun.List([]string{Opened, Assigned}), bun.List(ignorable)))
}

// work runs a compare-and-set on one exception's state.
func work(ctx context.Context, tx bun.Tx, id int64, q *bun.RawQuery) error {
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
	return ErrOver
}
