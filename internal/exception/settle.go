package exception

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"backstop/internal/act"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Outcome is how an exception about money ended. The money itself moves elsewhere.
type Outcome string

// Outcomes.
const (
	RefundedElsewhere Outcome = "refunded_elsewhere" // the buyer has it back, by the supplier's own console or the bank
	AcceptedElsewhere Outcome = "accepted_elsewhere" // the merchant got it, or it was booked by hand
	NoEffect          Outcome = "no_effect"          // there was no money, or none is owed
)

// Outcomes are all of them, as they are offered.
var Outcomes = []Outcome{RefundedElsewhere, AcceptedElsewhere, NoEffect}

// maxReference bounds a reference, in characters.
const maxReference = 200

var (
	// ErrNotFound: there is no such exception.
	ErrNotFound = errors.New("no such exception")
	// ErrOpen: the exception is open already.
	ErrOpen = errors.New("the exception is open already")
	// ErrEnded: the exception has ended, or was changed since it was read.
	ErrEnded = errors.New("the exception is not open any more, or was changed meanwhile: look again")
)

// settlement is how an operator ends an exception. Outcome and Reference are those of
// exceptions about money; the operator has typed the amount by then.
type settlement struct {
	Outcome   Outcome `json:"outcome"`
	Reference string  `json:"reference"`
	ignore    bool    // stays quiet when it is reported again; never about money
}

// check returns what is wrong with a settlement of an exception of the kind.
func (s settlement) check(kind string) error {
	if !CarriesMoney(kind) {
		if s.Outcome != "" || s.Reference != "" {
			return &act.FieldError{Field: "outcome", Problem: "this kind of exception is not about money: it has no outcome"}
		}
		return nil
	}
	switch {
	case !slices.Contains(Outcomes, s.Outcome):
		return &act.FieldError{Field: "outcome", Problem: "choose one of refunded_elsewhere, accepted_elsewhere and no_effect"}
	case s.Reference == "" && s.Outcome != NoEffect,
		utf8.RuneCountInString(s.Reference) > maxReference, !utf8.ValidString(s.Reference), strings.ContainsFunc(s.Reference, unicode.IsControl):
		return &act.FieldError{Field: "reference", Problem: fmt.Sprintf("write what proves it in 1 to %d characters, such as the supplier's number of the refund", maxReference)}
	case s.ignore:
		return &act.FieldError{Field: "ignore", Problem: "money is not ignored: choose an outcome"}
	}
	return nil
}

// settle ends an open exception as it was read: the amount that was typed is the one
// that the exception still has. The order does not change. Reported again, a resolved
// one is open again. Errors: *act.FieldError, ErrNotFound, ErrEnded.
func settle(ctx context.Context, tx db.Tx, d *db.DB, i *Item, s settlement) error {
	if err := s.check(i.Kind); err != nil {
		return err
	}
	to := Resolved
	if s.ignore {
		to = Ignored
	}
	now := d.Now()
	return change(ctx, tx, i.ID, ErrEnded, tx.NewRaw("UPDATE exceptions SET state = ?, outcome = ?, reference = ?, resolved_at = ?, updated_at = ?"+
		" WHERE id = ? AND state IN (?) AND amount = ? AND currency = ?",
		to, s.Outcome, s.Reference, now, now, i.ID, bun.List(Moves.From(to)), i.Amount, i.Currency))
}

// Resolve is the end of the open exceptions of a kind about one subject whose cause
// is being removed. Reported again, they are open again.
func Resolve(tx db.Tx, d *db.DB, kind, subject string) *bun.RawQuery {
	now := d.Now()
	return tx.NewRaw("UPDATE exceptions SET state = ?, resolved_at = ?, updated_at = ? WHERE kind = ? AND supplier_id = 0 AND subject = ?"+
		" AND state IN (?)", Resolved, now, now, kind, subject, bun.List(Moves.From(Resolved)))
}

// reopen opens an exception again that has ended, and alerts again. How it ended
// stays in the audit. Errors: ErrNotFound, ErrOpen.
func reopen(ctx context.Context, tx db.Tx, d *db.DB, id int64) error {
	return change(ctx, tx, id, ErrOpen, tx.NewRaw("UPDATE exceptions SET state = ?, assignee = '', outcome = '', reference = '', resolved_at = NULL,"+
		" alerted_at = NULL, updated_at = ? WHERE id = ? AND state IN (?)", Opened, d.Now(), id, bun.List(Moves.From(Opened, Resolved, Ignored))))
}

// assign gives an open exception to an operator; "" leaves it unassigned.
// Errors: ErrNotFound, ErrEnded.
func assign(ctx context.Context, tx db.Tx, d *db.DB, id int64, assignee string) error {
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
