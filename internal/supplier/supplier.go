// Package supplier is the boundary to payment suppliers (供应商): what one of
// their callbacks says, and what they want to hear back.
//
// Each kind of supplier lives in a folder of its own below this one. An adapter
// translates between a supplier's protocol and the types here; it decides
// nothing about orders and reads no database. What no supplier library checks
// (duplicate parameters, duplicate JSON keys, odd number forms, time windows on
// both sides) is checked by the helpers of this package, once for every kind.
package supplier

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
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

// Status is what a callback says of the payment, in our words.
type Status string

// Neither Other nor Unknown moves an order. Other is a word that the adapter names
// as harmless; an Unknown one may be about money, and operators must see it.
const (
	Paid     Status = "paid"     // the money is there
	Failed   Status = "failed"   // this try failed; see Callback.Final
	Closed   Status = "closed"   // the payment can never be made any more; see Callback.Reverses
	Refunded Status = "refunded" // money went back
	Disputed Status = "disputed" // the buyer's bank demands the money back; see Callback.Dispute
	Other    Status = "other"    // says nothing that moves an order
	Unknown  Status = "unknown"  // a word that the adapter's table does not hold
)

// Meaning is what one of a supplier's words says. Each adapter has one table of
// them, for callbacks and for answers alike.
type Meaning struct {
	Status   Status
	Final    bool // see Callback.Final
	Reverses bool // see Callback.Reverses
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
	// RawStatus is the supplier's own word, for people.
	RawStatus string
	// Final says of a Failed callback that the buyer cannot try again under this
	// reference. A failure that is not final moves nothing.
	Final bool
	// Reverses says of a Closed callback that its word means something else of a
	// payment that was made: all of it went back to the buyer.
	Reverses bool
	// Amount is in minor units of Currency (ISO 4217, upper case).
	Amount   int64
	Currency string
	// Identity holds what the message says of whose account it is for, under the
	// same names as Adapter.Identity.
	Identity map[string]string
	// RefundNo is our own refund number, of a Refunded callback that names it.
	RefundNo string
	// Dispute is set in a Disputed callback, which carries no reference of ours: its
	// order is the one that TradeNo paid.
	Dispute *Dispute
	// OccurredAt is the supplier's time of the fact; zero where it gives none.
	OccurredAt time.Time
}

// Dispute is what a Disputed callback says of the dispute itself. Amount and
// currency of the callback are those of the dispute; an amount of 0 is one that
// could not be read.
type Dispute struct {
	No     string    // the supplier's number: one dispute is one exception
	Reason string    // the supplier's word
	Status string    // the supplier's word for where it stands
	DueBy  time.Time // until when evidence is accepted; zero where none is wanted
	Over   bool      // won, lost or withdrawn
}

// Longest texts of a callback in bytes. Suppliers stay far below; more than about
// 2,600 in one key, and PostgreSQL cannot index the row.
const (
	maxNumber   = 512
	maxEventKey = 1024 // two numbers may stand in it
	maxCurrency = 16
)

// Bound cuts what is too long to be kept and names it; "" = nothing was that
// decides anything.
func (c *Callback) Bound() (field string) {
	c.RawStatus = textlimit.Cut(c.RawStatus, maxNumber)
	var dispute Dispute
	if c.Dispute != nil {
		dispute = *c.Dispute
		dispute.Reason, dispute.Status = textlimit.Cut(dispute.Reason, maxNumber), textlimit.Cut(dispute.Status, maxNumber)
		defer func() { c.Dispute = &dispute }()
	}
	for _, f := range []struct {
		name string
		text *string
		most int
	}{
		{"dispute number", &dispute.No, maxNumber},
		{"currency", &c.Currency, maxCurrency},
		{"refund number", &c.RefundNo, maxNumber},
		{"event key", &c.EventKey, maxEventKey},
		{"trade number", &c.TradeNo, maxNumber},
		{"order number", &c.OrderRef, maxNumber},
	} {
		if len(*f.text) > f.most {
			*f.text, field = textlimit.Cut(*f.text, f.most), f.name
		}
	}
	return field
}

// Adapter speaks one supplier's protocol with one supplier's keys. It is
// immutable and safe for concurrent use; keys are parsed when it is made.
type Adapter interface {
	// Parse verifies the signature first and reads fields only after that. It
	// notes each check in t. Errors are *Refused or *Unreadable.
	Parse(req *Request, t *Trace) (Callback, error)
	// Reply is the answer that this supplier's protocol expects.
	Reply(Result) Reply
	// Identity is what Callback.Identity must say: the configured application,
	// seller and merchant numbers by name. Empty values are not configured.
	Identity() map[string]string
	// Account names the supplier-side account, e.g. "wechatpay:1900000001":
	// trade numbers are unique within it.
	Account() string
}

// Result is what became of a callback, as far as the supplier is concerned.
type Result int

// Only Taken is answered as success, and only after the commit.
const (
	Taken          Result = iota // committed, or already known
	BadSignature                 // 401 unless the protocol wants another status
	Malformed                    // 400
	Unavailable                  // 503: busy, or the database did not answer; send again
	InternalFailed               // 500: our fault, e.g. the message cannot be decrypted; send again
)

// Reply is an HTTP answer, byte for byte.
type Reply struct {
	Status      int
	ContentType string
	Body        []byte
}

// Refused says that a message cannot be taken as coming from the supplier, or
// cannot be read before that is known. Nothing of it may be believed.
type Refused struct {
	Result Result    // BadSignature or Malformed
	Reason text.Said // for people; never holds a key or the whole request
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

// Unreadable says that a message is authentic but cannot be understood: money
// may be behind it, so it becomes an exception that people see. Callback holds
// what could be read (order, trade number), so that they can find it.
type Unreadable struct {
	Kind     string // "decrypt_failed" or "malformed"
	Result   Result // what to answer: InternalFailed or Malformed
	Reason   text.Said
	Callback Callback
	// Signed is what the signature covers; "" = the whole body. Two messages that
	// differ in nothing else are the same.
	Signed string
}

func (e *Unreadable) Error() string { return e.Reason.Error() }

// Step is one verification step as people see it in the console: what was found, by
// its code, with arguments where it failed.
type Step struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	text.Said
	Detail string `json:"detail,omitempty"`  // a sentence, in rows of before there were codes
	TookUS int64  `json:"took_us,omitempty"` // µs since the step before; 0 = not measured
}

// Text says in English what was found.
func (s Step) Text(known text.Catalog) string {
	if s.Code == "" {
		return s.Detail
	}
	return known.Say(s.Said, "en", nil)
}

// Trace collects the verification steps of one callback. Details are shown to
// people and stored: they must not hold secrets.
type Trace struct {
	Steps []Step
	last  time.Time // when the newest step was done
}

// NewTrace begins a Trace that measures its steps; the zero Trace does not.
func NewTrace() *Trace { return &Trace{last: time.Now()} }

// maxDetail bounds one argument of a step: it may come from outside.
const maxDetail = 300

// Pass notes a check that held.
func (t *Trace) Pass(name string, code text.Code) { t.add(name, true, code.Say()) }

// Fail notes a check that did not hold.
func (t *Trace) Fail(name string, code text.Code, args ...any) { t.add(name, false, code.Say(args...)) }

// FailBy notes a check that did not hold, and why.
func (t *Trace) FailBy(name string, err error) {
	said := text.Of(err)
	if said.Code == "" {
		said = unexpected.Say(err)
	}
	t.add(name, false, said)
}

func (t *Trace) add(name string, ok bool, said text.Said) {
	if t == nil {
		return
	}
	var took int64
	if !t.last.IsZero() {
		now := time.Now()
		took, t.last = now.Sub(t.last).Microseconds(), now
	}
	t.Steps = append(t.Steps, Step{Name: name, OK: ok, Said: said.Map(func(arg string) string { return textlimit.Clip(arg, maxDetail) }), TookUS: took})
}

// Kind describes one kind of supplier to the registry.
type Kind struct {
	Name string // "wechatpay", "alipay", …
	// Texts are what rows keep of this kind by a code.
	Texts *text.Codes
	// Secrets names the config fields that are sealed at rest.
	Secrets []string
	// New makes an adapter from the config of `apply` as JSON (unknown fields are
	// an error). Values "file:PATH" are resolved before. It returns a *FieldError
	// where one field is to blame.
	New func(code string, config json.RawMessage) (Adapter, error)
}

// FieldError names the config field that is wrong and how to mend it.
type FieldError struct {
	Field   string // path inside config, e.g. "public_key" or "reply.success"
	Problem string
}

func (e *FieldError) Error() string { return "config." + e.Field + ": " + e.Problem }

// AsField returns the *FieldError in err's chain, or nil.
func AsField(err error) *FieldError {
	var f *FieldError
	if errors.As(err, &f) {
		return f
	}
	return nil
}
