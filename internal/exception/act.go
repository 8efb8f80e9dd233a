package exception

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Names of the acts, for the audit.
const (
	SettleAct = "exception.settle"
	IgnoreAct = "exception.ignore"
	ReopenAct = "exception.reopen"
	AssignAct = "exception.assign"
	NoteAct   = "exception.note"
)

// actObject is what exceptions are called in the audit.
const actObject = "exception"

// Acts settle, ignore, reopen, assign and comment on the exception that Ref.Row names.
// assignable are the names of those whom one may be assigned to. The version of an
// exception is its last update, in µs. Errors: ErrEnded, ErrOpen.
func Acts(d *db.DB, assignable func(context.Context) ([]string, error)) []act.Kind {
	ends := func(name string, ignore bool) act.Kind {
		return act.Kind{
			Name: name, Object: actObject, Permission: access.SettleExceptions, TypedAmount: true, Params: act.Params[ending], Load: loadItems, Needs: settling,
			Do: each(func(ctx context.Context, tx db.Tx, in act.Input, x *Item) (map[string]any, error) {
				return in.Params.(ending).end(ctx, tx, d, x, ignore)
			}),
		}
	}
	return []act.Kind{
		ends(SettleAct, false),
		ends(IgnoreAct, true),
		{
			Name: ReopenAct, Object: actObject, Permission: access.SettleExceptions, Load: loadItems, Needs: settling,
			Do: each(func(ctx context.Context, tx db.Tx, _ act.Input, x *Item) (map[string]any, error) {
				details := map[string]any{"kind": x.Kind}
				if x.Outcome != "" {
					details["outcome"], details["reference"] = x.Outcome, x.Reference // the row does not keep them
				}
				return details, Reopen(ctx, tx, d, x.ID)
			}),
		},
		{
			Name: AssignAct, Object: actObject, Permission: access.AssignExceptions, Easy: true, Params: act.Params[assignment], Load: loadItems,
			Do: each(func(ctx context.Context, tx db.Tx, in act.Input, x *Item) (map[string]any, error) {
				to := in.Params.(assignment)
				return map[string]any{"to": to.To}, to.assign(ctx, tx, d, x, assignable)
			}),
		},
		{Name: NoteAct, Object: actObject, Permission: access.Comment, Load: loadItems},
	}
}

// settling is the permission to end an exception about money, and to open it again.
func settling(s act.Subject, _ any) access.Permission { return SettlePermission(s.Value.(*Item).Kind) }

// SettlePermission is what it takes to end an exception of the kind, and to open it
// again.
func SettlePermission(kind string) access.Permission {
	if CarriesMoney(kind) {
		return access.SettleMoney
	}
	return access.SettleExceptions
}

// ending is how an exception is ended; the amount is typed beside it.
type ending struct {
	Outcome   Outcome `json:"outcome"`
	Reference string  `json:"reference"`
}

func (e ending) end(ctx context.Context, tx db.Tx, d *db.DB, x *Item, ignore bool) (map[string]any, error) {
	details, s := map[string]any{"kind": x.Kind}, Settlement{Outcome: e.Outcome, Reference: strings.TrimSpace(e.Reference), Ignore: ignore}
	if CarriesMoney(x.Kind) {
		details["outcome"], details["reference"] = s.Outcome, s.Reference
		if typed := x.TypedAmount(); typed != "" {
			details["amount"] = typed + " " + x.Currency
		}
	}
	return details, Settle(ctx, tx, d, x, s)
}

// assignment is the name of whom an exception is given to; "" = nobody.
type assignment struct {
	To string `json:"to"`
}

func (a assignment) assign(ctx context.Context, tx db.Tx, d *db.DB, x *Item, assignable func(context.Context) ([]string, error)) error {
	names, err := assignable(ctx)
	if err != nil {
		return err
	}
	if a.To != "" && !slices.Contains(names, a.To) {
		return &act.FieldError{Field: "person", Problem: "nobody of this name may take it in hand"}
	}
	return Assign(ctx, tx, d, x.ID, a.To)
}

// each is a Do that changes one exception after the other, by their ids. A refusal is
// of one exception, any other error of all.
func each(do func(context.Context, db.Tx, act.Input, *Item) (map[string]any, error)) func(context.Context, db.Tx, act.Input, []act.Subject) ([]act.Outcome, error) {
	return func(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
		outs := make([]act.Outcome, len(subjects))
		for i, s := range subjects {
			details, err := do(ctx, tx, in, s.Value.(*Item))
			var field *act.FieldError
			if err != nil && !errors.As(err, &field) && !errors.Is(err, ErrEnded) && !errors.Is(err, ErrOpen) && !errors.Is(err, ErrNotFound) {
				return nil, err
			}
			outs[i] = act.Outcome{Details: details, Err: err}
		}
		return outs, nil
	}
}

// loadItems reads exceptions in the order of their ids.
func loadItems(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
	ids := make([]int64, len(refs))
	for i, r := range refs {
		ids[i] = r.Row
	}
	var rows []Item
	if err := q.NewSelect().Model(&rows).Where("x.id IN (?)", bun.List(ids)).OrderExpr("x.id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read exceptions: %w", err)
	}
	subjects := make([]act.Subject, len(rows))
	for i := range rows {
		x := &rows[i]
		s := act.Subject{Row: x.ID, ID: strconv.FormatInt(x.ID, 10), MerchantID: x.MerchantID, Version: x.UpdatedAt, Value: x}
		if CarriesMoney(x.Kind) {
			s.Amount, s.Currency = x.Amount, x.Currency
		}
		if x.State != Opened && x.State != Assigned {
			s.Prospect = act.Final
		}
		subjects[i] = s
	}
	return subjects, nil
}
