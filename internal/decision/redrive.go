package decision

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/exception"
	"backstop/internal/notify"

	"github.com/uptrace/bun"
)

// RedriveAct runs again what exceptions are about, in batches.
const RedriveAct = "exception.redrive"

// Redrive runs again the compensations and notifications that ran out of tries, for many
// exceptions at once. The acts on compensations and notifications decide what can be done and do
// it; an exception ends once its compensation or notification is due again. Exceptions of
// other kinds need a decision and are left alone.
func Redrive(compensations, notifications act.Kind) act.Kind {
	r := redrive{compensations, notifications}
	return act.Kind{
		Name: RedriveAct, Object: OfException, Permission: access.RedriveCompensations, Load: r.load, Do: r.do,
		Set: &act.Set{Action: "redrive"},
	}
}

type redrive struct{ compensations, notifications act.Kind }

// causes are what is run again for an exception: one compensation, or the deliveries of one
// notification that ran out of attempts.
type causes struct {
	kind     string
	subjects []act.Subject
}

// load finds the exceptions of Ref.Row, with the effect of running each again.
func (r redrive) load(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
	ids := make([]int64, len(refs))
	for i, x := range refs {
		ids[i] = x.Row
	}
	var rows []*exception.Item
	err := q.NewSelect().Model(&rows).Column("id", "kind", "state", "merchant_id", "order_id", "order_no", "subject", "amount", "currency",
		"version").
		Where("x.id IN (?)", bun.List(ids)).OrderExpr("x.id").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read exceptions: %w", err)
	}
	behind, err := r.behind(ctx, q, rows)
	if err != nil {
		return nil, err
	}
	all := make([]act.Subject, len(rows))
	for i, x := range rows {
		s := act.Subject{
			Row: x.ID, ID: strconv.FormatInt(x.ID, 10), OrderNo: x.OrderNo, MerchantID: x.MerchantID, Version: x.Version, Amount: x.Amount,
			Currency: x.Currency,
		}
		c := causes{x.Kind, behind[x.ID]}
		s.Effect, s.Value = c.effect(x), c
		for _, cause := range c.subjects {
			s.SupplierID = cmp.Or(s.SupplierID, cause.SupplierID)
		}
		all[i] = s
	}
	return all, nil
}

// behind finds the compensations or deliveries of open exceptions, by exception id.
func (r redrive) behind(ctx context.Context, q bun.IDB, rows []*exception.Item) (map[int64][]act.Subject, error) {
	of := map[int64]int64{} // exceptions, by compensation or by delivery
	var dead, exhausted []act.Ref
	var orders []int64
	notified := map[string]int64{} // exceptions, by notification
	for _, x := range rows {
		switch {
		case !x.State.Open():
		case x.Kind == exception.CompensationDead:
			if id, err := strconv.ParseInt(x.Subject, 10, 64); err == nil {
				of[id], dead = x.ID, append(dead, act.Ref{Row: id})
			}
		case x.Kind == exception.NotifyExhausted:
			notified[x.Subject], orders = x.ID, append(orders, x.OrderID)
		}
	}
	deliveries, err := notify.ExhaustedOf(ctx, q, orders)
	if err != nil {
		return nil, err
	}
	for id, subject := range deliveries {
		if x, ok := notified[subject]; ok {
			of[id], exhausted = x, append(exhausted, act.Ref{Row: id})
		}
	}
	behind := map[int64][]act.Subject{}
	for _, part := range []struct {
		kind act.Kind
		refs []act.Ref
	}{{r.compensations, dead}, {r.notifications, exhausted}} {
		if len(part.refs) == 0 {
			continue
		}
		subjects, err := part.kind.Load(ctx, q, part.refs)
		if err != nil {
			return nil, err
		}
		for _, s := range subjects {
			behind[of[s.Row]] = append(behind[of[s.Row]], s)
		}
	}
	return behind, nil
}

// effect returns what running an exception again would do. Of several deliveries, the first
// that can be run decides.
func (c causes) effect(x *exception.Item) act.Effect {
	switch {
	case !x.State.Open():
		return act.Final
	case !exception.RunsAgain(x.Kind):
		return act.Blocked
	case len(c.subjects) == 0:
		return act.Final // it already continues on its own, or is no longer stored
	}
	for _, s := range c.subjects {
		if s.Effect.Acts() {
			return cmp.Or(s.Effect, act.Will)
		}
	}
	return c.subjects[0].Effect
}

// do makes the compensations or deliveries of exceptions due, which ends the exceptions.
func (r redrive) do(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
	outs := make([]act.Outcome, len(subjects))
	for _, part := range []struct {
		name string
		kind act.Kind
	}{{exception.CompensationDead, r.compensations}, {exception.NotifyExhausted, r.notifications}} {
		var acts []act.Subject
		var of []int // the exception that each belongs to
		for i, s := range subjects {
			c := s.Value.(causes)
			for _, cause := range c.subjects {
				if c.kind == part.name && cause.Effect.Acts() {
					acts, of = append(acts, cause), append(of, i)
				}
			}
		}
		if len(acts) == 0 {
			continue
		}
		input := in
		var err error
		if input.Params, err = part.kind.Params.Read(nil); err != nil {
			return nil, err
		}
		done, err := part.kind.Do(ctx, tx, input, acts)
		if err != nil {
			return nil, err
		}
		seen := map[int]bool{}
		for k, out := range done {
			if i := of[k]; !seen[i] || outs[i].Err != nil { // one success is enough
				outs[i], seen[i] = act.Outcome{Effect: out.Effect, Err: out.Err}, true
			}
		}
	}
	return outs, nil
}
