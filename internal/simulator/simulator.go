// Package simulator simulates payment suppliers of all four kinds with their real APIs and real
// signatures in both directions, for tests, for the demo and for `backstop simulate`. It can be
// slow, hang, lie, and lose an answer after acting, and it counts how often money moved.
//
// Its behaviour depends on neither clock nor chance: the same seed and the same requests give
// the same numbers and answers, except for keys and times in them.
package simulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Options of a Simulator.
type Options struct {
	Seed uint64
	// Codes are the suppliers' codes by kind; the defaults are sim-wx, sim-ali, sim-st and
	// sim-till.
	Codes map[string]string
	// Callbacks is the base URL, before the supplier's code, for callbacks of payments started
	// without a notify_url: "http://127.0.0.1:8080/callback"; "" = none are sent.
	Callbacks string
	// Paid of 100 started payments are paid automatically, PaidAfter their start.
	Paid      int
	PaidAfter time.Duration
	// SilentEvery: about one in this many of those sends no callback; 0 = all do.
	SilentEvery int
}

// Limits.
const (
	MaxReferences = 100_000
	MaxRate       = 1000 // calls per second
	maxCalls      = 100_000
	maxBody       = 64 << 10
	maxKeptBody   = 1 << 10 // of a body in the list of calls
	maxDelay      = 10 * time.Minute
	maxCallbacks  = 20 // results stored per reference
)

// ErrFull means that there are MaxReferences already.
var ErrFull = fmt.Errorf("the simulator has %d references, which is its maximum: start it again", MaxReferences)

// Simulator is an http.Handler; see the package comment. It is safe for concurrent use.
type Simulator struct {
	options  Options
	seed     seed
	accounts []*Account
	mux      *http.ServeMux
	rate     *rate.Limiter
	http     *http.Client
	ctx      context.Context
	stop     context.CancelFunc

	mu      sync.Mutex
	tasks   sync.WaitGroup
	orders  map[orderKey]*order
	refunds map[orderKey]*refund // by the merchant's number
	payouts map[orderKey]*payout // by our number
	// usualRefunds and usualPayouts are the scripts of numbers without their own, by supplier.
	usualRefunds map[string]RefundScript
	usualPayouts map[string]PayoutScript
	// disputes are those of the references' payments.
	disputes map[orderKey]*dispute
	ids      map[string]*order // by trade number: Stripe asks by it
	marked   map[mark][]*order // by metadata: Stripe searches by them
	asked    map[asking]bool
	calls    []*Call
	first    int64 // number of calls[0]
}

type orderKey struct{ code, ref string }

// mark is one name and value of a payment's metadata.
type mark struct{ name, value string }

// asking identifies repeats of a call.
type asking struct {
	code string
	op   operation
	ref  string
}

// New returns a Simulator. Close ends its callbacks.
func New(o Options) (*Simulator, error) {
	accounts, err := newAccounts(seed(o.Seed), o.Codes)
	if err != nil {
		return nil, err
	}
	s := &Simulator{
		options: o, seed: seed(o.Seed), accounts: accounts, mux: http.NewServeMux(), rate: rate.NewLimiter(MaxRate, MaxRate),
		http:   LoopbackClient(),
		orders: map[orderKey]*order{}, refunds: map[orderKey]*refund{}, payouts: map[orderKey]*payout{},
		usualRefunds: map[string]RefundScript{}, usualPayouts: map[string]PayoutScript{}, disputes: map[orderKey]*dispute{},
		ids: map[string]*order{}, marked: map[mark][]*order{}, asked: map[asking]bool{},
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	for _, a := range accounts {
		for pattern, op := range a.routes() {
			s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(a, op, w, r) })
		}
	}
	s.control()
	return s, nil
}

// Close ends callbacks and hanging answers, and waits for them.
func (s *Simulator) Close() {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.tasks.Wait()
	s.http.CloseIdleConnections()
}

// Account returns the account of a supplier's code; nil = none.
func (s *Simulator) Account(code string) *Account {
	for _, a := range s.accounts {
		if a.Code == code {
			return a
		}
	}
	return nil
}

// Accounts returns all accounts, one of each kind.
func (s *Simulator) Accounts() []*Account { return s.accounts }

// ServeHTTP serves the suppliers' APIs, and the control API below /_sim/.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// serve answers one call to a supplier's API. The call takes effect before its answer is
// delayed, corrupted or lost.
func (s *Simulator) serve(a *Account, op operation, w http.ResponseWriter, r *http.Request) {
	if !s.rate.Allow() {
		fail(w, http.StatusTooManyRequests, "rate", "", fmt.Sprintf("the simulator takes %d calls a second", MaxRate))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, "body", "", "the body is larger than 64 KiB or was cut off")
		return
	}
	c, wrong := a.read(op, r, body)
	c.asked = string(body)
	if len(body) == 0 {
		c.asked = r.RequestURI
	}
	if wrong != nil {
		s.record(a, c, fmt.Sprintf("refused %d", wrong.status))
		write(w, *wrong)
		return
	}
	if c.op == opRefund || c.op == opRefundQuery {
		x, err := s.actRefund(a, c)
		if err != nil {
			fail(w, http.StatusServiceUnavailable, "full", "", err.Error())
			return
		}
		s.giveRefund(a, c, x, w, r)
		return
	}
	if c.op == opPayout || c.op == opPayoutQuery {
		x, err := s.actPayout(a, c)
		if err != nil {
			fail(w, http.StatusServiceUnavailable, "full", "", err.Error())
			return
		}
		s.givePayout(a, c, x, w, r)
		return
	}
	x, err := s.act(a, c)
	if err != nil {
		fail(w, http.StatusServiceUnavailable, "full", "", err.Error())
		return
	}
	if x.callback != nil {
		x.callback()
	}
	s.give(a, c, x, w, r)
}

// give answers as the reference's script says.
func (s *Simulator) give(a *Account, c call, x exchange, w http.ResponseWriter, r *http.Request) {
	s.giveAs(a, x.script, x.lose, w, r, func(spoilt string) (reply, error) {
		switch spoilt {
		case AnswerBadSignature:
			x.view.forged = true
		case AnswerWrongOrder:
			x.view.Fact = another(x.view.Fact)
			for i, f := range x.view.found {
				x.view.found[i] = another(f)
			}
		}
		return a.answer(c, x.view)
	})
}

// giveAs delays, loses or spoils an answer; made makes it.
func (s *Simulator) giveAs(a *Account, script Script, lose bool, w http.ResponseWriter, r *http.Request,
	made func(spoilt string) (reply, error),
) {
	if !s.wait(r, script.delay()) || lose {
		cut(w)
		return
	}
	switch script.Answer {
	case AnswerHang:
		s.wait(r, maxDelay)
		cut(w)
		return
	case Answer500:
		write(w, a.failed())
		return
	case AnswerGarbage:
		write(w, reply{http.StatusOK, http.Header{"Content-Type": {"text/html"}}, []byte("<html><body>maintenance</body></html>")})
		return
	}
	answer, err := made(script.Answer)
	if err != nil {
		answer = a.failed()
	}
	write(w, answer)
}

// another returns the same fact about another order.
func another(f Fact) Fact {
	f.Ref, f.TradeNo = f.Ref+"X", f.TradeNo+"X"
	f.Metadata = nil
	return f
}

// wait reports whether the time passed before the caller left or the simulator closed.
func (s *Simulator) wait(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-s.ctx.Done():
	}
	return false
}

// task runs f in the background, unless the simulator is closed. The caller holds the lock.
func (s *Simulator) task(f func()) {
	if s.ctx.Err() == nil {
		s.tasks.Go(f)
	}
}

// after runs f after a time, unless the simulator closes before.
func (s *Simulator) after(late time.Duration, f func()) {
	s.task(func() {
		timer := time.NewTimer(late)
		defer timer.Stop()
		select {
		case <-timer.C:
			f()
		case <-s.ctx.Done():
		}
	})
}

func write(w http.ResponseWriter, a reply) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// cut closes the connection within the response header: Go's client would repeat a GET whose
// connection was closed without a byte.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-")
	_ = conn.Close()
}

// errText returns the text of an error without its request.
func errText(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// Moved returns how often money moved for a reference, at all suppliers together. For a paid
// reference, 1 is the only correct value.
func (s *Simulator) Moved(ref string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.movedLocked(ref)
}

func (s *Simulator) movedLocked(ref string) int {
	n := 0
	for _, a := range s.accounts {
		if o := s.orders[orderKey{a.Code, ref}]; o != nil {
			n += o.moved
		}
		if r := s.refunds[orderKey{a.Code, ref}]; r != nil {
			n += r.moved
		}
		if p := s.payouts[orderKey{a.Code, ref}]; p != nil {
			n += p.moved
		}
	}
	return n
}
