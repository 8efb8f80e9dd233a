package supplier

import (
	"context"
	"net/http"
	"time"

	"backstop/internal/base/text"
)

// Caller is an Adapter that can also call its supplier. Which calls a supplier supports depends
// on its configuration as well as its kind, so abilities are values, not methods of the
// adapter.
type Caller interface{ Abilities() Abilities }

// Abilities are the calls that one configured supplier supports; nil = not supported.
type Abilities struct {
	Payer
	Querier
	Closer
	Refunder
	Payouter
	// CloseAfter is the age of a start before which the supplier wants no close; 0 = none.
	CloseAfter time.Duration
	// RefundRepeat is how long after its first call a refund may be sent again under the same
	// number; 0 = never.
	RefundRepeat time.Duration
	// RefundAbsent: a refund that a query does not find after RefundRepeat was never made.
	RefundAbsent bool
	// PayoutRepeat: a payout may be sent again under the same number at any time; the supplier
	// knows the number for life.
	PayoutRepeat bool
}

// Taker is an Adapter whose supplier does not take every currency.
type Taker interface{ Takes(currency string) bool }

// Takes reports whether an adapter's supplier takes payments in a currency.
func Takes(a Adapter, currency string) bool {
	t, ok := a.(Taker)
	return !ok || t.Takes(currency)
}

// AbilitiesOf returns the calls that an adapter's supplier supports.
func AbilitiesOf(a Adapter) Abilities {
	if c, ok := a.(Caller); ok {
		return c.Abilities()
	}
	return Abilities{}
}

// Payer starts payments. It may be called again with the same Payment: the supplier recognises
// the reference, and there is still only one payment.
//
// The error is a *FieldError if this protocol cannot express the payment ("order_no",
// "method"); nothing was sent. Any other failure is a state of Started.
type Payer interface {
	Start(ctx context.Context, p Payment) (Started, error)
}

// Querier queries one payment. Errors as for Payer.
type Querier interface {
	Query(ctx context.Context, r Ref) (Answer, error)
}

// Closer makes sure that a payment can no longer be made. Its answer is AnswerClosed if the
// supplier confirms that; otherwise the payment must be queried again (AnswerUnknown,
// AnswerPaying). Errors as for Payer.
type Closer interface {
	Close(ctx context.Context, r Ref) (Answer, error)
}

// Payment is what a payment is started with.
type Payment struct {
	Reference string // our number for it at the supplier, unique within the account; also the idempotency key
	OrderNo   string
	Subject   string
	Amount    int64 // minor units of Currency
	Currency  string
	Method    string // MethodQR, MethodRedirect, MethodApp; "" = the kind's default
	Payer     string // the buyer's id at the supplier, if the method needs one (WeChat's openid)
	ReturnURL string
	ClientIP  string
	NotifyURL string // callback URL
	CreatedAt time.Time
	ExpiresAt time.Time // no payment may be made later
}

// Methods of a payment (contract §8).
const (
	MethodQR       = "qr"
	MethodRedirect = "redirect"
	MethodApp      = "app"
)

// Ref identifies a payment that was started before.
type Ref struct {
	Reference  string
	ExternalID string // the supplier's id of what was started, if it gives one (Stripe)
	Amount     int64
	Currency   string
	StartedAt  time.Time // of the attempt; without one, of the order
}

// StartState is the result of a start.
type StartState string

// A start is Refused only if the supplier says, with a valid signature, that it did not and
// will not begin this payment. Anything uncertain is StartUnknown.
const (
	Accepted     StartState = "accepted"
	StartRefused StartState = "refused"
	StartUnknown StartState = "unknown"
)

// Kinds of what the buyer needs (contract §8).
const (
	ValueQR           = "qr"
	ValueRedirect     = "redirect"
	ValueClientSecret = "client_secret"
	ValueNone         = "none"
)

// Started is the answer to a start.
type Started struct {
	State      StartState
	Kind       string // Value…
	Value      string // what the buyer needs; a secret if Kind is ValueClientSecret
	ExternalID string // see Ref
	Word       string // the supplier's own status, for operators
	Reason     text.Message
	Exchange   Exchange
}

// AnswerState is what a supplier says about a payment.
type AnswerState string

// States of an answer. AnswerUnknown is everything except a correctly signed status in the
// kind's table: a timeout, a 5xx, a wrong signature, another order's number, an unknown status.
// An unknown answer never moves an order.
const (
	AnswerPaid     AnswerState = "paid"
	AnswerFailed   AnswerState = "failed" // this reference has failed finally and can never be paid
	AnswerClosed   AnswerState = "closed" // this reference can no longer be paid
	AnswerPaying   AnswerState = "paying" // not paid yet, but may still be
	AnswerNotFound AnswerState = "not_found"
	AnswerUnknown  AnswerState = "unknown"
)

// Answer is a supplier's answer about one payment. Says is what a callback would have said
// (order reference, trade number, amount, currency, identity, time); for an unknown answer none
// of it may be used.
type Answer struct {
	State AnswerState
	Says  Callback
	// ExternalID as in Ref, if the answer contains one: a query without it may have found it.
	ExternalID string
	Reason     text.Message // why it is unknown
	Exchange   Exchange
}

// Refunded reports whether the payment was made, and some of the money or all of it went back.
func (a Answer) Refunded() bool { return a.State == AnswerPaid && a.Says.RefundTotal != 0 }

// Returned reports whether the payment was made, and perhaps nothing of it is left.
func (a Answer) Returned() bool {
	return a.Refunded() && (a.Says.RefundTotal < 0 || a.Says.RefundTotal >= a.Says.Amount)
}

// Class is how one call went.
type Class string

// Classes of a call (contract §8). ClassOK and ClassRefused are answers of a healthy supplier;
// every other class counts against it.
const (
	ClassOK           Class = "ok"
	ClassRefused      Class = "refused" // a correctly signed refusal
	ClassUnknown      Class = "unknown" // a correctly signed status that is not in the table
	ClassTimeout      Class = "timeout"
	ClassConnect      Class = "connect"
	ClassTLS          Class = "tls"
	ClassBadSignature Class = "bad_signature"
	ClassBadAnswer    Class = "bad_answer"
)

// Classes lists all classes.
var Classes = []Class{ClassOK, ClassRefused, ClassUnknown, ClassTimeout, ClassConnect, ClassTLS, ClassBadSignature, ClassBadAnswer}

// Healthy reports whether the class means that the supplier is reachable and answers.
func (c Class) Healthy() bool { return c == ClassOK || c == ClassRefused }

// Exchange is one call as stored for operators. Adapters set Class; Request contains no key and
// no signature.
type Exchange struct {
	Class   Class
	Request []byte    // method, path and body
	At      time.Time // when the answer was read; signed times are checked against it
	Status  int       // HTTP; 0 = no answer
	Header  http.Header
	Body    []byte // at most MaxAnswer
}

// MaxAnswer bounds the body of an answer in bytes; a longer one is ClassBadAnswer.
const MaxAnswer = 64 << 10

// Client sends one request and reads the whole answer. It follows no redirects and sends
// nothing twice. The Exchange has a class if no answer could be read (ClassTimeout,
// ClassConnect, ClassTLS, ClassBadAnswer), else "". At is by the database's clock.
type Client interface {
	Do(r *http.Request) Exchange
}
