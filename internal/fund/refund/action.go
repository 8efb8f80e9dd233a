package refund

import (
	"context"
	"errors"

	"backstop/internal/access"
	"backstop/internal/act"
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

// Decision declares the decision about a refund above a merchant's limits. If approved, the
// refund is sent to the supplier; if rejected or not decided in time, its money goes back.
func (m *Machine) Decision() act.Kind {
	return act.Kind{
		Name: Action, Object: Object, Permission: access.ProposeMoney, Load: act.ByID(m.loadRefund), Do: act.Each(m.approved),
		Second: &act.Second{
			Approve: access.ApproveMoney, ByMerchant: true, Release: m.refused,
			Ended: func(s act.Subject) bool { return s.Effect == act.Final },
		},
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
		s.Effect = act.Final
	}
	return s, nil
}

// approved schedules the refund's call to the supplier.
func (m *Machine) approved(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
	if err := m.o.Calls.Shadow(); err != nil {
		return act.Outcome{}, err
	}
	o, r, err := m.lock(ctx, tx, s.Row)
	if err != nil {
		return act.Outcome{}, err
	}
	if r.Version != s.Version || r.Status != Requested {
		return act.Outcome{}, act.ErrChanged
	}
	x := m.begin(tx)
	if err := x.do(o, r, booking.Cause{Actor: in.By.Name, SourceKind: booking.SourceApproval, SourceID: in.Proposed.ID}, Approve); err != nil {
		return act.Outcome{}, err
	}
	x.Items = append(x.Items, m.item(r, compensation.SupplierUnknown, in.Proposed.No))
	return act.Outcome{Details: map[string]any{"refund_no": r.RefundNo}}, x.Send(ctx)
}

// refused returns the money of a refund that was not approved. A refund that has already ended
// stays as it is.
func (m *Machine) refused(ctx context.Context, tx db.Tx, d *act.Proposed, s act.Subject) error {
	o, r, err := m.lock(ctx, tx, s.Row)
	if err != nil || r.Status != Requested {
		return err
	}
	x := m.begin(tx)
	if err := x.do(o, r, booking.Cause{Actor: d.No, SourceKind: booking.SourceApproval, SourceID: d.ID, Detail: d.State}, Reject); err != nil {
		return err
	}
	return x.Send(ctx)
}
