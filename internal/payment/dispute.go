package payment

import (
	"context"
	"fmt"

	"backstop/internal/order"

	"github.com/uptrace/bun"
)

// readDisputed finds the orders of disputes by the trade numbers that paid them: a
// dispute carries no reference of ours. Only a batch with a dispute asks.
func (b *batch) readDisputed(ctx context.Context) error {
	var ids []int64
	for _, r := range b.items {
		if id := b.trades[r.trade()]; r.Callback.Dispute != nil && id != 0 {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var rows []*order.Order
	if err := b.tx.NewSelect().Model(&rows).Where("o.id IN (?)", bun.List(ids)).Scan(ctx); err != nil {
		return fmt.Errorf("find disputed orders: %w", err)
	}
	b.disputed = make(map[int64]*order.Order, len(rows))
	for _, o := range rows {
		b.disputed[o.ID] = o
	}
	return nil
}

// orderOf is the order that a message is about, nil where there is none.
func (b *batch) orderOf(r *Received) *order.Order {
	if r.Callback.Dispute != nil {
		return b.disputed[b.trades[r.trade()]]
	}
	return b.orders[r.Callback.OrderRef]
}
