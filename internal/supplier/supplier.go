// Package supplier is the boundary to payment suppliers (供应商): the content of
// their callbacks, and the replies that they expect.
//
// Each kind of supplier has a folder of its own below this one. An adapter
// translates between a supplier's protocol and the types here; it decides nothing
// about orders and reads no database. What no supplier library checks (duplicate
// parameters, duplicate JSON keys, unusual number forms, time windows on both sides)
// is checked by the helpers of this package, once for every kind.
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

// Request is one inbound call. Everything in it is a copy: the HTTP server
// reuses its own buffers as soon as the handler returns.
type Request struct {
	Method     string
	Path       string
	RawQuery   string
	Header     http.Header
	Body       []byte
	RemoteAddr netip.Addr // the client's address after trusted proxies are skipped
	ReceivedAt time.Time  // the database's clock; signed times are judged by it
}

// Status is the state of the payment that a callback reports.
type Status string

// Neither Other nor Unknown moves an order. Other is a word that the adapter's table
// lists as harmless; an Unknown one may be about money, and operators must see it.
const (
	Paid     Status = "paid"     // the money is there
	Failed   Status = "failed"   // this try failed; see Callback.Final
	Closed   Status = "closed"   // the payment can never be made any more; see Callback.Reverses
	Refunded Status = "refunded" // money went back
	Disputed Status = "disputed" // the buyer's bank demands the money back; see Callback.Dispute
	Other    Status = "other"    // nothing that moves an order
	Unknown  Status = "unknown"  // a word that is not in the adapter's table
)

// Meaning is what one of a supplier's words stands for.
type Meaning struct {
	Status   Status
	Final    bool // see Callback.Final
	Reverses bool // see Callback.Reverses
	// Answer is the state that the word gives an answer, where Status does not say it.
	Answer   AnswerState
	Refunded bool // see Answer.Refunded
}

// State is the state that the word gives an answer. A failure that is not final is one
// try: the payment may be made still.
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

// Words is the table of a supplier's words, for callbacks and for answers alike.
type Words map[string]Meaning

// Of returns the meaning of a word; one that is not in the table is Unknown.
func (w Words) Of(word string) Meaning {
	if m, known := w[word]; known {
		return m
	}
	return Meaning{Status: Unknown}
}

// Callback is an authentic message after translation. Only an adapter that has
// verified the signature may return one.
type Callback struct {
	// EventKey is the supplier's replay key: equal for every repeat of one fact,
	// different for another fact (domain: transaction and state). Not empty.
	EventKey string
	// OrderRef is the reference that we gave the supplier: the order_no, or a
	// later attempt's supplier_ref.
	OrderRef string
	// TradeNo is the supplier's own number for the payment.
	TradeNo string
	Status  Status
	// RawStatus is the supplier's own word, for operators.
	RawStatus string
	// Final, of a Failed callback: the buyer cannot try again under this reference. A
	// failure that is not final moves nothing.
	Final bool
	// Reverses, of a Closed callback: where the payment was made, the word means that
	// all of it went back to the buyer.
	Reverses bool
	// Amount is in minor units of Currency (ISO 4217, upper case).
	Amount   int64
	Currency string
	// Identity names the account that the message is for, under the same names as
	// Adapter.Identity.
	Identity map[string]string
	// RefundNo is our own refund number, of a Refunded callback that names it.
	RefundNo string
	// Dispute is set in a Disputed callback, which carries no reference of ours: its
	// order is the one that TradeNo paid.
	Dispute *Dispute
	// OccurredAt is the supplier's time of the fact; zero where it gives none.
	OccurredAt time.Time
}

// Dispute is the dispute that a Disputed callback is about. Amount and currency of
// the callback are those of the dispute; an amount of 0 is one that could not be read.
type Dispute struct {
	No     string    // the supplier's number: one dispute is one exception
	Reason string    // the supplier's word
	Status string    // the supplier's word
	DueBy  time.Time // until when evidence is accepted; zero where none is wanted
	Over   bool      // won, lost or withdrawn
}

// Longest texts of a callback in bytes. Suppliers stay far below; more than about
// 2,600 in one key, and PostgreSQL cannot index the row.
const (
	maxNumber   = 512
	maxEventKey = 1024 // it may hold two numbers
	maxCurrency = 16
)

// Bound cuts texts that are too long to be stored. It returns the name of a field
// that was cut and that matching depends on, "" where there is none.
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
		{"currency", &c.Currency, maxCurrency},
		{"refund number", &c.RefundNo, maxNumber},
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

// Adapter speaks one supplier's protocol with one supplier's keys. It is
// immutable and safe for concurrent use; keys are parsed when it is made.
type Adapter interface {
	// Parse verifies the signature first and reads fields only after that. It
	// records each check in t. Errors are *Refused or *Unreadable.
	Parse(req *Request, t *Trace) (Callback, error)
	// Reply is the answer that this supplier's protocol expects.
	Reply(Result) Reply
	// Identity is what Callback.Identity must be: the configured application,
	// seller and merchant numbers by name. Empty values are not configured.
	Identity() map[string]string
	// Account names the supplier-side account, e.g. "wechatpay:1900000001":
	// trade numbers are unique within it.
	Account() string
}

// Result is how a callback is answered.
type Result int

// Only Taken is answered as success, and only after the commit.
const (
	Taken          Result = iota // committed, or already known
	BadSignature                 // 401 unless the protocol wants another status
	Malformed                    // 400
	Unavailable                  // 503: busy, or the database did not answer; send again
	InternalFailed               // 500: our fault, e.g. the message cannot be decrypted; send again
)

// HTTPStatus is the status of the answer, where the protocol wants no other one.
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

// Reply is an HTTP answer, byte for byte.
type Reply struct {
	Status      int
	ContentType string
	Body        []byte
}

// Refused is the error of a message that is not proven to come from the supplier, or
// that cannot be read before that is checked. No field of it may be used.
type Refused struct {
	Result Result       // BadSignature or Malformed
	Reason text.Message // for operators; never holds a key or the whole request
}

func (e *Refused) Error() string { return e.Reason.Error() }

// Unwrap is the reason.
func (e *Refused) Unwrap() error { return e.Reason }

// RefuseSignature returns a *Refused for a signature that does not hold.
func RefuseSignature(code text.Code, args ...any) error {
	return &Refused{Result: BadSignature, Reason: code.Say(args...)}
}

// RefuseMalformed returns a *Refused for a message that cannot be read.
func RefuseMalformed(code text.Code, args ...any) error {
	return &Refused{Result: Malformed, Reason: code.Say(args...)}
}

// Unreadable is the error of a message that is authentic but cannot be read: money
// may be behind it, so it becomes an exception. Callback holds what could be read
// (order, trade number), so that operators can find it.
type Unreadable struct {
	Kind     string // "decrypt_failed" or "malformed"
	Result   Result // what to answer: InternalFailed or Malformed
	Reason   text.Message
	Callback Callback
	// Signed is what the signature covers; "" = the whole body. Two messages that
	// differ in nothing else are the same.
	Signed string
}

func (e *Unreadable) Error() string { return e.Reason.Error() }

// Step is one verification step as the console shows it: the finding, by its code,
// with arguments where it failed.
type Step struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	text.Message
	Detail string `json:"detail,omitempty"`  // a sentence, in rows older than the codes
	TookUS int64  `json:"took_us,omitempty"` // µs since the step before; 0 = not measured
}

// Text is the finding in English.
func (s Step) Text(known text.Catalog) string {
	if s.Code == "" {
		return s.Detail
	}
	return known.Say(s.Message, "en", nil)
}

// Trace collects the verification steps of one callback. Details are stored and
// shown: they must not hold secrets.
type Trace struct {
	Steps []Step
	last  time.Time // when the newest step was done
}

// NewTrace begins a Trace that measures its steps; the zero Trace does not.
func NewTrace() *Trace { return &Trace{last: time.Now()} }

// maxDetail bounds one argument of a step: it may come from outside.
const maxDetail = 300

// Pass records a check that passed.
func (t *Trace) Pass(name string, code text.Code) { t.add(name, true, code.Say()) }

// Fail records a check that failed.
func (t *Trace) Fail(name string, code text.Code, args ...any) { t.add(name, false, code.Say(args...)) }

// FailContent records that an authentic message cannot be read, and returns the end of
// Parse: an *Unreadable with what could be read, which moves nothing. signed is what the
// signature covers; "" = the whole body.
func (t *Trace) FailContent(c Callback, err error, signed string) (Callback, error) {
	t.FailBy("content", err)
	c.Status, c.Final, c.Reverses = Other, false, false
	return Callback{}, &Unreadable{Kind: "malformed", Result: Malformed, Reason: text.Of(err), Callback: c, Signed: signed}
}

// FailBy records a check that failed with an error.
func (t *Trace) FailBy(name string, err error) {
	said := text.Of(err)
	if said.Code == "" {
		said = unexpected.Say(err)
	}
	t.add(name, false, said)
}

func (t *Trace) add(name string, ok bool, said text.Message) {
	if t == nil {
		return
	}
	var took int64
	if !t.last.IsZero() {
		now := time.Now()
		took, t.last = now.Sub(t.last).Microseconds(), now
	}
	t.Steps = append(t.Steps, Step{Name: name, OK: ok, Message: said.Map(func(arg string) string { return textlimit.Clip(arg, maxDetail) }), TookUS: took})
}

// Kind describes one kind of supplier to the registry.
type Kind struct {
	Name string // "wechatpay", "alipay", …
	// Texts are the texts that rows of this kind keep by their codes.
	Texts *text.Codes
	// Secrets names the config fields that are sealed at rest.
	Secrets []string
	// New makes an adapter from the config of `apply` as JSON (unknown fields are
	// an error). Values "file:PATH" are resolved before. It returns a *FieldError
	// where one field is to blame, and beside one that is ForCalls an adapter that has no
	// abilities. out sends the calls of its abilities; without it there are none.
	New func(code string, config json.RawMessage, out Client) (Adapter, error)
}

// FieldError names the config field that is wrong, and how to fix it.
type FieldError struct {
	Field   string // path inside config, e.g. "public_key" or "reply.success"
	Problem string
	// Calls: only calls need the field. A config that is stored already takes callbacks all
	// the same: refusing them would lose money for a call that was never made.
	Calls bool
}

func (e *FieldError) Error() string { return "config." + e.Field + ": " + e.Problem }

// ForCalls is an error about settings that only calls need.
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

// CheckURL returns a *FieldError where a field that is set is no http or https URL.
func CheckURL(field, address string) error {
	if address == "" {
		return nil
	}
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return &FieldError{Field: field, Problem: "is not an http or https address"}
	}
	return nil
}

// JoinPairs writes fields as name=value&name=value, in the order of names. Values are
// not escaped.
func JoinPairs(fields map[string]string, names []string) string {
	pairs := make([]string, len(names))
	for i, name := range names {
		pairs[i] = name + "=" + fields[name]
	}
	return strings.Join(pairs, "&")
}
