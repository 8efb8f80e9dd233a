// Package callback receives suppliers' callbacks: it finds the supplier, lets its adapter
// verify and parse the message, passes the content to package payment, and answers as the
// supplier's protocol expects. A callback is acknowledged only after the commit.
package callback

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/metric"
	"backstop/internal/base/textlimit"
	"backstop/internal/base/trace"
	"backstop/internal/payment"
	"backstop/internal/settings"
	"backstop/internal/supplier"

	"golang.org/x/time/rate"
)

// Outcomes of callbacks that were not taken; package payment has the others.
const (
	UnknownSupplier = "unknown_supplier"
	WrongAddress    = "wrong_address"
	BadSignature    = "bad_signature"
	Unparsable      = "malformed_request" // unlike the exception "malformed", nothing in it is authentic
	AdapterFailed   = "adapter_failed"    // our own bug; the supplier sends it again
	Unavailable     = "unavailable"       // nothing is known to be committed; the supplier sends it again
	RateLimited     = "rate_limited"      // more than this address may send; not read
)

// Refused lists all of them.
var Refused = slices.Concat(refusedOutcomes, []string{Unavailable, RateLimited})

// Payments commits authentic callbacks; payment.Processor implements it.
type Payments interface {
	// Submit returns once the callback is committed. After an error nothing is known to be
	// committed.
	Submit(ctx context.Context, m *payment.Message) (payment.Outcome, error)
	// Preview returns what Take would do, and does nothing.
	Preview(ctx context.Context, m *payment.Message) (payment.Preview, error)
}

// Options of a Receiver.
type Options struct {
	DB       *db.DB
	Settings *settings.Store
	Payments Payments
	Refusals *Refusals
	Wait     time.Duration // longest time spent on one callback (CALLBACK_WAIT)
	Tracer   *trace.Tracer // nil = no tracing
}

// Receiver answers callbacks.
type Receiver struct {
	o      Options
	misses *rate.Limiter
}

// missEvery is how often an unknown code may make a node read newer settings. Nodes read them
// twice a second anyway; this only helps a supplier whose first callback directly follows its
// `apply`, and guessed codes must not cost a query each.
const missEvery = 250 * time.Millisecond

// New returns a Receiver.
func New(o Options) *Receiver {
	return &Receiver{o: o, misses: rate.NewLimiter(rate.Every(missEvery), 1)}
}

// Receipt is the result of one callback: the answer, and what is logged.
type Receipt struct {
	Reply      supplier.Reply
	Outcome    string
	OrderNo    string
	CallbackID int64
	// Err is why a callback was not taken that should have been.
	Err error
	// Flood means that this refused callback exceeds the number recorded for its supplier. It
	// is counted, and should not fill the log either.
	Flood bool
}

// Receive answers one callback. addrErr is why req.RemoteAddr is unknown.
//
// The time of receipt is by the database's clock: a node with a wrong clock would refuse
// genuine messages or accept old ones.
func (r *Receiver) Receive(ctx context.Context, code string, req *supplier.Request, addrErr error) Receipt {
	start := time.Now()
	req.ReceivedAt = r.o.DB.NowTime()
	ctx, cancel := context.WithTimeout(ctx, r.o.Wait)
	defer cancel()
	span := r.o.Tracer.Begin("callback")
	receipt := r.receive(trace.With(ctx, span), code, req, addrErr)
	span.Set("backstop.supplier", code)
	span.Set("backstop.outcome", receipt.Outcome)
	span.Set("backstop.order_no", receipt.OrderNo)
	span.End()
	metric.Callbacks.WithLabelValues(receipt.Outcome).Inc()
	if s, known := r.o.Settings.Current().Suppliers.Lookup(code); known { // others are anybody's words
		metric.SupplierCallbacks.WithLabelValues(s.Code, receipt.Outcome).Inc()
	}
	metric.CallbackSeconds.Observe(time.Since(start).Seconds())
	return receipt
}

func (r *Receiver) receive(ctx context.Context, code string, req *supplier.Request, addrErr error) Receipt {
	steps := supplier.NewTrace()
	s, known, err := r.lookup(ctx, code)
	broken, isBroken := r.o.Settings.Current().Suppliers.Broken(code)
	switch {
	case !known && isBroken:
		steps.Fail("supplier", notUsable, code)
		receipt := r.refuse(broken, code, AdapterFailed, req, steps, unusable)
		receipt.Err = errors.New("the supplier cannot be used on this node")
		return receipt
	case !known && err != nil: // it may have been declared a moment ago
		return Receipt{Reply: unusable, Outcome: Unavailable, Err: fmt.Errorf("look for the supplier: %w", err)}
	case !known:
		steps.Fail("supplier", noSupplier)
		return r.refuse(0, code, UnknownSupplier, req, steps, NotFound)
	}
	steps.Pass("supplier", supplierKnown)
	if !checkAddress(s, req, addrErr, steps) {
		return r.refuse(s.ID, s.Code, WrongAddress, req, steps, forbidden)
	}
	m, refused, err := verify(s, req, steps)
	if m == nil {
		receipt := r.refuse(s.ID, s.Code, refused.outcome, req, steps, s.Adapter.Reply(refused.result))
		receipt.Err = err
		return receipt
	}
	failpoint.Hit("after_verify")
	return r.take(ctx, m, req, steps)
}

// verdict is why a message is refused.
type verdict struct {
	outcome string
	result  supplier.Result
}

// verify lets the adapter verify and parse a message; nil = it is refused. The error is a fault of
// ours.
func verify(s supplier.Entry, req *supplier.Request, steps *supplier.Trace) (m *payment.Message, why verdict, fault error) {
	if kind, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type")); len(req.Body) > 0 && strings.HasPrefix(kind, "multipart/") {
		steps.Fail("form", multipart, kind)
		return nil, verdict{Unparsable, supplier.Malformed}, nil
	}
	content, err := parse(s.Adapter, req, steps)
	m = &payment.Message{Supplier: s, Content: content}
	var refused *supplier.Refused
	switch {
	case errors.As(err, &refused) && refused.Result == supplier.BadSignature:
		return nil, verdict{BadSignature, supplier.BadSignature}, nil
	case errors.As(err, &refused):
		return nil, verdict{Unparsable, supplier.Malformed}, nil
	case errors.As(err, &m.Unreadable):
		m.Content = m.Unreadable.Callback
	case err != nil:
		steps.Fail("adapter", adapterBroke)
		return nil, verdict{AdapterFailed, supplier.InternalFailed}, err
	}
	return m, verdict{}, nil
}

// take waits for the commit and then answers.
func (r *Receiver) take(ctx context.Context, m *payment.Message, req *supplier.Request, steps *supplier.Trace) Receipt {
	m.Source = source(m.Supplier, req, steps)
	adapter := m.Supplier.Adapter
	commit := trace.Of(ctx).Child("commit")
	m.Trace = commit.Parent()
	outcome, err := r.o.Payments.Submit(ctx, m)
	if err != nil {
		commit.Fail(Unavailable)
	}
	commit.End()
	if err != nil {
		return Receipt{
			Reply: adapter.Reply(supplier.Unavailable), Outcome: Unavailable, OrderNo: m.Content.OrderRef,
			Err: fmt.Errorf("take the callback: %w", err),
		}
	}
	return Receipt{
		Reply: adapter.Reply(outcome.Result), Outcome: outcome.Name, OrderNo: outcome.OrderNo, CallbackID: outcome.CallbackID,
	}
}

// source returns the source of a message: the request as it is stored.
func source(s supplier.Entry, req *supplier.Request, steps *supplier.Trace) payment.Source {
	return payment.ByCallback(s, payment.Record{
		ReceivedAt: req.ReceivedAt.UnixMicro(), RemoteAddr: addrText(req), Method: req.Method,
		Query: storableQuery(req), Header: textlimit.Cut(storableHeader(req.Header), keepBytes), Body: req.Body,
		Steps: steps.Steps,
	})
}

// lookup finds the supplier, reading newer settings if necessary. The error says why they could
// not be read.
func (r *Receiver) lookup(ctx context.Context, code string) (s supplier.Entry, known bool, err error) {
	if s, known = r.o.Settings.Current().Suppliers.Lookup(code); known || !r.misses.Allow() {
		return s, known, nil
	}
	err = r.o.Settings.Refresh(ctx)
	s, known = r.o.Settings.Current().Suppliers.Lookup(code)
	return s, known, err
}

// checkAddress denies unknown addresses even if the list is empty: a malformed X-Forwarded-For
// may be forged.
func checkAddress(s supplier.Entry, req *supplier.Request, addrErr error, steps *supplier.Trace) bool {
	const step = "address"
	switch {
	case addrErr != nil:
		steps.FailBy(step, addrErr)
		return false
	case !s.Allowed(req.RemoteAddr):
		steps.Fail(step, notAllowed, req.RemoteAddr)
		return false
	case len(s.AllowIPs) == 0:
		steps.Pass(step, anyAddress)
	default:
		steps.Pass(step, allowed)
	}
	return true
}

// parse lets the adapter verify and parse the message. A message from outside may trigger a bug
// in an adapter; its panic must not end the process.
func parse(a supplier.Adapter, req *supplier.Request, steps *supplier.Trace) (content supplier.Callback, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the adapter panicked: %v\n%s", p, debug.Stack())
		}
	}()
	content, err = a.Parse(req, steps)
	return bound(content, err, steps)
}

// bound turns a message with texts too long for a database index into an exception. Otherwise
// it would fail at every commit and never be seen.
func bound(content supplier.Callback, err error, steps *supplier.Trace) (supplier.Callback, error) {
	var unreadable *supplier.Unreadable
	if errors.As(err, &unreadable) {
		unreadable.Callback.Bound()
	}
	if err != nil {
		return content, err
	}
	field := content.Bound()
	if field == "" {
		return content, nil
	}
	return steps.FailContent(content, fieldTooLong.Say(field), "")
}

// refuse passes the callback to the recorder, which writes after the answer.
func (r *Receiver) refuse(supplierID int64, code, outcome string, req *supplier.Request, steps *supplier.Trace,
	reply supplier.Reply,
) Receipt {
	recorded := r.o.Refusals.note(supplierID, refusal{
		supplier: code, outcome: outcome, receivedAt: req.ReceivedAt.UnixMicro(), request: req, steps: steps.Steps,
	})
	return Receipt{Reply: reply, Outcome: outcome, Flood: !recorded}
}

// NotFound is the answer if no supplier has the code.
var NotFound = plain(http.StatusNotFound, "no such supplier\n")

// Other answers that do not come from an adapter.
var (
	// With a 404 a supplier might give up for good.
	unusable  = plain(http.StatusServiceUnavailable, "not available, send it again\n")
	forbidden = plain(http.StatusForbidden, "address not allowed\n")
)

func plain(status int, text string) supplier.Reply {
	return supplier.Reply{Status: status, ContentType: "text/plain; charset=utf-8", Body: []byte(text)}
}
