package stripe

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/supplier"
)

const (
	refundPage  = 100 // docs.stripe.com/api/refunds/list, limit
	refundPages = 10  // read for one payment at most
)

// refundAnswer is docs.stripe.com/api/refunds/object.
type refundAnswer struct {
	ID            string          `json:"id"`
	Object        string          `json:"object"`
	Amount        json.RawMessage `json:"amount"`
	Currency      string          `json:"currency"`
	Status        string          `json:"status"`
	PaymentIntent json.RawMessage `json:"payment_intent"`
	Charge        json.RawMessage `json:"charge"`
	Metadata      struct {
		RefundNo string `json:"refund_no"`
	} `json:"metadata"`
}

// refundStates are the meanings of a refund's status. A refund that succeeded may fail later;
// the money is then back in the balance.
var refundStates = map[string]supplier.RefundState{
	"succeeded": supplier.RefundSucceeded, "pending": supplier.RefundProcessing, "requires_action": supplier.RefundProcessing,
	"failed": supplier.RefundFailed, "canceled": supplier.RefundFailed,
}

// refundRefusals are the error codes that mean that this call made no refund
// (docs.stripe.com/error-codes).
var refundRefusals = map[string]supplier.RefundState{
	"balance_insufficient": supplier.RefundShort, "insufficient_funds": supplier.RefundShort,
	"charge_already_refunded": supplier.RefundFailed, "charge_disputed": supplier.RefundFailed,
	"amount_too_large": supplier.RefundFailed, "refund_disputed_payment": supplier.RefundFailed,
}

// Refund makes a refund. Its idempotency key is our number, which is in the metadata as well:
// Stripe may forget the key, but not the metadata.
func (a *adapter) Refund(ctx context.Context, r supplier.Refund) (supplier.RefundAnswer, error) {
	if err := refundable(r); err != nil {
		return supplier.RefundAnswer{}, err
	}
	form := url.Values{
		"amount": {strconv.FormatInt(r.Amount, 10)}, "metadata[refund_no]": {r.No}, "metadata[order_no]": {r.Reference},
		paymentParam(r.TradeNo): {r.TradeNo},
	}
	x, body, err := a.call(ctx, http.MethodPost, "/v1/refunds", form, r.No)
	if err != nil {
		word := wordOf(body)
		if state := refundRefusals[word]; x.Class == supplier.ClassRefused && state != "" {
			return x.EvaluateRefund(r, supplier.RefundReport{No: r.No, Reference: r.Reference, State: state, Word: word}), nil
		}
		answer := x.RefundUnknown("", err)
		answer.Word = word
		return answer, nil
	}
	said, err := readRefund(body, r)
	if err != nil {
		return x.RefundUnknown(supplier.ClassBadAnswer, err), nil
	}
	return x.EvaluateRefund(r, said), nil
}

// RefundQuery looks for our number in the list of the payment's refunds: unlike a search, a list
// is always up to date.
func (a *adapter) RefundQuery(ctx context.Context, r supplier.Refund) (supplier.RefundAnswer, error) {
	list, err := a.Refunds(ctx, r)
	if err != nil {
		return supplier.RefundAnswer{}, err
	}
	if list.Unknown {
		return supplier.RefundAnswer{State: supplier.RefundUnknown, Reason: list.Reason, Exchange: list.Exchange}, nil
	}
	for _, said := range list.All {
		// A refund made directly at Stripe does not have a number of ours.
		if said.No == r.No || r.SupplierNo != "" && said.SupplierNo == r.SupplierNo {
			said.No = r.No
			return list.Exchange.EvaluateRefund(r, said), nil
		}
	}
	return list.Exchange.EvaluateRefund(r, supplier.RefundReport{No: r.No, Reference: r.Reference, State: supplier.RefundNotFound, Word: "-"}),
		nil
}

// Refunds lists the refunds of a payment.
func (a *adapter) Refunds(ctx context.Context, r supplier.Refund) (supplier.RefundList, error) {
	if err := payable(r.TradeNo); err != nil {
		return supplier.RefundList{}, err
	}
	unknown := func(x supplier.Exchange, class supplier.Class, err error) (supplier.RefundList, error) {
		u := x.RefundUnknown(class, err)
		return supplier.RefundList{Unknown: true, Reason: u.Reason, Exchange: u.Exchange}, nil
	}
	var list supplier.RefundList
	query := url.Values{paymentParam(r.TradeNo): {r.TradeNo}, "limit": {strconv.Itoa(refundPage)}}
	for range refundPages {
		x, body, err := a.call(ctx, http.MethodGet, "/v1/refunds?"+query.Encode(), nil, "")
		if err != nil {
			return unknown(x, "", err)
		}
		var page struct {
			Object  string            `json:"object"`
			HasMore *bool             `json:"has_more"`
			Data    []json.RawMessage `json:"data"`
		}
		if err := supplier.DecodeJSON(body, &page); err != nil {
			return unknown(x, supplier.ClassBadAnswer, err)
		}
		// Without has_more, one page might be mistaken for the whole list.
		if page.Object != "list" || page.HasMore == nil || page.Data == nil || *page.HasMore && len(page.Data) == 0 {
			return unknown(x, supplier.ClassBadAnswer, noRefunds.Say())
		}
		for _, raw := range page.Data {
			said, err := readRefund(raw, r)
			if err != nil {
				return unknown(x, supplier.ClassBadAnswer, err)
			}
			list.All = append(list.All, said)
			query.Set("starting_after", said.SupplierNo)
		}
		x.Class = supplier.ClassOK
		if list.Exchange = x; !*page.HasMore {
			return list, nil
		}
	}
	return unknown(list.Exchange, supplier.ClassUnknown, noRefunds.Say())
}

// readRefund parses one refund, which must belong to r's payment.
func readRefund(body []byte, r supplier.Refund) (supplier.RefundReport, error) {
	var o refundAnswer
	if err := supplier.DecodeJSON(body, &o); err != nil {
		return supplier.RefundReport{}, err
	}
	if o.Object != "refund" || o.ID == "" {
		return supplier.RefundReport{}, noRefunds.Say()
	}
	if id(o.PaymentIntent) != r.TradeNo && id(o.Charge) != r.TradeNo {
		return supplier.RefundReport{}, otherIntent.Say(strconv.Quote(id(o.PaymentIntent)))
	}
	minor, err := money.ParseMinor(string(o.Amount))
	if err != nil {
		return supplier.RefundReport{}, noAmount.Say("refund", err)
	}
	return supplier.RefundReport{
		No: o.Metadata.RefundNo, SupplierNo: o.ID, Reference: r.Reference, Amount: minor, Currency: strings.ToUpper(o.Currency),
		State: refundStates[o.Status], Word: o.Status,
	}, nil
}

// paymentParam returns the parameter for a payment's number: a charge without an intent has a
// parameter of its own.
func paymentParam(tradeNo string) string {
	if strings.HasPrefix(tradeNo, "ch_") || strings.HasPrefix(tradeNo, "py_") {
		return "charge"
	}
	return "payment_intent"
}

// refundable returns a *FieldError if Stripe cannot accept the refund.
func refundable(r supplier.Refund) error {
	exponent, err := money.Exponent(r.Currency)
	switch {
	case r.No == "" || len(r.No) > maxKey || strings.ContainsFunc(r.No, func(c rune) bool { return c <= ' ' || c > '~' }):
		return &supplier.FieldError{Field: "refund_no", Problem: "Stripe accepts at most 255 plain characters here"}
	case err != nil:
		return &supplier.FieldError{Field: "currency", Problem: err.Error()}
	case r.Amount <= 0:
		return &supplier.FieldError{Field: "amount", Problem: "must be above 0"}
	case exponent == 3 && r.Amount%10 != 0:
		return &supplier.FieldError{Field: "amount", Problem: "Stripe accepts two decimals of " + r.Currency + ": the third must be 0"}
	}
	return payable(r.TradeNo)
}

func payable(tradeNo string) error {
	if tradeNo == "" {
		return &supplier.FieldError{Field: "trade_no", Problem: "unknown: Stripe needs its own number of the payment"}
	}
	return nil
}
