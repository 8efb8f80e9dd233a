package payment

import (
	"context"
	"fmt"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// Disputes books what suppliers report about disputes; it is dispute.Machine.
type Disputes interface {
	// Note reads and locks what the messages concern, and completes their exceptions. book adds
	// the consequences to the writes of the transaction, after the exceptions.
	Note(ctx context.Context, tx db.Tx, all []DisputeNotice) (book func(ctx context.Context, w *db.Writes) error, err error)
}

// DisputeNotice is an authentic message about a dispute.
type DisputeNotice struct {
	Supplier supplier.Entry
	Content  supplier.Callback
	// Order is the order that the disputed payment paid, locked; nil = none. Money that is held
	// for an order has not paid it.
	Order *order.Order
	// CallbackID is the record of the message; 0 = none.
	CallbackID int64
	Exception  *exception.Item // the message's, not written yet
}

// noteDispute collects a dispute message that is not a repeat.
func (b *batch) noteDispute(m *Message, d decision, callbackID int64) {
	if m.Content.Dispute == nil || d.exception == nil || d.exception.Kind != exception.DisputeOpened || b.p.o.Disputes == nil {
		return
	}
	n := DisputeNotice{Supplier: m.Supplier, Content: m.Content, CallbackID: callbackID, Exception: d.exception}
	if slices.ContainsFunc(m.tradesOf(), func(t tradeKey) bool { return b.booked[t] }) {
		n.Order = d.order
	}
	b.notices = append(b.notices, n)
}

// readNotices lets the machine read what the batch's disputes concern.
func (b *batch) readNotices(ctx context.Context) (err error) {
	if len(b.notices) > 0 {
		b.bookDisputes, err = b.p.o.Disputes.Note(ctx, b.tx, b.notices)
	}
	return err
}

// goesBack reports whether the message's order is that of its trade number, because it is about
// money that goes back.
func (m *Message) goesBack() bool {
	return m.Content.Dispute != nil || m.Content.Status != supplier.Paid && m.ofRefund()
}

// tradesOf are the numbers under which the message's payment may be known.
func (m *Message) tradesOf() []tradeKey {
	trades := []tradeKey{m.trade()}
	if d := m.Content.Dispute; d != nil && d.Charge != "" && d.Charge != m.Content.TradeNo {
		trades = append(trades, tradeKey{m.Supplier.AccountID, d.Charge})
	}
	return trades
}

// paidNos returns the numbers of the orders that messages in the batch name only by their
// payment, so that they are locked with all others, in one order. A batch without such messages
// asks nothing.
func (b *batch) paidNos(ctx context.Context) ([]string, error) {
	var accounts []int64
	var trades []string
	for _, m := range b.items {
		if !m.goesBack() && !m.unnamed() {
			continue
		}
		for _, t := range m.tradesOf() {
			if t.tradeNo != "" {
				accounts, trades = append(accounts, t.account), append(trades, t.tradeNo)
			}
		}
	}
	if len(trades) == 0 {
		return nil, nil
	}
	var nos []string
	err := b.tx.NewRaw(
		"SELECT o.order_no FROM orders AS o WHERE o.id IN (SELECT order_id FROM payment_attempts WHERE supplier_trade_no IN (?) AND "+
			hasTrade+
			" AND account_id IN (?) AND order_id <> 0)", bun.List(trades), bun.List(accounts)).Scan(ctx, &nos)
	if err != nil {
		return nil, fmt.Errorf("find orders by their payments: %w", err)
	}
	return nos, nil
}
