package refund

import (
	"context"
	"errors"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/compensation"
	"backstop/internal/fund/booking"

	"github.com/uptrace/bun"
)

// Action is the decision about a refund that a merchant requested, Object the kind of its object.
const (
	Action = "refund"
	Object = "refund"
)

// Approval declares the decision about a refund above a merchant's limits. If approved, the
// refund is sent to the supplier; if rejected or not decided in time, its money goes back.
func (m *Machine) Approval() approval.Action {
	return approval.Action{
		Name: Action, Object: Object, Propose: access.ProposeMoney, Approve: access.ApproveMoney,
		Load:    m.loadRefund,
		OrderNo: func(s act.Subject) string { return s.OrderNo },
		Over:    func(s act.Subject) bool { return s.Prospect == act.Final },
		// Only refunds that merchants requested wait, and they already have their proposals.
		Offered: func(act.Subject) bool { return false },
		Run:     m.approved, Free: m.refused,
	}
}

// loadRefund finds a refund by its number. Errors: act.ErrNotFound.
func (m *Machine) loadRefund(ctx context.Context, q bun.IDB, no string) (act.Subject, error) {
	r, err := ByNo(ctx, q, no)
	if errors.Is(err, ErrNotFound) {
		return act.Subject{}, act.ErrNotFound
	}
	if err != nil {
		return act.Subject{}, err
	}
	s := act.Subject{
		Row: r.ID, ID: r.RefundNo, OrderNo: r.OrderNo, Version: r.Version, MerchantID: r.MerchantID, SupplierID: r.SupplierID,
		Amount: r.Amount, Currency: r.Currency, Value: r,
	}
	if r.Status != Requested {
		s.Prospect = act.Final
	}
	return s, nil
}

// approved schedules the refund's call to the supplier.
func (m *Machine) approved(ctx context.Context, tx db.Tx, d approval.Decided, s act.Subject) (approval.Ran, error) {
	o, r, err := m.lock(ctx, tx, s.Row)
	if err != nil {
		return approval.Ran{}, err
	}
	if r.Version != s.Version || r.Status != Requested {
		return approval.Ran{}, act.ErrChanged
	}
	x := m.begin(tx)
	if err := x.do(o, r, booking.Cause{Actor: d.Checker.Name, SourceKind: booking.SourceApproval, SourceID: d.ID}, Approve); err != nil {
		return approval.Ran{}, err
	}
	x.Items = append(x.Items, m.item(r, compensation.SupplierUnknown, d.No()))
	return approval.Ran{Result: map[string]any{"refund_no": r.RefundNo}}, x.Send(ctx)
}

// refused returns the money of a refund that was not approved. A refund that has already ended
// stays as it is.
func (m *Machine) refused(ctx context.Context, tx db.Tx, a *approval.Approval, s act.Subject) error {
	o, r, err := m.lock(ctx, tx, s.Row)
	if err != nil || r.Status != Requested {
		return err
	}
	x := m.begin(tx)
	if err := x.do(o, r, booking.Cause{Actor: a.No(), SourceKind: booking.SourceApproval, SourceID: a.ID, Detail: string(a.State)}, Reject); err != nil {
		return err
	}
	return x.Send(ctx)
}
