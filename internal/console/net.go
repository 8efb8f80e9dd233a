package console

import (
	"context"
	"fmt"

	"backstop/internal/fund/refund"

	"github.com/uptrace/bun"
)

// OrderMoney is what a merchant got for an order and what came off it, in minor units.
type OrderMoney struct {
	PaidAmount     int64 `bun:"paid_amount"`
	FeeAmount      int64 `bun:"fee_amount"`
	FeeReturned    int64 `bun:"fee_returned"` // of the fee, with refunds
	RefundedAmount int64 `bun:"refunded_amount"`
	RefundsHeld    int64 `bun:"refunds_held"` // for refunds without a result
	// Disputed is what disputes hold in reserve or took, unless it came back: of a dispute that
	// was won, it counts until the supplier has returned the money.
	Disputed    int64 `bun:"disputed"`
	DisputeFees int64 `bun:"dispute_fees"` // without what came back
}

// Net returns what the merchant has of the order: what the order's entries add up to on the
// merchant's account.
func (m OrderMoney) Net() int64 {
	return m.PaidAmount - m.FeeAmount + m.FeeReturned - m.RefundedAmount - m.RefundsHeld - m.Disputed - m.DisputeFees
}

// Reduced reports whether anything came off the payment.
func (m OrderMoney) Reduced() bool {
	return m != OrderMoney{PaidAmount: m.PaidAmount}
}

// orderMoney are the columns of OrderMoney for orders AS o.
var orderMoney = "o.paid_amount, o.fee_amount, o.refunded_amount," +
	" CASE WHEN o.refunded_amount > 0 THEN " + sumOfRefunds("fee_returned", refund.Succeeded) + " ELSE 0 END AS fee_returned, " +
	sumOfRefunds("amount", refund.Moves.Open()...) + " AS refunds_held, " +
	sumOfDisputes("dp.amount - CASE WHEN dp.released THEN dp.amount ELSE dp.reinstated END") + " AS disputed, " +
	sumOfDisputes("dp.fee - dp.fee_back") + " AS dispute_fees"

func sumOfRefunds(column string, of ...refund.Status) string {
	return "COALESCE((SELECT sum(rf." + column + ") FROM refunds AS rf WHERE rf.order_id = o.id AND rf.order_id <> 0 AND " +
		refund.Moves.In("rf.status", of...) + "), 0)"
}

func sumOfDisputes(what string) string {
	return "COALESCE((SELECT sum(" + what + ") FROM disputes AS dp WHERE dp.order_id = o.id AND dp.order_id <> 0), 0)"
}

// MoneyOf reads what a merchant got for an order.
func MoneyOf(ctx context.Context, q bun.IDB, orderID int64) (m OrderMoney, err error) {
	if err := q.NewRaw("SELECT "+orderMoney+" FROM orders AS o WHERE o.id = ?", orderID).Scan(ctx, &m); err != nil {
		return m, fmt.Errorf("read the money of an order: %w", err)
	}
	return m, nil
}

func (b *Reader) addMoney(ctx context.Context, s *Story) (err error) {
	s.Money, err = MoneyOf(ctx, b.db.Read, s.Order.ID)
	return err
}
