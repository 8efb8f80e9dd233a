package simulator

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/money"
)

// stripe is Stripe's API of PaymentIntents (docs.stripe.com/api/payment_intents). Its
// reference is the Idempotency-Key of the start, else metadata.order_no.
type stripe struct {
	seed
	secret, apiKey string
}

func newStripe(s seed) *stripe {
	return &stripe{seed: s, secret: "whsec_" + s.hex(32, "webhook_secret"), apiKey: "sk_test_" + s.hex(48, "api_key")}
}

func (s *stripe) config() map[string]any {
	return map[string]any{"webhook_secrets": []string{s.secret}}
}

func (s *stripe) calls(base string) map[string]any {
	return map[string]any{"api_key": s.apiKey, "base_url": base}
}

func (s *stripe) routes() map[string]operation {
	return map[string]operation{
		"POST /v1/payment_intents":             opPay,
		"GET /v1/payment_intents/{id}":         opQuery,
		"GET /v1/payment_intents/search":       opQuery,
		"POST /v1/payment_intents/{id}/cancel": opClose,
		"POST /v1/refunds":                     opRefund,
		"GET /v1/refunds":                      opRefundQuery,
	}
}

func (s *stripe) tradeNo(ref string, n int) string {
	return "pi_3" + s.hex(23, "stripe", ref, strconv.Itoa(n))
}

func stripeError(status int, kind, code, message string) reply {
	detail := object{"type": kind, "message": message}
	if code != "" {
		detail["code"] = code
	}
	return jsonReply(status, object{"error": detail})
}

func (s *stripe) failed() reply {
	return stripeError(http.StatusInternalServerError, "api_error", "", "An unknown error occurred")
}

// searchQuery is the only supported form of a search: by metadata.
var searchQuery = regexp.MustCompile(`^metadata\[["'](\w+)["']\]:["']([^"'\\]+)["']$`)

func (s *stripe) read(op operation, r *http.Request, body []byte) (call, *reply) {
	c := call{op: op, id: r.PathValue("id"), variant: "retrieve"}
	key, _, basic := r.BasicAuth()
	if !basic {
		key, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	if subtle.ConstantTimeCompare([]byte(key), []byte(s.apiKey)) != 1 {
		wrong := stripeError(http.StatusUnauthorized, "invalid_request_error", "", "Invalid API Key provided")
		return c, &wrong
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return c, s.invalid("", "the body is not a form")
	}
	fields, err := flatten(form)
	if err != nil {
		return c, s.invalid("", err.Error())
	}
	expand := r.URL.Query().Get("expand[]")
	c.expand = expand == "latest_charge" || expand == "data.latest_charge"
	switch {
	case op == opPay:
		return s.readStart(c, r, fields)
	case op == opRefund:
		return s.readRefund(c, r, fields)
	case op == opRefundQuery:
		c.id = r.URL.Query().Get("payment_intent")
	case op == opQuery && c.id == "":
		m := searchQuery.FindStringSubmatch(r.URL.Query().Get("query"))
		if m == nil {
			return c, s.invalid("query", "only metadata['name']:'value' can be searched here")
		}
		c.variant, c.search, c.ref = "search", mark{m[1], m[2]}, m[2]
	}
	return c, nil
}

func (s *stripe) invalid(param, message string) *reply {
	answer := jsonReply(http.StatusBadRequest, object{"error": object{"type": "invalid_request_error", "param": param, "message": message}})
	return &answer
}

func (s *stripe) readStart(c call, r *http.Request, fields map[string]string) (call, *reply) {
	var err error
	if c.amount, err = money.ParseMinor(fields["amount"]); err != nil || c.amount == 0 {
		return c, s.invalid("amount", "Invalid integer")
	}
	c.currency = strings.ToUpper(fields["currency"])
	if _, err := money.Exponent(c.currency); err != nil {
		return c, s.invalid("currency", "Invalid currency")
	}
	c.metadata = map[string]string{}
	for name, value := range fields {
		if inner, ok := strings.CutPrefix(name, "metadata["); ok {
			c.metadata[strings.TrimSuffix(inner, "]")] = value
		}
	}
	c.content = sortedPairs(fields)
	if c.ref = r.Header.Get("Idempotency-Key"); c.ref == "" {
		c.ref, c.again = c.metadata["order_no"], true
	}
	if c.ref == "" {
		return c, s.invalid("metadata", "the simulator counts payments by Idempotency-Key or metadata[order_no]; both are missing")
	}
	return c, nil
}

var stripeWords = map[State]string{
	StateUnpaid: "requires_payment_method", StatePaying: "processing", StatePaid: "succeeded",
	StateFailed: "requires_payment_method", StateClosed: "canceled", StateRefunded: "succeeded",
}

func (s *stripe) answer(c call, v view) (reply, error) {
	intent := s.intent(v.Fact, v.since, c.expand)
	switch {
	case v.outcome == inconsistent:
		return stripeError(http.StatusBadRequest, "idempotency_error", "",
			"Keys for idempotent requests can only be used with the same parameters they were first used with."), nil
	case c.variant == "search":
		found := []object{}
		for _, f := range v.found {
			found = append(found, s.intent(f, v.since, c.expand))
		}
		return jsonReply(http.StatusOK, object{
			"object": "search_result", "url": "/v1/payment_intents/search", "has_more": false,
			"next_page": nil, "data": found,
		}), nil
	case v.outcome == unknownRef:
		return stripeError(http.StatusNotFound, "invalid_request_error", "resource_missing", "No such payment_intent: '"+c.id+"'"), nil
	case v.outcome == refused && c.op == opPay:
		return stripeError(http.StatusBadRequest, "invalid_request_error", "amount_too_small", "Amount must be at least 50 cents"), nil
	case v.outcome != done:
		return jsonReply(http.StatusBadRequest, object{"error": object{
			"type": "invalid_request_error", "code": "payment_intent_unexpected_state", "payment_intent": intent,
			"message": "You cannot cancel this PaymentIntent because it has a status of " + stripeWords[v.State] + ".",
		}}), nil
	}
	answer := jsonReply(http.StatusOK, intent)
	if v.replayed {
		answer.header.Set("Idempotent-Replayed", "true")
	}
	return answer, nil
}

// intent returns a PaymentIntent, as in answers and events. It stays succeeded after a refund:
// only the charge shows that.
func (s *stripe) intent(f Fact, since int64, expand bool) object {
	metadata := f.Metadata
	if metadata == nil {
		metadata = map[string]string{"order_no": f.Ref}
	}
	intent := object{
		"id": f.TradeNo, "object": "payment_intent", "amount": f.Amount, "amount_received": 0, "currency": strings.ToLower(f.Currency),
		"status": stripeWords[f.State], "metadata": metadata, "livemode": false, "created": since,
		"client_secret": f.TradeNo + "_secret_" + s.hex(25, "client_secret", f.TradeNo), "capture_method": "automatic",
		"payment_method_types": []string{"card"}, "latest_charge": nil, "cancellation_reason": nil, "canceled_at": nil,
		"last_payment_error": nil,
	}
	switch f.State {
	case StatePaid, StateRefunded:
		charge := "ch_" + strings.TrimPrefix(f.TradeNo, "pi_")
		intent["amount_received"], intent["latest_charge"] = f.Amount, charge
		if !expand {
			break
		}
		back := int64(0)
		if f.State == StateRefunded {
			back = f.Amount
		}
		intent["latest_charge"] = object{
			"id": charge, "object": "charge", "amount": f.Amount, "amount_refunded": back, "refunded": back > 0,
			"currency": strings.ToLower(f.Currency), "created": f.At.Unix(), "paid": true, "status": "succeeded",
		}
	case StateClosed:
		intent["canceled_at"] = f.At.Unix()
	case StateFailed:
		intent["last_payment_error"] = object{"type": "card_error", "code": "card_declined", "message": "Your card was declined."}
	}
	return intent
}

var stripeEvents = map[State]string{
	StatePaid: "payment_intent.succeeded", StateFailed: "payment_intent.payment_failed", StateClosed: "payment_intent.canceled",
}

// Callback is an event about an intent, whose id is the trade number.
func (s *stripe) Callback(f Fact) (Message, error) {
	if f.State == "" {
		f.State = StatePaid
	}
	return s.event(f, "evt_"+f.TradeNo, stripeEvents[f.State], s.intent(f, f.At.Unix(), false))
}

// disputeDue is the deadline for answering a dispute.
const disputeDue = 7 * 24 * time.Hour

// Dispute reports that the buyer disputes the payment. It contains no data of the shop.
func (s *stripe) Dispute(f Fact) (Message, error) {
	return s.DisputeEvent(DisputeFact{
		Payment: f, No: "du_" + f.TradeNo, Event: DisputeCreated, Status: "needs_response", Amount: f.Amount, Currency: f.Currency,
		Reason: "product_not_received", At: f.At, DueBy: f.At.Add(disputeDue),
	})
}

// stripeDisputes are the types of the events about disputes.
var stripeDisputes = map[State]string{
	DisputeCreated: "created", DisputeWarning: "created", DisputeUpdated: "updated", DisputeWithdrawn: "funds_withdrawn",
	DisputeReinstated: "funds_reinstated",
	DisputeWon:        "closed", DisputeLost: "closed", DisputeWarningClosed: "closed",
}

// DisputeEvent is an event about a dispute, with all its movements so far
// (docs.stripe.com/api/disputes/object).
func (s *stripe) DisputeEvent(f DisputeFact) (Message, error) {
	currency := strings.ToLower(f.Currency)
	movements := []object{}
	move := func(category string, amount, fee int64) {
		movements = append(movements, object{
			"id": "txn_" + s.hex(24, "movement", f.No, category), "object": "balance_transaction", "type": "adjustment",
			"reporting_category": category,
			"amount":             amount, "fee": fee, "net": amount - fee, "currency": currency,
		})
	}
	if f.Withdrawn {
		move("dispute", -f.Amount, f.Fee)
	}
	if f.Reinstated {
		move("dispute_reversal", f.Amount, -f.Fee)
	}
	id := "evt_dispute_" + f.Payment.TradeNo
	if f.N > 0 {
		id += "_" + strconv.Itoa(f.N)
	}
	at := f.Payment
	at.At = f.At
	return s.event(at, id, "charge.dispute."+stripeDisputes[f.Event], object{
		"id": f.No, "object": "dispute", "amount": f.Amount, "currency": currency, "payment_intent": f.Payment.TradeNo,
		"charge": "ch_" + strings.TrimPrefix(f.Payment.TradeNo, "pi_"), "reason": f.Reason, "status": f.Status,
		"balance_transactions": movements,
		"evidence_details":     object{"due_by": f.DueBy.Unix(), "has_evidence": f.Status == "under_review"}, "metadata": object{},
	})
}

func (s *stripe) event(f Fact, id, kind string, about object) (Message, error) {
	body, err := json.Marshal(object{
		"id": id, "object": "event", "type": kind, "created": f.At.Unix(), "data": object{"object": about},
	})
	if err != nil {
		return Message{}, fmt.Errorf("write the event: %w", err)
	}
	stamp := strconv.FormatInt(f.At.Unix(), 10)
	return Message{http.Header{
		"Content-Type":     {"application/json"},
		"Stripe-Signature": {"t=" + stamp + ",v1=" + hmacHex(s.secret, stamp+"."+string(body))},
	}, body}, nil
}
