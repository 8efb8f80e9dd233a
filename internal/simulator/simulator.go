// Package simulator plays payment suppliers of all four kinds over their real APIs, with
// real signatures both ways, for tests, for the demo and for `backstop simulate`. It can be
// slow, hang, lie, and lose an answer after acting, and it counts how often money moved.
//
// Nothing that it does depends on the clock or on chance: the same seed and the same
// requests give the same numbers and the same answers, but for keys and the times in them.
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
	// Codes are the suppliers' codes by kind; those left out are sim-wx, sim-ali, sim-st
	// and sim-till.
	Codes map[string]string
	// Callbacks is where a callback goes, before the supplier's code, whose start named no
	// notify_url: "http://127.0.0.1:8080/callback"; "" = nowhere.
	Callbacks string
	// Paid of 100 started payments are paid PaidAfter their start, without being told.
	Paid      int
	PaidAfter time.Duration
	// SilentEvery: about one in so many of them never calls back; 0 = all call back.
	SilentEvery int
}

// Bounds.
const (
	MaxReferences = 100_000
	MaxRate       = 1000 // calls per second
	maxCalls      = 100_000
	maxBody       = 64 << 10
	maxKeptBody   = 1 << 10 // of a body in the list of calls
	maxDelay      = 10 * time.Minute
	maxCallbacks  = 20 // results kept of one reference
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

	mu     sync.Mutex
	tasks  sync.WaitGroup
	orders map[orderKey]*order
	ids    map[string]*order // by trade number: Stripe asks by it
	marked map[mark][]*order // by metadata: Stripe searches by them
	asked  map[asking]bool
	calls  []*Call
	first  int64 // number of calls[0]
}

type orderKey struct{ code, ref string }

// mark is one name and value of a payment's metadata.
type mark struct{ name, value string }

// asking is what a repeated call repeats.
type asking struct {
	code string
	op   operation
	ref  string
}

// New makes a Simulator. Close ends its callbacks.
func New(o Options) (*Simulator, error) {
	accounts, err := newAccounts(seed(o.Seed), o.Codes)
	if err != nil {
		return nil, err
	}
	s := &Simulator{
		options: o, seed: seed(o.Seed), accounts: accounts, mux: http.NewServeMux(), rate: rate.NewLimiter(MaxRate, MaxRate), http: LoopbackClient(),
		orders: map[orderKey]*order{}, ids: map[string]*order{}, marked: map[mark][]*order{}, asked: map[asking]bool{},
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

// Account returns the account of a supplier's code, nil where there is none.
func (s *Simulator) Account(code string) *Account {
	for _, a := range s.accounts {
		if a.Code == code {
			return a
		}
	}
	return nil
}

// Accounts are all of them, one of each kind.
func (s *Simulator) Accounts() []*Account { return s.accounts }

// ServeHTTP answers the suppliers' calls, and the control API below /_sim/.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// serve answers one call of a supplier's API. What a call does is done before its answer
// is delayed, spoilt or lost.
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
	if !s.wait(r, x.script.delay()) || x.lose {
		cut(w)
		return
	}
	switch x.script.Answer {
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
	case AnswerBadSignature:
		x.view.forged = true
	case AnswerWrongOrder:
		x.view.Fact = another(x.view.Fact)
		for i, f := range x.view.found {
			x.view.found[i] = another(f)
		}
	}
	answer, err := a.answer(c, x.view)
	if err != nil {
		answer = a.failed()
	}
	write(w, answer)
}

// another is the same fact about another order.
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

// task runs f beside the caller, unless the simulator is closed. The lock is held.
func (s *Simulator) task(f func()) {
	if s.ctx.Err() == nil {
		s.tasks.Go(f)
	}
}

func write(w http.ResponseWriter, a reply) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// cut ends the connection within the answer's header: Go's client would send a GET again
// whose connection was closed without a byte.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-")
	_ = conn.Close()
}

// errText is the text of an error without the request that it was about.
func errText(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
