// Package callback receives the calls of suppliers: it finds the supplier, has its
// adapter verify and read the message, gives the content to the payment, and answers
// as the supplier's protocol expects. "Taken" is only answered after the commit.
package callback

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/metric"
	"backstop/internal/base/textlimit"
	"backstop/internal/base/trace"
	"backstop/internal/exception"
	"backstop/internal/payment"
	"backstop/internal/settings"
	"backstop/internal/supplier"

	"golang.org/x/time/rate"
)

// Outcomes of callbacks that were not taken. Those that were have the outcomes
// of package payment.
const (
	UnknownSupplier  = "unknown_supplier"
	DisabledSupplier = "disabled_supplier"
	WrongAddress     = "wrong_address"
	BadSignature     = "bad_signature"
	Unparsable       = "malformed_request" // unlike the exception "malformed", nothing of it is authentic
	AdapterFailed    = "adapter_failed"    // our own mistake: the supplier sends again
	Unavailable      = "unavailable"       // nothing is known to be committed: the supplier sends again
	RateLimited      = "rate_limited"      // more than its address may send; nobody looks at it
)

// Refused are all of them.
var Refused = []string{
	UnknownSupplier, DisabledSupplier, WrongAddress, BadSignature, Unparsable, AdapterFailed, Unavailable, RateLimited,
}

// Payments commits authentic callbacks; it is payment.Processor.
type Payments interface {
	// Take returns once the callback is committed. After an error nothing is known
	// to be.
	Take(ctx context.Context, m *payment.Message) (payment.Outcome, error)
}

// Options of a Receiver.
type Options struct {
	DB       *db.DB
	Settings *settings.Store
	Payments Payments
	Refusals *Refusals
	Wait     time.Duration // longest stay of one callback (CALLBACK_WAIT)
	Tracer   *trace.Tracer // nil = nothing is followed
}

// Receiver is the way of every callback from the door to its answer.
type Receiver struct {
	o      Options
	misses *rate.Limiter
}

// missEvery is how often an unknown code may make us look for newer settings.
// Every node looks twice a second anyway; this only serves a supplier whose first
// callback follows its `apply` at once, and a stranger who tries codes must not
// turn each try into a query.
const missEvery = 250 * time.Millisecond

// New returns a Receiver.
func New(o Options) *Receiver {
	return &Receiver{o: o, misses: rate.NewLimiter(rate.Every(missEvery), 1)}
}

// Receipt is what became of one callback: the answer, and what the log says.
type Receipt struct {
	Reply      supplier.Reply
	Outcome    string
	OrderNo    string
	CallbackID int64
	// Err is why a callback could not be taken that should have been.
	Err error
	// Flood says of a refused callback that its supplier has had more of them than
	// are recorded; they are counted, and should not fill the log either.
	Flood bool
}

// Receive answers one callback. addrErr says why req.RemoteAddr is not known.
//
// It came at a moment by the database's clock. A node whose own clock is wrong
// would refuse what is genuine, or take what is old.
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
	metric.CallbackSeconds.Observe(time.Since(start).Seconds())
	return receipt
}

func (r *Receiver) receive(ctx context.Context, code string, req *supplier.Request, addrErr error) Receipt {
	steps := supplier.NewTrace()
	s, known := r.lookup(ctx, code)
	broken, isBroken := r.o.Settings.Current().Suppliers.Broken(code)
	switch {
	case !known && isBroken:
		steps.Fail("supplier", notUsable, code)
		receipt := r.refuse(broken, code, AdapterFailed, req, steps, unusable)
		receipt.Err = errors.New("the supplier cannot be used on this node")
		return receipt
	case !known:
		steps.Fail("supplier", noSupplier)
		return r.refuse(0, code, UnknownSupplier, req, steps, NotFound)
	case !s.Enabled:
		steps.Fail("supplier", isDisabled, s.Code)
		return r.refuse(s.ID, s.Code, DisabledSupplier, req, steps, NotFound)
	}
	steps.Pass("supplier", supplierKnown)
	if !checkAddress(s, req, addrErr, steps) {
		return r.refuse(s.ID, s.Code, WrongAddress, req, steps, forbidden)
	}
	content, err := parse(s.Adapter, req, steps)
	m := &payment.Message{Supplier: s, Content: content}
	var refused *supplier.Refused
	switch {
	case errors.As(err, &refused) && refused.Result == supplier.BadSignature:
		return r.refuse(s.ID, s.Code, BadSignature, req, steps, s.Adapter.Reply(supplier.BadSignature))
	case errors.As(err, &refused):
		return r.refuse(s.ID, s.Code, Unparsable, req, steps, s.Adapter.Reply(supplier.Malformed))
	case errors.As(err, &m.Unreadable):
		m.Content = m.Unreadable.Callback
	case err != nil:
		steps.Fail("adapter", adapterBroke)
		receipt := r.refuse(s.ID, s.Code, AdapterFailed, req, steps, s.Adapter.Reply(supplier.InternalFailed))
		receipt.Err = err
		return receipt
	}
	failpoint.Hit("after_verify")
	return r.take(ctx, m, req, steps)
}

// take waits for the commit; only then is the supplier answered that we have it.
func (r *Receiver) take(ctx context.Context, m *payment.Message, req *supplier.Request, steps *supplier.Trace) Receipt {
	m.Source = payment.ByCallback(m.Supplier, payment.Record{
		ReceivedAt: req.ReceivedAt.UnixMicro(), RemoteAddr: addrText(req), Method: req.Method,
		Query: storableQuery(req.RawQuery), Header: textlimit.Cut(storableHeader(req.Header), keepBytes), Body: req.Body,
		Steps: storableSteps(steps.Steps),
	})
	adapter := m.Supplier.Adapter
	commit := trace.Of(ctx).Child("commit")
	m.Trace = commit.Parent()
	outcome, err := r.o.Payments.Take(ctx, m)
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

// lookup finds the supplier, in newer settings if need be.
func (r *Receiver) lookup(ctx context.Context, code string) (supplier.Entry, bool) {
	if s, ok := r.o.Settings.Current().Suppliers.Lookup(code); ok || !r.misses.Allow() {
		return s, ok
	}
	// Where the look fails, the settings that we have stay in force.
	_ = r.o.Settings.Refresh(ctx)
	return r.o.Settings.Current().Suppliers.Lookup(code)
}

// checkAddress: an address that is not known is denied even where the list is
// empty, since whoever breaks X-Forwarded-For has something to hide.
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

// parse has the adapter verify and read the message. A panic in an adapter is
// our mistake about a message from outside: it must not end the process.
func parse(a supplier.Adapter, req *supplier.Request, steps *supplier.Trace) (content supplier.Callback, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the adapter panicked: %v\n%s", p, debug.Stack())
		}
	}()
	content, err = a.Parse(req, steps)
	return bound(content, err, steps)
}

// bound keeps texts that no database could index out of the way of money: such a
// message would fail at every commit, and nobody would see it.
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
	steps.Fail("content", fieldTooLong, field)
	content.Status, content.Final = supplier.Other, false
	return supplier.Callback{}, &supplier.Unreadable{
		Kind: exception.Malformed, Result: supplier.Malformed, Reason: fieldTooLong.Say(field), Callback: content,
	}
}

// refuse hands the call to the recorder, which works after the answer.
func (r *Receiver) refuse(supplierID int64, code, outcome string, req *supplier.Request, steps *supplier.Trace, reply supplier.Reply) Receipt {
	recorded := r.o.Refusals.note(supplierID, refusal{
		supplier: code, outcome: outcome, receivedAt: req.ReceivedAt.UnixMicro(), request: req, steps: steps.Steps,
	})
	return Receipt{Reply: reply, Outcome: outcome, Flood: !recorded}
}

// NotFound answers where no supplier, or a disabled one, has the code.
var NotFound = plain(http.StatusNotFound, "no such supplier\n")

// Other answers where no adapter has a say.
var (
	// A supplier that is told there is no such address may give up for good.
	unusable  = plain(http.StatusServiceUnavailable, "not available, send it again\n")
	forbidden = plain(http.StatusForbidden, "address not allowed\n")
)

func plain(status int, text string) supplier.Reply {
	return supplier.Reply{Status: status, ContentType: "text/plain; charset=utf-8", Body: []byte(text)}
}
