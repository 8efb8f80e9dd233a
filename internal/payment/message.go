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
	// Unreadable is set where the message is authentic but cannot be read; Content is
	// then what could be read of it.
	Unreadable *supplier.Unreadable
	Source     Source
	Trace      string // names the span of the commit; empty = not traced
}

// Source is where a message comes from. The history of an order names cause and actor.
type Source struct {
	Cause order.Cause
	Actor string // as in order.History
	// ID is that of the supplier call or the approval; for a callback it is its record's.
	ID int64
	// Record is the raw call of a callback. It is stored, and by its event key the same
	// message is a repeat. Any other source has none and is idempotent by the order's
	// status and the trade number.
	Record *Record
	Waive  Waiver
}

// ByCall is the source of an answer to a call of ours, with the id of its row in
// supplier_calls.
func ByCall(s supplier.Entry, callID int64) Source {
	return Source{Cause: order.ByQuery, Actor: "supplier:" + s.Code, ID: callID}
}

// ByDecision is the source of what two people decided, with the id of the approval.
func ByDecision(actor string, approvalID int64, w Waiver) Source {
	return Source{Cause: order.ByDecision, Actor: actor, ID: approvalID, Waive: w}
}

// kind is what the source's id is of.
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

// ByCallback is the source of a supplier's own call.
func ByCallback(s supplier.Entry, r Record) Source {
	return Source{Cause: order.ByCallback, Actor: "supplier:" + s.Code, Record: &r}
}

// Waiver is what two operators accepted about one message; empty = nothing.
type Waiver struct {
	Late    bool   // money for an order that is closed or failed
	Amount  bool   // another amount than the order's: the one that was paid is booked
	OrderNo string // the order that the money is booked for, instead of the one in the message
}

// Record is the raw call as it is kept for operators, secrets masked by the caller.
type Record struct {
	ReceivedAt int64 // Unix µs
	RemoteAddr string
	Method     string
	Query      string
	Header     string // "Name: value" lines
	Body       []byte
	Steps      []supplier.Step
}

// orderRef is the reference of the order that the message is about.
func (m *Message) orderRef() string { return cmp.Or(m.Source.Waive.OrderNo, m.Content.OrderRef) }

// key is equal for messages about one payment: two of them are never in one transaction.
func (m *Message) key() string {
	ref := m.orderRef()
	if ref == "" {
		ref = "event " + m.Content.EventKey
	}
	return strconv.FormatInt(m.Supplier.AccountID, 36) + " " + ref
}

// trade is the supplier's number of the payment, within its account.
func (m *Message) trade() tradeKey { return tradeKey{m.Supplier.AccountID, m.Content.TradeNo} }

// digest makes two callbacks of one event key the same message: their content, and
// what they did not match, if anything (see isRepeat).
func (m *Message) digest(missed string) string {
	c := m.Content
	text := fmt.Appendf(nil, "%q %q %d %q %q", c.OrderRef, c.TradeNo, c.Amount, c.Currency, c.Status)
	if missed != "" {
		text = fmt.Appendf(text, " %q", missed)
	}
	return shortSum(text)
}

// signedSum is a digest of all that is signed of a callback; any other source has none.
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
