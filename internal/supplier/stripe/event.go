package stripe

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/supplier"
)

// event is the envelope of every webhook message.
type event struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Created int64  `json:"created"` // seconds; when the event happened
	Account string `json:"account"` // only for events of a connected account
	Data    struct {
		Object json.RawMessage `json:"object"`
	} `json:"data"`
}

// object is the part of a payment intent, checkout session, charge or refund that is used.
// Amounts keep their text for money.ParseMinor.
type object struct {
	ID             string          `json:"id"`
	Currency       string          `json:"currency"`
	PaymentIntent  json.RawMessage `json:"payment_intent"` // an id; null on some sessions
	PaymentStatus  string          `json:"payment_status"` // of a session
	Status         string          `json:"status"`
	Amount         json.RawMessage `json:"amount"`
	AmountReceived json.RawMessage `json:"amount_received"`
	AmountRefunded json.RawMessage `json:"amount_refunded"`
	AmountTotal    json.RawMessage `json:"amount_total"`
	Metadata       struct {
		OrderNo  string `json:"order_no"`
		RefundNo string `json:"refund_no"`
	} `json:"metadata"`
}

// maxMoment is the last second of the year 9999 (Unix), the latest that RFC 3339 can express.
const maxMoment = 253402300799

// moment returns the zero time if RFC 3339 cannot express the seconds.
func moment(seconds int64) time.Time {
	if seconds <= 0 || seconds > maxMoment {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// translate parses an authentic event. With an error it returns what could be parsed, without a
// status.
func translate(body []byte) (supplier.Callback, error) {
	var e event
	if err := supplier.DecodeJSON(body, &e); err != nil {
		return supplier.Callback{}, err
	}
	got := supplier.Callback{
		RawStatus: e.Type, Status: supplier.Other, EventKey: e.ID,
		Identity: map[string]string{"account": cmp.Or(e.Account, ownAccount)},
	}
	if e.ID == "" || e.Type == "" {
		return supplier.Callback{}, noEvent.Say()
	}
	got.OccurredAt = moment(e.Created)
	m := meaning(e.Type)
	if m.Status == supplier.Disputed {
		return dispute(got, e.Data.Object)
	}
	read := readers[e.Type]
	if read == nil {
		got.Status = m.Status
		return got, nil // events of other products may have any structure
	}
	var o object
	if err := json.Unmarshal(e.Data.Object, &o); err != nil {
		return got, oddObject.Say(e.Type)
	}
	got.OrderRef = o.Metadata.OrderNo
	got.Currency = strings.ToUpper(o.Currency)
	word, amount := read(&got, o)
	m = meaning(word)
	if m.Status == supplier.Unknown {
		got.RawStatus = word
	}
	got.Status, got.Final = m.Status, m.Final
	minor, err := money.ParseMinor(string(amount))
	moves := got.Status == supplier.Paid || got.Status == supplier.Refunded
	switch {
	case o.ID == "":
		return got, noPayment.Say(e.Type)
	case err != nil && moves:
		return got, noAmount.Say(e.Type, err)
	}
	got.Amount = minor // 0 where none can be read and no money moved
	return got, nil
}

// reader fills in the callback and returns a word for what happened, and the text of the
// amount.
type reader func(c *supplier.Callback, o object) (word string, amount json.RawMessage)

// readers parse the events about a payment.
var readers = map[string]reader{
	"payment_intent.succeeded":      intent(func(o object) json.RawMessage { return o.AmountReceived }),
	"payment_intent.payment_failed": intent(func(o object) json.RawMessage { return o.Amount }),
	"payment_intent.canceled":       intent(func(o object) json.RawMessage { return o.Amount }),
	// A completed session need not be paid: with bank debits the payment succeeds days later,
	// with async_payment_succeeded.
	"checkout.session.completed": func(c *supplier.Callback, o object) (string, json.RawMessage) {
		defer func() { c.EventKey += ":" + o.PaymentStatus }()
		_, amount := session(c, o)
		return "checkout.session." + o.PaymentStatus, amount
	},
	"checkout.session.async_payment_succeeded": session,
	"checkout.session.async_payment_failed":    session,
	"checkout.session.expired":                 session,
	// A charge that belongs to an intent only repeats the intent's events.
	"charge.succeeded": charged,
	"charge.captured":  charged,
	// The amount is the sum of the charge's refunds so far and therefore part of the key: a
	// second partial refund is another event.
	"charge.refunded": func(c *supplier.Callback, o object) (string, json.RawMessage) {
		payment(c, cmp.Or(id(o.PaymentIntent), o.ID))
		c.EventKey += ":" + string(o.AmountRefunded)
		c.RefundSum = true
		return c.RawStatus, o.AmountRefunded
	},
	"refund.created":        refund,
	"refund.updated":        refund,
	"refund.failed":         refund,
	"charge.refund.updated": refund, // name of refund.updated in older API versions
}

// payment sets the payment intent as the trade number; with the event type it is also the
// replay key.
func payment(c *supplier.Callback, id string) { c.TradeNo, c.EventKey = id, id+":"+c.RawStatus }

func intent(amount func(object) json.RawMessage) reader {
	return func(c *supplier.Callback, o object) (string, json.RawMessage) {
		payment(c, o.ID)
		return c.RawStatus, amount(o)
	}
}

// session reads a checkout session's payment intent. A session without one (it expired before
// any attempt, or needs no payment) has its own id as the trade number.
func session(c *supplier.Callback, o object) (string, json.RawMessage) {
	payment(c, cmp.Or(id(o.PaymentIntent), o.ID))
	return c.RawStatus, o.AmountTotal
}

// charged reads a paid charge. One without an intent is a payment that no other event reports.
func charged(c *supplier.Callback, o object) (string, json.RawMessage) {
	intent := id(o.PaymentIntent)
	payment(c, cmp.Or(intent, o.ID))
	if intent == "" {
		return c.RawStatus + " without payment_intent", o.Amount
	}
	return c.RawStatus, o.Amount
}

// refund reads a refund object. Money is returned only once it has succeeded; the same state
// may come with two event types, so the key is made of the state.
func refund(c *supplier.Callback, o object) (string, json.RawMessage) {
	payment(c, cmp.Or(id(o.PaymentIntent), o.ID))
	c.EventKey = o.ID + ":" + o.Status
	c.RefundNo, c.RefundID = o.Metadata.RefundNo, o.ID
	return "refund." + o.Status, o.Amount
}

// id returns the id of an object, which Stripe sends as an id or expanded; "" = none.
func id(raw json.RawMessage) string {
	var expanded struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(raw, &expanded) == nil && expanded.ID != nil {
		raw = expanded.ID
	}
	return plainText(raw)
}

// plainText returns a JSON string; "" if it is something else.
func plainText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
