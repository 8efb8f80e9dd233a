package refund

import (
	"context"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/fund"

	"github.com/uptrace/bun"
)

// Held is what is given back of money without an order.
type Held struct {
	Exception          *exception.Item
	Reference, TradeNo string // of the payment, as its message named it
	ApprovalID         int64
	Actor, Reason      string
}

// CanOweBack reports whether refunds can be ordered at a supplier.
func (m *Machine) CanOweBack(supplierID int64) bool {
	return m != nil && m.refundable(supplierID) == nil
}

// OweBack gives back all that is held for an exception, as an approval has decided: from the
// suspense, against the payment's own reference. Errors: act.ErrChanged, *FieldError,
// ErrSupplier.
func (m *Machine) OweBack(ctx context.Context, tx db.Tx, h Held) (*Refund, error) {
	x := h.Exception
	held, err := m.heldOf(ctx, tx, x.HeldRef)
	if err != nil {
		return nil, err
	}
	if held == nil {
		return nil, act.ErrChanged
	}
	if err := m.refundable(x.SupplierID); err != nil {
		return nil, err
	}
	if err := m.free(ctx, tx, x.HeldRef); err != nil {
		return nil, err
	}
	at, _ := m.o.Settings.Current().Suppliers.ByID(x.SupplierID)
	r := m.fill(trade{supplierID: at.ID, accountID: at.AccountID, reference: h.Reference, tradeNo: h.TradeNo, amount: held.Amount, currency: held.Currency}, held.Amount)
	r.Status, r.HeldRef, r.ApprovalID, r.OrderNo, r.Reason = Approved, x.HeldRef, h.ApprovalID, x.OrderNo, h.Reason
	w := m.begin(tx)
	v, err := w.values(r)
	if err != nil {
		return nil, err
	}
	w.entries.Add(fund.RefundHeld, v)
	w.insert(r, h.Actor, SourceApproval, h.ApprovalID)
	w.items = append(w.items, m.item(r, compensation.SupplierUnknown, h.Actor))
	return r, w.send(ctx)
}

// heldAgain gives money without an order back to the exception that it came from, which is
// open again: somebody has to decide anew.
func (x *write) heldAgain(r *Refund) {
	if r.HeldRef == "" || r.ApprovalID == 0 {
		return
	}
	now := x.m.o.DB.Now()
	x.w.Guard(x.tx.NewRaw("UPDATE exceptions SET state = ?, held_ref = ?, assignee = '', outcome = '', reference = '', resolved_at = NULL, alerted_at = NULL, decided_by = 0,"+
		" updated_at = ?, version = version + 1 WHERE decided_by = ? AND state IN (?)",
		exception.Opened, r.HeldRef, now, r.ApprovalID, bun.List(exception.Moves.From(exception.Opened, exception.Resolved))), 1)
}
