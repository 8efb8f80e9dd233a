package sortedparams

import (
	"cmp"
	"context"
	"crypto"
	"strconv"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

// calls are the abilities of a supplier whose settings have addresses.
type calls struct {
	*adapter
	own crypto.Signer // of rsa-sha256 only
	out supplier.Client
}

// Abilities are those whose address is set.
func (a *adapter) Abilities() (can supplier.Abilities) {
	if a.calls == nil {
		return can
	}
	if a.PayURL != "" {
		can.Payer = a.calls
	}
	if a.QueryURL != "" {
		can.Querier = a.calls
	}
	if a.CloseURL != "" {
		can.Closer = a.calls
	}
	return can
}

const (
	maxSubject = 256  // bytes
	maxValue   = 4096 // bytes of what the buyer needs; a QR code holds less than 3,000
)

// Start begins a payment. It is accepted by a word of paying_values beside our reference
// and what the buyer needs, and refused by a word of failed_values.
func (c *calls) Start(ctx context.Context, p supplier.Payment) (supplier.Started, error) {
	params, err := c.payment(p)
	if err != nil {
		return supplier.Started{}, err
	}
	fields, x, class, err := c.ask(ctx, c.PayURL, params)
	if err != nil {
		return x.StartUnknown(class, err), nil
	}
	// It is not looked at for another cut: an address has parameters of its own.
	value := fields[c.PayValueField]
	delete(fields, c.PayValueField)
	got, err := c.content(fields)
	switch {
	case err != nil:
		return x.StartUnknown(supplier.ClassBadAnswer, err), nil
	case got.OrderRef != p.Reference:
		return x.StartUnknown(supplier.ClassBadAnswer, otherOrder.Say(c.OrderField, quoted(got.OrderRef))), nil
	case !c.ours(got):
		return x.StartUnknown(supplier.ClassBadAnswer, otherAccount.Say(quoted(got.Identity["account"]))), nil
	}
	switch c.meaning(got.RawStatus).State() {
	case supplier.AnswerPaying:
		switch {
		case value == "":
			return x.StartUnknown(supplier.ClassBadAnswer, missing.Say(c.PayValueField)), nil
		case len(value) > maxValue:
			return x.StartUnknown(supplier.ClassBadAnswer, tooLong.Say(c.PayValueField, maxValue)), nil
		}
		x.Class = supplier.ClassOK
		return supplier.Started{State: supplier.Accepted, Kind: c.payKind(), Value: value, Word: got.RawStatus, Exchange: x}, nil
	case supplier.AnswerFailed:
		x.Class = supplier.ClassRefused
		return supplier.Started{State: supplier.StartRefused, Word: got.RawStatus, Reason: refusedWith.Say(quoted(got.RawStatus)), Exchange: x}, nil
	case supplier.AnswerUnknown:
		return x.StartUnknown(supplier.ClassUnknown, unknownWord.Say(quoted(got.RawStatus))), nil
	default: // paid, closed or not found: a query says more
		return x.StartUnknown(supplier.ClassOK, notStarted.Say(quoted(got.RawStatus))), nil
	}
}

func (c *config) payKind() string { return cmp.Or(c.PayKind, supplier.ValueQR) }

// payment is what a start sends beside the parameters of every call.
func (c *calls) payment(p supplier.Payment) (map[string]string, error) {
	if err := askable(p.Reference); err != nil {
		return nil, err
	}
	amount := strconv.FormatInt(p.Amount, 10)
	if c.AmountUnit == "major" {
		amount = money.Format(p.Amount, p.Currency)
	}
	_, unknown := money.Exponent(p.Currency)
	switch {
	case p.Method != "" && p.Method != c.payKind():
		return nil, wrong("method", "only %s can be started with this supplier", c.payKind())
	case unknown != nil, c.CurrencyField == "" && p.Currency != c.Currency:
		return nil, wrong("currency", "this supplier does not take %q", p.Currency)
	case p.Amount <= 0:
		return nil, wrong("amount", "a payment of %s cannot be started", amount)
	}
	params := map[string]string{
		c.OrderField: p.Reference, c.AmountField: amount, c.currencyParam(): p.Currency,
		// A buyer's words in what we sign must not be cut into other parameters.
		subjectParam: strings.ReplaceAll(textlimit.Cut(cmp.Or(p.Subject, p.OrderNo, p.Reference), maxSubject), "&", "＆"),
	}
	if p.NotifyURL != "" {
		params[notifyParam] = p.NotifyURL
	}
	if !p.ExpiresAt.IsZero() {
		params[expiresParam] = strconv.FormatInt(p.ExpiresAt.Unix(), 10)
	}
	return params, nil
}

func askable(ref string) error {
	if ref == "" || len(ref) > maxText || strings.Contains(ref, "&") {
		return wrong("order_no", "at most %d bytes, and no &", maxText)
	}
	return nil
}

// Query asks about one payment.
func (c *calls) Query(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
	return c.about(ctx, c.QueryURL, r)
}

// Close asks that a payment can never be made. Only a word of closed_values confirms it:
// what any other word means is for a query to say.
func (c *calls) Close(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
	a, err := c.about(ctx, c.CloseURL, r)
	switch a.State {
	case supplier.AnswerPaying:
		a.Exchange.Class = supplier.ClassRefused
	case supplier.AnswerPaid, supplier.AnswerFailed, supplier.AnswerNotFound:
		a = a.Exchange.Unknown(supplier.ClassRefused, notClosed.Say(quoted(a.Says.RawStatus)))
	}
	return a, err
}

// about makes a call about one payment and returns what the answer says of it.
func (c *calls) about(ctx context.Context, address string, r supplier.Ref) (supplier.Answer, error) {
	if err := askable(r.Reference); err != nil {
		return supplier.Answer{}, err
	}
	fields, x, class, err := c.ask(ctx, address, map[string]string{c.OrderField: r.Reference})
	if err != nil {
		return x.Unknown(class, err), nil
	}
	got, err := c.content(fields)
	if err != nil {
		return x.Unknown(supplier.ClassBadAnswer, err), nil
	}
	m := c.meaning(got.RawStatus)
	// Money on another account is shown to operators; another word of it is not for us.
	if m.State() != supplier.AnswerPaid && !c.ours(got) {
		return x.Unknown(supplier.ClassBadAnswer, otherAccount.Say(quoted(got.Identity["account"]))), nil
	}
	return x.Judge(r, m, got), nil
}

// content reads a verified answer as a callback is read. One that names no account is
// about the account that asked.
func (c *calls) content(fields map[string]string) (supplier.Callback, error) {
	got, err := c.translate(fields)
	if c.AccountField != "" && got.Identity["account"] == "" {
		got.Identity["account"] = c.config.Account
	}
	return got, err
}

func (c *calls) ours(got supplier.Callback) bool { return got.Identity["account"] == c.config.Account }

// quoted is a text from outside as a reason shows it.
func quoted(s string) string { return strconv.Quote(textlimit.Clip(s, 80)) }
