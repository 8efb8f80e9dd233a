package refund

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/fund/booking"
	"backstop/internal/ledger/fact"
	"backstop/internal/payment"

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

// OweBack refunds all the money that is left of what is held for an exception, as an approval
// decided: it is taken from suspense, and the refund refers to the payment itself. Errors:
// act.ErrChanged, *act.FieldError, ErrSupplier.
func (m *Machine) OweBack(ctx context.Context, tx db.Tx, h Held) (*Refund, error) {
	x := h.Exception
	held, err := m.heldOf(ctx, tx, x.HeldRef)
	if err != nil {
		return nil, err
	}
	if held == nil || held.Left == 0 {
		return nil, act.ErrChanged
	}
	if err := m.refundable(x.SupplierID); err != nil {
		return nil, err
	}
	if err := m.free(ctx, tx, x.HeldRef); err != nil {
		return nil, err
	}
	at, _ := m.Settings.Current().Suppliers.ByID(x.SupplierID)
	r := m.fill(trade{
		supplierID: at.ID, accountID: at.AccountID, reference: h.Reference, tradeNo: h.TradeNo, amount: held.Amount,
		currency: held.Currency,
	}, held.Left)
	r.Status, r.HeldRef, r.ApprovalID, r.OrderNo, r.Reason = Approved, x.HeldRef, h.ApprovalID, x.OrderNo, h.Reason
	w := m.begin(tx)
	v, err := w.values(r)
	if err != nil {
		return nil, err
	}
	w.Entries.Add(fact.RefundHeld, v)
	w.insert(r, booking.Cause{Actor: h.Actor, SourceKind: booking.SourceApproval, SourceID: h.ApprovalID})
	w.Items = append(w.Items, m.item(r, compensation.SupplierUnknown, h.Actor))
	return r, w.Send(ctx)
}

// TakeHeld takes money that an entry holds without an order out of suspense, for a dispute of
// this amount. Refunds made at the supplier give way to it, so Settle must follow. It returns the
// account that the money leaves; "" = so much is not held there, and nothing is changed.
func (m *Machine) TakeHeld(ctx context.Context, tx db.Tx, ref string, amount int64, currency string) (account string, err error) {
	h, err := heldEntry(ctx, tx, ref)
	if err != nil || h == nil || h.Currency != currency || !h.Named && h.Made == 0 || h.Left+h.Made < amount {
		return "", err
	}
	if h.Named && h.Left == amount {
		return h.Account, m.free(ctx, tx, ref)
	}
	return h.Account, nil
}

// heldMoney is money in suspense.
type heldMoney struct {
	Amount   int64
	Currency string
	Account  string // suspense account
	Named    bool   // an exception names it: what is left is still held
	Made     int64  // what was refunded of it at the supplier
	Left     int64  // after all refunds and disputes that were booked from it
}

// heldEntry returns the money that an entry brought, whatever became of it; nil = there is no
// such entry.
func heldEntry(ctx context.Context, q bun.IDB, ref string) (*heldMoney, error) {
	var rows []heldMoney
	err := q.NewRaw(
		"SELECT t.amount, t.currency, c.code AS account,"+
			" EXISTS (SELECT 1 FROM exceptions AS x WHERE x.held_ref = t.ref AND x.held_ref <> '') AS named,"+
			" (SELECT coalesce(CAST(sum(r.amount) AS BIGINT), 0) FROM refunds AS r WHERE r.held_ref = t.ref AND r.held_ref <> ''"+
			" AND r.adopted <> '' AND r.status = ?) AS made, t.amount - ("+payment.TakenOfHeld("t.ref")+") AS \"left\""+
			" FROM transfers AS t JOIN accounts AS c ON c.id = t.credit_account WHERE t.ref = ?", Succeeded, ref).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read what is held: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return &rows[0], nil
}

// heldOf returns the money that an entry holds, as long as an exception names the entry; nil =
// nothing is held any more.
func (m *Machine) heldOf(ctx context.Context, q bun.IDB, ref string) (*heldMoney, error) {
	h, err := heldEntry(ctx, q, ref)
	if err != nil || h == nil || !h.Named {
		return nil, err
	}
	return h, nil
}

// disputedOf returns how much disputes took of the money that an entry held.
func disputedOf(ctx context.Context, q bun.IDB, ref string) (sum int64, err error) {
	err = q.NewRaw("SELECT coalesce(CAST(sum(amount - reinstated) AS BIGINT), 0) FROM disputes WHERE held_ref = ? AND held_ref <> '' AND withdrawn",
		ref).Scan(ctx, &sum)
	if err != nil {
		return 0, fmt.Errorf("read what disputes took: %w", err)
	}
	return sum, nil
}

// free removes an entry from the exceptions that name it: its money now belongs to the refund.
// Of two concurrent calls, one fails as stale.
func (m *Machine) free(ctx context.Context, tx db.Tx, ref string) error {
	res, err := tx.NewRaw("UPDATE exceptions SET held_ref = '' WHERE held_ref = ? AND held_ref <> ''", ref).Exec(ctx)
	if err != nil {
		return fmt.Errorf("take money out of suspense: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, db.ErrStale)
	}
	return nil
}

// clear ends the exceptions about held money of which nothing is left. What is left of other held
// money has changed, so an earlier proposal about it no longer applies.
func (m *Machine) clear(ctx context.Context, tx db.Tx, ref string, changed bool) error {
	h, err := m.heldOf(ctx, tx, ref)
	if err != nil || h == nil {
		return err
	}
	w := tx.Writes()
	switch {
	case h.Left == 0:
		w.Add(exception.Refunded(tx, m.DB, ref))
	case changed:
		w.Add(exception.HeldLess(tx, m.DB, ref))
	}
	if err := w.Exec(ctx); err != nil {
		return fmt.Errorf("end exceptions about held money: %w", err)
	}
	return nil
}

// heldAgain returns money without an order to its exception and reopens it: an operator must
// decide again.
func (x *write) heldAgain(r *Refund) {
	if r.HeldRef == "" {
		return
	}
	if r.Adopted != "" {
		x.W.Add(exception.HoldAgain(x.Tx, x.m.DB, r.SupplierID, r.TradeNo, r.HeldRef))
		return
	}
	now := x.m.DB.Now()
	x.W.Guard(x.Tx.NewRaw(
		"UPDATE exceptions SET state = ?, held_ref = ?, assignee = '', outcome = '', reference = '', resolved_at = NULL, alerted_at = NULL, decided_by = 0,"+
			" updated_at = ?, version = version + 1 WHERE decided_by = ? AND state IN (?)",
		exception.Opened, r.HeldRef, now, r.ApprovalID, bun.List(exception.Moves.From(exception.Opened, exception.Resolved))), 1)
}
