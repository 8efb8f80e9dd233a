package payment

import (
	"context"

	"backstop/internal/base/db"
	"backstop/internal/order"
	"backstop/internal/supplier"
)

// Refunds finds the refunds that a message is about; it is refund.Machine.
type Refunds interface {
	// Match finds the refunds that a message is about. note adds the consequences to the writes
	// of the transaction; nil = there are none.
	Match(ctx context.Context, tx db.Tx, n RefundNotice) (match RefundMatch, note func(w *db.Writes), err error)
}

// RefundNotice is an authentic message that may be about a refund.
type RefundNotice struct {
	Supplier supplier.Entry
	Content  supplier.Callback
	Order    *order.Order // the payment's order, locked; nil = none
}

// RefundMatch is what a message about a refund means.
type RefundMatch string

// Matches.
const (
	NoRefund    RefundMatch = ""      // about no refund of ours
	RefundKnown RefundMatch = "known" // it says nothing new
	RefundAsked RefundMatch = "asked" // the supplier is queried about it now
)

// refundNote is the result of Match for one message.
type refundNote struct {
	match RefundMatch
	note  func(w *db.Writes)
}

// readRefunds matches the messages that are about refunds; these are rare.
func (b *batch) readRefunds(ctx context.Context) error {
	if b.p.o.Refunds == nil {
		return nil
	}
	for _, m := range b.items {
		c := m.Content
		if m.Unreadable != nil || !m.reverses() && c.RefundNo == "" && c.RefundID == "" || b.wrongAccount(m, b.orderOf(m)) != nil {
			continue
		}
		match, note, err := b.p.o.Refunds.Match(ctx, b.tx, RefundNotice{Supplier: m.Supplier, Content: c, Order: b.orderOf(m)})
		if err != nil {
			return err
		}
		if b.refunds == nil {
			b.refunds = map[*Message]refundNote{}
		}
		b.refunds[m] = refundNote{match, note}
	}
	return nil
}

// decideRefund reports whether a message is about stored refunds, and then sets its outcome.
func (b *batch) decideRefund(m *Message, d *decision) bool {
	switch b.refunds[m].match {
	case RefundKnown:
		d.outcome = Repeat
		d.pass("refund", stepRefundKnown)
	case RefundAsked:
		d.pass("refund", stepRefundAsked)
	default:
		return false
	}
	return true
}
