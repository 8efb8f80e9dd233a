package payment

import (
	"cmp"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/order"

	"github.com/uptrace/bun"
)

// AttemptStatus is where one try at a supplier stands.
type AttemptStatus string

// Statuses of an attempt. Succeeded settles its order and is unique for it;
// money that came beside it, or late, is SucceededSurplus.
const (
	Submitted        AttemptStatus = "submitted"
	Succeeded        AttemptStatus = "succeeded"
	SucceededSurplus AttemptStatus = "succeeded_surplus"
	AttemptFailed    AttemptStatus = "failed"
	AttemptClosed    AttemptStatus = "closed"
)

// Attempt is one try at a supplier. SupplierRef is what the supplier knows it by:
// the order number for the first one.
type Attempt struct {
	bun.BaseModel `bun:"table:payment_attempts,alias:pa"`

	ID              int64         `bun:"id,pk"`
	OrderID         int64         `bun:"order_id"`
	AccountID       int64         `bun:"account_id"`
	SupplierRef     string        `bun:"supplier_ref"`
	SupplierTradeNo string        `bun:"supplier_trade_no"`
	Status          AttemptStatus `bun:"status"`
	Amount          int64         `bun:"amount"`
	CreatedAt       int64         `bun:"created_at"`
	UpdatedAt       int64         `bun:"updated_at"`
}

func (a *Attempt) settled() bool { return a.Status == Succeeded || a.Status == SucceededSurplus }

// open says that money may still come of the attempt.
func (a *Attempt) open() bool {
	return a.Status == "created" || a.Status == Submitted || a.Status == "unknown"
}

// attemptFor is the attempt that the message is about, with its new status: the
// one of that reference, or a new one where the merchant started the payment
// without telling us. Surplus money beside a settled attempt gets a row of its
// own.
func (b *batch) attemptFor(m *Message, o *order.Order, status AttemptStatus) *Attempt {
	c := m.Content
	now := b.p.o.DB.Now()
	a := &Attempt{
		ID: b.p.o.DB.NewID(), OrderID: o.ID, AccountID: m.Supplier.AccountID, SupplierRef: m.orderRef(),
		SupplierTradeNo: c.TradeNo, Status: status, Amount: c.Amount, CreatedAt: now, UpdatedAt: now,
	}
	for _, old := range b.attempts[o.ID] {
		if old.AccountID != a.AccountID || old.SupplierRef != a.SupplierRef {
			continue
		}
		if old.settled() && old.SupplierTradeNo != a.SupplierTradeNo {
			a.SupplierRef += "#" + a.SupplierTradeNo
		}
	}
	return a
}

// upsertAttempts writes attempts by their reference, in the order of the orders:
// rows are locked as they are met. The amount of an attempt is what it brought, once
// it brought money: two people may have accepted another than the order's.
func upsertAttempts(w *db.Writes, attempts []*Attempt) {
	slices.SortFunc(attempts, func(a, b *Attempt) int { return cmp.Compare(a.OrderID, b.OrderID) })
	w.Insert(&attempts, "CONFLICT (account_id, supplier_ref) DO UPDATE"+
		" SET status = EXCLUDED.status, supplier_trade_no = EXCLUDED.supplier_trade_no, updated_at = EXCLUDED.updated_at,"+
		" amount = CASE WHEN EXCLUDED.status IN ('succeeded', 'succeeded_surplus') THEN EXCLUDED.amount ELSE pa.amount END")
}

// closeAttempts ends what was still open of orders that are closed.
func closeAttempts(tx db.Tx, orderIDs []int64, now int64) *bun.RawQuery {
	return tx.NewRaw("UPDATE payment_attempts SET status = ?, updated_at = ?"+
		" WHERE order_id IN (?) AND status IN ('created', 'submitted', 'unknown')", AttemptClosed, now, bun.List(orderIDs))
}
