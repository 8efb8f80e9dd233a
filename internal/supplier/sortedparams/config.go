package sortedparams

import (
	"cmp"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/supplier"
)

// config is one supplier's settings, under the names of `apply`.
type config struct {
	Format    string `json:"format"`    // form, query, json or xml
	Algorithm string `json:"algorithm"` // md5, hmac-sha256 or rsa-sha256
	Key       string `json:"key"`
	PublicKey string `json:"public_key"`
	// KeyAppend follows the sorted pairs; "{key}" stands for the key.
	KeyAppend   *string  `json:"key_append"`
	SignField   string   `json:"sign_field"`
	SignExclude []string `json:"sign_exclude"`
	SignCase    string   `json:"sign_case"` // lower, upper or any
	SkipEmpty   bool     `json:"skip_empty"`

	OrderField    string `json:"order_field"`
	TradeField    string `json:"trade_field"`
	AmountField   string `json:"amount_field"`
	AmountUnit    string `json:"amount_unit"` // major or minor
	Currency      string `json:"currency"`
	CurrencyField string `json:"currency_field"`
	StatusField   string `json:"status_field"`
	// The values of StatusField, by meaning.
	PaidValues     []string `json:"paid_values"`
	FailedValues   []string `json:"failed_values"`
	ClosedValues   []string `json:"closed_values"`    // can no longer be paid
	PayingValues   []string `json:"paying_values"`    // not paid yet
	NotFoundValues []string `json:"not_found_values"` // the supplier has no such payment
	AccountField   string   `json:"account_field"`
	Account        string   `json:"account"`

	Reply reply `json:"reply"`

	// For calls.
	QueryURL      string `json:"query_url"`
	CloseURL      string `json:"close_url"`
	PayURL        string `json:"pay_url"`
	PayKind       string `json:"pay_kind"`        // qr or redirect: what PayValueField holds
	PayValueField string `json:"pay_value_field"` // of the answer to a start
	AnswerFormat  string `json:"answer_format"`   // json, form or xml
	PrivateKey    string `json:"private_key"`     // ours, with rsa-sha256

	// Refunds.
	RefundURL         string `json:"refund_url"`
	RefundQueryURL    string `json:"refund_query_url"`
	RefundNoField     string `json:"refund_no_field"`
	RefundAmountField string `json:"refund_amount_field"`

	// Payouts; their amount is in AmountField.
	PayoutURL      string `json:"payout_url"`
	PayoutQueryURL string `json:"payout_query_url"`
	PayoutNoField  string `json:"payout_no_field"`
	PayeeField     string `json:"payee_field"` // the payee's account, as JSON

	ResultField      string   `json:"result_field"` // of answers about refunds and payouts; its values, by what they mean:
	SuccessValues    []string `json:"success_values"`
	FailureValues    []string `json:"failure_values"`    // not made, and never will be
	ProcessingValues []string `json:"processing_values"` // not over
	ReturnedValues   []string `json:"returned_values"`   // the money came back after a success
}

type reply struct {
	ContentType string `json:"content_type"`
	Success     string `json:"success"`
	Failure     string `json:"failure"`
}

const keyMark = "{key}"

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

func (c *config) fillIn() {
	for _, d := range []struct {
		field    *string
		fallback string
	}{
		{&c.Format, "form"},
		{&c.SignField, "sign"},
		{&c.SignCase, "any"},
		{&c.AmountUnit, "major"},
		{&c.Reply.ContentType, "text/plain; charset=utf-8"},
		{&c.Reply.Success, "success"},
		{&c.Reply.Failure, "fail"},
		{&c.AnswerFormat, "json"},
	} {
		*d.field = cmp.Or(*d.field, d.fallback)
	}
	if c.KeyAppend == nil {
		text := ""
		if c.Algorithm == "md5" {
			text = keyMark
		}
		c.KeyAppend = &text
	}
}

func (c *config) checkWords() *supplier.FieldError {
	return known(
		choice{"format", c.Format, "form query json xml"},
		choice{"algorithm", c.Algorithm, "md5 hmac-sha256 rsa-sha256"},
		choice{"sign_case", c.SignCase, "lower upper any"},
		choice{"amount_unit", c.AmountUnit, "major minor"},
	)
}

// choice is a field with a fixed set of values.
type choice struct{ field, value, words string }

func known(all ...choice) *supplier.FieldError {
	for _, w := range all {
		if words := strings.Fields(w.words); !slices.Contains(words, w.value) {
			return wrong(w.field, "%q is not known; use %s", w.value, strings.Join(words, ", "))
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
