package payment

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"backstop/internal/order"
	"backstop/internal/supplier"
)

// Message is what a supplier reports about one payment.
type Message struct {
	Supplier supplier.Entry
	Content  supplier.Callback
	// Unreadable means that the message is authentic but cannot be fully parsed; Content is
	// then what could be parsed.
	Unreadable *supplier.Unreadable
	Source     Source
	Trace      string // span of the commit; empty = not traced
}

// Source is where a message comes from. The history of an order records cause and actor.
type Source struct {
	Cause order.Cause
	Actor string // as in order.History
	// ID is the id of the supplier call or the approval; for a callback, the record's.
	ID int64
	// Record is the raw callback. It is stored, and its event key identifies repeats. Other
	// sources have none; they are idempotent by the order's status and the trade number.
	Record *Record
	Waive  Waiver
}

// ByCall returns the source of an answer to one of our calls, with its id in supplier_calls.
func ByCall(s supplier.Entry, callID int64) Source {
	return Source{Cause: order.ByQuery, Actor: "supplier:" + s.Code, ID: callID}
}

// ByDecision returns the source of a decision by two people, with the id of the approval.
func ByDecision(actor string, approvalID int64, w Waiver) Source {
	return Source{Cause: order.ByDecision, Actor: actor, ID: approvalID, Waive: w}
}

// kind returns the kind of row that the source's id refers to.
func (s Source) kind() string {
	switch {
	case s.Record != nil:
		return order.SourceCallback
	case s.Cause == order.ByQuery:
		return order.SourceCall
	case s.Cause == order.ByDecision:
		return order.SourceApproval
	}
	return ""
}

// ByCallback returns the source of a supplier's callback.
func ByCallback(s supplier.Entry, r Record) Source {
	return Source{Cause: order.ByCallback, Actor: "supplier:" + s.Code, Record: &r}
}

// Waiver is what two operators accepted about one message; empty = nothing.
type Waiver struct {
	Late    bool   // a payment for a closed or failed order
	Amount  bool   // an amount other than the order's; the amount paid is booked
	OrderNo string // the order to book it for, instead of the one in the message
}

// Record is the raw callback as kept for operators, with secrets masked by the caller.
type Record struct {
	ReceivedAt int64 // Unix µs
	RemoteAddr string
	Method     string
	Query      string
	Header     string // "Name: value" lines
	Body       []byte
	Steps      []supplier.Step
}

// orderRef returns the reference of the message's order.
func (m *Message) orderRef() string { return cmp.Or(m.Source.Waive.OrderNo, m.Content.OrderRef) }

// key is the same for messages about one payment; two of those are never in one transaction.
func (m *Message) key() string {
	ref := m.orderRef()
	if ref == "" {
		ref = "event " + m.Content.EventKey
	}
	return strconv.FormatInt(m.Supplier.AccountID, 36) + " " + ref
}

// trade returns the supplier's number of the payment, within its account.
func (m *Message) trade() tradeKey { return tradeKey{m.Supplier.AccountID, m.Content.TradeNo} }

// unnamed reports whether the message is about a payment that only its trade number names. Stripe
// does not copy the metadata of a Checkout session to its intent, for example.
func (m *Message) unnamed() bool {
	return (m.Content.Status == supplier.Paid || m.Content.Status == supplier.Unknown) && m.orderRef() == "" && m.Content.TradeNo != ""
}

// The turns in which a batch decides its messages: payments before messages that find their
// order by the payment.
const (
	namedTurn = iota
	unnamedTurn
	disputeTurn
	turns
)

func (m *Message) turn() int {
	switch {
	case m.Content.Dispute != nil:
		return disputeTurn
	case m.unnamed():
		return unnamedTurn
	}
	return namedTurn
}

// digest identifies repeats among callbacks with one event key: it covers their content and
// what they did not match, if anything (see isRepeat).
func (m *Message) digest(missed string) string {
	c := m.Content
	text := fmt.Appendf(nil, "%q %q %d %q %q", c.OrderRef, c.TradeNo, c.Amount, c.Currency, c.Status)
	if missed != "" {
		text = fmt.Appendf(text, " %q", missed)
	}
	return shortSum(text)
}

// signedSum is a digest of everything signed in a callback; "" for other sources.
func (m *Message) signedSum() string {
	switch {
	case m.Source.Record == nil:
		return ""
	case m.Unreadable != nil && m.Unreadable.Signed != "":
		return shortSum([]byte(m.Unreadable.Signed))
	}
	return shortSum(m.Source.Record.Body)
}

// shortSum is a digest of a text.
func shortSum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
