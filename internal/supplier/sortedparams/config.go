package sortedparams

import (
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"mime"
	"reflect"
	"slices"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/supplier"
)

// config is one supplier's settings, under the names of `apply`.
type config struct {
	Format    string `json:"format" choices:"form|query|json|xml" default:"form" example:"form"`
	Algorithm string `json:"algorithm" choices:"md5|hmac-sha256|rsa-sha256" required:"true" example:"md5"`
	Key       string `json:"key" secret:"true" example:"file:secrets/quickpay-key"`
	PublicKey string `json:"public_key" kind:"text" example:"file:secrets/quickpay-public.pem"`
	// KeyAppend follows the sorted pairs; "{key}" stands for the key.
	KeyAppend   *string  `json:"key_append" example:"'&key={key}'"`
	SignField   string   `json:"sign_field" default:"sign" example:"sign"`
	SignExclude []string `json:"sign_exclude" example:"[sign_type]"`
	SignCase    string   `json:"sign_case" choices:"lower|upper|any" default:"any" example:"upper"`
	SkipEmpty   bool     `json:"skip_empty" default:"false" example:"true"`

	OrderField    string `json:"order_field" required:"true" example:"out_trade_no"`
	TradeField    string `json:"trade_field" example:"trade_no"`
	AmountField   string `json:"amount_field" required:"true" example:"money"`
	AmountUnit    string `json:"amount_unit" choices:"major|minor" default:"major" example:"minor"`
	Currency      string `json:"currency" example:"CNY"`
	CurrencyField string `json:"currency_field" example:"currency"`
	StatusField   string `json:"status_field" example:"trade_status"`
	// The values of StatusField, by meaning.
	PaidValues     []string `json:"paid_values" example:"[TRADE_SUCCESS]"`
	FailedValues   []string `json:"failed_values" example:"[TRADE_FAIL]"`
	ClosedValues   []string `json:"closed_values" example:"[TRADE_CLOSED]"`   // can no longer be paid
	PayingValues   []string `json:"paying_values" example:"[WAIT_BUYER_PAY]"` // not paid yet
	NotFoundValues []string `json:"not_found_values" example:"[NOT_FOUND]"`   // the supplier has no such payment
	AccountField   string   `json:"account_field" example:"pid"`
	Account        string   `json:"account" example:"'10001'"`

	Reply reply `json:"reply"`

	// For calls.
	QueryURL      string `json:"query_url" kind:"url" example:"https://pay.example.com/query"`
	CloseURL      string `json:"close_url" kind:"url" example:"https://pay.example.com/close"`
	PayURL        string `json:"pay_url" kind:"url" example:"https://pay.example.com/pay"`
	PayKind       string `json:"pay_kind" choices:"qr|redirect" default:"qr" example:"redirect"` // what PayValueField holds
	PayValueField string `json:"pay_value_field" example:"code_url"`                             // of the answer to a start
	AnswerFormat  string `json:"answer_format" choices:"json|form|xml" default:"json" example:"form"`
	PrivateKey    string `json:"private_key" kind:"text" secret:"pem" example:"file:secrets/quickpay-own.pem"` // ours, with rsa-sha256

	// Refunds.
	RefundURL         string `json:"refund_url" kind:"url" example:"https://pay.example.com/refund"`
	RefundQueryURL    string `json:"refund_query_url" kind:"url" example:"https://pay.example.com/refund_query"`
	RefundNoField     string `json:"refund_no_field" example:"out_refund_no"`
	RefundAmountField string `json:"refund_amount_field" example:"refund_money"`

	// Payouts; their amount is in AmountField.
	PayoutURL      string `json:"payout_url" kind:"url" example:"https://pay.example.com/transfer"`
	PayoutQueryURL string `json:"payout_query_url" kind:"url" example:"https://pay.example.com/transfer_query"`
	PayoutNoField  string `json:"payout_no_field" example:"out_biz_no"`
	PayeeField     string `json:"payee_field" example:"payee"` // the payee's account, as JSON

	ResultField      string   `json:"result_field" example:"result"` // of answers about refunds and payouts; its values, by what they mean:
	SuccessValues    []string `json:"success_values" example:"[SUCCESS]"`
	FailureValues    []string `json:"failure_values" example:"[FAIL]"`          // not made, and never will be
	ProcessingValues []string `json:"processing_values" example:"[PROCESSING]"` // not over
	ReturnedValues   []string `json:"returned_values" example:"[REFUND]"`       // the money came back after a success
}

type reply struct {
	ContentType string `json:"content_type" default:"text/plain; charset=utf-8" example:"application/json"`
	Success     string `json:"success" default:"success" example:"success"`
	Failure     string `json:"failure" default:"fail" example:"fail"`
}

const (
	keyMark = "{key}"
	// payKindField may only be given with pay_url, so that its default is entered late.
	payKindField = "pay_kind"
)

// readConfig parses the settings, fills in defaults and checks what callbacks need. The key is
// the supplier's, for rsa-sha256.
func readConfig(raw json.RawMessage) (config, *rsa.PublicKey, error) {
	var c config
	if err := supplier.DecodeConfig(raw, &c); err != nil {
		return c, nil, err
	}
	c.fillIn()
	for _, check := range []func() *supplier.FieldError{c.checkWords, c.checkFields, c.checkMeaning, c.checkReply} {
		if wrong := check(); wrong != nil {
			return c, nil, wrong
		}
	}
	key, wrong := c.checkKeys()
	if wrong != nil {
		return c, nil, wrong
	}
	return c, key, nil
}

// fillIn enters the declared defaults, except those of fields that only calls need.
func (c *config) fillIn() {
	fillIn(reflect.ValueOf(c).Elem(), fields)
	if c.KeyAppend == nil {
		text := ""
		if c.Algorithm == "md5" {
			text = keyMark
		}
		c.KeyAppend = &text
	}
}

func fillIn(v reflect.Value, all []supplier.Field) {
	for _, f := range all {
		switch to := v.FieldByIndex(f.Index); {
		case f.Fields != nil:
			fillIn(to, f.Fields)
		case f.Default != "" && to.Kind() == reflect.String && to.String() == "" && f.Name != payKindField:
			to.SetString(f.Default)
		}
	}
}

func (c *config) checkWords() *supplier.FieldError {
	return c.known("format", "algorithm", "sign_case", "amount_unit")
}

// known checks that fields have one of the values that they are declared with.
func (c *config) known(names ...string) *supplier.FieldError {
	for _, f := range fields {
		value := reflect.ValueOf(c).Elem().FieldByIndex(f.Index)
		if slices.Contains(names, f.Name) && !slices.Contains(f.Choices, value.String()) && (f.Name != payKindField || !value.IsZero()) {
			return wrong(f.Name, "%q is not known; use %s", value, strings.Join(f.Choices, ", "))
		}
	}
	return nil
}

// checkFields checks the parameter names. Every parameter that is read must be signed:
// otherwise anyone could change it.
func (c *config) checkFields() *supplier.FieldError {
	for _, f := range []struct{ name, value string }{{"order_field", c.OrderField}, {"amount_field", c.AmountField}} {
		if f.value == "" {
			return wrong(f.name, "missing: the name of the parameter")
		}
	}
	for _, name := range c.meaningful() {
		if name == c.SignField {
			return wrong("sign_field", "%q is read as well; what is read has to be signed", name)
		}
		if slices.Contains(c.SignExclude, name) {
			return wrong("sign_exclude", "%q is read; what is read has to be signed", name)
		}
	}
	if (c.AccountField == "") != (c.Account == "") {
		return wrong("account", "account_field and account belong together: give both or neither")
	}
	return nil
}

// meaningful returns the parameters that a callback is made of.
func (c *config) meaningful() []string {
	names := []string{c.OrderField, c.TradeField, c.AmountField, c.CurrencyField, c.StatusField, c.AccountField}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

func (c *config) checkMeaning() *supplier.FieldError {
	if c.Currency == "" && c.CurrencyField == "" {
		return wrong("currency", "missing: give currency, or currency_field where the message names it")
	}
	if c.Currency != "" {
		if _, err := money.Exponent(c.Currency); err != nil {
			return wrong("currency", "%v", err)
		}
	}
	if c.StatusField != "" && len(c.PaidValues) == 0 {
		return wrong("paid_values", "missing: the values of %s that mean paid", c.StatusField)
	}
	seen := map[string]string{}
	for _, v := range c.values() {
		if c.StatusField == "" && len(v.words) > 0 {
			return wrong("status_field", "missing: %s are its values", v.field)
		}
		for _, word := range v.words {
			if word == "" {
				return wrong(v.field, "an empty value would give a message without a status a meaning")
			}
			if before := seen[word]; before != "" && before != v.field {
				return wrong(v.field, "%q is among %s too", word, before)
			}
			seen[word] = v.field
		}
	}
	return nil
}

// values returns the lists of statuses with their meanings.
func (c *config) values() []valueList {
	return []valueList{
		{"paid_values", c.PaidValues, supplier.Meaning{Status: supplier.Paid}},
		{"failed_values", c.FailedValues, supplier.Meaning{Status: supplier.Failed, Final: true}},
		{"closed_values", c.ClosedValues, supplier.Meaning{Status: supplier.Closed}},
		{"paying_values", c.PayingValues, supplier.Meaning{Status: supplier.Other, Answer: supplier.AnswerPaying}},
		{"not_found_values", c.NotFoundValues, supplier.Meaning{Status: supplier.Other, Answer: supplier.AnswerNotFound}},
	}
}

type valueList struct {
	field string
	words []string
	means supplier.Meaning
}

// table returns all statuses with their meanings.
func (c *config) table() supplier.Words {
	all := supplier.Words{}
	for _, v := range c.values() {
		for _, word := range v.words {
			all[word] = v.means
		}
	}
	return all
}

func (c *config) checkReply() *supplier.FieldError {
	if _, _, err := mime.ParseMediaType(c.Reply.ContentType); err != nil {
		return wrong("reply.content_type", "not a media type such as text/plain")
	}
	if c.Reply.Failure == c.Reply.Success {
		return wrong("reply.failure", "the same as success: the supplier would never send again")
	}
	return nil
}

// checkKeys makes sure that every signature depends on a secret, or on the supplier's own key
// pair.
func (c *config) checkKeys() (*rsa.PublicKey, *supplier.FieldError) {
	keyed := strings.Contains(*c.KeyAppend, keyMark)
	if c.Algorithm == "md5" && !keyed {
		return nil, wrong("key_append", "without {key} anyone can make the MD5 of a message")
	}
	if c.Key == "" && (keyed || c.Algorithm == "hmac-sha256") {
		return nil, wrong("key", "missing: the secret shared with the supplier")
	}
	if c.Algorithm != "rsa-sha256" {
		return nil, nil
	}
	key, err := supplier.ParsePublicKey(c.PublicKey)
	if err != nil {
		return nil, wrong("public_key", "%v", err)
	}
	return key, nil
}

func wrong(field, problem string, args ...any) *supplier.FieldError {
	return &supplier.FieldError{Field: field, Problem: fmt.Sprintf(problem, args...)}
}
