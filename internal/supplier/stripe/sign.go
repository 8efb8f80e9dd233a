package stripe

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"backstop/internal/supplier"
)

// reported are the types of the events that report a payment, with the status of its intent.
var reported = map[supplier.Status]struct{ event, intent string }{
	supplier.Paid:   {"payment_intent.succeeded", "succeeded"},
	supplier.Failed: {"payment_intent.payment_failed", "requires_payment_method"},
	supplier.Closed: {"payment_intent.canceled", "canceled"},
}

// sign makes an event about a payment intent. See supplier.Kind.
func sign(raw json.RawMessage, r supplier.Report) (*supplier.Request, error) {
	var c config
	if err := supplier.DecodeConfig(raw, &c); err != nil {
		return nil, err
	}
	if _, err := newAdapter("", raw, nil); err != nil {
		return nil, err
	}
	kind, received := reported[r.Status], int64(0)
	if r.Status == supplier.Paid {
		received = r.Amount
	}
	live := c.mode() != nil && *c.mode()
	body, err := json.Marshal(map[string]any{
		"id": "evt_" + string(r.Status) + "_" + r.TradeNo, "object": "event", "type": kind.event, "created": r.At.Unix(), "livemode": live,
		"data": map[string]any{"object": map[string]any{
			"id": r.TradeNo, "object": "payment_intent", "status": kind.intent, "amount": r.Amount, "amount_received": received,
			"currency": strings.ToLower(r.Currency), "livemode": live, "metadata": map[string]string{"order_no": r.OrderRef},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("write the event: %w", err)
	}
	stamp := strconv.FormatInt(r.At.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(c.WebhookSecrets[0]))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return &supplier.Request{Method: http.MethodPost, Body: body, Header: http.Header{
		"Content-Type":     {"application/json"},
		"Stripe-Signature": {"t=" + stamp + ",v1=" + hex.EncodeToString(mac.Sum(nil))},
	}}, nil
}
