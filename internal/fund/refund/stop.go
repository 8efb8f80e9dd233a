package refund

import (
	"context"
	"fmt"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/notify"
	"backstop/internal/order"
)

// Unsent reads and locks the refunds of a locked order that were not sent to the supplier, by id.
func (m *Machine) Unsent(ctx context.Context, tx db.Tx, orderID int64) ([]*Refund, error) {
	var all []*Refund
	q := tx.NewSelect().Model(&all).Where("rf.order_id = ? AND rf.order_id <> 0", orderID).Where(Moves.In("rf.status", Requested,
		Approved)).OrderExpr("rf.id")
	if err := m.o.DB.ForUpdate(q).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read an order's refunds that were not sent: %w", err)
	}
	return all, nil
}

// Stop adds to the writes the end of refunds that Unsent returned: their money goes back, and
// the merchant is notified. A proposal about one of them can no longer be approved.
func (m *Machine) Stop(ctx context.Context, w *db.Writes, o *order.Order, all []*Refund, actor, why string) error {
	x := &write{m: m, tx: w.Tx(), w: w}
	for _, r := range all {
		if err := x.do(o, r, by{actor: actor, detail: why}, unsent(r.Status)); err != nil {
			return err
		}
	}
	if err := m.o.Ledger.Post(ctx, x.tx, w, x.entries); err != nil {
		return err
	}
	nudges, err := notify.Create(ctx, w, m.o.DB, m.o.Here, x.facts)
	if err != nil {
		return err
	}
	x.tx.OnEnd(func(err error) {
		if err == nil {
			m.o.Nudger.Now(slices.Concat(nudges...))
		}
	})
	return nil
}
