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

// calls are the abilities of a supplier with URLs in its settings.
type calls struct {
	*adapter
	own crypto.Signer // for rsa-sha256 only
	out supplier.Client
}

// Abilities returns the calls whose URL is set.
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
	if a.RefundURL != "" {
		can.Refunder = a.calls
	}
	if a.PayoutURL != "" {
		can.Payouter = a.calls
	}
	return can
}

const (
	maxSubject = 256  // bytes
	maxValue   = 4096 // bytes of what the buyer needs; a QR code holds less than 3,000
)

// Start begins a payment. It is accepted with a status of paying_values together with our
// reference and what the buyer needs, and refused with a status of failed_values.
func (c *calls) Start(ctx context.Context, p supplier.Payment) (supplier.Started, error) {
	params, err := c.payment(p)
	if err != nil {
		return supplier.Started{}, err
	}
	fields, x, class, err := c.call(ctx, c.PayURL, params)
	if err != nil {
		return x.StartUnknown(class, err), nil
	}
	// It is exempt from CheckCut: a URL has its own parameters.
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
		return supplier.Started{
			State: supplier.StartRefused, Word: got.RawStatus, Reason: refusedWith.Say(quoted(got.RawStatus)),
			Exchange: x,
		}, nil
	case supplier.AnswerUnknown:
		return x.StartUnknown(supplier.ClassUnknown, unknownWord.Say(quoted(got.RawStatus))), nil
	default: // paid, closed or not found: a query says more
		return x.StartUnknown(supplier.ClassOK, notStarted.Say(quoted(got.RawStatus))), nil
	}
}

func (c *config) payKind() string { return cmp.Or(c.PayKind, supplier.ValueQR) }

// payment returns the parameters of a start besides those of every call.
func (c *calls) payment(p supplier.Payment) (map[string]string, error) {
	if err := queryable(p.Reference); err != nil {
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
	case unknown != nil, !c.Takes(p.Currency):
		return nil, wrong("currency", "this supplier does not take %q", p.Currency)
	case p.Amount <= 0:
		return nil, wrong("amount", "a payment of %s cannot be started", amount)
	}
	params := map[string]string{
		c.OrderField: p.Reference, c.AmountField: amount, c.currencyParam(): p.Currency,
		// The buyer's text must not be cut into other parameters of what we sign.
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

func queryable(ref string) error {
	if ref == "" || len(ref) > maxText || strings.Contains(ref, "&") {
		return wrong("order_no", "at most %d bytes, and no &", maxText)
	}
	return nil
}

// Query queries one payment.
func (c *calls) Query(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
	return c.about(ctx, c.QueryURL, r)
}

// Close asks the supplier to end a payment. Only a status of closed_values confirms it; for any
// other status a query is needed.
func (c *calls) Close(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
	a, err := c.about(ctx, c.CloseURL, r)
	switch a.State {
	case supplier.AnswerPaying, supplier.AnswerNotFound:
		a.Exchange.Class = supplier.ClassRefused
	case supplier.AnswerPaid, supplier.AnswerFailed:
		a = a.Exchange.Unknown(supplier.ClassRefused, notClosed.Say(quoted(a.Says.RawStatus)))
	}
	return a, err
}

// about makes a call about one payment and returns the answer.
func (c *calls) about(ctx context.Context, address string, r supplier.Ref) (supplier.Answer, error) {
	if err := queryable(r.Reference); err != nil {
		return supplier.Answer{}, err
	}
	fields, x, class, err := c.call(ctx, address, map[string]string{c.OrderField: r.Reference})
	if err != nil {
		return x.Unknown(class, err), nil
	}
	got, err := c.content(fields)
	if err != nil {
		return x.Unknown(supplier.ClassBadAnswer, err), nil
	}
	m := c.meaning(got.RawStatus)
	// A payment on another account is shown to operators; any other status of another account
	// is ignored.
	if m.State() != supplier.AnswerPaid && !c.ours(got) {
		return x.Unknown(supplier.ClassBadAnswer, otherAccount.Say(quoted(got.Identity["account"]))), nil
	}
	return x.Judge(r, m, got), nil
}

// content parses a verified answer like a callback. One without an account belongs to the
// account that asked.
func (c *calls) content(fields map[string]string) (supplier.Callback, error) {
	got, err := c.translate(fields)
	if c.AccountField != "" && got.Identity["account"] == "" {
		got.Identity["account"] = c.config.Account
	}
	return got, err
}

func (c *calls) ours(got supplier.Callback) bool { return got.Identity["account"] == c.config.Account }

// quoted quotes a text from outside for use in a reason.
func quoted(s string) string { return strconv.Quote(textlimit.Clip(s, 80)) }
