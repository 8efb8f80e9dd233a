// Package supplier is the boundary to payment suppliers (供应商): the content of their callbacks,
// and the replies that they expect.
//
// Each kind of supplier has its own folder below. An adapter translates between a supplier's
// protocol and the types here; it decides nothing about orders and reads no database. What no
// supplier library checks (duplicate parameters, duplicate JSON keys, unusual number forms,
// time windows in both directions) is checked by helpers of this package, once for every kind.
package supplier

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
)

// Request is one inbound call. Everything in it is a copy, because the HTTP server reuses its
// buffers as soon as the handler returns.
type Request struct {
	Method     string
	Path       string
	RawQuery   string
	Header     http.Header
	Body       []byte
	RemoteAddr netip.Addr // the client's address, behind trusted proxies
	ReceivedAt time.Time  // by the database's clock; signed times are checked against it
}

// Status is the state of the payment that a callback reports.
type Status string

// Neither Other nor Unknown moves an order. Other is a status that the adapter's table lists as
// harmless; an Unknown one may be about money, and operators must see it.
const (
	Paid     Status = "paid"     // the payment was made
	Failed   Status = "failed"   // this attempt failed; see Callback.Final
	Closed   Status = "closed"   // the payment can no longer be made; see Callback.Reverses
	Refunded Status = "refunded" // money was returned
	Disputed Status = "disputed" // the buyer's bank disputes the payment; see Callback.Dispute
	// Complained: a buyer complained to the supplier, which moves no money; see
	// Callback.Complaint.
	Complained Status = "complained"
	Other      Status = "other"   // nothing that affects an order
	Unknown    Status = "unknown" // not in the adapter's table
)

// Meaning is the meaning of one supplier status.
type Meaning struct {
	Status   Status
	Final    bool // see Callback.Final
	Reverses bool // see Callback.Reverses
	OneTry   bool // see Callback.OneTry
	// Answer is the state of an answer with this status, if it does not follow from Status.
	Answer   AnswerState
	Refunded bool // it was paid, and some of the money or all of it went back
}

// State returns the state of an answer with this status. A failure that is not final concerns
// one attempt: the payment may still be made.
func (m Meaning) State() AnswerState {
	switch {
	case m.Answer != "":
		return m.Answer
	case m.Refunded, m.Status == Paid:
		return AnswerPaid
	case m.Status == Closed:
		return AnswerClosed
	case m.Status == Failed && m.Final:
		return AnswerFailed
	case m.Status == Failed:
		return AnswerPaying
	default:
		return AnswerUnknown
	}
}

// Words is the table of a supplier's statuses, for callbacks and answers alike.
type Words map[string]Meaning

// Of returns the meaning of a status; Unknown if it is not in the table.
func (w Words) Of(word string) Meaning {
	if m, known := w[word]; known {
		return m
	}
	return Meaning{Status: Unknown}
}

// Callback is an authentic message after translation. Only an adapter that has
// verified the signature may return one.
type Callback struct {
	// EventKey is the supplier's replay key: equal for all repeats of one event, different for
	// others (usually transaction and state). Not empty.
	EventKey string
	// OrderRef is the reference that we gave the supplier: the order_no, or a later attempt's
	// supplier_ref.
	OrderRef string
	// TradeNo is the supplier's own number for the payment.
	TradeNo string
	Status  Status
	// RawStatus is the supplier's own status, for operators.
	RawStatus string
	// Final, for a Failed callback: the buyer cannot retry with this reference. A failure that
	// is not final moves nothing.
	Final bool
	// Reverses, for a Closed callback: if the payment was made, the status means that it was
	// refunded in full.
	Reverses bool
	// OneTry, for a Closed callback: it ends one attempt to pay and never the order, which may have
	// several under one reference.
	OneTry bool
	// Amount is in minor units of Currency (ISO 4217, upper case).
	Amount   int64
	Currency string
	// Identity is the account that the message is for, under the same names as in
	// Adapter.Identity.
	Identity map[string]string
	// RefundNo is our own refund number, of a callback about a refund that names it, and
	// RefundID the supplier's. Where Status is not Refunded, Refund is what became of it; ""
	// = the refund is to be asked about.
	RefundNo, RefundID string
	Refund             RefundState
	// RefundTotal is the sum of the payment's refunds so far, in minor units of Currency, or
	// UnknownTotal; 0 = it says nothing about refunds.
	RefundTotal int64
	// TotalAt is when RefundTotal was true, of a Paid callback, whose OccurredAt is the payment's;
	// zero = not given.
	TotalAt time.Time
	// Dispute is set in a Disputed callback, which carries no reference of ours: its
	// order is the one that TradeNo paid.
	Dispute *Dispute
	// Complaint is the supplier's number of the complaint, of a Complained callback.
	Complaint string
	// OccurredAt is the supplier's time of the event; zero = not given.
	OccurredAt time.Time
}

// Dispute is the subject of a Disputed callback. Amount and currency of the callback are the
// dispute's; an amount of 0 could not be parsed.
type Dispute struct {
	No     string    // the supplier's number: one dispute is one exception
	Reason string    // as given by the supplier
	Status string    // as given by the supplier
	DueBy  time.Time // deadline for evidence; zero = none required
	Over   bool      // won, lost or withdrawn

	Stage DisputeStage
	// Charge is another number of the payment; "" = none.
	Charge string
	// Withdrawn: the supplier took the money. Reinstated is how much of it is back, in minor
	// units of the dispute's currency.
	Withdrawn  bool
	Reinstated int64
	// Fee is what the supplier charged for the dispute so far, and FeeBack what it returned of
	// that, in minor units of FeeCurrency.
	Fee, FeeBack int64
	FeeCurrency  string
}

// UnknownTotal is the RefundTotal of a message that does not say how much was refunded.
const UnknownTotal = -1

// DisputeStage is how far a dispute has come, in our words.
type DisputeStage string

// Stages; "" = an unknown status: only what it says about money counts.
const (
	DisputeInquiry  DisputeStage = "inquiry" // a question of the bank: no money is demanded
	DisputeOpened   DisputeStage = "opened"
	DisputeAnswered DisputeStage = "answered" // evidence was sent
	DisputeWon      DisputeStage = "won"
	DisputeLost     DisputeStage = "lost"
)

// Maximum lengths in bytes. Suppliers stay far below; PostgreSQL cannot index a row with more
// than about 2,600 in one key.
const (
	maxNumber   = 512
	maxEventKey = 1024 // it may contain two numbers
	maxCurrency = 16
)

// Bound cuts texts that are too long to be stored. It returns the name of a cut field that
// matching depends on; "" = none.
func (c *Callback) Bound() (field string) {
	c.RawStatus = textlimit.Cut(c.RawStatus, maxNumber)
	var dispute Dispute
	if c.Dispute != nil {
		dispute = *c.Dispute // a copy: the original is the adapter's
		dispute.Reason, dispute.Status = textlimit.Cut(dispute.Reason, maxNumber), textlimit.Cut(dispute.Status, maxNumber)
		c.Dispute = &dispute
	}
	for _, f := range []struct {
		name string
		text *string
		max  int
	}{
		{"dispute number", &dispute.No, maxNumber},
		{"charge number", &dispute.Charge, maxNumber},
		{"fee's currency", &dispute.FeeCurrency, maxCurrency},
		{"currency", &c.Currency, maxCurrency},
		{"refund number", &c.RefundNo, maxNumber},
		{"supplier's refund number", &c.RefundID, maxNumber},
		{"complaint number", &c.Complaint, maxNumber},
		{"event key", &c.EventKey, maxEventKey},
		{"trade number", &c.TradeNo, maxNumber},
		{"order number", &c.OrderRef, maxNumber},
	} {
		if len(*f.text) > f.max {
			*f.text, field = textlimit.Cut(*f.text, f.max), f.name
		}
	}
	return field
}

// Adapter implements one supplier's protocol with one supplier's keys. It is immutable and safe
// for concurrent use; keys are parsed when it is created.
type Adapter interface {
	// Parse verifies the signature before it reads any field. It records each check in t.
	// Errors are *Refused or *Unreadable.
	Parse(req *Request, t *Trace) (Callback, error)
	// Reply returns the response that this supplier's protocol expects.
	Reply(Result) Reply
	// Identity returns the required Callback.Identity: the configured application, seller and
	// merchant numbers by name. Empty values are not configured.
	Identity() map[string]string
	// Account identifies the account at the supplier, e.g. "wechatpay:1900000001"; trade
	// numbers are unique within it.
	Account() string
}

// Result is how a callback is answered.
type Result int

// Only Taken is answered as success, and only after the commit.
const (
	Taken          Result = iota // committed, or already known
	BadSignature                 // 401 unless the protocol requires another status
	Malformed                    // 400
	Unavailable                  // 503: busy, or the database did not answer; to be repeated
	InternalFailed               // 500: our fault, e.g. the message cannot be decrypted; to be repeated
)

// HTTPStatus returns the status of the response, unless the protocol requires another.
func (r Result) HTTPStatus() int {
	switch r {
	case Taken:
		return http.StatusOK
	case BadSignature:
		return http.StatusUnauthorized
	case Malformed:
		return http.StatusBadRequest
	case Unavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// Reply is an HTTP response, byte for byte.
type Reply struct {
	Status      int
	ContentType string
	Body        []byte
}

// Refused is the error for a message that is not proven to come from the supplier, or that
// cannot be parsed before that is checked. None of its fields may be used.
type Refused struct {
	Result Result       // BadSignature or Malformed
	Reason text.Message // for operators; never contains a key or the whole request
}

func (e *Refused) Error() string { return e.Reason.Error() }

// Unwrap returns the reason.
func (e *Refused) Unwrap() error { return e.Reason }

// RefuseSignature returns a *Refused for an invalid signature.
func RefuseSignature(code text.Code, args ...any) error {
	return &Refused{Result: BadSignature, Reason: code.Say(args...)}
}

// RefuseMalformed returns a *Refused for a message that cannot be parsed.
func RefuseMalformed(code text.Code, args ...any) error {
	return &Refused{Result: Malformed, Reason: code.Say(args...)}
}

// Unreadable is the error for a message that is authentic but cannot be parsed. It may be about
// money, so it becomes an exception. Callback holds what could be parsed (order, trade number),
// so that operators can find it.
type Unreadable struct {
	Kind     string // "decrypt_failed" or "malformed"
	Result   Result // how to answer: InternalFailed or Malformed
	Reason   text.Message
	Callback Callback
	// Signed is the part that the signature covers; "" = the whole body. Two messages with the
	// same Signed are the same message.
	Signed string
}

func (e *Unreadable) Error() string { return e.Reason.Error() }

// Kind describes one kind of supplier to the registry.
type Kind struct {
	Name string // "wechatpay", "alipay", …
	// Texts are the texts that rows of this kind store by code.
	Texts *text.Codes
	// Fields are the fields of its config. A secret one is a text without blanks or line breaks, or
	// a list of such, unless it is PEM.
	Fields []Field
	// New creates an adapter from the config of `apply` as JSON (unknown fields are an error).
	// Values "file:PATH" are resolved before. It returns a *FieldError if one field is to
	// blame; with one that is ForCalls it also returns an adapter without abilities. out sends
	// the calls of its abilities; without it there are none.
	New func(code string, config json.RawMessage, out Client) (Adapter, error)
	// Sign makes the callback that reports a payment, signed with a secret of the config that we
	// share with the supplier. Without a path: the caller knows the code. It returns
	// ErrSupplierKey, or a *FieldError if the config has no word for the status. nil = always
	// ErrSupplierKey.
	Sign func(config json.RawMessage, r Report) (*Request, error)
}

// Report is what a callback of our own making says about a payment.
type Report struct {
	OrderRef, TradeNo string
	Amount            int64 // minor units of Currency
	Currency          string
	Status            Status // Paid, Failed or Closed
	At                time.Time
}

// ErrSupplierKey means that the key that signs a supplier's callbacks is the supplier's alone.
var ErrSupplierKey = errors.New("its callbacks are signed with a private key that only the supplier has")

// FieldError names the invalid config field, and how to fix it.
type FieldError struct {
	Field   string // path inside config, e.g. "public_key" or "reply.success"
	Problem string
	// Calls means that only calls need the field. A stored config still receives callbacks:
	// refusing them would lose money for a call that was never made.
	Calls bool
}

func (e *FieldError) Error() string { return "config." + e.Field + ": " + e.Problem }

// ForCalls marks an error about settings that only calls need.
func ForCalls(err error) error {
	f := AsField(err)
	if f == nil {
		return err
	}
	marked := *f
	marked.Calls = true
	return &marked
}

// AsField returns the *FieldError in err's chain, or nil.
func AsField(err error) *FieldError {
	var f *FieldError
	if errors.As(err, &f) {
		return f
	}
	return nil
}

// CheckURL returns a *FieldError if a field is set but not an http or https URL.
func CheckURL(field, address string) error {
	if address == "" {
		return nil
	}
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return &FieldError{Field: field, Problem: "is not an http or https address"}
	}
	return nil
}

// JoinPairs formats fields as name=value&name=value, in the order of names. Values are not
// escaped.
func JoinPairs(fields map[string]string, names []string) string {
	pairs := make([]string, len(names))
	for i, name := range names {
		pairs[i] = name + "=" + fields[name]
	}
	return strings.Join(pairs, "&")
}
