package payment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"backstop/internal/compensation"
	"backstop/internal/order"

	"github.com/uptrace/bun"
)

// readDisputed finds the orders of disputes by their trade numbers, as a dispute carries
// no reference of ours: those that were paid by one, and those whose exception says that
// the supplier holds the money. Only a batch with a dispute asks.
func (b *batch) readDisputed(ctx context.Context) error {
	ids, held := map[tradeKey]int64{}, []string{}
	for _, r := range b.items {
		if r.Callback.Dispute == nil || r.Callback.TradeNo == "" {
			continue
		}
		if id := b.trades[r.trade()]; id != 0 {
			ids[r.trade()] = id
		} else {
			held = append(held, r.Callback.TradeNo)
		}
	}
	if len(held) > 0 {
		var rows []struct {
			AccountID int64
			Subject   string
			OrderID   int64
		}
		err := b.tx.NewRaw("SELECT su.account_id, x.subject, x.order_id FROM suppliers AS su JOIN exceptions AS x ON x.supplier_id = su.id"+
			" WHERE su.account_id IN (?) AND x.kind IN (?) AND x.subject IN (?) AND x.order_id <> 0",
			bun.List(b.accounts), bun.List(compensation.HeldKinds), bun.List(held)).Scan(ctx, &rows)
		if err != nil {
			return fmt.Errorf("find disputed money: %w", err)
		}
		for _, x := range rows {
			ids[tradeKey{x.AccountID, x.Subject}] = x.OrderID
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var rows []*order.Order
	if err := b.tx.NewSelect().Model(&rows).Where("o.id IN (?)", bun.List(slices.Collect(maps.Values(ids)))).Scan(ctx); err != nil {
		return fmt.Errorf("find disputed orders: %w", err)
	}
	b.disputed = make(map[tradeKey]*order.Order, len(ids))
	for trade, id := range ids {
		if i := slices.IndexFunc(rows, func(o *order.Order) bool { return o.ID == id }); i >= 0 {
			b.disputed[trade] = rows[i]
		}
	}
	return nil
}

// orderOf is the order that a message is about, nil where there is none.
func (b *batch) orderOf(r *Received) *order.Order {
	if r.Callback.Dispute != nil {
		return b.disputed[r.trade()]
	}
	return b.orders[r.Callback.OrderRef]
}
