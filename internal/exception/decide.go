package exception

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"backstop/internal/act"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Find reads one exception. Errors: ErrNotFound.
func Find(ctx context.Context, q bun.IDB, id int64) (*Item, error) {
	x := new(Item)
	err := q.NewSelect().Model(x).Where("x.id = ?", id).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read an exception: %w", err)
	}
	return x, nil
}

// Hold marks the exception as proposed, in the version that was read, and increments the
// version. Errors: ErrNotFound, act.ErrChanged.
func Hold(ctx context.Context, tx db.Tx, d *db.DB, id, version int64) error {
	return change(ctx, tx, id, act.ErrChanged, tx.NewRaw("UPDATE exceptions SET state = ?, version = version + 1, updated_at = ?"+
		" WHERE id = ? AND version = ? AND state IN (?)", Proposed, d.Now(), id, version, bun.List(Moves.From(Proposed))))
}

// Free reopens an exception whose proposal ended without a decision; its assignee stays. An
// exception that is no longer proposed is left unchanged.
func Free(ctx context.Context, tx db.Tx, d *db.DB, id int64) error {
	_, err := tx.NewRaw(
		"UPDATE exceptions SET state = CASE WHEN assignee = '' THEN ? ELSE ? END, version = version + 1, updated_at = ? WHERE id = ? AND state = ?",
		Opened, Assigned, d.Now(), id, Proposed).Exec(ctx)
	if err != nil {
		return fmt.Errorf("free an exception: %w", err)
	}
	return nil
}

// Fail marks an exception whose decision could not take effect. Its version stays, so that the
// same approval may run again. Errors: ErrNotFound, act.ErrChanged.
func Fail(ctx context.Context, tx db.Tx, d *db.DB, id, version int64) error {
	if err := execute(ctx, tx, id, version); err != nil {
		return err
	}
	return change(ctx, tx, id, act.ErrChanged, tx.NewRaw("UPDATE exceptions SET state = ?, updated_at = ? WHERE id = ? AND state IN (?)",
		Failed, d.Now(), id, bun.List(Moves.From(Failed))))
}

// Decide ends the exception by an approval, in the version that was approved: Resolved or
// Ignored, with outcome and reference. Errors: ErrNotFound, act.ErrChanged.
func Decide(ctx context.Context, tx db.Tx, d *db.DB, id, version int64, to State, approvalID int64, outcome, reference string) error {
	if err := execute(ctx, tx, id, version); err != nil {
		return err
	}
	now := d.Now()
	return change(ctx, tx, id, act.ErrChanged,
		tx.NewRaw("UPDATE exceptions SET state = ?, outcome = ?, reference = ?, decided_by = ?, resolved_at = ?, updated_at = ?,"+
			" version = version + 1 WHERE id = ? AND state IN (?)", to, outcome, reference, approvalID, now, now, id,
			bun.List(Moves.From(to, Executing))))
}

// execute moves an exception approved in that version to the state in which its decision takes
// effect. An exception that was not held needed no second person.
func execute(ctx context.Context, tx db.Tx, id, version int64) error {
	for _, to := range []State{Approved, Executing} {
		if err := change(ctx, tx, id, act.ErrChanged,
			tx.NewRaw("UPDATE exceptions SET state = ? WHERE id = ? AND version = ? AND state IN (?)",
				to, id, version, bun.List(Moves.From(to)))); err != nil {
			return err
		}
	}
	return nil
}
