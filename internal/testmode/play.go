package testmode

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/callback"
	"backstop/internal/merchant"
	"backstop/internal/order"
	"backstop/internal/settings"
	"backstop/internal/supplier"
	"backstop/internal/supplier/sortedparams"

	"golang.org/x/time/rate"
)

// Scenario is what becomes of a payment.
type Scenario string

// The scenarios.
const (
	Pays        Scenario = "pays"
	OtherAmount Scenario = "other_amount" // one minor unit less
	Late        Scenario = "late"         // after the order has expired, at most lateMax from now
	Twice       Scenario = "twice"
	LostAnswer  Scenario = "lost_answer" // the first answer is ignored, and the callback repeated
	Fails       Scenario = "fails"
)

// Scenarios are all of them, in the order of the page.
var Scenarios = []Scenario{Pays, OtherAmount, Late, Twice, LostAnswer, Fails}

// ScenarioNames are the names of all of them.
func ScenarioNames() (all []string) {
	for _, s := range Scenarios {
		all = append(all, string(s))
	}
	return all
}

const (
	// lateAfter is how long after the expiry a late payment is made: the order is closed by then.
	lateAfter = 3 * time.Second
	// lateMax is the longest that a late payment waits.
	lateMax = 2 * time.Minute
	// maxLate bounds the late payments that wait.
	maxLate = 100
	// perSecond bounds the payments of all callers together.
	perSecond, burst = 10, 20
)

// Errors of Play.
var (
	ErrLive     = errors.New("payments are made in test mode only: use a key that begins with " + merchant.TestKeyPrefix)
	ErrScenario = errors.New("there is no such scenario")
	ErrOften    = errors.New("too many payments: slow down")
	ErrSupplier = errors.New("the order has another supplier than " + Code)
)

// Options of a Supplier.
type Options struct {
	DB       *db.DB
	Settings *settings.Store
	// Receive takes the callbacks.
	Receive func(ctx context.Context, code string, r *supplier.Request, addrErr error) callback.Receipt
	Log     *slog.Logger
}

// Supplier makes payments of orders whose supplier is Code. It is safe for concurrent use.
type Supplier struct {
	o     Options
	often *rate.Limiter

	mu     sync.Mutex
	closed bool
	late   map[*time.Timer]bool
	sends  sync.WaitGroup
}

// New returns a Supplier. Close it.
func New(o Options) *Supplier {
	return &Supplier{o: o, often: rate.NewLimiter(perSecond, burst), late: map[*time.Timer]bool{}}
}

// Close drops the late payments that wait, and waits for those that are being made.
func (s *Supplier) Close() {
	s.mu.Lock()
	s.closed = true
	for t := range s.late {
		t.Stop()
	}
	s.mu.Unlock()
	s.sends.Wait()
}

// Answer is how a callback was answered.
type Answer struct {
	Status  int    // of HTTP
	Body    string // "" if it was lost
	Lost    bool
	Outcome string // as the log calls it
}

// Played is what was done.
type Played struct {
	Answers []Answer
	At      time.Time // when a late payment will be made; zero = it was made now
}

// Play sends the callbacks of a scenario.
func (s *Supplier) Play(ctx context.Context, o *order.Order, as Scenario) (Played, error) {
	entry, ok := s.o.Settings.Current().Suppliers.ByID(o.SupplierID)
	switch {
	case !slices.Contains(Scenarios, as):
		return Played{}, ErrScenario
	case !ok || entry.Code != Code:
		return Played{}, ErrSupplier
	case !s.often.Allow():
		return Played{}, ErrOften
	}
	key, err := s.o.Settings.SupplierSecret(ctx, Code, keyField)
	if err != nil {
		return Played{}, err
	}
	req, err := message(key, o, as)
	if err != nil {
		return Played{}, err
	}
	if as == Late {
		return s.later(o, req)
	}
	var p Played
	p.Answers = append(p.Answers, s.send(ctx, req))
	switch as {
	case Twice:
		p.Answers = append(p.Answers, s.send(ctx, req))
	case LostAnswer:
		p.Answers[0].Body, p.Answers[0].Lost = "", true
		p.Answers = append(p.Answers, s.send(ctx, req))
	}
	return p, nil
}

func (s *Supplier) send(ctx context.Context, req *supplier.Request) Answer {
	got := s.o.Receive(ctx, Code, req, nil)
	return Answer{Status: got.Reply.Status, Body: string(got.Reply.Body), Outcome: got.Outcome}
}

// later sends a callback after the order has expired. It is lost if the process ends before.
func (s *Supplier) later(o *order.Order, req *supplier.Request) (Played, error) {
	wait := min(max(time.Duration(o.ExpiresAt-s.o.DB.Now())*time.Microsecond, 0)+lateAfter, lateMax)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.late) >= maxLate {
		return Played{}, ErrOften
	}
	var t *time.Timer
	t = time.AfterFunc(wait, func() {
		s.mu.Lock()
		delete(s.late, t)
		if s.closed {
			s.mu.Unlock()
			return
		}
		s.sends.Add(1)
		s.mu.Unlock()
		defer s.sends.Done()
		got := s.send(context.Background(), req) // the receiver bounds its own wait
		s.o.Log.Info("late payment of test mode", "order_no", o.OrderNo, "outcome", got.Outcome, "status", got.Status)
	})
	s.late[t] = true
	return Played{At: s.o.DB.NowTime().Add(wait)}, nil
}

// message is the signed callback, as its kind makes it.
func message(key string, o *order.Order, as Scenario) (*supplier.Request, error) {
	r := supplier.Report{OrderRef: o.OrderNo, TradeNo: "SB" + o.OrderNo, Amount: o.Amount, Currency: o.Currency, Status: supplier.Paid}
	switch as {
	case OtherAmount:
		r.Amount, r.TradeNo = otherAmount(o.Amount), r.TradeNo+"X"
	case Fails:
		r.Status = supplier.Failed
	}
	req, err := sortedparams.Kind.Sign(written(config(key)), r)
	if err != nil {
		return nil, err
	}
	req.Path = "/callback/" + Code
	return req, nil
}

// otherAmount is a wrong amount that is still one.
func otherAmount(minor int64) int64 {
	if minor > 1 {
		return minor - 1
	}
	return minor + 1
}
