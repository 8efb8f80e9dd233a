package refund

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"backstop/internal/base/db"
	"backstop/internal/order"
	"backstop/internal/payment"

	"github.com/uptrace/bun"
)

// ByNo finds a refund by its number. Errors: ErrNotFound.
func ByNo(ctx context.Context, q bun.IDB, no string) (*Refund, error) {
	return one(ctx, q.NewSelect().Where("rf.refund_no = ?", no))
}

func byID(ctx context.Context, q bun.IDB, id int64) (*Refund, error) {
	return one(ctx, q.NewSelect().Where("rf.id = ?", id))
}

func one(ctx context.Context, q *bun.SelectQuery) (*Refund, error) {
	r := new(Refund)
	err := q.Model(r).Limit(1).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read a refund: %w", err)
	}
	return r, nil
}

// maxOfOrder bounds how many refunds of one order are read.
const maxOfOrder = 1000

// OfOrder reads an order's refunds, oldest first.
func OfOrder(ctx context.Context, q bun.IDB, orderID int64) ([]*Refund, error) {
	all := []*Refund{}
	if orderID == 0 {
		return all, nil
	}
	if err := q.NewSelect().Model(&all).Where("rf.order_id = ? AND rf.order_id <> 0",
		orderID).OrderExpr("rf.id").Limit(maxOfOrder).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read an order's refunds: %w", err)
	}
	return all, nil
}

// lock locks and reads a refund for a change, after its order, as the order of locks requires.
// The order is nil if the refund has none.
func (m *Machine) lock(ctx context.Context, tx db.Tx, id int64) (*order.Order, *Refund, error) {
	r, err := byID(ctx, tx, id)
	if err != nil {
		return nil, nil, err
	}
	if r.OrderID == 0 && r.TradeNo != "" { // its money is in suspense
		if err := m.lockPaid(ctx, tx, payment.Trade{AccountID: r.AccountID, No: r.TradeNo}); err != nil {
			return nil, nil, err
		}
	}
	o, err := m.lockOrder(ctx, tx, r.OrderID)
	if err != nil {
		return nil, nil, err
	}
	r, err = one(ctx, m.DB.ForUpdate(tx.NewSelect().Where("rf.id = ?", id)))
	return o, r, err
}

func (m *Machine) lockOrder(ctx context.Context, tx db.Tx, id int64) (*order.Order, error) {
	if id == 0 {
		return nil, nil
	}
	found, err := order.ByIDs(ctx, tx, m.DB, []int64{id})
	if err != nil {
		return nil, err
	}
	if found[id] == nil {
		return nil, order.ErrNotFound
	}
	return found[id], nil
}

// Taken returns how much of an order's payment its refunds use up, in minor units: all of them
// except those that failed or were rejected, cancelled or returned.
func Taken(ctx context.Context, q bun.IDB, orderID int64) (sum int64, err error) {
	err = q.NewRaw("SELECT coalesce(sum(amount), 0) FROM refunds WHERE order_id = ? AND order_id <> 0 AND status NOT IN (?)", orderID,
		bun.List(dead)).Scan(ctx, &sum)
	if err != nil {
		return 0, fmt.Errorf("sum an order's refunds: %w", err)
	}
	return sum, nil
}

// TakenByUs is Taken without the refunds that were made at the supplier, which give way to
// disputes.
func TakenByUs(ctx context.Context, q bun.IDB, orderID int64) (sum int64, err error) {
	err = q.NewRaw("SELECT coalesce(sum(amount), 0) FROM refunds WHERE order_id = ? AND order_id <> 0 AND adopted = '' AND status NOT IN (?)", orderID,
		bun.List(dead)).Scan(ctx, &sum)
	if err != nil {
		return 0, fmt.Errorf("sum an order's refunds: %w", err)
	}
	return sum, nil
}

// InTransit returns how much of a merchant's money is held for open refunds, by currency, in
// minor units.
func InTransit(ctx context.Context, q bun.IDB, merchantID int64) (map[string]int64, error) {
	var rows []struct {
		Currency string
		Amount   int64
	}
	err := q.NewRaw("SELECT currency, CAST(sum(amount) AS BIGINT) AS amount FROM refunds WHERE merchant_id = ? AND held_ref = '' AND "+
		Moves.In("status", Moves.Open()...)+" GROUP BY currency", merchantID).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("sum a merchant's open refunds: %w", err)
	}
	sums := map[string]int64{}
	for _, r := range rows {
		sums[r.Currency] = r.Amount
	}
	return sums, nil
}
