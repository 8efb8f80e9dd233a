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
	"backstop/internal/base/money"

	"github.com/uptrace/bun"
)

// Outcome is how an exception about money ended. The money moves elsewhere: here
// it is only recorded.
type Outcome string

// Outcomes.
const (
	RefundedElsewhere Outcome = "refunded_elsewhere" // the buyer has it back, by the supplier's own console or the bank
	AcceptedElsewhere Outcome = "accepted_elsewhere" // the merchant got it, or it was booked by hand
	NoEffect          Outcome = "no_effect"          // there was no money, or none is owed
)

// Outcomes are all of them, as they are offered.
var Outcomes = []Outcome{RefundedElsewhere, AcceptedElsewhere, NoEffect}

// NeedsReference says whether something must prove the outcome. Where no money
// moved there is nothing to refer to.
func (o Outcome) NeedsReference() bool { return o != NoEffect }

// maxReference bounds a reference, in characters.
const maxReference = 200

// ErrOpen says that an exception is open already.
var ErrOpen = errors.New("the exception is open already")

// FieldError says what is wrong with a field of a settlement.
type FieldError = act.FieldError

// Settlement is how an operator ends an exception. Outcome and Reference are of those
// about money alone.
type Settlement struct {
	Outcome   Outcome
	Reference string
	Ignore    bool // it stays quiet when it is reported again; not of money
}

// TypedAmount is the amount that has to be typed before the exception is ended: as
// it is shown, without symbol and grouping. "" = none has to be.
func (i *Item) TypedAmount() string {
	if !CarriesMoney(i.Kind) || i.Amount == 0 || i.Currency == "" {
		return ""
	}
	return money.Format(i.Amount, i.Currency)
}

// check says what is wrong with a settlement of the exception.
func (s Settlement) check(i *Item) error {
	if !CarriesMoney(i.Kind) {
		if s.Outcome != "" || s.Reference != "" {
			return &FieldError{Field: "outcome", Problem: "this kind of exception is not about money: it has no outcome"}
		}
		return nil
	}
	switch {
	case !slices.Contains(Outcomes, s.Outcome):
		return &FieldError{Field: "outcome", Problem: "choose one of refunded_elsewhere, accepted_elsewhere and no_effect"}
	case s.Reference == "" && s.Outcome.NeedsReference(),
		utf8.RuneCountInString(s.Reference) > maxReference, !utf8.ValidString(s.Reference), strings.ContainsFunc(s.Reference, unicode.IsControl):
		return &FieldError{Field: "reference", Problem: fmt.Sprintf("write what proves it in 1 to %d characters, such as the supplier's number of the refund", maxReference)}
	case s.Ignore:
		return &FieldError{Field: "ignore", Problem: "money is not ignored: choose an outcome"}
	}
	return nil
}

// Settle ends an open exception as it was read: not one whose amount changed after it was
// typed. The order does not change by it. What is resolved and
// reported again is open again. Errors: *FieldError, ErrNotFound, ErrEnded.
func Settle(ctx context.Context, tx db.Tx, d *db.DB, i *Item, s Settlement) error {
	if err := s.check(i); err != nil {
		return err
	}
	to := Resolved
	if s.Ignore {
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

// Reopen opens an exception again that was ended, and alerts again. How it ended
// stays in the audit. Errors: ErrNotFound, ErrOpen.
func Reopen(ctx context.Context, tx db.Tx, d *db.DB, id int64) error {
	return change(ctx, tx, id, ErrOpen, tx.NewRaw("UPDATE exceptions SET state = ?, assignee = '', outcome = '', reference = '', resolved_at = NULL,"+
		" alerted_at = NULL, updated_at = ? WHERE id = ? AND state IN (?)", Opened, d.Now(), id, bun.List(Moves.From(Opened, Resolved, Ignored))))
}
