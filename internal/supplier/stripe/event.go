package stripe

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

// event is the envelope of every webhook message.
type event struct {
	ID       string          `json:"id"`
	Object   string          `json:"object"` // "event"; "v2.core.event" = a thin event, without data
	Type     string          `json:"type"`
	Created  json.RawMessage `json:"created"`  // when the event happened: seconds, or RFC 3339 in a thin event
	Account  json.RawMessage `json:"account"`  // only for events of a connected account
	LiveMode json.RawMessage `json:"livemode"` // true or false
	Data     json.RawMessage `json:"data"`
	Related  json.RawMessage `json:"related_object"` // of a thin event
}

// object is the part of a payment intent, checkout session, charge or refund that is used.
// Amounts keep their text for money.ParseMinor.
type object struct {
	ID             string          `json:"id"`
	Currency       string          `json:"currency"`
	PaymentIntent  json.RawMessage `json:"payment_intent"` // an id; null on some sessions
	Charge         json.RawMessage `json:"charge"`         // of a refund
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

// thin begins the object names of events of API v2, which name their subject only.
const thin = "v2."

// createdAt parses either form of the time.
func (e event) createdAt() time.Time {
	if seconds, err := strconv.ParseInt(string(e.Created), 10, 64); err == nil {
		return moment(seconds)
	}
	at, err := time.Parse(time.RFC3339, plainText(e.Created))
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// account returns the account that the event is for; one that cannot be read is not ours.
func (e event) account() string {
	if len(e.Account) == 0 || string(e.Account) == "null" {
		return ownAccount
	}
	return cmp.Or(id(e.Account), textlimit.Clip(string(e.Account), maxWord))
}

// otherMode returns the message that an event of the other mode becomes, which pays nothing
// whatever it says. It names nothing, so that all of them are one exception; ok = the event is of
// this mode.
func (e event) otherMode(want *bool) (c supplier.Callback, ok bool) {
	is := string(e.LiveMode)
	if want == nil || is == "" || is == strconv.FormatBool(*want) {
		return c, true
	}
	return supplier.Callback{
		EventKey: e.ID, Status: supplier.Unknown, RawStatus: "livemode " + textlimit.Clip(is, maxWord), OccurredAt: e.createdAt(),
		Identity: map[string]string{},
	}, false
}

// maxWord bounds what is shown of an unexpected value.
const maxWord = 40

// translate parses an authentic event of an endpoint; live is its mode, nil = not checked. With an
// error it returns what could be parsed, without a status.
func translate(body []byte, live *bool) (supplier.Callback, error) {
	var e event
	if err := supplier.DecodeJSON(body, &e); err != nil {
		return supplier.Callback{}, err
	}
	got := supplier.Callback{
		RawStatus: e.Type, Status: supplier.Other, EventKey: e.ID,
		Identity: map[string]string{"account": e.account()},
	}
	if e.ID == "" || e.Type == "" {
		return supplier.Callback{}, noEvent.Say()
	}
	if other, ok := e.otherMode(live); !ok {
		return other, nil
	}
	got.OccurredAt = e.createdAt()
	if strings.HasPrefix(e.Object, thin) {
		got.Status, got.TradeNo = supplier.Unknown, id(e.Related)
		return got, nil
	}
	var data struct {
		Object json.RawMessage `json:"object"`
	}
	_ = json.Unmarshal(e.Data, &data) // without an object, the events that need one say so
	m := meaning(e.Type)
	if m.Status == supplier.Disputed {
		return dispute(got, data.Object)
	}
	read := readers[e.Type]
	if read == nil {
		got.Status = m.Status
		return got, nil // events of other products may have any structure
	}
	var o object
	if err := json.Unmarshal(data.Object, &o); err != nil {
		return got, oddObject.Say(e.Type)
	}
	got.OrderRef = o.Metadata.OrderNo
	got.Currency = strings.ToUpper(o.Currency)
	word, amount := read(&got, o)
	m = meaning(word)
	if m.Status == supplier.Unknown {
		got.RawStatus = word
	}
	got.Status, got.Final, got.OneTry = m.Status, m.Final, m.OneTry
	minor, err := money.ParseMinor(string(amount))
	moves := got.Status == supplier.Paid || got.Status == supplier.Refunded
	switch {
	case o.ID == "":
		return got, noPayment.Say(e.Type)
	case err != nil && moves:
		return got, noAmount.Say(e.Type, err)
	}
	got.Amount = minor // 0 where none can be read and no money moved
	if e.Type == refundsOfCharge {
		got.RefundTotal = minor
	}
	return got, nil
}

// reader fills in the callback and returns a word for what happened, and the text of the
// amount.
type reader func(c *supplier.Callback, o object) (word string, amount json.RawMessage)

// refundsOfCharge is the type of the event with the sum of a charge's refunds.
const refundsOfCharge = "charge.refunded"

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
	refundsOfCharge: func(c *supplier.Callback, o object) (string, json.RawMessage) {
		payment(c, cmp.Or(id(o.PaymentIntent), o.ID))
		c.EventKey += ":" + string(o.AmountRefunded)
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

// refund reads a refund object, which may fail even after it has succeeded. The same state may
// come with two event types, so the key is made of the state.
func refund(c *supplier.Callback, o object) (string, json.RawMessage) {
	payment(c, cmp.Or(id(o.PaymentIntent), id(o.Charge), o.ID))
	c.EventKey = o.ID + ":" + o.Status
	c.RefundNo, c.RefundID, c.Refund = o.Metadata.RefundNo, o.ID, refundStates[o.Status]
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
