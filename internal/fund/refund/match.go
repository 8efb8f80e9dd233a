package refund

import (
	"context"
	"errors"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/compensation"
	"backstop/internal/payment"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// Match finds what a message says about refunds. Of a refund of ours, which it names by our number
// or the supplier's, nothing is believed: the supplier is queried. Everything else is kept (see
// report); what follows from all that is known is booked by Settle.
func (m *Machine) Match(ctx context.Context, tx db.Tx, n payment.RefundNotice) (payment.RefundMatch, func(*db.Writes), error) {
	c := n.Content
	back := c.Status == supplier.Refunded || c.Status == supplier.Closed && c.Reverses
	ours, err := m.numbered(ctx, tx, n)
	if err != nil {
		return "", nil, err
	}
	match, queried := payment.NoRefund, []*Refund(nil)
	if ours != nil {
		switch query, known := named(ours.Status, back); {
		case query:
			match, queried = payment.RefundQueried, append(queried, ours)
		case known:
			match = payment.RefundKnown
		}
	}
	is, ok := reportOf(n)
	if !ok || is.Number != "" && match != payment.NoRefund {
		return match, m.queryAll(queried), nil
	}
	t, err := m.stateOf(ctx, tx, payment.Trade{AccountID: is.AccountID, No: is.TradeNo}, unlocked)
	if err != nil {
		return "", nil, err
	}
	if is.Total != 0 {
		for _, r := range t.ours {
			if r.Unresolved() && !slices.ContainsFunc(queried, func(a *Refund) bool { return a.ID == r.ID }) {
				queried = append(queried, r)
			}
		}
	}
	note := func(w *db.Writes) {
		writeReports(w, []report{is})
		for _, r := range queried {
			m.queryAbout(r)(w)
		}
		if t.paid == nil && c.Status != supplier.Paid && c.Status != supplier.Closed { // of what was never paid, nothing can be returned
			m.await(w, n)
		}
	}
	before := t.sum()
	after := t.with(is)
	switch {
	case t.paid == nil && c.Status == supplier.Closed:
		return payment.NoRefund, note, nil // it was not paid: its order decides
	case t.paid == nil:
		return payment.RefundStored, note, nil
	case after.made != before || after.exceeds > 0 || after.doubt > 0:
		return payment.RefundBooked, note, nil
	case len(queried) > 0:
		return payment.RefundQueried, note, nil
	case is.Stage == pending || is.Stage == failed:
		return payment.RefundNoted, note, nil
	}
	return payment.RefundKnown, note, nil
}

// unlocked leaves a query as it is.
func unlocked(q *bun.SelectQuery) *bun.SelectQuery { return q }

// numbered finds the refund whose number is in a message; nil = none of ours.
func (m *Machine) numbered(ctx context.Context, tx db.Tx, n payment.RefundNotice) (*Refund, error) {
	c := n.Content
	r, err := one(ctx, tx.NewSelect().Where("rf.account_id = ? AND rf.refund_no = ? AND rf.adopted = ''", n.Supplier.AccountID, c.OrderRef))
	if !errors.Is(err, ErrNotFound) {
		return r, err // the reference is our number itself
	}
	if c.RefundNo == "" && c.RefundID == "" {
		return nil, nil
	}
	r, err = one(ctx, tx.NewSelect().Where("rf.account_id = ? AND rf.adopted = ''", n.Supplier.AccountID).
		Where("rf.trade_no = ? AND (rf.refund_no = ? OR rf.supplier_refund_no = ? AND rf.supplier_refund_no <> '')", c.TradeNo, c.RefundNo,
			c.RefundID).OrderExpr("rf.id"))
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return r, err
}

// queryAll schedules queries of the supplier about refunds now; nil = there are none.
func (m *Machine) queryAll(all []*Refund) func(*db.Writes) {
	if len(all) == 0 {
		return nil
	}
	return func(w *db.Writes) {
		for _, r := range all {
			m.queryAbout(r)(w)
		}
	}
}

// queryAbout schedules a query of the supplier about a refund now. For a refund that succeeded
// this is a new compensation.
func (m *Machine) queryAbout(r *Refund) func(*db.Writes) {
	return func(w *db.Writes) {
		x := m.item(r, compensation.SupplierUnknown, "callback")
		if r.Status == Succeeded {
			x.FromVersion = r.Version
		}
		m.Schedule.OpenDue(w, m.DB, x)
		w.Add(compensation.DueNow(w.Tx(), m.DB, x.Kind, x.SubjectKind, x.SubjectID))
	}
}
