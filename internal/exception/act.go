package exception

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"

	"github.com/uptrace/bun"
)

// Audit names of the acts.
const (
	ReopenAct = "exception.reopen"
	AssignAct = "exception.assign"
	NoteAct   = "exception.note"
)

// actObject is the object name of exceptions in the audit.
const actObject = "exception"

// Acts reopen, assign and comment on the exception Ref.Row; ending one is decided by proposals.
// assignable returns the operators to whom one may be assigned. The version of an exception is
// Item.Version. Errors: ErrEnded, ErrOpen, ErrDecided.
func Acts(d *db.DB, assignable func(context.Context) ([]string, error)) []act.Kind {
	return []act.Kind{
		{
			Name: ReopenAct, Object: actObject, Permission: access.IgnoreExceptions, Load: Load, ExtraPermission: reopening,
			Do: each(func(ctx context.Context, tx db.Tx, _ any, x *Item) (map[string]any, error) {
				if !x.State.Open() && !x.Reopens() {
					return nil, ErrDecided
				}
				details := map[string]any{"kind": x.Kind}
				if x.Outcome != "" {
					details["outcome"], details["reference"] = x.Outcome, x.Reference // the row loses them
				}
				return details, reopen(ctx, tx, d, x.ID, x.Version)
			}),
		},
		{
			Name: AssignAct, Object: actObject, Permission: access.AssignExceptions, NoReason: true, Params: act.ParamsOf[assignment](),
			Load: Load,
			Do: each(func(ctx context.Context, tx db.Tx, params any, x *Item) (map[string]any, error) {
				to := params.(assignment).To
				details := map[string]any{"to": to}
				names, err := assignable(ctx)
				if err != nil {
					return details, err
				}
				if to != "" && !slices.Contains(names, to) {
					return details, invalid.Field("to", text.Text{ZH: "没有这个可指派的操作员", EN: "no assignable operator has this name"})
				}
				return details, assign(ctx, tx, d, x.ID, to)
			}),
		},
		{Name: NoteAct, Object: actObject, Permission: access.NoteExceptions, Load: Load},
	}
}

// reopening returns the permission needed to reopen an exception that one person ended.
func reopening(s act.Subject, _ any) access.Permission { return ReopenPermission(s.Value.(*Item)) }

// ReopenPermission returns the permission needed to reopen the exception.
func ReopenPermission(x *Item) access.Permission {
	if x.OfMoney() {
		return access.ProposeMoney
	}
	return access.IgnoreExceptions
}

// OfMoney reports whether ending the exception decides about an amount.
func (i *Item) OfMoney() bool { return CarriesMoney(i.Kind) || i.Amount != 0 || i.HeldRef != "" }

// Reopens reports whether the exception, once over, may be reopened by hand. One that two
// people decided, or whose money was booked, reopens only when it is reported again.
func (i *Item) Reopens() bool { return i.HeldRef == "" && (i.DecidedBy == 0 || !i.OfMoney()) }

// assignment names the assignee; "" = unassigned.
type assignment struct {
	To string `json:"to" max:"64"`
}

// each returns a Do that changes exceptions one after the other, by id. A refusal concerns one
// exception, any other error all of them.
func each(do func(ctx context.Context, tx db.Tx, params any, x *Item) (map[string]any, error)) func(context.Context, db.Tx, act.Input,
	[]act.Subject) ([]act.Outcome, error) {
	return func(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
		outs := make([]act.Outcome, len(subjects))
		for i, s := range subjects {
			details, err := do(ctx, tx, in.Params, s.Value.(*Item))
			var field *act.FieldError
			if err != nil && !errors.As(err, &field) && !errors.Is(err, ErrEnded) && !errors.Is(err, ErrOpen) &&
				!errors.Is(err, ErrDecided) && !errors.Is(err, ErrNotFound) {
				return nil, err
			}
			outs[i] = act.Outcome{Details: details, Err: err}
		}
		return outs, nil
	}
}

// Load reads exceptions by id.
func Load(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
	rows, err := act.Rows[Item](ctx, q, refs)
	if err != nil {
		return nil, err
	}
	subjects := make([]act.Subject, len(rows))
	for i := range rows {
		subjects[i] = subject(&rows[i])
	}
	return subjects, nil
}

func subject(x *Item) act.Subject {
	s := act.Subject{Row: x.ID, ID: strconv.FormatInt(x.ID, 10), MerchantID: x.MerchantID, Version: x.Version, Value: x}
	if CarriesMoney(x.Kind) {
		s.Amount, s.Currency = x.Amount, x.Currency
	}
	if !x.State.Open() {
		s.Effect = act.Final
	}
	return s
}
