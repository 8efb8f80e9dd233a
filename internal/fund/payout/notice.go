package payout

import (
	"context"
	"errors"

	"backstop/internal/base/db"
	"backstop/internal/compensation"
	"backstop/internal/payment"
)

// Match finds the payout whose number a message names, of our account at its supplier. It only
// makes the payout's query due now: what a message says about a payout is never believed.
func (m *Machine) Match(ctx context.Context, tx db.Tx, n payment.RefundNotice) (payment.RefundMatch, func(*db.Writes), error) {
	p, err := one(ctx, tx, tx.NewSelect().Where("po.account_id = ?", n.Supplier.AccountID).
		Where("po.payout_no IN (?, ?)", n.Content.OrderRef, n.Content.RefundNo))
	if errors.Is(err, ErrNotFound) {
		return payment.NoRefund, nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	return payment.PayoutQueried, m.queryAbout(p), nil
}

// queryAbout schedules a query of the supplier about a payout now. For one that has ended this is
// a new compensation.
func (m *Machine) queryAbout(p *Payout) func(*db.Writes) {
	return func(w *db.Writes) {
		if p.FirstCallAt == nil { // it was never sent, so it is not about anything
			return
		}
		x := m.item(p, compensation.SupplierUnknown, "callback")
		if !Moves.Of(p.Status).Open {
			x.FromVersion = p.Version
		}
		m.Schedule.OpenDue(w, m.DB, x)
		w.Add(compensation.DueNow(w.Tx(), m.DB, x.Kind, x.SubjectKind, x.SubjectID))
		w.Tx().OnEnd(func(err error) {
			if err == nil {
				m.Wake(x)
			}
		})
	}
}
