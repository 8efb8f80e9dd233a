package sortedparams

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/supplier"
)

// refundState returns the meaning of a word in result_field.
func (c *config) refundState(word string) supplier.RefundState {
	for _, l := range []struct {
		words []string
		state supplier.RefundState
	}{
		{c.SuccessValues, supplier.RefundSucceeded},
		{c.FailureValues, supplier.RefundFailed},
		{c.ProcessingValues, supplier.RefundProcessing},
		{c.ReturnedValues, supplier.RefundReturned},
		{c.NotFoundValues, supplier.RefundNotFound},
	} {
		if slices.Contains(l.words, word) {
			return l.state
		}
	}
	return supplier.RefundUnknown
}

// Refund makes a refund. Only with refund_repeat are all calls with the same number one refund.
func (c *calls) Refund(ctx context.Context, r supplier.Refund) (supplier.RefundAnswer, error) {
	params, err := c.refundParams(r)
	if err != nil {
		return supplier.RefundAnswer{}, err
	}
	amount := strconv.FormatInt(r.Amount, 10)
	if c.AmountUnit == "major" {
		amount = money.Format(r.Amount, r.Currency)
	}
	params[c.RefundAmountField], params[c.currencyParam()] = amount, r.Currency
	answer := c.aboutRefund(ctx, c.RefundURL, params, r)
	if answer.State == supplier.RefundNotFound { // this is no valid answer to a refund request
		answer = answer.Exchange.RefundUnknown(supplier.ClassUnknown, unknownWord.Say(quoted(answer.Word)))
	}
	return answer, nil
}

// RefundQuery queries by our own number.
func (c *calls) RefundQuery(ctx context.Context, r supplier.Refund) (supplier.RefundAnswer, error) {
	params, err := c.refundParams(r)
	if err != nil {
		return supplier.RefundAnswer{}, err
	}
	return c.aboutRefund(ctx, c.RefundQueryURL, params, r), nil
}

// refundParams returns the parameters that describe the refund, or a *FieldError if this supplier
// cannot accept it.
func (c *calls) refundParams(r supplier.Refund) (map[string]string, error) {
	if err := queryable(r.Reference); err != nil {
		return nil, err
	}
	_, unknown := money.Exponent(r.Currency)
	switch {
	case r.No == "" || len(r.No) > maxText || strings.Contains(r.No, "&"):
		return nil, wrong("refund_no", "use at most %d bytes, without &", maxText)
	case unknown != nil, c.CurrencyField == "" && r.Currency != c.Currency:
		return nil, wrong("currency", "this supplier does not accept %q", r.Currency)
	case r.Amount <= 0:
		return nil, wrong("amount", "this supplier cannot refund %d (minor units)", r.Amount)
	}
	return map[string]string{c.OrderField: r.Reference, c.RefundNoField: r.No}, nil
}

// aboutRefund makes a call about one refund. The answer may leave out the amount; if it has one,
// it must be ours.
func (c *calls) aboutRefund(ctx context.Context, address string, params map[string]string, r supplier.Refund) supplier.RefundAnswer {
	fields, x, class, err := c.call(ctx, address, params)
	if err != nil {
		return x.RefundUnknown(class, err)
	}
	for _, name := range c.signedNames(fields) {
		if err := supplier.CheckCut(fields[name], append(c.meaningful(), c.RefundNoField, c.ResultField)); err != nil {
			return x.RefundUnknown(supplier.ClassBadAnswer, err)
		}
	}
	if account := c.optional(fields, c.AccountField); account != "" && account != c.config.Account {
		return x.RefundUnknown(supplier.ClassBadAnswer, otherAccount.Say(quoted(account)))
	}
	said := supplier.RefundReport{
		No: fields[c.RefundNoField], SupplierNo: c.optional(fields, c.TradeField), Reference: fields[c.OrderField],
		Amount: r.Amount, Currency: r.Currency, State: c.refundState(fields[c.ResultField]), Word: fields[c.ResultField],
	}
	if sum := fields[c.RefundAmountField]; sum != "" {
		if said.Amount, err = parseAmount(c.AmountUnit, sum, r.Currency); err != nil {
			return x.RefundUnknown(supplier.ClassBadAnswer, noAmount.Say(c.RefundAmountField, err))
		}
	}
	for name, value := range map[string]string{c.RefundNoField: said.No, c.TradeField: said.SupplierNo, c.ResultField: said.Word} {
		if len(value) > maxText {
			return x.RefundUnknown(supplier.ClassBadAnswer, tooLong.Say(name, maxText))
		}
	}
	return x.EvaluateRefund(r, said)
}
