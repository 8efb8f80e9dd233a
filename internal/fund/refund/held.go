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

// Held is held money without an order that is to be refunded.
type Held struct {
	Exception          *exception.Item
	Reference, TradeNo string // of the payment, as in its message
	ApprovalID         int64
	Actor, Reason      string
}

// CanOweBack reports whether a supplier can make refunds.
func (m *Machine) CanOweBack(supplierID int64) bool {
	return m != nil && m.refundable(supplierID) == nil
}

// OweBack refunds all the money held for an exception, as an approval decided: it is taken from
// suspense, and the refund refers to the payment itself. Errors: act.ErrChanged, *act.FieldError,
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
	r := m.fill(trade{
		supplierID: at.ID, accountID: at.AccountID, reference: h.Reference, tradeNo: h.TradeNo, amount: held.Amount,
		currency: held.Currency,
	}, held.Amount)
	r.Status, r.HeldRef, r.ApprovalID, r.OrderNo, r.Reason = Approved, x.HeldRef, h.ApprovalID, x.OrderNo, h.Reason
	w := m.begin(tx)
	v, err := w.values(r)
	if err != nil {
		return nil, err
	}
	w.entries.Add(fund.RefundHeld, v)
	w.insert(r, by{actor: h.Actor, kind: SourceApproval, source: h.ApprovalID})
	w.items = append(w.items, m.item(r, compensation.SupplierUnknown, h.Actor))
	return r, w.send(ctx)
}

// TakeHeld takes the money that an entry holds without an order out of suspense, for a dispute
// of this amount: no exception names it any more. It returns the account that it leaves; "" =
// nothing is held there, or another sum, and nothing is changed.
func (m *Machine) TakeHeld(ctx context.Context, tx db.Tx, ref string, amount int64, currency string) (account string, err error) {
	h, err := m.heldOf(ctx, tx, ref)
	if err != nil || h == nil || h.Amount != amount || h.Currency != currency {
		return "", err
	}
	return h.Account, m.free(ctx, tx, ref)
}

// heldAgain returns money without an order to its exception and reopens it: an operator must
// decide again.
func (x *write) heldAgain(r *Refund) {
	if r.HeldRef == "" || r.ApprovalID == 0 {
		return
	}
	now := x.m.o.DB.Now()
	x.w.Guard(x.tx.NewRaw(
		"UPDATE exceptions SET state = ?, held_ref = ?, assignee = '', outcome = '', reference = '', resolved_at = NULL, alerted_at = NULL, decided_by = 0,"+
			" updated_at = ?, version = version + 1 WHERE decided_by = ? AND state IN (?)",
		exception.Opened, r.HeldRef, now, r.ApprovalID, bun.List(exception.Moves.From(exception.Opened, exception.Resolved))), 1)
}
