package refund

import (
	"context"
	"fmt"

	"backstop/internal/base/db"
	"backstop/internal/fund/booking"
	"backstop/internal/order"
)

// Unsent reads and locks the refunds of a locked order that were not sent to the supplier, by id.
func (m *Machine) Unsent(ctx context.Context, tx db.Tx, orderID int64) ([]*Refund, error) {
	var all []*Refund
	q := tx.NewSelect().Model(&all).Where("rf.order_id = ? AND rf.order_id <> 0", orderID).Where(Moves.In("rf.status", Requested,
		Approved)).OrderExpr("rf.id")
	if err := m.DB.ForUpdate(q).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read an order's refunds that were not sent: %w", err)
	}
	return all, nil
}

// Stop adds to a transaction the end of refunds that Unsent returned: their money goes back, and
// the merchant is notified. A proposal about one of them can no longer be approved.
func (m *Machine) Stop(w *booking.Write, o *order.Order, all []*Refund, c booking.Cause) error {
	x := &write{Write: w, m: m}
	for _, r := range all {
		if err := x.do(o, r, c, unsent(r.Status)); err != nil {
			return err
		}
	}
	return nil
}
