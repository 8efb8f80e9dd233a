package payment

import (
	"context"
	"maps"
	"slices"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/order"

	"github.com/uptrace/bun"
)

// Closing closes many open orders, as their merchants could. If an order may have been paid, its
// supplier is queried first.
func (p *Processor) Closing() act.Kind {
	return act.Kind{
		Name: "order.close", Object: "order", Permission: access.ProposeMoney, Load: p.loadOpen, Do: p.closeMany,
		Set: &act.Set{Action: "close"},
	}
}

// loadOpen reads the orders of Ref.Row, with what closing them would do.
func (p *Processor) loadOpen(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
	rows, attempts, err := Orders(ctx, q, refs)
	if err != nil {
		return nil, err
	}
	subjects := make([]act.Subject, len(rows))
	for i, o := range rows {
		at := queriedAt(o, attempts[o.ID])
		subjects[i] = act.Subject{
			Row: o.ID, ID: o.OrderNo, OrderNo: o.OrderNo, Version: o.Version, MerchantID: o.MerchantID, Amount: o.Amount,
			Currency: o.Currency,
			Effect:   p.closable(o, at, OpenOf(attempts[o.ID]) != nil), Value: o,
		}
		if subjects[i].Effect == act.WillQuery {
			subjects[i].SupplierID = at
		}
	}
	return subjects, nil
}

// closable returns what closing an order would do. If a payment was started at a supplier that
// cannot be queried, its result is unknown.
func (p *Processor) closable(o *order.Order, at int64, started bool) act.Effect {
	_, canQuery := p.canQuery(at)
	switch {
	case !o.Status.Open():
		return act.Final
	case o.Status == order.Closing:
		return act.Blocked
	case canQuery:
		return act.WillQuery
	case o.Status == order.Paying && started:
		return act.Unknown
	}
	return act.Will
}

// closeMany closes orders that have not changed since they were loaded, or moves them towards
// closed.
func (p *Processor) closeMany(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
	ids := make([]int64, len(subjects))
	for i, s := range subjects {
		ids[i] = s.Row
	}
	orders, err := order.ByIDs(ctx, tx, p.o.DB, ids)
	if err != nil {
		return nil, err
	}
	attempts, err := openAttempts(ctx, tx, slices.Collect(maps.Values(orders)))
	if err != nil {
		return nil, err
	}
	outs := make([]act.Outcome, len(subjects))
	c := closing{p: p, by: order.ByCancel}
	var moved []*order.Order
	for i, s := range subjects {
		switch o := orders[s.Row]; {
		case o == nil || !o.Status.Open():
			outs[i] = act.Outcome{Effect: act.Final, Err: act.ErrChanged}
		case o.Version != s.Version || o.Status == order.Closing:
			outs[i] = act.Outcome{Effect: act.Blocked, Err: act.ErrChanged}
		default:
			c.add(o, attempts[o.ID], in.By.Name)
			moved = append(moved, o)
		}
	}
	nudges, err := c.write(ctx, tx, tx.Writes())
	if err != nil {
		return nil, err
	}
	tx.OnEnd(func(err error) {
		if err != nil {
			return
		}
		for _, o := range moved {
			metric.OrdersMoved.WithLabelValues(string(o.Status)).Inc()
		}
		p.o.Nudger.Now(slices.Concat(slices.Collect(maps.Values(nudges))...))
		p.query(c.queried)
	})
	return outs, nil
}
