package stripe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

const (
	defaultBase = "https://api.stripe.com"
	// apiVersion is the version whose answers are parsed here; without it the account's default
	// version would determine their form (docs.stripe.com/api/versioning).
	apiVersion = "2024-06-20"
	// repeatWithin: Stripe keeps an idempotency key for at least 24 hours and then treats the
	// same call as a new one (docs.stripe.com/idempotency). The difference allows for clocks
	// and delays.
	repeatWithin = 20 * time.Hour
	maxKey       = 255 // characters of an idempotency key (docs.stripe.com/idempotency)
	maxText      = 500 // of our description; Stripe takes more (from memory)
	foundAtMost  = 100 // results of a search (docs.stripe.com/api/payment_intents/search)
)

// caller holds what calls are made with.
type caller struct {
	out       supplier.Client
	base, key string
}

// caller returns nil if the config has no key for calls, or there is no client.
func (c config) caller(out supplier.Client) (*caller, error) {
	if err := supplier.CheckURL("base_url", c.BaseURL); err != nil {
		return nil, err
	}
	if c.APIKey == "" && c.BaseURL != "" {
		return nil, &supplier.FieldError{Field: "api_key", Problem: "is missing: without it base_url cannot be called"}
	}
	if c.APIKey == "" {
		return nil, nil
	}
	if strings.ContainsFunc(c.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, &supplier.FieldError{Field: "api_key", Problem: "is not an API key; those are plain letters, digits and _"}
	}
	base := defaultBase
	if c.BaseURL != "" {
		base = strings.TrimRight(c.BaseURL, "/")
	}
	// Stripe does not sign answers: TLS is the only proof that they are Stripe's.
	if u, err := url.Parse(base); err != nil || u.Scheme != "https" && !loopback(u.Hostname()) {
		return nil, &supplier.FieldError{
			Field:   "base_url",
			Problem: "must be https: nothing else proves that an answer is Stripe's (http is for loopback only)",
		}
	}
	if out == nil {
		return nil, nil
	}
	return &caller{out: out, base: base, key: c.APIKey}, nil
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Abilities are all of them with an API key. A refund's key is forgotten as a payment's is,
// but lists name each refund with our number.
func (a *adapter) Abilities() supplier.Abilities {
	if a.caller == nil {
		return supplier.Abilities{}
	}
	return supplier.Abilities{Payer: a, Querier: a, Closer: a, Refunder: a, RefundRepeat: repeatWithin, RefundAbsent: true}
}

// intentAnswer is a payment intent in an answer.
type intentAnswer struct {
	object
	Object       string          `json:"object"`
	ClientSecret string          `json:"client_secret"`
	LatestCharge json.RawMessage `json:"latest_charge"` // expanded where we ask for that
}

// Start creates a payment intent. The idempotency key is our reference, so that a repeat gets
// the first answer again; after repeatWithin nothing is sent any more.
func (a *adapter) Start(ctx context.Context, p supplier.Payment) (supplier.Started, error) {
	if err := check(p); err != nil {
		return supplier.Started{}, err
	}
	if time.Since(p.CreatedAt) > repeatWithin {
		return supplier.Exchange{}.StartUnknown(supplier.ClassRefused, tooLate.Say(repeatWithin)), nil
	}
	form := url.Values{
		"amount":                             {strconv.FormatInt(p.Amount, 10)},
		"currency":                           {strings.ToLower(p.Currency)},
		"metadata[order_no]":                 {p.Reference},
		"automatic_payment_methods[enabled]": {"true"},
	}
	if p.Subject != "" {
		form.Set("description", textlimit.Cut(p.Subject, maxText))
	}
	x, body, err := a.call(ctx, http.MethodPost, "/v1/payment_intents", form, p.Reference)
	if err != nil {
		s := x.StartUnknown("", err)
		if s.Word = wordOf(body); refuses(x) {
			s.State = supplier.StartRefused
		}
		return s, nil
	}
	var o intentAnswer
	if err := supplier.DecodeJSON(body, &o); err != nil {
		return x.StartUnknown(supplier.ClassBadAnswer, err), nil
	}
	amount, err := money.ParseMinor(string(o.Amount))
	switch {
	case o.Object != "payment_intent" || o.ID == "" || o.ClientSecret == "":
		return x.StartUnknown(supplier.ClassBadAnswer, noIntent.Say()), nil
	case o.Metadata.OrderNo != p.Reference || err != nil || amount != p.Amount || !strings.EqualFold(o.Currency, p.Currency):
		return x.StartUnknown(supplier.ClassBadAnswer, otherIntent.Say(strconv.Quote(textlimit.Clip(o.ID, 80)))), nil
	}
	x.Class = supplier.ClassOK
	return supplier.Started{
		State: supplier.Accepted, Kind: supplier.ValueClientSecret, Value: o.ClientSecret, ExternalID: o.ID, Word: o.Status, Exchange: x,
	}, nil
}

// check returns a *FieldError if Stripe cannot take the payment.
func check(p supplier.Payment) error {
	exponent, err := money.Exponent(p.Currency)
	switch {
	case p.Reference == "" || len(p.Reference) > maxKey ||
		strings.ContainsFunc(p.Reference, func(r rune) bool { return r <= ' ' || r > '~' }):
		return &supplier.FieldError{Field: "order_no", Problem: fmt.Sprintf("Stripe takes up to %d plain characters here", maxKey)}
	case err != nil:
		return &supplier.FieldError{Field: "currency", Problem: err.Error()}
	case p.Amount <= 0:
		return &supplier.FieldError{Field: "amount", Problem: "must be above 0"}
	case exponent == 3 && p.Amount%10 != 0: // docs.stripe.com/currencies, three-decimal currencies
		return &supplier.FieldError{Field: "amount", Problem: "Stripe takes two decimals of " + p.Currency + ", the third must be 0"}
	case p.Method != "" && p.Method != supplier.MethodApp:
		return &supplier.FieldError{Field: "method", Problem: "Stripe starts payments by app: the client gets the intent's secret"}
	}
	return nil
}

// refuses reports whether an error definitely means that no intent was created: the request is
// invalid, or the key is not allowed to (docs.stripe.com/api/errors: 400, 401, 403). 402 and
// 404 are not answers to a create, 409 is another call with this key, 429 and 5xx are
// temporary.
func refuses(x supplier.Exchange) bool {
	return x.Class == supplier.ClassRefused &&
		(x.Status == http.StatusBadRequest || x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden)
}

// Query retrieves the intent, or searches by our number if its id is unknown: one created by
// the merchant, or one whose answer was lost.
func (a *adapter) Query(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
	if r.ExternalID == "" {
		return a.search(ctx, r)
	}
	path := "/v1/payment_intents/" + url.PathEscape(r.ExternalID) + "?expand%5B%5D=latest_charge"
	x, body, err := a.call(ctx, http.MethodGet, path, nil, "")
	if err != nil {
		// Including a 404: the id came from Stripe, and intents are never deleted. More likely
		// the key belongs to another account.
		return x.Unknown("", err), nil
	}
	return a.judge(x, body, r), nil
}

// search finds intents by our number. The index may lag behind by a minute, and by an hour
// during outages (docs.stripe.com/api/payment_intents/search): finding nothing proves nothing.
func (a *adapter) search(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(r.Reference)
	query := url.Values{
		"query": {`metadata["order_no"]:"` + quoted + `"`}, "limit": {strconv.Itoa(foundAtMost)},
		"expand[]": {"data.latest_charge"},
	}
	x, body, err := a.call(ctx, http.MethodGet, "/v1/payment_intents/search?"+query.Encode(), nil, "")
	if err != nil {
		return x.Unknown("", err), nil
	}
	var found struct {
		Object  string            `json:"object"`
		HasMore bool              `json:"has_more"`
		Data    []json.RawMessage `json:"data"`
	}
	if err := supplier.DecodeJSON(body, &found); err != nil {
		return x.Unknown(supplier.ClassBadAnswer, err), nil
	}
	switch {
	case found.Object != "search_result":
		return x.Unknown(supplier.ClassBadAnswer, noIntent.Say()), nil
	case len(found.Data) == 0:
		return x.Unknown(supplier.ClassOK, nothingFound.Say()), nil
	}
	// A paid one decides; otherwise one that may still be paid. It is closed only if all are.
	var best supplier.Answer
	for _, one := range found.Data {
		switch answer := a.judge(x, one, r); {
		case answer.State == supplier.AnswerUnknown:
			return answer, nil
		case best.State == "", answer.State == supplier.AnswerPaid && best.State != supplier.AnswerPaid,
			answer.State == supplier.AnswerPaying && best.State == supplier.AnswerClosed:
			best = answer
		}
	}
	if found.HasMore && best.State == supplier.AnswerClosed {
		return x.Unknown(supplier.ClassUnknown, nothingFound.Say()), nil
	}
	return best, nil
}

// Close cancels the intent. Without its id nothing is sent: Query finds it first. A repeat
// needs no key: an intent can be cancelled only once, and with a key a 500 would be repeated
// for a day.
func (a *adapter) Close(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
	if r.ExternalID == "" {
		return supplier.Exchange{}.Unknown(supplier.ClassRefused, noID.Say()), nil
	}
	form := url.Values{"cancellation_reason": {"abandoned"}}
	x, body, err := a.call(ctx, http.MethodPost, "/v1/payment_intents/"+url.PathEscape(r.ExternalID)+"/cancel", form, "")
	if err != nil {
		// Including payment_intent_unexpected_state: it is paid, or already cancelled.
		return x.Unknown("", err), nil
	}
	answer := a.judge(x, body, r)
	if answer.State == supplier.AnswerPaid {
		return x.Unknown(supplier.ClassUnknown, oddCancel.Say(answer.Says.RawStatus)), nil
	}
	return answer, nil
}

// judge evaluates one intent.
func (a *adapter) judge(x supplier.Exchange, body []byte, r supplier.Ref) supplier.Answer {
	var o intentAnswer
	if err := supplier.DecodeJSON(body, &o); err != nil {
		return x.Unknown(supplier.ClassBadAnswer, err)
	}
	switch {
	case o.Object != "payment_intent" || o.ID == "":
		return x.Unknown(supplier.ClassBadAnswer, noIntent.Say())
	case r.ExternalID != "" && o.ID != r.ExternalID:
		return x.Unknown(supplier.ClassBadAnswer, otherIntent.Say(strconv.Quote(textlimit.Clip(o.ID, 80))))
	}
	m := words.Of("payment_intent." + o.Status)
	says := supplier.Callback{
		RawStatus: "payment_intent." + o.Status, OrderRef: o.Metadata.OrderNo, Currency: strings.ToUpper(o.Currency),
		Identity: map[string]string{"account": ownAccount},
	}
	payment(&says, o.ID)
	amount := o.Amount
	if m.Status == supplier.Paid {
		amount = o.AmountReceived
	}
	var err error
	if says.Amount, err = money.ParseMinor(string(amount)); err != nil && m.Status == supplier.Paid {
		return x.Unknown(supplier.ClassBadAnswer, noAmount.Say(says.RawStatus, err))
	}
	if c := chargeOf(o.LatestCharge); m.Status == supplier.Paid {
		says.OccurredAt = moment(c.Created)
		says.RefundTotal = c.back(says.Amount)
	}
	answer := x.Judge(r, m, says)
	if answer.State != supplier.AnswerUnknown {
		answer.ExternalID = o.ID
	}
	return answer
}

// chargeAnswer is the part of an intent's charge that is used. An intent stays succeeded after
// a refund; only the charge shows it (docs.stripe.com/api/charges/object).
type chargeAnswer struct {
	Created        int64           `json:"created"`
	Refunded       bool            `json:"refunded"`
	AmountRefunded json.RawMessage `json:"amount_refunded"`
}

// chargeOf returns the zero value if the answer contains only the charge's id.
func chargeOf(raw json.RawMessage) (c chargeAnswer) {
	if json.Unmarshal(raw, &c) != nil {
		return chargeAnswer{}
	}
	return c
}

// back returns how much of the money was refunded so far.
func (c chargeAnswer) back(paid int64) int64 {
	amount, err := money.ParseMinor(string(c.AmountRefunded))
	switch {
	case err == nil && amount > 0:
		return amount
	case c.Refunded: // of the whole charge
		return paid
	}
	return 0
}

// call makes one call. Without an error the status of the answer is 200; body is the raw
// answer, and the Exchange contains no secret of it. ClassRefused is an error about the
// request.
func (a *adapter) call(ctx context.Context, method, path string, form url.Values, key string) (supplier.Exchange, []byte, error) {
	c := supplier.Call{Method: method, URL: a.base + path, Header: http.Header{}}
	c.Header.Set("Authorization", "Bearer "+a.key)
	c.Header.Set("Stripe-Version", apiVersion)
	if form != nil {
		c.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		c.Body = []byte(form.Encode())
	}
	if key != "" {
		c.Header.Set("Idempotency-Key", key)
	}
	x, err := c.Send(ctx, a.out)
	body := x.Body
	x.Body = clientSecret.ReplaceAll(x.Body, []byte("${1}***"))
	x = x.Mask(a.key)
	if err != nil {
		return x, nil, err
	}
	if x.Status == http.StatusOK {
		return x, body, nil
	}
	var e errorAnswer
	if err := supplier.DecodeJSON(body, &e); err != nil || e.Error.Type == "" {
		x.Class = supplier.ClassBadAnswer
		return x, nil, httpStatus.Say(x.Status)
	}
	switch {
	case x.Status < 400 || x.Status >= 500 || x.Status == http.StatusTooManyRequests || e.Error.Type == "api_error":
		x.Class = supplier.ClassUnknown
	case e.Error.Type == "idempotency_error" || x.Status == http.StatusConflict:
		x.Class = supplier.ClassUnknown // the key is another call's: it says nothing of ours
	default:
		x.Class = supplier.ClassRefused
	}
	return x, body, errorCode.Say(x.Status, strconv.Quote(e.word()))
}

// clientSecret matches an intent's secret in an answer: whoever has it can pay and see the
// intent.
var clientSecret = regexp.MustCompile(`(_secret_|"client_secret"\s*:\s*")[^"\s]+`)

// errorAnswer is an error (docs.stripe.com/api/errors).
type errorAnswer struct {
	Error struct {
		Type string `json:"type"`
		Code string `json:"code"`
	} `json:"error"`
}

// word returns the error code, or the type if there is none.
func (e errorAnswer) word() string {
	if e.Error.Code != "" {
		return textlimit.Clip(e.Error.Code, 80)
	}
	return textlimit.Clip(e.Error.Type, 80)
}

// wordOf returns the word of an error answer; "" if it is not one.
func wordOf(body []byte) string {
	var e errorAnswer
	if json.Unmarshal(body, &e) != nil {
		return ""
	}
	return e.word()
}
