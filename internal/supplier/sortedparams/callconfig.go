package sortedparams

import (
	"cmp"
	"crypto/rsa"
	"net/url"
	"slices"
	"strings"

	"backstop/internal/supplier"
)

// Parameters of a request with fixed names (contract §8).
const (
	timeParam    = "time"  // Unix seconds
	nonceParam   = "nonce" // 16 characters
	subjectParam = "subject"
	notifyParam  = "notify_url"
	expiresParam = "expires_at" // Unix seconds
)

// currencyParam returns the name of a start's currency parameter.
func (c *config) currencyParam() string { return cmp.Or(c.CurrencyField, "currency") }

// forCalls checks what only calls need, and returns our own key for rsa-sha256.
func (c *config) forCalls(theirs *rsa.PublicKey) (*rsa.PrivateKey, error) {
	if wrong := c.checkCalls(); wrong != nil {
		return nil, wrong
	}
	own, wrong := c.ownKey(theirs)
	if wrong != nil {
		return nil, wrong
	}
	return own, nil
}

// checkCalls checks the requirements of calls. A setting without the others that it needs would
// be an ability that never works.
func (c *config) checkCalls() *supplier.FieldError {
	if wrong := c.known("answer_format", payKindField); wrong != nil {
		return wrong
	}
	for _, a := range c.addresses() {
		if !isAddress(a.address) {
			return wrong(a.field, "not an address such as https://pay.example.com/query")
		}
		// Without it every message means paid: any answer, and even our own request coming back
		// as a callback.
		if c.StatusField == "" {
			return wrong("status_field", "missing: an answer from %s has to name the state", a.field)
		}
	}
	switch {
	case c.PayURL == "" && c.PayValueField != "":
		return wrong("pay_url", "missing: pay_value_field is a part of its answer")
	case c.PayURL == "" && c.PayKind != "":
		return wrong("pay_url", "missing: pay_kind is about its answer")
	case c.PayURL != "" && c.PayValueField == "":
		return wrong("pay_value_field", "missing: where the answer to pay_url has what the buyer needs")
	case c.PayURL != "" && len(c.PayingValues) == 0:
		return wrong("paying_values", "missing: the values of %s that accept a payment", c.StatusField)
	case c.CloseURL != "" && len(c.ClosedValues) == 0:
		return wrong("closed_values", "missing: the values of %s that confirm a close", c.StatusField)
	case c.PayValueField != "" && (c.PayValueField == c.SignField || slices.Contains(c.SignExclude, c.PayValueField)):
		return wrong("pay_value_field", "%q is not signed; what is read has to be", c.PayValueField)
	case c.PayValueField != "" && slices.Contains(c.meaningful(), c.PayValueField):
		return wrong("pay_value_field", "%q is read as something else", c.PayValueField)
	}
	for _, check := range []func() *supplier.FieldError{c.checkRefunds, c.checkPayouts, c.checkResults} {
		if wrong := check(); wrong != nil {
			return wrong
		}
	}
	return c.checkParams()
}

// part is one setting that a group of settings needs.
type part struct{ field, value string }

// checkRefunds checks what refunds need: both addresses, since one that has no clear answer
// is asked about, and fields that are signed and read as nothing else.
func (c *config) checkRefunds() *supplier.FieldError {
	return c.checkGroup("refunds", []part{
		{"refund_url", c.RefundURL},
		{"refund_query_url", c.RefundQueryURL},
		{"refund_no_field", c.RefundNoField},
		{"refund_amount_field", c.RefundAmountField},
	})
}

// checkPayouts is checkRefunds for payouts. The field of the payee is only sent.
func (c *config) checkPayouts() *supplier.FieldError {
	if wrong := c.checkGroup("payouts", []part{
		{"payout_url", c.PayoutURL},
		{"payout_query_url", c.PayoutQueryURL},
		{"payout_no_field", c.PayoutNoField},
		{"payee_field", c.PayeeField},
	}); wrong != nil {
		return wrong
	}
	if c.PayoutNoField != "" && slices.Contains([]string{c.RefundNoField, c.RefundAmountField}, c.PayoutNoField) {
		return wrong("payout_no_field", "%q is a refund's; an answer has to say which of them it is about", c.PayoutNoField)
	}
	return nil
}

// checkGroup checks that a group of settings is given whole or not at all. Its first two are
// addresses, the others fields.
func (c *config) checkGroup(what string, own []part) *supplier.FieldError {
	none, names := true, []string{}
	for _, n := range own {
		none, names = none && n.value == "", append(names, n.field)
	}
	if none {
		return nil
	}
	needed := append(own, part{"result_field", c.ResultField}, part{"success_values", strings.Join(c.SuccessValues, "")})
	for _, n := range needed {
		if n.value == "" {
			return wrong(n.field, "missing: a supplier of %s needs %s, result_field and success_values", what, strings.Join(names, ", "))
		}
	}
	taken := append(c.meaningful(), c.SignField)
	for _, f := range needed[2:5] {
		if slices.Contains(taken, f.value) {
			return wrong(f.field, "%q is read as something else", f.value)
		}
		if slices.Contains(c.SignExclude, f.value) {
			return wrong(f.field, "%q is not signed; what is read has to be", f.value)
		}
		taken = append(taken, f.value)
	}
	return nil
}

// checkResults checks the words of result_field, which refunds and payouts share.
func (c *config) checkResults() *supplier.FieldError {
	if c.RefundURL == "" && c.PayoutURL == "" {
		if c.ResultField != "" || len(c.SuccessValues)+len(c.FailureValues)+len(c.ProcessingValues)+len(c.ReturnedValues) > 0 {
			return wrong("refund_url", "missing: result_field and its values belong to refund_url or payout_url")
		}
		return nil
	}
	seen := map[string]string{}
	for _, l := range []struct {
		field string
		words []string
	}{
		{"success_values", c.SuccessValues},
		{"failure_values", c.FailureValues},
		{"processing_values", c.ProcessingValues},
		{"returned_values", c.ReturnedValues},
		{"not_found_values", c.NotFoundValues},
	} {
		for _, word := range l.words {
			if word == "" {
				return wrong(l.field, "an empty value would give an answer without a result a meaning")
			}
			if before := seen[word]; before != "" && before != l.field {
				return wrong(l.field, "%q is among %s too", word, before)
			}
			seen[word] = l.field
		}
	}
	return nil
}

// checkParams makes sure that no two parameters of a request have one name.
func (c *config) checkParams() *supplier.FieldError {
	if len(c.addresses()) == 0 {
		return nil
	}
	params := []part{{"sign_field", c.SignField}, {"order_field", c.OrderField}, {"account_field", c.AccountField}}
	taken := []string{timeParam, nonceParam}
	if c.PayURL != "" {
		taken = append(taken, subjectParam, expiresParam)
	}
	if c.PayURL != "" || c.PayoutURL != "" {
		params, taken = append(params, part{"amount_field", c.AmountField}), append(taken, notifyParam)
	}
	if c.RefundURL != "" {
		params = append(params, part{"refund_no_field", c.RefundNoField}, part{"refund_amount_field", c.RefundAmountField})
	}
	if c.PayoutURL != "" {
		params = append(params, part{"payout_no_field", c.PayoutNoField}, part{"payee_field", c.PayeeField})
	}
	if c.PayURL != "" || c.RefundURL != "" || c.PayoutURL != "" {
		params = append(params, part{"currency_field", c.currencyParam()})
	}
	for _, p := range params {
		if p.value != "" && slices.Contains(taken, p.value) {
			return wrong(p.field, "%q is another parameter of the requests", p.value)
		}
		taken = append(taken, p.value)
	}
	return nil
}

type address struct{ field, address string }

// addresses returns the URLs that are set.
func (c *config) addresses() []address {
	all := []address{
		{"query_url", c.QueryURL},
		{"close_url", c.CloseURL},
		{"pay_url", c.PayURL},
		{"refund_url", c.RefundURL},
		{"refund_query_url", c.RefundQueryURL},
		{"payout_url", c.PayoutURL},
		{"payout_query_url", c.PayoutQueryURL},
	}
	return slices.DeleteFunc(all, func(a address) bool { return a.address == "" })
}

func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil && u.Fragment == ""
}

// ownKey returns the key that signs our requests with rsa-sha256; the key that verifies the
// supplier's messages cannot sign.
func (c *config) ownKey(theirs *rsa.PublicKey) (*rsa.PrivateKey, *supplier.FieldError) {
	if c.Algorithm != "rsa-sha256" {
		if c.PrivateKey != "" {
			return nil, wrong("private_key", "only rsa-sha256 has one; %s signs with key", c.Algorithm)
		}
		return nil, nil
	}
	if c.PrivateKey == "" {
		for _, a := range c.addresses() {
			return nil, wrong("private_key", "missing: with rsa-sha256, %s cannot be called without your own key", a.field)
		}
		return nil, nil
	}
	own, err := supplier.ParsePrivateKey(c.PrivateKey)
	if err != nil {
		return nil, wrong("private_key", "%v", err)
	}
	// With one key pair for both sides, our own request would pass as a message of the
	// supplier.
	if own.PublicKey.Equal(theirs) {
		return nil, wrong("public_key", "belongs to private_key; the supplier's is wanted")
	}
	return own, nil
}
