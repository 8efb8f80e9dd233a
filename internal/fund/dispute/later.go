package dispute

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/payment"
)

// maxLater bounds the disputes that one call matches.
const maxLater = 100

// MatchLater books disputes that arrived before their payment, whose message is not sent again.
// It returns how many it matched.
func (m *Machine) MatchLater(ctx context.Context) (n int, err error) {
	var rows []struct{ ID, OrderID int64 }
	err = m.DB.Read.NewRaw(
		"SELECT d.id, pa.order_id FROM disputes AS d JOIN payment_attempts AS pa ON pa.account_id = d.account_id AND pa.supplier_trade_no IN (d.trade_no, d.charge_no)"+
			" WHERE d.order_id = 0 AND d.held_ref = '' AND pa.order_id <> 0 AND pa.supplier_trade_no <> '' AND "+
			payment.Moves.In("pa.status", payment.Succeeded)+
			" AND EXISTS (SELECT 1 FROM orders AS o WHERE o.id = pa.order_id AND o.currency = d.currency)"+
			" UNION SELECT d.id, 0 FROM disputes AS d WHERE d.order_id = 0 AND d.held_ref = '' AND d.withdrawn"+
			" AND EXISTS (SELECT 1 FROM exceptions AS x JOIN transfers AS t ON t.ref = x.held_ref WHERE x.held_ref <> '' AND t.amount >= d.amount + (SELECT coalesce(sum(p.amount - p.reinstated), 0) FROM disputes AS p WHERE p.held_ref = t.ref AND p.withdrawn) AND t.currency = d.currency"+
			" AND x.held_ref IN ('held:' || CAST(d.account_id AS TEXT) || ':' || d.trade_no, 'held:' || CAST(d.account_id AS TEXT) || ':' || d.charge_no))"+
			" LIMIT ?", maxLater).Scan(ctx, &rows)
	if err != nil {
		return 0, fmt.Errorf("find disputes whose payment has arrived: %w", err)
	}
	for _, r := range rows {
		if err := m.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error { return m.matchOne(ctx, tx, r.ID, r.OrderID) }); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (m *Machine) matchOne(ctx context.Context, tx db.Tx, id, orderID int64) error {
	x := m.begin(tx)
	var o *order.Order
	if orderID != 0 {
		found, err := order.ByIDs(ctx, tx, m.DB, []int64{orderID})
		if err != nil {
			return err
		}
		if o = found[orderID]; o == nil {
			return order.ErrNotFound
		}
		if err := x.lockRefunds(ctx, o); err != nil {
			return err
		}
	}
	if err := x.lock(ctx, "dp.id = ?", id); err != nil {
		return err
	}
	it := x.items[0]
	if o != nil {
		if err := x.match(ctx, it, o); err != nil {
			return err
		}
	}
	if err := x.takeHeld(ctx, it); err != nil {
		return err
	}
	if o != nil {
		x.W.Add(tx.NewRaw(
			"UPDATE exceptions SET order_id = ?, order_no = ?, merchant_id = ? WHERE kind = ? AND supplier_id = ? AND subject = ? AND order_id = 0",
			o.ID, o.OrderNo, o.MerchantID, exception.DisputeOpened, it.d.SupplierID, it.d.SupplierDisputeNo))
	}
	if err := x.book(); err != nil {
		return err
	}
	if err := x.Send(ctx); err != nil {
		return err
	}
	if m.o.Refunds == nil {
		return nil
	}
	d := it.d
	return m.o.Refunds.Settle(ctx, tx, payment.Trade{AccountID: d.AccountID, No: d.TradeNo}, payment.Trade{AccountID: d.AccountID, No: d.ChargeNo})
}

// DueSoon is how long before its deadline a dispute without evidence alerts again.
const DueSoon = 72 * time.Hour

// maxDue bounds one call; the next call continues.
const maxDue = 200

// TakeDue returns the disputes whose evidence is due soon and has not been recorded, and marks
// them in the same transaction, so that each alerts once per deadline.
func TakeDue(ctx context.Context, tx db.Tx, d *db.DB) (all []*Dispute, err error) {
	now := d.Now()
	err = tx.NewRaw(
		"UPDATE disputes SET due_alerted_at = ? WHERE due_alerted_at IS NULL AND id IN (SELECT id FROM disputes WHERE due_alerted_at IS NULL AND due_by IS NOT NULL"+
			" AND due_by <= ? AND due_by > ? AND "+Moves.In("status", Opened)+" ORDER BY due_by LIMIT ?) RETURNING *", now,
		now+DueSoon.Microseconds(), now, maxDue).Scan(ctx, &all)
	if err != nil {
		return nil, fmt.Errorf("find disputes that are due: %w", err)
	}
	return all, nil
}
