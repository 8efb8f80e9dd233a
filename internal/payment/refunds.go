package payment

import (
	"context"
	"strings"

	"backstop/internal/base/db"
	"backstop/internal/order"
	"backstop/internal/supplier"
)

// Refunds finds the refunds, or payouts, that a message is about; it is refund.Machine and
// payout.Machine.
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

// numbered reports whether a reference has the form of one of our numbers for money on its way
// out: R… of a refund, P… of a payout. No order has such a number.
func numbered(reference, letter string) bool {
	digits, ok := strings.CutPrefix(reference, letter)
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// RefundMatch is what a message about a refund means.
type RefundMatch string

// Matches. PayoutAsked is RefundAsked for a payout.
const (
	NoRefund    RefundMatch = ""      // about no refund of ours
	RefundKnown RefundMatch = "known" // it says nothing new
	RefundAsked RefundMatch = "asked" // the supplier is queried about it now
	PayoutAsked RefundMatch = "payout"
)

// refundNote is the result of Match for one message.
type refundNote struct {
	match RefundMatch
	note  func(w *db.Writes)
}

// readRefunds matches the messages that are about refunds; these are rare.
func (b *batch) readRefunds(ctx context.Context) error {
	for _, m := range b.items {
		c, by := m.Content, b.p.o.Refunds
		payout := b.p.o.Payouts != nil && (numbered(c.OrderRef, "P") || numbered(c.RefundNo, "P"))
		switch {
		case m.Unreadable != nil:
			continue
		case payout:
			by = b.p.o.Payouts
		case by == nil, !m.reverses() && c.RefundNo == "" && c.RefundID == "" && !numbered(c.OrderRef, "R"),
			b.wrongAccount(m, b.orderOf(m)) != nil:
			continue
		}
		match, note, err := by.Match(ctx, b.tx, RefundNotice{Supplier: m.Supplier, Content: c, Order: b.orderOf(m)})
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
	case PayoutAsked:
		d.pass("payout", stepPayoutAsked)
	default:
		return false
	}
	return true
}
