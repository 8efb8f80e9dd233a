// Package bulk does one act to many subjects. What would be done is frozen and shown
// first (a plan); then it is done in bounded steps, each of which loads its subjects
// anew, and can continue after a restart between two steps. The audit has a row for the
// start and one for the end; the plan has the results.
package bulk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/money"
	"backstop/internal/list"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// Limits of a plan.
const (
	// MaxRows is how many subjects one plan may have: a merchant may be notified of all of
	// them at once.
	MaxRows = 5000
	// typedFrom is the number of subjects above which the amounts must be typed.
	typedFrom = 20
	// expiry is how long a plan can be started.
	expiry = 15 * time.Minute
	// stepRows bounds one transaction.
	stepRows = 500
	// kept is how long plans are kept.
	kept = 30 * 24 * time.Hour
)

// Errors that a caller can act on.
var (
	ErrNothing = errors.New("nothing matches")
	ErrTooMany = list.ErrTooMany
	// ErrExpired: a plan is too old, was run already, or is another operator's.
	ErrExpired = errors.New("the plan cannot be run any more: make a new one")
)

// States of a plan.
const (
	Planned = "planned"
	Running = "running"
	Done    = "done"
	Stopped = "stopped" // the amount was not the one that was shown
)

// Plan is an act on many subjects, as it was shown.
type Plan struct {
	bun.BaseModel `bun:"table:plans,alias:pl"`

	ID         int64  `bun:"id,pk"`
	MadeBy     string `bun:"made_by"` // the operator's name
	MadeAt     int64  `bun:"made_at"`
	ExpiresAt  int64  `bun:"expires_at"`
	State      string `bun:"state"`
	Filter     string `bun:"filter"` // the list's address, as it is shown
	Below      int64  `bun:"below"`  // what is made later has a greater id
	FinishedAt *int64 `bun:"finished_at"`

	IDs    []int64 `bun:"deliveries"` // of those to be acted on, oldest first
	Next   int64   `bun:"next"`       // how many of them were taken up
	Shown  Tally   `bun:"planned"`    // by act.Prospect, of all that were proposed
	Result Tally   `bun:"done"`       // by act.Prospect, of those that were taken up
}

// Typed are the sums that have to be typed before the plan is run, one of each
// currency; none where it is small.
func (p *Plan) Typed() []report.Sum {
	if p.Shown.Planned() <= typedFrom {
		return nil
	}
	return p.Shown.Acts()
}

// Plans stores the plans for one Kind, and runs them.
type Plans struct {
	db    *db.DB
	audit *audit.Log
	kind  act.Kind
}

// New returns the plans for a kind whose subjects have rows.
func New(d *db.DB, log *audit.Log, kind act.Kind) *Plans { return &Plans{d, log, kind} }

// load reads subjects by their rows, oldest first.
func (b *Plans) load(ctx context.Context, q bun.IDB, ids []int64) ([]act.Subject, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	refs := make([]act.Ref, len(ids))
	for i, id := range ids {
		refs[i].Row = id
	}
	return b.kind.Load(ctx, q, refs)
}

// Propose stores a plan of those of the rows that can be acted on. Errors: ErrNothing,
// ErrTooMany.
func (b *Plans) Propose(ctx context.Context, by, filter string, ids []int64) (*Plan, error) {
	if len(ids) > MaxRows {
		return nil, ErrTooMany
	}
	now := b.db.Now()
	p := &Plan{
		ID: b.db.NewID(), MadeBy: by, MadeAt: now, ExpiresAt: now + expiry.Microseconds(), State: Planned, Filter: filter,
		IDs: []int64{}, Shown: Tally{}, Result: Tally{},
	}
	p.Below = p.ID
	ids = slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return id >= p.Below })
	subjects, err := b.load(ctx, b.db.Read, ids)
	if err != nil {
		return nil, err
	}
	for _, s := range subjects {
		p.Shown.add(string(s.Prospect), s)
		if s.Prospect.Acts() {
			p.IDs = append(p.IDs, s.Row)
		}
	}
	if len(p.Shown) == 0 {
		return nil, ErrNothing
	}
	return p, b.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		if _, err := tx.NewInsert().Model(p).Exec(ctx); err != nil {
			return fmt.Errorf("store a plan: %w", err)
		}
		_, err := tx.NewRaw("DELETE FROM plans WHERE id IN (SELECT id FROM plans WHERE made_at < ? ORDER BY made_at LIMIT 100)", now-kept.Microseconds()).Exec(ctx)
		if err != nil {
			return fmt.Errorf("remove old plans: %w", err)
		}
		return nil
	})
}

// Find reads a plan. Errors: act.ErrNotFound.
func (b *Plans) Find(ctx context.Context, id int64) (*Plan, error) {
	all, err := find(ctx, b.db.Read, []int64{id})
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, act.ErrNotFound
	}
	return &all[0], nil
}

func find(ctx context.Context, q bun.IDB, ids []int64) ([]Plan, error) {
	var rows []Plan
	if err := q.NewSelect().Model(&rows).Where("pl.id IN (?)", bun.List(ids)).OrderExpr("pl.id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read plans: %w", err)
	}
	return rows, nil
}

// Names of a plan's rows in the audit.
const (
	StartAct = "notification.resend_many"
	EndAct   = "notification.resend_many_end"
	object   = "plan"
)

// startParams are the amounts that were typed, by currency.
type startParams struct {
	Amounts map[string]string `json:"amounts"`
}

// Acts start the plan with the id Ref.Row, or continue it after an interruption. Errors:
// ErrExpired.
func (b *Plans) Acts() []act.Kind {
	return []act.Kind{{
		Name: StartAct, Object: object, Permission: access.ResendMany, Params: act.Params[startParams],
		Load: func(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
			ids := make([]int64, len(refs))
			for i, r := range refs {
				ids[i] = r.Row
			}
			plans, err := find(ctx, q, ids)
			subjects := make([]act.Subject, len(plans))
			for i := range plans {
				subjects[i] = act.Subject{Row: plans[i].ID, ID: strconv.FormatInt(plans[i].ID, 10), Value: &plans[i]}
			}
			return subjects, err
		},
		Do: func(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
			outs := make([]act.Outcome, len(subjects))
			for i, s := range subjects {
				p := s.Value.(*Plan)
				outs[i].Details = map[string]any{"filter": p.Filter, "notifications": p.Shown.Planned(), "amounts": p.Shown.Acts()}
				if outs[i].Err = p.checkAmounts(in.Params.(startParams)); outs[i].Err != nil {
					continue
				}
				started, err := b.start(ctx, tx, p, in.By.Name)
				if err != nil {
					return nil, err
				}
				if !started {
					outs[i].Err = ErrExpired
				}
			}
			return outs, nil
		},
	}}
}

// AmountField begins the names of the fields in which amounts are typed; the currency
// follows.
const AmountField = "amount_"

// checkAmounts compares the amounts that were typed. Errors: *act.FieldError.
func (p *Plan) checkAmounts(in startParams) error {
	for _, s := range p.Typed() {
		if strings.TrimSpace(in.Amounts[s.Currency]) != money.Format(s.Minor, s.Currency) {
			return &act.FieldError{Field: AmountField + s.Currency, Problem: "type the amount that is shown"}
		}
	}
	return nil
}

// start makes a plan running; false = this operator cannot run it any more.
func (b *Plans) start(ctx context.Context, tx db.Tx, p *Plan, actor string) (bool, error) {
	if actor != operator(p) {
		return false, nil
	}
	if p.State == Running {
		return true, nil
	}
	res, err := tx.NewRaw("UPDATE plans SET state = ? WHERE id = ? AND state IN (?) AND expires_at > ?", Running, p.ID, bun.List(Moves.From(Running)), b.db.Now()).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("start a plan: %w", err)
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// operator is who made a plan, as the audit names them.
func operator(p *Plan) string { return "operator:" + p.MadeBy }
