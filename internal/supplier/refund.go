package supplier

import (
	"context"
	"math"
	"time"

	"backstop/internal/base/text"
)

// Refunder gives a payment's money back to its buyer, whole or in parts.
type Refunder interface {
	// Refund asks for a refund. With the same Refund it may be called again for as long as
	// Abilities.RefundRepeat says: there is one refund all the same. Errors as of Payer.
	Refund(ctx context.Context, r Refund) (RefundAnswer, error)
	// RefundQuery asks what became of one. Errors as of Payer.
	RefundQuery(ctx context.Context, r Refund) (RefundAnswer, error)
}

// RefundLister is a Refunder that names all refunds of a payment, also those that were made
// in the supplier's own back office.
type RefundLister interface {
	// Refunds is Unknown where not all of them could be read.
	Refunds(ctx context.Context, r Refund) (RefundList, error)
}

// Forever is an Abilities.RefundRepeat without an end.
const Forever = time.Duration(math.MaxInt64)

// Refund is one refund of one payment.
type Refund struct {
	No         string // our number for it, letters and digits, at most 32; the idempotency key too
	SupplierNo string // the supplier's number, once it is known
	Reference  string // of the payment, see Payment
	TradeNo    string // the supplier's number of the payment
	Amount     int64  // minor units of Currency
	Total      int64  // that the payment came with, minor units
	Currency   string
	Reason     string
	NotifyURL  string // where callbacks about it are to go
}

// RefundState is what a supplier says about a refund.
type RefundState string

// States of a refund. RefundUnknown is everything that is not a well-signed word that the
// kind's table has, and never moves money.
const (
	RefundSucceeded  RefundState = "succeeded"
	RefundFailed     RefundState = "failed"     // it was not made, and never will be under this number
	RefundProcessing RefundState = "processing" // accepted, not over
	RefundReturned   RefundState = "returned"   // it succeeded, and the money came back after that
	RefundAbnormal   RefundState = "abnormal"   // accepted and stuck: only a person at the supplier can end it
	RefundShort      RefundState = "short_of_funds"
	RefundNotFound   RefundState = "not_found"
	RefundUnknown    RefundState = "unknown"
)

// RefundAnswer is a supplier's answer about one refund.
type RefundAnswer struct {
	State      RefundState
	SupplierNo string       // its number of the refund; "" = the answer has none
	Word       string       // its own word, for operators
	Reason     text.Message // why it is unknown
	Exchange   Exchange
}

// RefundList is the answer of a RefundLister.
type RefundList struct {
	All      []RefundReport
	Unknown  bool
	Reason   text.Message // why it is
	Exchange Exchange
}

// RefundReport is what an authentic answer says about a refund. Where it leaves something
// out, the adapter fills in what was asked for.
type RefundReport struct {
	No         string // our number; "" = it is none of ours
	SupplierNo string
	Reference  string // of the payment
	Amount     int64
	Currency   string
	State      RefundState
	Word       string
}

// RefundUnknown is the answer that says nothing of the refund. class "" keeps the one that
// the exchange has.
func (x Exchange) RefundUnknown(class Class, err error) RefundAnswer {
	a := x.Unknown(class, err)
	return RefundAnswer{State: RefundUnknown, Reason: a.Reason, Exchange: a.Exchange}
}

// EvaluateRefund is the answer of a message that is authentic. It is unknown where the word is,
// where it is about another refund or payment, and where a refund that was made has another
// amount.
func (x Exchange) EvaluateRefund(r Refund, said RefundReport) RefundAnswer {
	moved := said.State == RefundSucceeded || said.State == RefundReturned
	switch {
	case said.Reference != r.Reference:
		return x.RefundUnknown(ClassBadAnswer, otherOrder.Say(quoted(said.Reference)))
	case said.No != r.No:
		return x.RefundUnknown(ClassBadAnswer, otherRefund.Say(quoted(said.No)))
	case said.State == RefundUnknown, said.State == "":
		return x.RefundUnknown(ClassUnknown, otherWord.Say(quoted(said.Word)))
	case moved && (said.Amount != r.Amount || said.Currency != r.Currency):
		return x.RefundUnknown(ClassBadAnswer, otherSum.Say(said.Amount, said.Currency, r.Amount, r.Currency))
	}
	x.Class = ClassOK
	if said.State == RefundFailed || said.State == RefundShort {
		x.Class = ClassRefused
	}
	return RefundAnswer{State: said.State, SupplierNo: said.SupplierNo, Word: said.Word, Exchange: x}
}
