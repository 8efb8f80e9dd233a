package supplier

import (
	"context"
	"net/http"
	"time"

	"backstop/internal/base/text"
)

// Caller is an Adapter that calls its supplier too. What a supplier can be asked depends on
// its configuration as well as on its kind, so that abilities are values, not methods of
// the adapter.
type Caller interface{ Abilities() Abilities }

// Abilities are the calls that one configured supplier can take; nil = it cannot.
type Abilities struct {
	Payer
	Querier
	Closer
	// CloseAfter is the age of a start before which the supplier wants no close; 0 = none.
	CloseAfter time.Duration
}

// AbilitiesOf returns what an adapter's supplier can be asked.
func AbilitiesOf(a Adapter) Abilities {
	if c, ok := a.(Caller); ok {
		return c.Abilities()
	}
	return Abilities{}
}

// Payer starts payments. It may be called again with the same Payment: the supplier then
// knows the reference, and there is one payment all the same.
//
// The error is a *FieldError where the payment cannot be expressed in this protocol
// ("order_no", "method"): nothing was sent. Any other failure is a state of Started.
type Payer interface {
	Start(ctx context.Context, p Payment) (Started, error)
}

// Querier asks about one payment. Errors as of Payer.
type Querier interface {
	Query(ctx context.Context, r Ref) (Answer, error)
}

// Closer makes sure that a payment can never be made any more. Its answer is AnswerClosed
// where the supplier confirms that, else what must be asked again (AnswerUnknown,
// AnswerPaying). Errors as of Payer.
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
	Method    string // MethodQR, MethodRedirect, MethodApp; "" = the kind's own choice
	Payer     string // the buyer's id at the supplier, where the method needs one (WeChat's openid)
	ReturnURL string
	ClientIP  string
	NotifyURL string // where the callback is to go
	CreatedAt time.Time
	ExpiresAt time.Time // no payment may be made later
}

// Methods of a payment (contract §8).
const (
	MethodQR       = "qr"
	MethodRedirect = "redirect"
	MethodApp      = "app"
)

// Ref names a payment that was started before.
type Ref struct {
	Reference  string
	ExternalID string // the supplier's id of what was started, where it gives one (Stripe)
	Amount     int64
	Currency   string
	StartedAt  time.Time // of the attempt; without one, of the order
}

// StartState is how a start ended.
type StartState string

// A start is Refused only where the supplier says, well signed, that it did not and will
// not begin this payment. What is not certain is StartUnknown.
const (
	Accepted     StartState = "accepted"
	StartRefused StartState = "refused"
	StartUnknown StartState = "unknown"
)

// Kinds of what the buyer needs (contract §8).
const (
	ValueQR           = "qr"
	ValueRedirect     = "redirect"
	ValueForm         = "form"
	ValueClientSecret = "client_secret"
	ValueNone         = "none"
)

// Started is the answer to a start.
type Started struct {
	State      StartState
	Kind       string // Value…
	Value      string // what the buyer needs; a secret where Kind is ValueClientSecret
	ExternalID string // see Ref
	Word       string // the supplier's own word, for operators
	Reason     text.Message
	Exchange   Exchange
}

// AnswerState is what a supplier says about a payment.
type AnswerState string

// States of an answer. AnswerUnknown is everything that is not a well-signed word that the
// kind's table has: a timeout, a 5xx, a wrong signature, another order's number, an unknown
// status. An unknown answer never moves an order.
const (
	AnswerPaid     AnswerState = "paid"
	AnswerFailed   AnswerState = "failed" // this reference can never be paid: it failed for good
	AnswerClosed   AnswerState = "closed" // this reference can never be paid any more
	AnswerPaying   AnswerState = "paying" // not paid, and may be paid still
	AnswerNotFound AnswerState = "not_found"
	AnswerUnknown  AnswerState = "unknown"
)

// Answer is a supplier's answer about one payment. Says is what a callback would have said
// (order reference, trade number, amount, currency, identity, time); of an unknown answer
// nothing of it may be used.
type Answer struct {
	State AnswerState
	// Refunded: the money came and went back. State is AnswerPaid, and the payment must
	// not be confirmed by this answer.
	Refunded bool
	Says     Callback
	// ExternalID is that of Ref, where the answer names one: a question without it may
	// have found it.
	ExternalID string
	Reason     text.Message // why it is unknown
	Exchange   Exchange
}

// Class is how one call went.
type Class string

// Classes of a call (contract §8). ClassOK and ClassRefused are answers of a healthy
// supplier, every other class counts against it.
const (
	ClassOK           Class = "ok"
	ClassRefused      Class = "refused" // a well-signed refusal
	ClassUnknown      Class = "unknown" // a well-signed word that is not in the table
	ClassTimeout      Class = "timeout"
	ClassConnect      Class = "connect"
	ClassTLS          Class = "tls"
	ClassBadSignature Class = "bad_signature"
	ClassBadAnswer    Class = "bad_answer"
)

// Classes are all of them.
var Classes = []Class{ClassOK, ClassRefused, ClassUnknown, ClassTimeout, ClassConnect, ClassTLS, ClassBadSignature, ClassBadAnswer}

// Healthy reports whether the class says that the supplier is reachable and answers.
func (c Class) Healthy() bool { return c == ClassOK || c == ClassRefused }

// Exchange is one call as it is kept for operators. Adapters set Class; Request holds no
// key and no signature.
type Exchange struct {
	Class   Class
	Request []byte    // method, path and body
	At      time.Time // when the answer was read; signed times are judged by it
	Status  int       // HTTP; 0 = no answer
	Header  http.Header
	Body    []byte // at most MaxAnswer
}

// MaxAnswer bounds the body of an answer in bytes; a longer one is ClassBadAnswer.
const MaxAnswer = 64 << 10

// Client sends one request and reads the whole answer. It follows no redirects and sends
// nothing twice. The Exchange has a class where no answer could be read (ClassTimeout,
// ClassConnect, ClassTLS, ClassBadAnswer), else "". At is by the database's clock.
type Client interface {
	Do(r *http.Request) Exchange
}
