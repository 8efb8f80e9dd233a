package compensation

import (
	"context"
	"errors"
	"fmt"
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
	NoEffect          Outcome = "no_effect"          // there was no money, or nobody is owed any
)

// Outcomes are all of them, in the order in which people are offered them.
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

// Settlement is how a person ends an exception. Amount, Outcome and Reference are
// of those about money alone.
type Settlement struct {
	Amount    string // as it was typed
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
		if s.Amount != "" || s.Outcome != "" || s.Reference != "" {
			return &FieldError{Field: "outcome", Problem: "this kind of exception is not about money: it has no outcome"}
		}
		return nil
	}
	known := false
	for _, o := range Outcomes {
		known = known || s.Outcome == o
	}
	switch {
	case s.Amount != i.TypedAmount():
		return &FieldError{Field: "amount", Problem: "type the amount exactly as it is shown"}
	case !known:
		return &FieldError{Field: "outcome", Problem: "choose one of refunded_elsewhere, accepted_elsewhere and no_effect"}
	case s.Reference == "" && s.Outcome.NeedsReference(),
		utf8.RuneCountInString(s.Reference) > maxReference, !utf8.ValidString(s.Reference), strings.ContainsFunc(s.Reference, unicode.IsControl):
		return &FieldError{Field: "reference", Problem: fmt.Sprintf("write what proves it in 1 to %d characters, such as the supplier's number of the refund", maxReference)}
	case s.Ignore:
		return &FieldError{Field: "ignore", Problem: "money is not ignored: choose an outcome"}
	}
	return nil
}

// Settle ends an open exception as it was read: of money that changed since, the
// typed amount says nothing. The order does not change by it. What is resolved and
// reported again is open again. Errors: *FieldError, ErrNoException, ErrOver.
func Settle(ctx context.Context, tx db.Tx, d *db.DB, i *Item, s Settlement) error {
	if err := s.check(i); err != nil {
		return err
	}
	state := Resolved
	if s.Ignore {
		state = Ignored
	}
	now := d.Now()
	return work(ctx, tx, i.ID, ErrOver, tx.NewRaw("UPDATE exceptions SET state = ?, outcome = ?, reference = ?, resolved_at = ?, updated_at = ?"+
		" WHERE id = ? AND state IN (?) AND amount = ? AND currency = ?",
		state, s.Outcome, s.Reference, now, now, i.ID, bun.List(workable), i.Amount, i.Currency))
}

// Reopen opens an exception again that was ended, and alerts again. How it ended
// stays in the audit. Errors: ErrNoException, ErrOpen.
func Reopen(ctx context.Context, tx db.Tx, d *db.DB, id int64) error {
	return work(ctx, tx, id, ErrOpen, tx.NewRaw("UPDATE exceptions SET state = ?, assignee = '', outcome = '', reference = '', resolved_at = NULL,"+
		" alerted_at = NULL, updated_at = ? WHERE id = ? AND state IN (?)", Opened, d.Now(), id, bun.List([]string{Resolved, Ignored})))
}

// Find reads one exception. Errors: ErrNoException.
func Find(ctx context.Context, q bun.IDB, id int64) (*Item, error) {
	var rows []Item
	if err := q.NewSelect().Model(&rows).Where("x.id = ?", id).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read an exception: %w", err)
	}
	if len(rows) == 0 {
		return nil, ErrNoException
	}
	return &rows[0], nil
}
