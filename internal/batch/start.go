package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/money"
	"backstop/internal/base/text"
	"backstop/internal/report"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// Audit names of the acts.
const (
	StartAct  = "batch.start"
	PauseAct  = "batch.pause"
	ResumeAct = "batch.resume"
	StopAct   = "batch.stop"
	RateAct   = "batch.rate"
	EndAct    = "batch.end" // by the server
)

// Object is the object name of batches in the audit and in approvals.
const Object = "batch"

// AmountField is the prefix of the fields for typed amounts; the currency follows.
const AmountField = approval.AmountField

// StartParams are the typed amounts by currency.
type StartParams struct {
	Amounts map[string]string `json:"amounts"`
}

// rateParams is a new rate, in rows per second.
type rateParams struct {
	Rate int64 `json:"rate" required:"true" min:"1" max:"100000"`
}

// Acts start, pause, resume and stop the batch with id Ref.Row, and change its rate. May has
// been checked before. Errors: ErrExpired, ErrState, ErrMaker.
func (b *Batches) Acts() []act.Kind {
	move := func(name string, params act.Params, do func(ctx context.Context, tx db.Tx, in act.Input,
		x *Batch) error,
	) act.Kind {
		return act.Kind{
			Name: name, Object: Object, Permission: access.ProposeBatches, Scope: access.Compensate, Params: params, Load: loadBatches,
			Do: func(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
				outs := make([]act.Outcome, len(subjects))
				for i, s := range subjects {
					x := s.Value.(*Batch)
					outs[i].Details = x.details()
					if err := do(ctx, tx, in, x); err != nil {
						return nil, err
					}
				}
				return outs, nil
			},
		}
	}
	return []act.Kind{
		move(StartAct, act.ParamsOf[StartParams](), func(ctx context.Context, tx db.Tx, in act.Input, x *Batch) error {
			if err := b.startable(x, in.By, in.Params.(StartParams).Amounts); err != nil {
				return err
			}
			return b.start(ctx, tx, x, in.Reason, Planned)
		}),
		move(PauseAct, act.Params{}, func(ctx context.Context, tx db.Tx, _ act.Input, x *Batch) error {
			return b.move(ctx, tx, x, Paused, "")
		}),
		move(ResumeAct, act.Params{}, func(ctx context.Context, tx db.Tx, _ act.Input, x *Batch) error {
			if x.State != Paused {
				return ErrState
			}
			return b.move(ctx, tx, x, Running, "")
		}),
		move(StopAct, act.Params{}, func(ctx context.Context, tx db.Tx, in act.Input, x *Batch) error {
			if x.State == Waiting { // its proposal ends and releases it
				return ErrState
			}
			return b.move(ctx, tx, x, Stopped, ByPerson)
		}),
		move(RateAct, act.ParamsOf[rateParams](), func(ctx context.Context, tx db.Tx, in act.Input, x *Batch) error {
			n := in.Params.(rateParams).Rate
			if !x.State.Open() {
				return ErrState
			}
			_, err := tx.NewRaw("UPDATE batches SET rate = ? WHERE id = ?", n, x.ID).Exec(ctx)
			return err
		}),
	}
}

// Open reports whether the batch has not ended.
func (s State) Open() bool { return Moves.Of(s).Open }

// details returns what the audit records about a batch.
func (b *Batch) details() map[string]any {
	return map[string]any{"action": b.Action, "object": b.Object, "filter": b.Filter, "rows": b.ToDo, "amounts": b.Planned.Acts()}
}

// loadBatches finds the batches of Ref.Row.
func loadBatches(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
	rows, err := act.Rows[*Batch](ctx, q, refs)
	if err != nil {
		return nil, err
	}
	subjects := make([]act.Subject, len(rows))
	for i, x := range rows {
		subjects[i] = x.subject()
	}
	return subjects, nil
}

// subject returns the batch as acts and approvals see it. It has an amount if all its rows are
// in one currency.
func (b *Batch) subject() act.Subject {
	s := act.Subject{Row: b.ID, ID: b.No(), Version: b.Version, Value: b}
	sums := report.InCurrencies(b.Planned.Acts())
	if len(sums) == 1 {
		s.Amount, s.Currency = sums[0].Minor, sums[0].Currency
	}
	return s
}

// startable returns why an actor cannot start a plan now; amounts are the typed ones.
func (b *Batches) startable(x *Batch, by act.Actor, amounts map[string]string) error {
	switch {
	case x.State != Planned:
		return ErrState
	case x.MadeBy != by.Name:
		return ErrMaker
	case x.ExpiresAt <= b.o.DB.Now():
		return ErrExpired
	case x.ToDo == 0:
		return ErrNothing
	}
	return x.checkAmounts(amounts, b.Typed(x))
}

// Typed returns the sums that must be typed before a batch is started, one per currency; none
// if the batch is small.
func (b *Batches) Typed(x *Batch) []report.Sum {
	if x.ToDo <= typedFrom && !b.NeedsSecond(x) {
		return nil
	}
	return report.InCurrencies(x.Planned.Acts())
}

var tNoCurrency = text.Text{ZH: "这个批次没有该币种的金额", EN: "the batch has no amount in this currency"}

// checkAmounts compares the typed amounts with those shown: those that are required and any
// others. Errors: *act.FieldError.
func (b *Batch) checkAmounts(typed map[string]string, needed []report.Sum) error {
	for _, s := range b.Planned.Acts() {
		text := strings.TrimSpace(typed[s.Currency])
		must := slices.ContainsFunc(needed, func(n report.Sum) bool { return n.Currency == s.Currency })
		if (must || text != "") && s.Currency != "" && text != money.Format(s.Minor, s.Currency) {
			return invalid.Field(AmountField+s.Currency, act.AmountAsShown)
		}
	}
	for currency, text := range typed {
		if strings.TrimSpace(text) != "" &&
			!slices.ContainsFunc(b.Planned.Acts(), func(s report.Sum) bool { return s.Currency == currency }) {
			return invalid.Field(AmountField+currency, tNoCurrency)
		}
	}
	return nil
}

// move changes the state by compare-and-set. Errors: ErrState.
func (b *Batches) move(ctx context.Context, tx db.Tx, x *Batch, to State, because string) error {
	if !Moves.Can(x.State, to) {
		return ErrState
	}
	var finished *int64
	if now := b.o.DB.Now(); !to.Open() {
		finished = &now
	}
	res, err := tx.NewRaw(
		"UPDATE batches SET state = ?, version = version + 1, stopped_because = ?, finished_at = ? WHERE id = ? AND version = ? AND state = ?",
		to, because, finished, x.ID, x.Version, x.State).Exec(ctx)
	if err != nil {
		return fmt.Errorf("move a batch: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(db.ErrStale, err)
	}
	if to == Running {
		b.nudgeAfter(tx, x.ID)
	}
	return nil
}

// start sets a batch to running.
func (b *Batches) start(ctx context.Context, tx db.Tx, x *Batch, reason string, from ...State) error {
	now := b.o.DB.Now()
	res, err := tx.NewRaw(
		"UPDATE batches SET state = ?, version = version + 1, reason = ?, started_at = ? WHERE id = ? AND version = ? AND state IN (?)",
		Running, reason, now, x.ID, x.Version, bun.List(Moves.From(Running, from...))).Exec(ctx)
	if err != nil {
		return fmt.Errorf("start a batch: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(ErrState, err)
	}
	b.nudgeAfter(tx, x.ID)
	return nil
}

func (b *Batches) nudgeAfter(tx db.Tx, id int64) {
	tx.OnEnd(func(err error) {
		if err == nil && b.o.Nudge != nil {
			b.o.Nudge(id)
		}
	})
}

// Change runs an act on a batch. A start that needs a second person is proposed instead, and After
// returns the approval. Errors: those of act.Registry.Run, ErrState, ErrMaker, ErrExpired, ErrDrifted,
// ErrNothing, and those of a proposal.
func (b *Batches) Change(ctx context.Context, c act.Call) (out act.Outcome, err error) {
	x, k, err := b.mine(ctx, c.By, c.Ref.Row)
	if err != nil {
		return out, err
	}
	if c.Kind == StartAct {
		if out.Repeated, err = b.checkStart(ctx, c, k, x); err != nil || out.Repeated {
			return out, err
		}
		if b.NeedsSecond(x) {
			a, err := b.propose(ctx, c, x)
			out.After = func(context.Context) (any, error) { return a, nil }
			return out, err
		}
	}
	return b.acts.Run(ctx, c)
}

// checkStart checks what the transaction of a start does not: whether the amounts are still those that
// were shown. done = the form has started the batch already.
func (b *Batches) checkStart(ctx context.Context, c act.Call, k *act.Kind, x *Batch) (done bool, err error) {
	if _, err := act.CheckReason(c.Reason); err != nil {
		return false, err
	}
	started, err := b.acts.Done(ctx, c.Key, Object, x.No())
	if err != nil || started != nil {
		return true, err
	}
	params, err := b.acts.Kind(StartAct).Params.Read(c.Params)
	if err != nil {
		return false, err
	}
	if err := b.startable(x, c.By, params.(StartParams).Amounts); err != nil {
		return false, err
	}
	if away, err := b.isAway(ctx, k, x); err != nil || away {
		return false, errors.Join(err, ErrDrifted)
	}
	return false, nil
}

// propose proposes to start a plan, whose amounts have been checked.
func (b *Batches) propose(ctx context.Context, c act.Call, x *Batch) (*approval.Approval, error) {
	if b.desk == nil {
		return nil, approval.ErrNoSecond
	}
	return b.desk.Propose(ctx, approval.Proposal{
		Action: Object, Object: Object, ObjectID: x.No(), Params: x.params(), Reason: c.Reason, Version: x.Version, By: c.By, Key: c.Key,
		Amount: x.subject().TypedAmount(),
	})
}

// mine finds a batch and its action if the actor may run it.
func (b *Batches) mine(ctx context.Context, by act.Actor, id int64) (*Batch, *act.Kind, error) {
	x, err := Find(ctx, b.o.DB.Read, id)
	if err != nil {
		return nil, nil, err
	}
	k, ok := b.kind(x.Action, x.Object)
	if !ok {
		return nil, nil, act.ErrNotFound
	}
	return x, k, b.May(by, k)
}

// NeedsSecond reports whether a batch needs a second person, because of its rows or its money.
func (b *Batches) NeedsSecond(x *Batch) bool {
	rules := b.o.Rules()
	return slices.ContainsFunc(x.Planned.Acts(), func(s report.Sum) bool {
		above := limits(rules, s.Currency)
		return x.ToDo > above.BatchRows || s.Currency != "" && s.Minor > above.BatchAmount
	})
}

// limits returns the limits of a currency; rows without money get the strictest.
func limits(rules settings.Rules, currency string) settings.Above {
	above := rules.Limits(currency)
	if currency == "" {
		for _, x := range rules.Above {
			above.BatchRows = min(above.BatchRows, x.BatchRows)
		}
	}
	return above
}

// approvedParams are what an approval of a batch is bound to, besides its version.
type approvedParams struct {
	Action string        `json:"action"`
	Object string        `json:"object"`
	Filter string        `json:"filter"`
	MaxID  string        `json:"below"`
	Rows   int64         `json:"rows"`
	Sums   []approvedSum `json:"sums"`
}

type approvedSum struct {
	Currency string `json:"currency"`
	Rows     int64  `json:"rows"`
	Amount   int64  `json:"amount"`
}

func (b *Batch) params() json.RawMessage {
	p := approvedParams{b.Action, b.Object, b.Filter, strconv.FormatInt(b.MaxID, 10), b.ToDo, []approvedSum{}}
	for _, s := range b.Planned.Acts() {
		p.Sums = append(p.Sums, approvedSum{s.Currency, s.Orders, s.Minor})
	}
	raw, err := json.Marshal(p)
	if err != nil {
		panic("batch: " + err.Error()) // texts and numbers
	}
	return raw
}

// Decision is that of two people to start a batch.
func (b *Batches) Decision() act.Kind {
	return act.Kind{
		Name: Object, Object: Object, Permission: access.ProposeBatches, Params: act.ParamsOf[approvedParams](),
		Load: act.ByID(func(ctx context.Context, q bun.IDB, no string) (act.Subject, error) {
			id, ok := ParseNo(no)
			if !ok {
				return act.Subject{}, act.ErrNotFound
			}
			x, err := Find(ctx, q, id)
			if err != nil {
				return act.Subject{}, err
			}
			return x.subject(), nil
		}),
		Do: act.Each(b.startApproved),
		Second: &act.Second{
			Approve: access.ApproveMoney, Long: true,
			Needed:  func(s act.Subject, _ any) bool { return b.NeedsSecond(s.Value.(*Batch)) },
			Applies: func(s act.Subject) bool { return s.Value.(*Batch).State == Planned },
			Reserve: func(ctx context.Context, tx db.Tx, p *act.Proposed, s act.Subject) error {
				res, err := tx.NewRaw(
					"UPDATE batches SET state = ?, version = version + 1, approval_id = ? WHERE id = ? AND version = ? AND state IN (?)",
					Waiting, p.ID, s.Row, s.Version, bun.List(Moves.From(Waiting))).Exec(ctx)
				if err != nil {
					return fmt.Errorf("propose a batch: %w", err)
				}
				if n, err := res.RowsAffected(); err != nil || n == 0 {
					return errors.Join(act.ErrChanged, err)
				}
				return nil
			},
			Release: func(ctx context.Context, tx db.Tx, _ *act.Proposed, s act.Subject) error {
				x := s.Value.(*Batch)
				if x.State != Waiting {
					return nil
				}
				return b.move(ctx, tx, x, Stopped, ByRejection)
			},
		},
	}
}

// startApproved starts a batch that two people decided to start.
func (b *Batches) startApproved(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (out act.Outcome, err error) {
	x := s.Value.(*Batch)
	if _, err := tx.NewRaw("UPDATE batches SET approval_id = ? WHERE id = ?", in.Proposed.ID, x.ID).Exec(ctx); err != nil {
		return out, err
	}
	if err := b.start(ctx, tx, x, in.Reason, Planned, Waiting); err != nil {
		return out, err
	}
	details := x.details()
	details["reason"], details["approval"] = in.Reason, in.Proposed.No
	out.Details = map[string]any{"batch": x.No(), "state": Running}
	return out, b.o.Audit.Write(ctx, tx, audit.Act{Actor: x.MadeBy, Action: StartAct, Object: Object, ObjectID: x.No(), Params: details})
}
