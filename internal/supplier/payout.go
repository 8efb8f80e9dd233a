package supplier

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"backstop/internal/base/text"
)

// Payouter pays money out of our account at the supplier to a merchant's account.
type Payouter interface {
	// Payable returns a *FieldError (currency, amount) if the supplier cannot pay out such an
	// amount, whatever the account.
	Payable(amount int64, currency string) error
	// Payout asks for a payout. It may be repeated with the same Payout only if
	// Abilities.PayoutRepeat is set: then there is still only one payout. Errors as for Payer.
	Payout(ctx context.Context, p Payout) (PayoutAnswer, error)
	// PayoutQuery queries one payout. Errors as for Payer.
	PayoutQuery(ctx context.Context, p Payout) (PayoutAnswer, error)
}

// Payout is one payout.
type Payout struct {
	No         string // our number for it, letters and digits, at most 32
	SupplierNo string // the supplier's number, if it is known
	Amount     int64  // minor units of Currency
	Currency   string
	Payee      Payee
	NotifyURL  string // callback URL
}

// Payee is the account that a payout goes to. Number is a secret: it must not appear in an
// Exchange, an error or a log.
type Payee struct {
	Kind   string // PayeeBankCard, …
	Holder string
	Number string
	Bank   string // "" where the kind of account has none
}

// Kinds of payees' accounts. PayeeBankCard names its bank; PayeeAlipay is a login or a user id at
// Alipay.
const (
	PayeeBankCard = "bank_card"
	PayeeAlipay   = "alipay"
)

// PayoutState is what a supplier says about a payout.
type PayoutState string

// States of a payout. PayoutUnknown is everything except a correctly signed word in the kind's
// table, and never moves money.
const (
	PayoutSucceeded  PayoutState = "succeeded"
	PayoutFailed     PayoutState = "failed"     // listed as final: it was not made, and never will be under this number
	PayoutProcessing PayoutState = "processing" // accepted, and not finished
	PayoutReturned   PayoutState = "returned"   // it succeeded, and the money came back later
	PayoutShort      PayoutState = "short_of_funds"
	PayoutNotFound   PayoutState = "not_found"
	PayoutUnknown    PayoutState = "unknown"
)

// PayoutAnswer is a supplier's answer about one payout.
type PayoutAnswer struct {
	State      PayoutState
	SupplierNo string       // the supplier's number of the payout; "" = the answer has none
	Word       string       // the supplier's own word, for operators
	Reason     text.Message // why it is unknown
	Exchange   Exchange
}

// PayoutSaid is what an authentic answer says about a payout. Where it leaves something out, the
// adapter fills in what was asked for.
type PayoutSaid struct {
	No         string
	SupplierNo string
	Amount     int64
	Currency   string
	State      PayoutState
	Word       string
}

// PayoutUnknown returns the answer that says nothing about the payout. class "" keeps the class
// that the exchange has.
func (x Exchange) PayoutUnknown(class Class, err error) PayoutAnswer {
	a := x.Unknown(class, err)
	return PayoutAnswer{State: PayoutUnknown, Reason: a.Reason, Exchange: a.Exchange}
}

// JudgePayout returns the answer of an authentic message. It is unknown if its word is, if it is
// about another payout, or if a payout that was made has another amount.
func (x Exchange) JudgePayout(p Payout, said PayoutSaid) PayoutAnswer {
	moved := said.State == PayoutSucceeded || said.State == PayoutReturned
	switch {
	case said.No != p.No:
		return x.PayoutUnknown(ClassBadAnswer, otherPayout.Say(quoted(said.No)))
	case said.State == PayoutUnknown, said.State == "":
		return x.PayoutUnknown(ClassUnknown, otherWord.Say(quoted(said.Word)))
	case moved && (said.Amount != p.Amount || said.Currency != p.Currency):
		return x.PayoutUnknown(ClassBadAnswer, otherPayoutSum.Say(said.Amount, said.Currency, p.Amount, p.Currency))
	}
	x.Class = ClassOK
	if said.State == PayoutFailed || said.State == PayoutShort {
		x.Class = ClassRefused
	}
	return PayoutAnswer{State: said.State, SupplierNo: said.SupplierNo, Word: said.Word, Exchange: x}
}

// Masked removes the number of the payee's account from everything stored of an answer, also
// where the supplier repeats it.
func (a PayoutAnswer) Masked(p Payee) PayoutAnswer {
	if p.Number == "" {
		return a
	}
	quotedNumber, _ := json.Marshal(p.Number) // a string: cannot fail
	for _, spelled := range []string{p.Number, strings.Trim(string(quotedNumber), `"`), url.QueryEscape(p.Number)} {
		hide := func(text string) string { return strings.ReplaceAll(text, spelled, masked) }
		a.Exchange = a.Exchange.Mask(spelled)
		a.Word, a.SupplierNo, a.Reason = hide(a.Word), hide(a.SupplierNo), a.Reason.Map(hide)
	}
	return a
}
