package paymenttest

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"backstop/internal/supplier"
)

// Fake is a supplier with all abilities that answers as the test says. It counts what it was
// asked by reference.
type Fake struct {
	Code string

	mu      sync.Mutex
	start   func(context.Context, supplier.Payment) (supplier.Started, error)
	query   func(context.Context, supplier.Ref) (supplier.Answer, error)
	close   func(context.Context, supplier.Ref) (supplier.Answer, error)
	started map[string]int
	queried map[string]int
	closed  map[string]int

	// Repeat and Absent are the abilities' RefundRepeat and RefundAbsent.
	Repeat  time.Duration
	Absent  bool
	refund  func(supplier.Refund) RefundFault
	lists   func(supplier.Refund) supplier.RefundList
	refunds map[string]*FakeRefund

	// PayoutRepeat is the ability of that name.
	PayoutRepeat bool
	// PayoutCurrency is the only currency that it pays out; "" = any.
	PayoutCurrency string
	payout         func(supplier.Payout) PayoutFault
	payouts        map[string]*FakePayout

	answered func()

	// OnParse reads callbacks; nil = all are refused.
	OnParse func(*supplier.Request, *supplier.Trace) (supplier.Callback, error)
}

func newFake(code string) *Fake {
	return &Fake{
		Code: code, Repeat: supplier.Forever, started: map[string]int{}, queried: map[string]int{}, closed: map[string]int{},
		refunds: map[string]*FakeRefund{}, PayoutRepeat: true, payouts: map[string]*FakePayout{},
	}
}

// OnStart, OnQuery and OnClose set the answers; nil = accepted, paying, closed.
func (f *Fake) OnStart(do func(context.Context, supplier.Payment) (supplier.Started, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.start = do
}

// OnQuery is documented with OnStart.
func (f *Fake) OnQuery(do func(context.Context, supplier.Ref) (supplier.Answer, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.query = do
}

// OnClose is documented with OnStart.
func (f *Fake) OnClose(do func(context.Context, supplier.Ref) (supplier.Answer, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.close = do
}

// OnAnswered sets what happens after each answer about a refund or payout, before the caller gets
// it; nil = nothing. It may end the caller's goroutine, as a crash does.
func (f *Fake) OnAnswered(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answered = do
}

func (f *Fake) hasAnswered() {
	f.mu.Lock()
	do := f.answered
	f.mu.Unlock()
	if do != nil {
		do()
	}
}

// Says sets the state returned by all further queries.
func (f *Fake) Says(state supplier.AnswerState) {
	f.OnQuery(func(_ context.Context, r supplier.Ref) (supplier.Answer, error) { return FakeAnswer(r, state), nil })
}

// FakeAnswer returns an answer about a payment.
func FakeAnswer(r supplier.Ref, state supplier.AnswerState) supplier.Answer {
	class := supplier.ClassOK
	if state == supplier.AnswerUnknown {
		class = supplier.ClassTimeout
	}
	return supplier.Answer{
		State: state, Exchange: supplier.Exchange{Class: class, Status: 200, Request: []byte("GET /query"), Body: []byte(`{"a":1}`)},
		Says: supplier.Callback{
			EventKey: "trade:T-" + r.Reference + ":paid", OrderRef: r.Reference, TradeNo: "T-" + r.Reference, RawStatus: string(state),
			Amount: r.Amount, Currency: r.Currency,
		},
	}
}

// Count returns how often a reference was started, queried and closed.
func (f *Fake) Count(ref string) (started, queried, closed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started[ref], f.queried[ref], f.closed[ref]
}

// Queried returns the total number of calls of any kind.
func (f *Fake) Queried() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.queried {
		n += k
	}
	return n
}

// kindOf returns the kind of all fakes; New finds them by code.
func kindOf(fakes map[string]*Fake) supplier.Kind {
	return supplier.Kind{Name: "fake", New: func(code string, _ json.RawMessage, _ supplier.Client) (supplier.Adapter, error) {
		return fakeAdapter{fakes[code]}, nil
	}}
}

type fakeAdapter struct{ f *Fake }

func (a fakeAdapter) Parse(r *supplier.Request, t *supplier.Trace) (supplier.Callback, error) {
	if a.f.OnParse != nil {
		return a.f.OnParse(r, t)
	}
	return supplier.Callback{}, &supplier.Refused{Result: supplier.Malformed}
}
func (a fakeAdapter) Reply(supplier.Result) supplier.Reply { return supplier.Reply{Status: 200} }
func (a fakeAdapter) Identity() map[string]string          { return map[string]string{} }
func (a fakeAdapter) Account() string                      { return "fake:" + a.f.Code }
func (a fakeAdapter) Abilities() supplier.Abilities {
	return supplier.Abilities{
		Payer: a.f, Querier: a.f, Closer: a.f, Refunder: a.f.refunder(), RefundRepeat: a.f.Repeat,
		RefundAbsent: a.f.Absent, Payouter: a.f, PayoutRepeat: a.f.PayoutRepeat,
	}
}

// Start implements supplier.Payer.
func (f *Fake) Start(ctx context.Context, p supplier.Payment) (supplier.Started, error) {
	f.mu.Lock()
	do := f.start
	f.started[p.Reference]++
	f.mu.Unlock()
	if do != nil {
		return do(ctx, p)
	}
	return supplier.Started{
		State: supplier.Accepted, Kind: supplier.ValueQR, Value: "qr:" + p.Reference, ExternalID: "ext-" + p.Reference,
		Exchange: supplier.Exchange{Class: supplier.ClassOK, Status: 200},
	}, nil
}

// Query implements supplier.Querier.
func (f *Fake) Query(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
	f.mu.Lock()
	do := f.query
	f.queried[r.Reference]++
	f.mu.Unlock()
	if do != nil {
		return do(ctx, r)
	}
	return FakeAnswer(r, supplier.AnswerPaying), nil
}

// Close implements supplier.Closer.
func (f *Fake) Close(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
	f.mu.Lock()
	do := f.close
	f.closed[r.Reference]++
	f.mu.Unlock()
	if do != nil {
		return do(ctx, r)
	}
	return FakeAnswer(r, supplier.AnswerClosed), nil
}

// FakeTimeout is the timeout of one call to a fake.
const FakeTimeout = 8 * time.Second
