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

// illness is one way in which merchants of the isolation part fail.
type illness struct {
	key    string // of --ill and JSON
	name   string
	behave fakemerchant.Behaviour // nil = not at all
	tls    fakemerchant.Certificate
}

// nobody is the control: a pair of phases that differ in nothing. What it shows is
// the measurement's own noise.
var nobody = illness{key: "nobody", name: "nobody is sick (control)"}

// illnesses are the ways. Each is played by two merchants of twenty.
var illnesses = []illness{
	{"hang", "hang", fakemerchant.Hang(), fakemerchant.NoTLS},
	{"slow", "answer after 5 s", fakemerchant.Sleep(5*time.Second, fakemerchant.Answer(http.StatusOK, "success")), fakemerchant.NoTLS},
	{"reset", "reset the connection", fakemerchant.Reset(), fakemerchant.NoTLS},
	{"drip", "drip their body", fakemerchant.Drip(100 * time.Millisecond), fakemerchant.NoTLS},
	{"certificate", "show a wrong certificate", fakemerchant.Answer(http.StatusOK, "success"), fakemerchant.ExpiredTLS},
	{"redirect", "redirect for ever", fakemerchant.RedirectLoop(), fakemerchant.NoTLS},
	{"huge", "answer with 1 GB", fakemerchant.Huge(1 << 30), fakemerchant.NoTLS},
	{"gzip", "answer with a gzip bomb", fakemerchant.GzipBomb(), fakemerchant.NoTLS},
}

const (
	// maxIsolation is what sick merchants may cost the others: the 99th percentile
	// of all phases with them against that of all phases without.
	maxIsolation  = 1.2
	defaultRounds = 5
	mostRounds    = 1000
	mostRate      = 5000 // orders per second
	// defaultPhase is short on purpose: it is the seconds in which the server does
	// not yet know who is sick. Later a breaker keeps them away.
	defaultPhase = 3 * time.Second
	// calmFor is how long nothing may be under way before a phase begins, maxCalm
	// how long that may take: longer than the longest attempt.
	calmFor = 200 * time.Millisecond
	maxCalm = 15 * time.Second
)

var defaultRates = []int{200, 500} // orders per second

// plan is what a run of the isolation part does to one engine.
type plan struct {
	ills   []illness // the control first
	rates  []int
	rounds int
	length time.Duration // of a phase
}

// newPlan reads the options. The control is always part of it: without it nobody
// can tell a figure from noise.
func newPlan(o Options) (plan, error) {
	p := plan{ills: []illness{nobody}, rounds: o.Rounds, length: o.Length}
	p.rates = slices.Compact(slices.Sorted(slices.Values(o.Rates)))
	if len(p.rates) == 0 {
		p.rates = defaultRates
	}
	if p.rounds == 0 {
		p.rounds = defaultRounds
	}
	if p.length <= 0 {
		p.length = defaultPhase
	}
	if p.rounds < 0 || p.rounds > mostRounds {
		return p, fmt.Errorf("%w: 1 to %d rounds", ErrOptions, mostRounds)
	}
	for _, rate := range p.rates {
		if rate < 1 || rate > mostRate {
			return p, fmt.Errorf("%w: a rate is 1 to %d orders per second", ErrOptions, mostRate)
		}
	}
	known := []string{nobody.key}
	for _, ill := range illnesses {
		known = append(known, ill.key)
		if len(o.Ills) == 0 || slices.Contains(o.Ills, ill.key) {
			p.ills = append(p.ills, ill)
		}
	}
	for _, key := range o.Ills {
		if !slices.Contains(known, key) {
			return p, fmt.Errorf("%w: no illness is called %q; there are %s", ErrOptions, key, strings.Join(known, ", "))
		}
	}
	return p, nil
}

// all is how many pairs of phases there are.
func (p plan) all() int { return p.rounds * len(p.rates) * len(p.ills) }

// sickMerchants is how many there are: two fresh ones for each phase with an
// illness, because a breaker remembers.
func (p plan) sickMerchants() int { return p.rounds * len(p.rates) * (len(p.ills) - 1) * hanging }

// ordersOf is how many a phase has: whole rows of merchants, so that each phase
// has the same ones.
func (p plan) ordersOf(rate int) int {
	n := int(p.length.Seconds() * float64(rate))
	return max(1, (n+merchants-1)/merchants) * merchants
}

func (p plan) orders() int {
	n := p.ordersOf(p.rates[0]) // to warm up
	for _, rate := range p.rates {
		n += 2 * p.rounds * len(p.ills) * p.ordersOf(rate)
	}
	return n
}

// takes is about how long it takes on one engine.
func (p plan) takes() time.Duration {
	// Orders are made at thousands a second, and each phase waits for calm.
	making := time.Duration(p.orders()) * time.Second / 4000
	return time.Duration(2*p.all())*(p.length+2*calmFor) + making
}

// isolated is one engine under the isolation part.
type isolated struct {
	*subject
	plan
	order int // the next one
	sick  int // the next merchant to fall ill
	done  int // pairs
	seen  map[row]*pairs
}

// row is what a line of the report is about.
type row struct {
	rate int
	ill  string
}

// isolation measures what merchants feel of two that are sick. The rounds are the
// outermost loop, so that a bad minute of the machine is shared by all.
func (b *bench) isolation(ctx context.Context, e engine) error {
	p := b.plan
	s := &isolated{plan: p, sick: merchants, seen: map[row]*pairs{}}
	s.subject = &subject{bench: b, engine: e, cast: newCast(p.sickMerchants()), calls: make([]post, p.orders())}
	var err error
	if s.sink, err = openSink(p.orders()); err != nil {
		return err
	}
	defer s.sink.close()
	if err := s.start(ctx); err != nil {
		return err
	}
	defer s.process.Stop()
	defer s.api.close()
	s.progress("%s: isolation, %d rounds, takes about %s", s.name, p.rounds, p.takes().Round(time.Minute))
	// One phase for nothing: connections, prepared statements and caches.
	if _, err := s.phase(ctx, nobody, p.rates[0]); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	for round := range p.rounds {
		for r, rate := range p.rates {
			for i, ill := range p.ills {
				// The order alternates from round to round: what drifts with time
				// falls on both kinds of phases.
				if err := s.pair(ctx, ill, rate, (round+r+i)%2 == 1); err != nil {
					return fmt.Errorf("%s at %d/s, round %d: %w", ill.name, rate, round+1, err)
				}
			}
		}
	}
	for _, rate := range p.rates {
		for _, ill := range p.ills {
			b.report.comparisons = append(b.report.comparisons, compare(e.name, rate, ill, *s.seen[row{rate, ill.key}]))
		}
	}
	held, err := memory(s.process.PID)
	if err != nil {
		return err
	}
	s.add("memory after all of that", "MB", float64(held)/mb, 100)
	return nil
}

// pair measures a phase in which all are well and one in which two are sick.
func (s *isolated) pair(ctx context.Context, ill illness, rate int, sickFirst bool) error {
	s.done++
	s.progress("%s: %d of %d: %d/s, %s", s.name, s.done, s.all(), rate, ill.name)
	both := s.seen[row{rate, ill.key}]
	if both == nil {
		both = &pairs{}
		s.seen[row{rate, ill.key}] = both
	}
	for _, sick := range []bool{sickFirst, !sickFirst} {
		is, list := nobody, &both.well
		if sick {
			is, list = ill, &both.sick
		}
		p, err := s.phase(ctx, is, rate)
		if err != nil {
			return err
		}
		*list = append(*list, p)
	}
	return nil
}

// phase makes orders, waits until nothing is under way, and measures. In one with
// an illness, two fresh merchants stand in for the first two: their breakers know
// nothing yet, and the first attempts at them are part of it. At its end their
// server is gone, and with it what hung there: later attempts are refused, and
// parked after the fifth.
func (s *isolated) phase(ctx context.Context, ill illness, rate int) (phase, error) {
	from, n := s.order, s.ordersOf(rate)
	s.order += n
	var m *fakemerchant.Merchant
	if ill.behave != nil {
		var err error
		if m, err = fakemerchant.Open(fakemerchant.Options{TLS: ill.tls, Keep: -1}); err != nil {
			return phase{}, fmt.Errorf("open a merchant: %w", err)
		}
		defer m.Close()
		m.Behave(ill.behave)
	}
	_, err := closedLoop(ctx, connections, n, func(i int) error {
		if m != nil && hangs(i) {
			return s.makeOrderOf(s.sick+i%merchants, from+i, m.URL())
		}
		return s.makeOrder(from+i, s.sink.url("/n"))
	})
	if err != nil {
		return phase{}, fmt.Errorf("make orders: %w", err)
	}
	if err := s.calm(ctx); err != nil {
		return phase{}, err
	}
	// The same eighteen in every phase.
	p, err := s.told(ctx, rate, from, n, hangs)
	if err != nil {
		return phase{}, err
	}
	if m != nil {
		s.sick += hanging
		if m.Connections() == 0 {
			return phase{}, errors.New("nobody tried to tell the merchants that are sick")
		}
	}
	// What is over costs the load generator no memory to look through.
	s.sink.orders.Clear()
	clear(s.calls[from : from+n])
	return p, nil
}

// calm waits until no attempt has been under way for a moment.
func (s *isolated) calm(ctx context.Context) error {
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
			return fmt.Errorf("%g attempts are still under way after %s", n, maxCalm)
		case <-time.After(calmFor / 10):
		}
	}
}

// inFlight is how many attempts run in the server.
func (s *isolated) inFlight() (float64, error) {
	status, body, err := s.api.client.Get(nil, "http://"+s.api.client.Addr+"/metrics")
	if err != nil || status != http.StatusOK {
		return 0, fmt.Errorf("read the server's metrics (status %d): %v", status, err)
	}
	return sumOf(string(body), "backstop_notify_in_flight")
}

// sumOf adds the values of a metric in Prometheus's text format. One that is not
// there is an error: 0 would be taken for calm.
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
