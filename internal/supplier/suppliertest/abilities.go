package suppliertest

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/supplier"
)

// Reference is our number of the payment in the suite's calls and answers. It has no hyphen,
// which Alipay does not accept.
const Reference = "SO20260301000001_2"

// Op is a kind of call, named as in the contract.
type Op string

// RefundNo is our number of the refund that the suite's calls and answers are about.
const RefundNo = "R20260301000001"

// PayoutNo is our number of the payout that the suite's calls and answers are about.
const PayoutNo = "P20260301000001"

// The calls.
const (
	Pay         Op = "pay"
	Query       Op = "query"
	Close       Op = "close"
	Refund      Op = "refund"
	RefundQuery Op = "refund_query"
	Payout      Op = "payout"
	PayoutQuery Op = "payout_query"
)

// Abilities describes one configured supplier that can be called, and its answers.
type Abilities struct {
	// New creates the adapter; its calls use the client.
	New func(out supplier.Client) supplier.Adapter
	// Stranger creates an adapter with other keys of the supplier; nil if the kind does not
	// sign answers.
	Stranger func(out supplier.Client) supplier.Adapter
	// Payment is what is started, without Reference, OrderNo and the times, which the suite
	// sets. The Ref of query and close has its amount, currency and ExternalID.
	Payment    supplier.Payment
	ExternalID string
	// Refund is what is refunded, without No and Reference, and Refunded what is read of the
	// answer to either of its calls, without Exchange.
	Refund   supplier.Refund
	Refunded map[Op]supplier.RefundAnswer
	// Payout is what is paid out, without No, and PaidOut what is read of the answer to either
	// of its calls, without Exchange.
	Payout  supplier.Payout
	PaidOut map[Op]supplier.PayoutAnswer
	// Answer is the answer to a call, signed where the kind signs, with the change: to Pay one
	// that accepts, to Query one that says paid, to Close one that says closed, to the calls of
	// refunds and payouts one that says succeeded. The fields of Change that the answer does not
	// have are ignored (Has). It must be safe for concurrent use.
	Answer func(Op, Change) supplier.Exchange
	// Has names the parts of Change that an answer to the call has: "OrderRef", "TradeNo",
	// "Amount", "Currency", "Status", "Account", "RefundNo", "PayoutNo", "Duplicate". The suite
	// changes no others.
	Has map[Op][]string
	// Signed puts a body (for Alipay: a node) into an answer to the call, with the status of
	// the genuine one, signed if the kind signs answers.
	Signed func(op Op, body []byte) supplier.Exchange
	// Started is the content of the accepting answer, without Exchange.
	Started supplier.Started
	// Says is the content of the answer to Query, Closed that of the answer to Close.
	Says, Closed supplier.Callback
	// Cases are further answers with their meanings: every status in the kind's table, and
	// every error that is not simply unknown.
	Cases []AnswerCase
	// SignatureHeaders are the headers with the signature. Empty if it is in the body, or if
	// the kind does not sign answers.
	SignatureHeaders []string
	// Window is the tolerated difference of the signed time from Now; 0 = no signed time.
	Window time.Duration
	// Secrets are the keys in the adapter's config and the secrets in answers. None may appear
	// in what is stored of a call.
	Secrets []string
	// Key returns what must be equal when a call is repeated; nil = method, URL, body and the
	// header Idempotency-Key.
	Key func(r *http.Request, body []byte) string
}

// AnswerCase is one answer and its meaning. Of a start, State is one of supplier.Started's,
// of a refund one of supplier.RefundAnswer's, of a payout one of supplier.PayoutAnswer's.
type AnswerCase struct {
	Name   string
	Op     Op
	Answer supplier.Exchange
	State  string
	// RefundTotal is what a paid answer says about refunds, see supplier.Callback.
	RefundTotal int64
	Class       supplier.Class
}

// RunAbilities runs every claim as a subtest.
func RunAbilities(t *testing.T, s Abilities) {
	t.Helper()
	for _, c := range abilityClaims {
		t.Run(c.name, func(t *testing.T) { c.check(&querier{reporter: t, Abilities: s}) })
	}
}

// Line is a client that answers with a function and records what was sent.
type Line struct {
	// Reply answers; a zero At is replaced by Now.
	Reply func(r *http.Request, body []byte) supplier.Exchange

	mu   sync.Mutex
	sent []Sent
}

// Sent is one request received by a Line.
type Sent struct {
	Request *http.Request
	Body    []byte
}

// Do records the request and answers.
func (l *Line) Do(r *http.Request) supplier.Exchange {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return supplier.Exchange{Class: supplier.ClassConnect}
	}
	l.mu.Lock()
	l.sent = append(l.sent, Sent{r, body})
	l.mu.Unlock()
	x := l.Reply(r, body)
	if x.At.IsZero() {
		x.At = Now
	}
	return x
}

// Sent returns the requests so far.
func (l *Line) Sent() []Sent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sent)
}

// Client answers with a function and, unlike a Line, records nothing: a fuzzer makes millions
// of calls.
type Client func(*http.Request) supplier.Exchange

// Do answers.
func (c Client) Do(r *http.Request) supplier.Exchange { return c(r) }

// NoSigner replaces an adapter's own RSA key: the suite makes 20,000 calls, and the adapter's
// own tests check requests with a real key.
type NoSigner struct{}

// Public is nil.
func (NoSigner) Public() crypto.PublicKey { return nil }

// Sign signs nothing.
func (NoSigner) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return []byte("signature"), nil
}

// querier runs one claim.
type querier struct {
	reporter
	Abilities

	made    sync.Once
	adapter supplier.Adapter // over line
	line    *Line
}

// payment returns what the suite starts, created just now by the node's clock.
func (p *querier) payment() supplier.Payment {
	pay := p.Payment
	pay.Reference, pay.OrderNo = Reference, strings.TrimSuffix(Reference, "_2")
	pay.CreatedAt = time.Now().Add(-time.Minute)
	pay.ExpiresAt = time.Date(2099, 12, 31, 15, 59, 59, 0, time.UTC)
	return pay
}

func (p *querier) refund() supplier.Refund {
	r := p.Refund
	r.No, r.Reference = RefundNo, Reference
	return r
}

func (p *querier) ref() supplier.Ref {
	return supplier.Ref{
		Reference: Reference, ExternalID: p.ExternalID, Amount: p.Payment.Amount, Currency: p.Payment.Currency,
		StartedAt: time.Now().Add(-time.Hour),
	}
}

// outcome is the result of a call, or of a start.
type outcome struct {
	state   string
	says    supplier.Callback
	started supplier.Started      // without Exchange
	back    supplier.RefundAnswer // the same
	out     supplier.PayoutAnswer // the same
	kept    supplier.Exchange
	reason  string
	err     error
}

// unknown reports whether nothing in the outcome may be believed.
func (o outcome) unknown() bool {
	return o.err == nil && o.state == string(supplier.AnswerUnknown) && sameCallback(o.says, supplier.Callback{}) &&
		o.started.Value == "" && o.started.ExternalID == "" && o.back.SupplierNo == "" && o.out.SupplierNo == ""
}

// can reports whether the supplier supports the call, which must be listed in Has.
func (p *querier) can(a supplier.Abilities, op Op) bool {
	switch op {
	case Pay:
		return a.Payer != nil
	case Query:
		return a.Querier != nil
	case Refund, RefundQuery:
		return a.Refunder != nil
	case Payout, PayoutQuery:
		return a.Payouter != nil
	default:
		return a.Closer != nil
	}
}

// ops returns the calls that the supplier supports.
func (p *querier) ops() []Op {
	var ops []Op
	for _, op := range []Op{Pay, Query, Close, Refund, RefundQuery, Payout, PayoutQuery} {
		if _, has := p.Has[op]; has {
			ops = append(ops, op)
		}
	}
	return ops
}

func (p *querier) has(op Op, part string) bool { return slices.Contains(p.Has[op], part) }

// call makes one call over the line, and checks what must hold for each: it sends something,
// and what is stored of it contains no secret.
func (p *querier) call(ctx context.Context, a supplier.Adapter, op Op) outcome {
	p.Helper()
	abilities := supplier.AbilitiesOf(a)
	if !p.can(abilities, op) {
		p.Errorf("%s: the adapter has no such ability", op)
		return outcome{}
	}
	var o outcome
	switch op {
	case Pay:
		s, err := abilities.Start(ctx, p.payment())
		o = outcome{state: string(s.State), kept: s.Exchange, reason: s.Reason.Error(), err: err, started: s}
		o.started.Exchange = supplier.Exchange{}
	case Refund, RefundQuery:
		call := abilities.Refund
		if op == RefundQuery {
			call = abilities.RefundQuery
		}
		s, err := call(ctx, p.refund())
		o = outcome{state: string(s.State), kept: s.Exchange, reason: s.Reason.Error(), err: err, back: s}
		o.back.Exchange = supplier.Exchange{}
	case Payout, PayoutQuery:
		o = p.callPayout(ctx, abilities, op)
	default:
		call := queries(abilities, op)
		s, err := call(ctx, p.ref())
		o = outcome{state: string(s.State), says: s.Says, kept: s.Exchange, reason: s.Reason.Error(), err: err}
	}
	p.checkKept(op, o)
	return o
}

// queries returns the call that takes a Ref.
func queries(a supplier.Abilities, op Op) func(context.Context, supplier.Ref) (supplier.Answer, error) {
	if op == Close {
		return a.Close
	}
	return a.Query
}

// answerKey is the context key of a call's answer.
type answerKey struct{}

// scripted returns a client that gives each call the answer in its context, so that one adapter
// serves all calls of a claim, as in the program.
func scripted() *Line {
	return &Line{Reply: func(r *http.Request, _ []byte) supplier.Exchange {
		x, _ := r.Context().Value(answerKey{}).(supplier.Exchange)
		return copied(x)
	}}
}

// answered makes a call that gets the answer.
func (p *querier) answered(op Op, x supplier.Exchange) outcome {
	p.Helper()
	p.made.Do(func() { p.line = scripted(); p.adapter = p.New(p.line) })
	return p.call(context.WithValue(context.Background(), answerKey{}, x), p.adapter, op)
}

func (p *querier) checkKept(op Op, o outcome) {
	p.Helper()
	if o.err != nil {
		p.Errorf("%s: %v; an error is for what cannot be expressed", op, o.err)
		return
	}
	if !slices.Contains(supplier.Classes, o.kept.Class) {
		p.Errorf("%s ended %s with the class %q", op, o.state, o.kept.Class)
	}
	if len(o.kept.Request) == 0 {
		p.Errorf("%s: nothing is kept of the request", op)
	}
	if len(o.kept.Body) > supplier.MaxAnswer {
		p.Errorf("%s: %d bytes are kept of the answer", op, len(o.kept.Body))
	}
	if o.state == string(supplier.AnswerUnknown) && o.reason == "" {
		p.Errorf("%s: unknown, class %s, for no reason", op, o.kept.Class)
	}
	for _, secret := range append([]string{p.Payout.Payee.Number}, p.Secrets...) {
		kept := string(o.kept.Request) + string(o.kept.Body) + o.reason
		for name, values := range o.kept.Header {
			kept += name + strings.Join(values, " ")
		}
		if secret != "" && strings.Contains(kept, secret) {
			p.Errorf("%s: a secret shows in what is kept: %s", op, kept)
		}
	}
}

func copied(x supplier.Exchange) supplier.Exchange {
	x.Header, x.Body = x.Header.Clone(), bytes.Clone(x.Body)
	return x
}

// key returns what a repeat of a request must have in common with it.
func (p *querier) key(s Sent) string {
	if p.Key != nil {
		return p.Key(s.Request, s.Body)
	}
	return strings.Join([]string{s.Request.Method, s.Request.URL.String(), s.Request.Header.Get("Idempotency-Key"), string(s.Body)}, "\n")
}

// status returns the HTTP status of a genuine answer.
func (p *querier) status(op Op) int { return cmp.Or(p.Answer(op, Change{}).Status, http.StatusOK) }
