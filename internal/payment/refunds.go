package payment

import (
	"context"

	"backstop/internal/base/db"
	"backstop/internal/order"
	"backstop/internal/supplier"
)

// Refunds knows the refunds that a message may be about; it is refund.Machine.
type Refunds interface {
	// Match reads which refunds a message is about. Beside a match, note adds what follows
	// from it to the writes of the transaction; nil = nothing does.
	Match(ctx context.Context, tx db.Tx, n RefundNotice) (match RefundMatch, note func(w *db.Writes), err error)
}

// RefundNotice is an authentic message that may be about a refund.
type RefundNotice struct {
	Supplier supplier.Entry
	Content  supplier.Callback
	Order    *order.Order // of its payment, locked; nil = there is none
}

// RefundMatch is what a message about a refund means.
type RefundMatch string

// Matches.
const (
	NoRefund    RefundMatch = ""      // it is about none of ours
	RefundKnown RefundMatch = "known" // it says nothing new
	RefundAsked RefundMatch = "asked" // the supplier is asked about it now
)

// refundNote is the match of one message.
type refundNote struct {
	match RefundMatch
	note  func(w *db.Writes)
}

// readRefunds matches the messages that are about refunds. They are rare.
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

// decideRefund reports whether a message is about refunds that are stored, and then says so.
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
