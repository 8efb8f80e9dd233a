package sortedparams

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

// payee is the JSON in the payee field of a payout.
type payee struct {
	Kind   string `json:"kind"`
	Holder string `json:"holder"`
	Number string `json:"number"`
	Bank   string `json:"bank,omitempty"`
}

// payoutState returns the meaning of a word in result_field.
func (c *config) payoutState(word string) supplier.PayoutState {
	for _, l := range []struct {
		words []string
		state supplier.PayoutState
	}{
		{c.SuccessValues, supplier.PayoutSucceeded},
		{c.FailureValues, supplier.PayoutFailed},
		{c.ProcessingValues, supplier.PayoutProcessing},
		{c.ReturnedValues, supplier.PayoutReturned},
		{c.NotFoundValues, supplier.PayoutNotFound},
	} {
		if slices.Contains(l.words, word) {
			return l.state
		}
	}
	return supplier.PayoutUnknown
}

// Payout asks for a payout. Only with payout_repeat are all calls with the same number one
// payout.
func (c *calls) Payout(ctx context.Context, p supplier.Payout) (supplier.PayoutAnswer, error) {
	params, err := c.payoutParams(p)
	if err != nil {
		return supplier.PayoutAnswer{}, err
	}
	amount := strconv.FormatInt(p.Amount, 10)
	if c.AmountUnit == "major" {
		amount = money.Format(p.Amount, p.Currency)
	}
	// The encoder writes & as \u0026, so that no name can be cut into other parameters of what we
	// sign.
	account, _ := json.Marshal(payee(p.Payee)) // texts only: cannot fail
	params[c.AmountField], params[c.currencyParam()], params[c.PayeeField] = amount, p.Currency, string(account)
	if p.NotifyURL != "" {
		params[notifyParam] = p.NotifyURL
	}
	answer := c.aboutPayout(ctx, c.PayoutURL, params, p)
	if answer.State == supplier.PayoutNotFound { // this is no valid answer to a payout request
		answer = answer.Exchange.PayoutUnknown(supplier.ClassUnknown, unknownWord.Say(quoted(answer.Word)))
	}
	return answer.Masked(p.Payee), nil
}

// PayoutQuery queries one payout by our number.
func (c *calls) PayoutQuery(ctx context.Context, p supplier.Payout) (supplier.PayoutAnswer, error) {
	params, err := c.payoutParams(p)
	if err != nil {
		return supplier.PayoutAnswer{}, err
	}
	return c.aboutPayout(ctx, c.PayoutQueryURL, params, p).Masked(p.Payee), nil
}

// Payable returns a *FieldError if this supplier cannot pay out the amount.
func (c *calls) Payable(amount int64, currency string) error {
	_, unknown := money.Exponent(currency)
	switch {
	case unknown != nil, c.CurrencyField == "" && currency != c.Currency:
		return wrong("currency", "this supplier does not accept %q", currency)
	case amount <= 0:
		return wrong("amount", "this supplier cannot pay out %d (minor units)", amount)
	}
	return nil
}

// payoutParams returns the parameters that name the payout, or a *FieldError if this supplier
// cannot accept it. Our number is also the reference.
func (c *calls) payoutParams(p supplier.Payout) (map[string]string, error) {
	if p.No == "" || len(p.No) > maxText || strings.Contains(p.No, "&") {
		return nil, wrong("payout_no", "use at most %d bytes, without &", maxText)
	}
	if err := c.Payable(p.Amount, p.Currency); err != nil {
		return nil, err
	}
	if p.Payee.Number == "" {
		return nil, wrong("account", "the payee's account has no number")
	}
	return map[string]string{c.OrderField: p.No, c.PayoutNoField: p.No}, nil
}

// aboutPayout makes a call about one payout. The answer may leave out the reference, the account
// and the amount; if it has them, they must be ours.
func (c *calls) aboutPayout(ctx context.Context, address string, params map[string]string, p supplier.Payout) supplier.PayoutAnswer {
	fields, x, class, err := c.call(ctx, address, params)
	if err != nil {
		return x.PayoutUnknown(class, err)
	}
	for _, name := range c.signedNames(fields) {
		if err := supplier.CheckCut(fields[name], append(c.meaningful(), c.PayoutNoField, c.ResultField)); err != nil {
			return x.PayoutUnknown(supplier.ClassBadAnswer, err)
		}
	}
	if account := c.optional(fields, c.AccountField); account != "" && account != c.config.Account {
		return x.PayoutUnknown(supplier.ClassBadAnswer, otherAccount.Say(quoted(account)))
	}
	if ref := fields[c.OrderField]; ref != "" && ref != p.No {
		return x.PayoutUnknown(supplier.ClassBadAnswer, otherOrder.Say(c.OrderField, quoted(ref)))
	}
	said := supplier.PayoutSaid{
		No: fields[c.PayoutNoField], SupplierNo: c.optional(fields, c.TradeField), Amount: p.Amount, Currency: p.Currency,
		State: c.payoutState(fields[c.ResultField]), Word: fields[c.ResultField],
	}
	if sum := fields[c.AmountField]; sum != "" {
		if said.Amount, err = parseAmount(c.AmountUnit, sum, p.Currency); err != nil {
			return x.PayoutUnknown(supplier.ClassBadAnswer, noAmount.Say(c.AmountField, err))
		}
	}
	if currency := strings.ToUpper(c.optional(fields, c.CurrencyField)); currency != "" {
		said.Currency = currency
	}
	for name, value := range map[string]string{c.PayoutNoField: said.No, c.TradeField: said.SupplierNo, c.ResultField: said.Word} {
		if len(value) > maxText {
			return x.PayoutUnknown(supplier.ClassBadAnswer, tooLong.Say(name, maxText))
		}
	}
	return x.JudgePayout(p, said)
}

// payoutCallback translates a callback that names a payout and its result; false = it is about
// something else. It moves nothing: the payout is queried.
func (a *adapter) payoutCallback(fields map[string]string) (supplier.Callback, bool, error) {
	no := a.optional(fields, a.PayoutNoField)
	if no == "" || fields[a.ResultField] == "" {
		return supplier.Callback{}, false, nil
	}
	word := textlimit.Cut(fields[a.ResultField], maxText)
	got := supplier.Callback{
		OrderRef: textlimit.Cut(no, maxText), TradeNo: textlimit.Cut(a.optional(fields, a.TradeField), maxText),
		Status: supplier.Other, RawStatus: word, Identity: map[string]string{},
	}
	got.EventKey = "payout:" + got.OrderRef + ":" + word
	if a.AccountField != "" {
		got.Identity["account"] = textlimit.Cut(fields[a.AccountField], maxText)
	}
	for _, name := range []string{a.PayoutNoField, a.ResultField, a.TradeField, a.AccountField} {
		if len(fields[name]) > maxText {
			return got, true, tooLong.Say(name, maxText)
		}
	}
	if ref := fields[a.OrderField]; ref != "" && ref != no {
		return got, true, otherOrder.Say(a.OrderField, quoted(ref))
	}
	for _, name := range a.signedNames(fields) {
		if err := supplier.CheckCut(fields[name], append(a.meaningful(), a.PayoutNoField, a.ResultField)); err != nil {
			return got, true, err
		}
	}
	return got, true, nil
}
