package stripe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"backstop/internal/money"
	"backstop/internal/supplier"
)

// event is the envelope of every webhook message.
type event struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Created int64  `json:"created"` // seconds; when the thing happened
	Account string `json:"account"` // of an event of a connected account only
	Data    struct {
		Object json.RawMessage `json:"object"`
	} `json:"data"`
}

// object is what we read of a payment intent, a checkout session, a charge or a
// refund. Amounts keep their text: it is judged by money.ParseMinor.
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

// translate reads an authentic event. Beside an error it returns what could be
// read, without a status.
func translate(body []byte) (supplier.Callback, error) {
	var e event
	if err := supplier.DecodeJSON(body, &e); err != nil {
		return supplier.Callback{}, err
	}
	got := supplier.Callback{RawStatus: e.Type, Status: supplier.Other, EventKey: e.ID, Identity: map[string]string{"account": cmp.Or(e.Account, ownAccount)}}
	if e.ID == "" || e.Type == "" {
		return supplier.Callback{}, fmt.Errorf("the event has no id or no type")
	}
	if e.Created > 0 {
		got.OccurredAt = time.Unix(e.Created, 0).UTC()
	}
	read, known := meanings[e.Type]
	if !known {
		return got, nil // some other product's event may have any shape
	}
	var o object
	if err := json.Unmarshal(e.Data.Object, &o); err != nil {
		return partial(got), fmt.Errorf("data.object of %s does not have the expected form", e.Type)
	}
	got.OrderRef = o.Metadata.OrderNo
	got.Currency = strings.ToUpper(o.Currency)
	amount := read(&got, o)
	minor, err := money.ParseMinor(string(amount))
	moves := got.Status == supplier.Paid || got.Status == supplier.Refunded
	switch {
	case o.ID == "":
		return partial(got), fmt.Errorf("%s names no payment", e.Type)
	case err != nil && moves:
		return partial(got), fmt.Errorf("amount of %s: %w", e.Type, err)
	}
	got.Amount = minor // 0 where none can be read and no money moved
	return got, nil
}

// partial is a callback that people may look at and nothing else.
func partial(c supplier.Callback) supplier.Callback {
	c.Status, c.Final = supplier.Other, false
	return c
}

// meanings lists the events that say something of a payment. Each entry fills in
// the callback and returns the text of the amount that the event is about. What
// is not listed is Other.
var meanings = map[string]func(*supplier.Callback, object) json.RawMessage{
	"payment_intent.succeeded": func(c *supplier.Callback, o object) json.RawMessage {
		payment(c, o.ID, supplier.Paid)
		return o.AmountReceived
	},
	// The buyer may try another card on the same intent.
	"payment_intent.payment_failed": func(c *supplier.Callback, o object) json.RawMessage {
		payment(c, o.ID, supplier.Failed)
		return o.Amount
	},
	"payment_intent.canceled": func(c *supplier.Callback, o object) json.RawMessage {
		payment(c, o.ID, supplier.Failed)
		c.Final = true
		return o.Amount
	},
	// A completed session need not be paid: with bank debits the money comes days
	// later, and with it async_payment_succeeded.
	"checkout.session.completed": func(c *supplier.Callback, o object) json.RawMessage {
		session(c, o, supplier.Other)
		if o.PaymentStatus == "paid" {
			c.Status = supplier.Paid
		}
		c.EventKey += ":" + o.PaymentStatus
		return o.AmountTotal
	},
	"checkout.session.async_payment_succeeded": func(c *supplier.Callback, o object) json.RawMessage {
		session(c, o, supplier.Paid)
		return o.AmountTotal
	},
	// Not final, both: the merchant may open another session for the same order.
	"checkout.session.async_payment_failed": func(c *supplier.Callback, o object) json.RawMessage {
		session(c, o, supplier.Failed)
		return o.AmountTotal
	},
	"checkout.session.expired": func(c *supplier.Callback, o object) json.RawMessage {
		session(c, o, supplier.Failed)
		return o.AmountTotal
	},
	// The amount is the sum of the charge's refunds so far, hence part of the key:
	// a second partial refund is another fact.
	"charge.refunded": func(c *supplier.Callback, o object) json.RawMessage {
		payment(c, cmp.Or(intentID(o), o.ID), supplier.Refunded)
		c.EventKey += ":" + string(o.AmountRefunded)
		return o.AmountRefunded
	},
	"refund.created":        refund,
	"refund.updated":        refund,
	"refund.failed":         refund,
	"charge.refund.updated": refund, // name of refund.updated in older API versions
}

// payment notes the payment intent: it is the trade number, and with the type it
// is the replay key.
func payment(c *supplier.Callback, id string, s supplier.Status) {
	c.Status, c.TradeNo, c.EventKey = s, id, id+":"+c.RawStatus
}

// session notes a checkout session's payment intent. A session without one (it
// expired before any try, or asks for no money) stands for itself.
func session(c *supplier.Callback, o object, s supplier.Status) {
	payment(c, cmp.Or(intentID(o), o.ID), s)
}

// refund reads a refund object. Money went back only once it succeeded; the same
// state may come with two event types, so it is the state that makes the key.
func refund(c *supplier.Callback, o object) json.RawMessage {
	payment(c, cmp.Or(intentID(o), o.ID), supplier.Other)
	if o.Status == "succeeded" {
		c.Status = supplier.Refunded
	}
	c.EventKey = o.ID + ":" + o.Status
	c.RefundNo = o.Metadata.RefundNo
	return o.Amount
}

// intentID is the payment intent's id, "" where there is none.
func intentID(o object) string {
	var id string
	if json.Unmarshal(o.PaymentIntent, &id) != nil {
		return ""
	}
	return id
}
