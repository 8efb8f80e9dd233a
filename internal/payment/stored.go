package payment

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"backstop/internal/exception"
	"backstop/internal/supplier"
)

// payload is the message stored with an exception: what is needed to confirm it again, and no
// other data of the buyer.
type payload struct {
	Account    int64             `json:"account,string"`
	EventKey   string            `json:"event_key"`
	Reference  string            `json:"reference"`
	TradeNo    string            `json:"trade_no"`
	Amount     int64             `json:"amount"` // minor units
	Currency   string            `json:"currency"`
	Status     supplier.Status   `json:"status"`
	RawStatus  string            `json:"raw_status"` // the supplier's status
	Identity   map[string]string `json:"identity"`   // the account that the message is for
	OccurredAt *time.Time        `json:"occurred_at"`
}

// payload returns the message as stored with an exception; "" = it could not be parsed, or is
// not about one payment.
func (m *Message) payload() string {
	c := m.Content
	if m.Unreadable != nil || c.Status == supplier.Unknown {
		return ""
	}
	p := payload{
		Account: m.Supplier.AccountID, EventKey: c.EventKey, Reference: c.OrderRef, TradeNo: c.TradeNo, Amount: c.Amount,
		Currency: c.Currency,
		Status:   c.Status, RawStatus: c.RawStatus, Identity: c.Identity,
	}
	if !c.OccurredAt.IsZero() {
		p.OccurredAt = new(c.OccurredAt.UTC())
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return ""
	}
	return string(raw)
}

// ErrNoMessage means that the message behind an exception is no longer stored, or its supplier
// cannot be used.
var ErrNoMessage = errors.New("the supplier's message is no longer stored and cannot be confirmed again")

// Stored returns the message of an exception for another confirmation; the caller sets its
// Source. Errors: ErrNoMessage.
func (p *Processor) Stored(x *exception.Item) (*Message, error) {
	s, ok := p.o.Settings.Current().Suppliers.ByID(x.SupplierID)
	if x.Payload == "" || !ok {
		return nil, ErrNoMessage
	}
	var k payload
	if err := json.Unmarshal([]byte(x.Payload), &k); err != nil {
		return nil, fmt.Errorf("read the message of the exception %d: %w", x.ID, err)
	}
	s.AccountID = k.Account // of the message, whatever has changed in the settings since
	m := &Message{Supplier: s, Content: supplier.Callback{
		EventKey: k.EventKey, OrderRef: k.Reference, TradeNo: k.TradeNo, Amount: k.Amount, Currency: k.Currency,
		Status: k.Status, RawStatus: k.RawStatus, Identity: k.Identity,
	}}
	if k.OccurredAt != nil {
		m.Content.OccurredAt = *k.OccurredAt
	}
	return m, nil
}
