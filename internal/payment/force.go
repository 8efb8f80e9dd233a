package payment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/order"
)

// Force ends an open order as closed or failed because two people decided so, whatever its
// supplier may still do: its attempts are closed, its stock is released, and its merchant is
// notified. A payment that arrives anyway is late. Call after once committed. Errors:
// order.ErrNotFound, ErrState.
func (p *Processor) Force(ctx context.Context, tx db.Tx, orderID int64, to order.Status, by Source) (after func(), err error) {
	found, err := order.ByIDs(ctx, tx, p.o.DB, []int64{orderID})
	if err != nil {
		return nil, err
	}
	o := found[orderID]
	switch {
	case o == nil:
		return nil, order.ErrNotFound
	case !o.Status.Open() || to != order.Closed && to != order.Failed:
		return nil, fmt.Errorf("%w: %s is %s", ErrState, o.OrderNo, o.Status)
	}
	now := p.o.DB.Now()
	o.ClosedAt, o.CloseReason = nil, "" // they belonged to the old status
	if to == order.Closed {
		o.ClosedAt, o.CloseReason = &now, string(by.Cause)
	}
	c := closing{p: p, changes: []order.Change{{
		Order: o, To: to, Cause: by.Cause, Actor: by.Actor, SourceID: by.ID,
		SourceKind: by.kind(),
	}}}
	nudges, err := c.write(ctx, tx, tx.Writes())
	if err != nil {
		return nil, err
	}
	return func() {
		metric.OrdersMoved.WithLabelValues(string(to)).Inc()
		p.o.Nudger.Now(slices.Concat(slices.Collect(maps.Values(nudges))...))
	}, nil
}
