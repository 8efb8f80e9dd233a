package payment

import (
	"context"
	"slices"
	"strings"

	"backstop/internal/base/db"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/supplier"
)

// Matcher finds the refunds, or payouts, that a message is about.
type Matcher interface {
	// Match finds the refunds that a message is about. note adds the consequences to the writes
	// of the transaction; nil = there are none.
	Match(ctx context.Context, tx db.Tx, n RefundNotice) (match RefundMatch, note func(w *db.Writes), err error)
}

// Refunds keeps and books what suppliers report about refunds; it is refund.Machine.
type Refunds interface {
	Matcher
	// Settle books what follows from all that is known about the refunds of these payments.
	Settle(ctx context.Context, tx db.Tx, trades ...Trade) error
}

// Trade identifies a payment at a supplier: its number there, unique within the account.
type Trade struct {
	AccountID int64
	No        string
}

// RefundNotice is an authentic message that may be about a refund.
type RefundNotice struct {
	Supplier   supplier.Entry
	Content    supplier.Callback
	Order      *order.Order // the payment's order, locked if the payment paid it; nil = none
	ReceivedAt int64
}

// ofRefund reports whether the message says something about refunds.
func (m *Message) ofRefund() bool {
	c := m.Content
	return m.Unreadable == nil && (m.reverses() || c.RefundNo != "" || c.RefundID != "" || c.RefundTotal != 0)
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
	NoRefund      RefundMatch = ""       // it says nothing that could be kept
	RefundKnown   RefundMatch = "known"  // it says nothing new
	RefundQueried RefundMatch = "asked"  // of ours: the supplier is queried about it now
	RefundNoted   RefundMatch = "noted"  // no money moved
	RefundStored  RefundMatch = "stored" // its payment is not known yet
	RefundBooked  RefundMatch = "booked" // money that moved at the supplier
	PayoutQueried RefundMatch = "payout"
)

// refundNote is the result of Match for one message.
type refundNote struct {
	match RefundMatch
	note  func(w *db.Writes)
}

// reportedTrades selects the trade numbers of payments with reports about refunds, in the columns
// of attempts, with id -1.
const reportedTrades = "SELECT -1, 0, account_id, '', trade_no, '', 0, 0, 0, 0, '' FROM refund_reports WHERE trade_no IN (?)"

// readRefunds matches the messages that are about refunds; these are rare.
func (b *batch) readRefunds(ctx context.Context) error {
	for _, m := range b.items {
		c := m.Content
		var by Matcher
		switch {
		case m.Unreadable != nil:
			continue
		case b.p.o.Payouts != nil && (numbered(c.OrderRef, "P") || numbered(c.RefundNo, "P")):
			by = b.p.o.Payouts
		case b.p.o.Refunds == nil, !m.ofRefund() && !numbered(c.OrderRef, "R"), b.wrongAccount(m, b.orderOf(m)) != nil:
			continue
		default:
			by = b.p.o.Refunds
		}
		n := RefundNotice{Supplier: m.Supplier, Content: c, Order: b.orderOf(m), ReceivedAt: b.p.o.DB.Now()}
		if m.Source.Record != nil {
			n.ReceivedAt = m.Source.Record.ReceivedAt
		}
		match, note, err := by.Match(ctx, b.tx, n)
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

// decideRefund reports whether a message is about refunds, and then sets its outcome.
func (b *batch) decideRefund(m *Message, d *decision) bool {
	switch b.refunds[m].match {
	case RefundKnown:
		d.outcome = Repeat
		d.pass("refund", stepRefundKnown)
	case RefundQueried:
		d.pass("refund", stepRefundQueried)
	case RefundNoted:
		d.pass("refund", stepRefundNoted)
	case RefundStored:
		d.pass("refund", stepRefundStored)
	case RefundBooked:
		d.outcome = exception.UnknownRefund
		d.pass("refund", stepRefundBooked)
	case PayoutQueried:
		d.pass("payout", stepPayoutQueried)
	default:
		return false
	}
	return true
}

// settleRefunds books the refunds of the payments in the batch about which something is known: of
// those that messages about refunds and disputes name, and of those that have just arrived.
func (b *batch) settleRefunds(ctx context.Context) error {
	if b.p.o.Refunds == nil {
		return nil
	}
	var all []Trade
	add := func(t tradeKey) {
		if is := (Trade{t.account, t.tradeNo}); t.tradeNo != "" && !slices.Contains(all, is) {
			all = append(all, is)
		}
	}
	for _, m := range b.noted {
		add(m.trade())
	}
	for _, m := range b.items {
		for _, t := range m.tradesOf() {
			if b.reported[t] && (m.Content.Dispute != nil || m.Content.Status == supplier.Paid) {
				add(t)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return b.p.o.Refunds.Settle(ctx, b.tx, all...)
}
