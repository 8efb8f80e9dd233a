package exception

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Outcome is how an exception about money ended. The money itself moves elsewhere.
type Outcome string

// Outcomes.
const (
	RefundedElsewhere Outcome = "refunded_elsewhere" // the buyer has it back, by the supplier's own console or the bank
	AcceptedElsewhere Outcome = "accepted_elsewhere" // the merchant got it, or it was booked by hand
	NoEffect          Outcome = "no_effect"          // there was no money; of rows that one person ended
	Accepted          Outcome = "accepted"           // an order is paid by it
	KeepSurplus       Outcome = "keep_surplus"       // the merchant is to get it; it is held until then
	OweBack           Outcome = "owe_back"           // the buyer is to get it back; it is held until then
)

var (
	// ErrNotFound: there is no such exception.
	ErrNotFound = errors.New("no such exception")
	// ErrOpen: the exception is open already.
	ErrOpen = errors.New("the exception is open already")
	// ErrDecided: two people decided it.
	ErrDecided = errors.New("two people decided this: it is open again once it is reported again")
	// ErrEnded: the exception has ended, or was changed since it was read.
	ErrEnded = errors.New("the exception is not open any more, or was changed meanwhile: look again")
)

// Resolve is the end of the open exceptions of a kind about one subject whose cause
// is being removed, a proposal about them or not. Reported again, they are open again.
func Resolve(tx db.Tx, d *db.DB, kind, subject string) *bun.RawQuery {
	now := d.Now()
	return tx.NewRaw("UPDATE exceptions SET state = ?, resolved_at = ?, updated_at = ?, version = version + 1 WHERE kind = ? AND supplier_id = 0 AND subject = ?"+
		" AND state IN (?)", Resolved, now, now, kind, subject, bun.List(Moves.From(Resolved)))
}

// reopen opens an exception again that has ended, as it was read in that version, and
// alerts again. How it ended stays in the audit. Errors: ErrNotFound, ErrOpen.
func reopen(ctx context.Context, tx db.Tx, d *db.DB, id, version int64) error {
	return change(ctx, tx, id, ErrOpen, tx.NewRaw("UPDATE exceptions SET state = ?, assignee = '', outcome = '', reference = '', resolved_at = NULL,"+
		" alerted_at = NULL, decided_by = 0, updated_at = ?, version = version + 1 WHERE id = ? AND version = ? AND state IN (?)", Opened, d.Now(), id, version, bun.List(Moves.From(Opened, Resolved, Ignored))))
}

// assign gives an open exception to an operator; "" leaves it unassigned.
// Errors: ErrNotFound, ErrEnded.
func assign(ctx context.Context, tx db.Tx, d *db.DB, id int64, assignee string) error {
	to := Assigned
	if assignee == "" {
		to = Opened
	}
	return change(ctx, tx, id, ErrEnded, tx.NewRaw("UPDATE exceptions SET state = ?, assignee = ?, updated_at = ?, version = version + 1 WHERE id = ? AND state IN (?)",
		to, assignee, d.Now(), id, bun.List(Moves.From(to, Opened, Assigned, Failed))))
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
