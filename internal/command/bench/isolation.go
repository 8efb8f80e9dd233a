package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/notify/fakemerchant"
)

// failure is one way in which merchants of the isolation part fail.
type failure struct {
	key    string // of --ill and JSON
	name   string
	behave fakemerchant.Behaviour // nil = they do not fail
	tls    fakemerchant.Certificate
}

// Control is a pair of identical phases. It shows the measurement's own noise.
var Control = failure{key: "nobody", name: "no failure (control)"}

// failures are simulated by two of twenty merchants.
var failures = []failure{
	{"hang", "hang", fakemerchant.Hang(), fakemerchant.NoTLS},
	{"slow", "answer after 5 s", fakemerchant.Sleep(5*time.Second, fakemerchant.Answer(http.StatusOK, "success")), fakemerchant.NoTLS},
	{"reset", "reset the connection", fakemerchant.Reset(), fakemerchant.NoTLS},
	{"drip", "drip their body", fakemerchant.Drip(100 * time.Millisecond), fakemerchant.NoTLS},
	{"certificate", "show a wrong certificate", fakemerchant.Answer(http.StatusOK, "success"), fakemerchant.ExpiredTLS},
	{"redirect", "redirect forever", fakemerchant.RedirectLoop(), fakemerchant.NoTLS},
	{"huge", "answer with 1 GB", fakemerchant.Huge(1 << 30), fakemerchant.NoTLS},
	{"gzip", "answer with a gzip bomb", fakemerchant.GzipBomb(), fakemerchant.NoTLS},
}

const (
	// maxIsolation is the allowed effect on the others: the 99th percentile of all phases
	// with failing merchants divided by that of all phases without.
	maxIsolation  = 1.2
	DefaultRounds = 5
	maxRounds     = 1000
	maxRate       = 5000 // orders per second
	// defaultPhase is short on purpose: in these seconds the server detects the failure.
	// Later, a breaker stops the attempts.
	defaultPhase = 3 * time.Second
	// calmFor is how long no attempt may run before a phase begins. maxCalm is how long to wait
	// for that: longer than the longest attempt.
	calmFor = 200 * time.Millisecond
	maxCalm = 15 * time.Second
)

var defaultRates = []int{200, 500} // orders per second

// Plan is a run of the isolation part on one engine.
type Plan struct {
	modes  []failure // the control first
	Rates  []int
	Rounds int
	Length time.Duration // of a phase
}

// newPlan reads the options. The control is always part of it: it shows which figures are
// noise.
func newPlan(o Options) (Plan, error) {
	p := Plan{modes: []failure{Control}, Rounds: o.Rounds, Length: o.Length}
	p.Rates = slices.Compact(slices.Sorted(slices.Values(o.Rates)))
	if len(p.Rates) == 0 {
		p.Rates = defaultRates
	}
	if p.Rounds == 0 {
		p.Rounds = DefaultRounds
	}
	if p.Length <= 0 {
		p.Length = defaultPhase
	}
	if p.Rounds < 0 || p.Rounds > maxRounds {
		return p, fmt.Errorf("%w: use 1 to %d rounds", ErrOptions, maxRounds)
	}
	for _, rate := range p.Rates {
		if rate < 1 || rate > maxRate {
			return p, fmt.Errorf("%w: use rates of 1 to %d orders per second", ErrOptions, maxRate)
		}
	}
	known := []string{Control.key}
	for _, mode := range failures {
		known = append(known, mode.key)
		if len(o.Ills) == 0 || slices.Contains(o.Ills, mode.key) {
			p.modes = append(p.modes, mode)
		}
	}
	for _, key := range o.Ills {
		if !slices.Contains(known, key) {
			return p, fmt.Errorf("%w: unknown failure %q: use %s", ErrOptions, key, strings.Join(known, ", "))
		}
	}
	return p, nil
}

// all returns the number of pairs of phases.
func (p Plan) all() int { return p.Rounds * len(p.Rates) * len(p.modes) }

// failingMerchants returns their number: two new ones for each phase with a failure, because
// breakers have a history.
func (p Plan) failingMerchants() int { return p.Rounds * len(p.Rates) * (len(p.modes) - 1) * hanging }

// OrdersOf returns the number of orders of a phase, the same for each merchant.
func (p Plan) OrdersOf(rate int) int {
	n := int(p.Length.Seconds() * float64(rate))
	return max(1, (n+Merchants-1)/Merchants) * Merchants
}

func (p Plan) orders() int {
	n := p.OrdersOf(p.Rates[0]) // to warm up
	for _, rate := range p.Rates {
		n += 2 * p.Rounds * len(p.modes) * p.OrdersOf(rate)
	}
	return n
}

// estimate returns roughly how long the plan takes on one engine.
func (p Plan) estimate() time.Duration {
	// Thousands of orders are created per second, and each phase waits for calm.
	making := time.Duration(p.orders()) * time.Second / 4000
	return time.Duration(2*p.all())*(p.Length+2*calmFor) + making
}

// Isolated is the isolation part on one engine.
type Isolated struct {
	*Subject
	Plan
	order   int // the next order
	failing int // the next merchant to fail
	done    int // pairs
	seen    map[row]*pairs
}

// row identifies a line of the report.
type row struct {
	rate int
	mode string
}

// isolation measures the effect of two failing merchants on the others. The rounds are the
// outermost loop, so that a bad minute of the machine affects all failures alike.
func (b *Bench) isolation(ctx context.Context, e Target) error {
	p := b.plan
	s := &Isolated{Plan: p, failing: Merchants, seen: map[row]*pairs{}}
	s.Subject = &Subject{Bench: b, Target: e, Cast: NewCast(p.failingMerchants()), Calls: make([]Post, p.orders())}
	end, err := s.Open(ctx, p.orders())
	if err != nil {
		return err
	}
	defer end()
	s.Progress("%s: isolation, %d rounds, takes about %s", s.Name, p.Rounds, p.estimate().Round(time.Minute))
	// One phase is not counted: it warms up connections, prepared statements and caches.
	if _, err := s.Phase(ctx, Control, p.Rates[0]); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	for round := range p.Rounds {
		for r, rate := range p.Rates {
			for i, mode := range p.modes {
				// The order alternates from round to round, so that drift affects both
				// kinds of phases.
				if err := s.pair(ctx, mode, rate, (round+r+i)%2 == 1); err != nil {
					return fmt.Errorf("%s at %d/s, round %d: %w", mode.name, rate, round+1, err)
				}
			}
		}
	}
	for _, rate := range p.Rates {
		for _, mode := range p.modes {
			b.Report.comparisons = append(b.Report.comparisons, compare(e.Name, rate, mode, *s.seen[row{rate, mode.key}]))
		}
	}
	held, err := memory(s.Process.PID)
	if err != nil {
		return err
	}
	s.Add("memory after all of that", "MB", float64(held)/mb, 100)
	return nil
}

// pair measures a phase in which all merchants are healthy and one in which two fail.
func (s *Isolated) pair(ctx context.Context, mode failure, rate int, failingFirst bool) error {
	s.done++
	s.Progress("%s: %d of %d: %d/s, %s", s.Name, s.done, s.all(), rate, mode.name)
	both := s.seen[row{rate, mode.key}]
	if both == nil {
		both = &pairs{}
		s.seen[row{rate, mode.key}] = both
	}
	for _, failing := range []bool{failingFirst, !failingFirst} {
		is, list := Control, &both.healthy
		if failing {
			is, list = mode, &both.failing
		}
		p, err := s.Phase(ctx, is, rate)
		if err != nil {
			return err
		}
		*list = append(*list, p)
	}
	return nil
}

// Phase creates orders, waits until no attempt runs, and measures. In a phase with a failure,
// two new merchants replace the first two: their breakers have no history, and the first
// attempts are part of the phase. At the end their server is closed, which ends hanging
// attempts; later attempts are refused, and parked after the fifth.
func (s *Isolated) Phase(ctx context.Context, mode failure, rate int) (Phase, error) {
	from, n := s.order, s.OrdersOf(rate)
	s.order += n
	var m *fakemerchant.Merchant
	if mode.behave != nil {
		var err error
		if m, err = fakemerchant.Open(fakemerchant.Options{TLS: mode.tls, Keep: -1}); err != nil {
			return Phase{}, fmt.Errorf("open a merchant: %w", err)
		}
		defer m.Close()
		m.Behave(mode.behave)
	}
	_, err := ClosedLoop(ctx, Connections, n, func(i int) error {
		if m != nil && hangs(i) {
			return s.MakeOrder(s.failing+i%Merchants, from+i, m.URL())
		}
		return s.MakeOrder(i%Merchants, from+i, s.Sink.URL("/n"))
	})
	if err != nil {
		return Phase{}, fmt.Errorf("make orders: %w", err)
	}
	if err := s.Calm(ctx); err != nil {
		return Phase{}, err
	}
	// Every phase measures the same eighteen merchants.
	p, err := s.Notified(ctx, rate, from, n, hangs)
	if err != nil {
		return Phase{}, err
	}
	if m != nil {
		s.failing += hanging
		if m.Connections() == 0 {
			return Phase{}, errors.New("no attempt was made to notify the failing merchants")
		}
	}
	// Finished orders are dropped, so that the load generator stays small.
	s.Sink.Orders.Clear()
	clear(s.Calls[from : from+n])
	return p, nil
}

// Calm waits until no attempt has run for calmFor.
func (s *Subject) Calm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, maxCalm)
	defer cancel()
	since := time.Now()
	for {
		n, err := s.inFlight()
		if err != nil {
			return err
		}
		if n > 0 {
			since = time.Now()
		}
		if time.Since(since) >= calmFor {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%g attempts still run after %s", n, maxCalm)
		case <-time.After(calmFor / 10):
		}
	}
}

// inFlight returns how many attempts are running in the server.
func (s *Subject) inFlight() (float64, error) {
	status, body, err := s.API.client.Get(nil, "http://"+s.API.client.Addr+"/metrics")
	if err != nil || status != http.StatusOK {
		return 0, fmt.Errorf("read the server's metrics (status %d): %v", status, err)
	}
	return sumOf(string(body), "backstop_notify_in_flight")
}

// sumOf adds the values of a metric in Prometheus's text format. A missing metric is an
// error: 0 would mean calm.
func sumOf(text, metric string) (float64, error) {
	sum, found := 0.0, false
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, metric)
		if !ok || !strings.HasPrefix(rest, "{") && !strings.HasPrefix(rest, " ") {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' ')+1:]), 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", metric, err)
		}
		sum, found = sum+v, true
	}
	if !found {
		return 0, fmt.Errorf("the server has no metric %s", metric)
	}
	return sum, nil
}
