package exception

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/base/db"
	"backstop/internal/base/moves"

	"github.com/uptrace/bun"
)

// Outcome is how an exception about money ended. The money itself moves separately.
type Outcome string

// Outcomes.
const (
	RefundedElsewhere Outcome = "refunded_elsewhere" // the buyer has it back, through the supplier's console or the bank
	AcceptedElsewhere Outcome = "accepted_elsewhere" // the merchant got it, or it was booked by hand
	NoEffect          Outcome = "no_effect"          // there was no money; only in rows that one person ended
	Accepted          Outcome = "accepted"           // an order is paid with it
	KeepSurplus       Outcome = "keep_surplus"       // it is for the merchant, and held until then
	OweBack           Outcome = "owe_back"           // it is for the buyer, and held until then
	RefundMade        Outcome = "refund_succeeded"   // the refund that it is about succeeded
	RefundNotMade     Outcome = "refund_failed"      // that refund was not made
	BookedPaid        Outcome = "paid"               // the payment that it is about is booked, without a decision
	Booked            Outcome = "booked"             // it was booked by itself; listed, and nobody decides
)

var (
	// ErrNotFound means that there is no such exception.
	ErrNotFound = errors.New("no such exception")
	// ErrOpen means that the exception is already open.
	ErrOpen = errors.New("the exception is open already")
	// ErrDecided means that two people decided it.
	ErrDecided = errors.New("two people decided this: it reopens only if it is reported again")
	// ErrEnded means that the exception has ended or was changed since it was read.
	ErrEnded = errors.New("the exception has ended or was changed meanwhile: reload it and check again")
)

// Resolve ends the open exceptions of a kind about subjects whose cause is being removed, even
// if a proposal about them is open. They reopen if reported again.
func Resolve(tx db.Tx, d *db.DB, kind string, subjects ...string) *bun.RawQuery {
	return ResolveAt(tx, d, kind, 0, subjects...)
}

// ResolveAt is Resolve for exceptions that name a supplier.
func ResolveAt(tx db.Tx, d *db.DB, kind string, supplierID int64, subjects ...string) *bun.RawQuery {
	now := d.Now()
	return tx.NewRaw(
		"UPDATE exceptions SET state = ?, resolved_at = ?, updated_at = ?, version = version + 1 WHERE kind = ? AND supplier_id = ? AND subject IN (?)"+
			" AND state IN (?)", Resolved, now, now, kind, supplierID, bun.List(subjects), bun.List(Moves.From(Resolved)))
}

// ResolveDispute ends the open exception of a dispute that has ended, even if a proposal about
// it is open. News about it reopens it.
func ResolveDispute(tx db.Tx, d *db.DB, supplierID int64, subject string) *bun.RawQuery {
	now := d.Now()
	return tx.NewRaw("UPDATE exceptions SET state = ?, resolved_at = ?, updated_at = ?, version = version + 1 WHERE kind = '"+DisputeOpened+
		"' AND supplier_id = ? AND subject = ?"+
		" AND state IN (?)", Resolved, now, now, supplierID, subject, bun.List(Moves.From(Resolved)))
}

// OpenAbout selects the open exceptions of PaidKinds about trade numbers: the account at the
// supplier, the trade number, the id. Whichever code of the account they came by, they are about
// one payment.
var OpenAbout = "SELECT su.account_id, x.subject, x.id FROM exceptions AS x JOIN suppliers AS su ON su.id = x.supplier_id" +
	" WHERE x.subject IN (?) AND " + moves.Words("x.kind", PaidKinds...) + " AND " + Moves.In("x.state", Moves.Open()...)

// EndPaid ends open exceptions about a payment that is now booked for the order, even if a
// proposal about them is open: it is about a fact that has changed.
func EndPaid(tx db.Tx, d *db.DB, orderNo string, ids ...int64) *bun.RawQuery {
	now := d.Now()
	return tx.NewRaw("UPDATE exceptions SET state = ?, outcome = ?, reference = ?, resolved_at = ?, updated_at = ?, version = version + 1"+
		" WHERE id IN (?) AND state IN (?)", Resolved, BookedPaid, orderNo, now, now, bun.List(ids), bun.List(Moves.From(Resolved)))
}

// HoldAgain reopens the exceptions about a trade number whose money left suspense and is back:
// what becomes of it must be decided again.
func HoldAgain(tx db.Tx, d *db.DB, supplierID int64, subject, heldRef string) *bun.RawQuery {
	return tx.NewRaw("UPDATE exceptions SET state = CASE WHEN state = ? THEN '"+string(Opened)+
		"' ELSE state END, held_ref = ?, alerted_at = NULL, decided_by = 0, resolved_at = NULL,"+
		" updated_at = ?, version = version + 1 WHERE kind IN (?) AND supplier_id = ? AND subject = ? AND held_ref = ''",
		Resolved, heldRef, d.Now(), bun.List(SuspenseKinds), supplierID, subject)
}

// OpenBooked lists what was booked by itself, as an exception that has ended. Each is listed once.
func OpenBooked(w *db.Writes, d *db.DB, i *Item) {
	now := d.Now()
	i.ID, i.State, i.Outcome, i.Seen, i.Version = d.NewID(), Resolved, Booked, 1, 1
	i.OpenedAt, i.UpdatedAt, i.ResolvedAt = now, now, &now
	w.Insert(&[]*Item{i}, "CONFLICT (kind, supplier_id, subject, order_no) DO NOTHING")
}

// ResolveTrade ends the open exceptions of a kind about a trade number of an account, whichever of
// its suppliers they name, even if a proposal about them is open.
func ResolveTrade(tx db.Tx, d *db.DB, kind string, accountID int64, subject string, o Outcome) *bun.RawQuery {
	now := d.Now()
	return tx.NewRaw("UPDATE exceptions SET state = ?, outcome = ?, resolved_at = ?, updated_at = ?, version = version + 1 WHERE kind = ?"+
		" AND subject = ? AND supplier_id IN (SELECT id FROM suppliers WHERE account_id = ?) AND state IN (?)",
		Resolved, o, now, now, kind, subject, accountID, bun.List(Moves.From(Resolved)))
}

// Refunded ends the exceptions about an entry of which nothing is held any more, because all of it
// was refunded at the supplier.
func Refunded(tx db.Tx, d *db.DB, heldRef string) *bun.RawQuery {
	now := d.Now()
	open := bun.List(Moves.From(Resolved))
	return tx.NewRaw("UPDATE exceptions SET held_ref = '', updated_at = ?, version = version + 1,"+
		" outcome = CASE WHEN state IN (?) THEN ? ELSE outcome END, resolved_at = CASE WHEN state IN (?) THEN ? ELSE resolved_at END,"+
		" state = CASE WHEN state IN (?) THEN ? ELSE state END WHERE held_ref = ? AND held_ref <> ''",
		now, open, RefundedElsewhere, open, now, open, Resolved, heldRef)
}

// HeldLess marks the exceptions about an entry of which less is held: an earlier proposal about
// them no longer applies.
func HeldLess(tx db.Tx, d *db.DB, heldRef string) *bun.RawQuery {
	return tx.NewRaw("UPDATE exceptions SET updated_at = ?, version = version + 1 WHERE held_ref = ? AND held_ref <> ''", d.Now(), heldRef)
}

// reopen reopens an ended exception, in the version that was read, and alerts again. Its
// outcome remains in the audit. Errors: ErrNotFound, ErrOpen.
func reopen(ctx context.Context, tx db.Tx, d *db.DB, id, version int64) error {
	return change(ctx, tx, id, ErrOpen,
		tx.NewRaw("UPDATE exceptions SET state = ?, assignee = '', outcome = '', reference = '', resolved_at = NULL,"+
			" alerted_at = NULL, decided_by = 0, updated_at = ?, version = version + 1 WHERE id = ? AND version = ? AND state IN (?)",
			Opened,
			d.Now(), id, version, bun.List(Moves.From(Opened, Resolved, Ignored))))
}

// assign assigns an open exception to an operator; "" = unassigned. Errors: ErrNotFound,
// ErrEnded.
func assign(ctx context.Context, tx db.Tx, d *db.DB, id int64, assignee string) error {
	to := Assigned
	if assignee == "" {
		to = Opened
	}
	return change(ctx, tx, id, ErrEnded,
		tx.NewRaw("UPDATE exceptions SET state = ?, assignee = ?, updated_at = ?, version = version + 1 WHERE id = ? AND state IN (?)",
			to, assignee, d.Now(), id, bun.List(Moves.From(to, Opened, Assigned, Failed))))
}

// change runs a compare-and-set on one exception; stale is the error if it was in another
// state.
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
