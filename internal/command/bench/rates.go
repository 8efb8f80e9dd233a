package bench

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// ordinaryRates are the orders per second at which most payment companies live.
var ordinaryRates = []int{5, 50, 200, 500}

const (
	// rateLength is the length of a phase, and warmUp what runs before the first one.
	rateLength = time.Minute
	warmUp     = 5 * time.Second
	// idleAfter lets a server finish what its start left before it counts as idle.
	idleAfter = 3 * time.Second
)

// ratesPart measures what an order costs when orders come one by one: each is created, and paid at
// once, at a fixed rate. A batch then carries one order, and nothing is shared.
func (b *Bench) ratesPart(ctx context.Context, e Target) error {
	rates := b.Options.Rates
	if len(rates) == 0 {
		rates = ordinaryRates
	}
	warm := int(warmUp.Seconds()) * slices.Max(rates)
	total := warm
	for _, rate := range rates {
		total += int(b.Options.Length.Seconds() * float64(rate))
	}
	s := &Subject{Bench: b, Target: e, Cast: NewCast(0), Calls: make([]Post, total)}
	end, err := s.Open(ctx, total)
	if err != nil {
		return err
	}
	defer end()
	if err := s.idle(ctx); err != nil {
		return err
	}
	s.Progress("%s: %d orders to warm up", s.Name, warm)
	if _, err := s.atRate(ctx, slices.Max(rates), 0, warm); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	from := warm
	for _, rate := range rates {
		n := int(b.Options.Length.Seconds() * float64(rate))
		s.Progress("%s: %d/s for %s", s.Name, rate, b.Options.Length)
		cost, err := s.atRate(ctx, rate, from, from+n)
		if err != nil {
			return fmt.Errorf("%d orders per second: %w", rate, err)
		}
		from += n
		s.reportRate(fmt.Sprintf(", %d/s", rate), cost, n)
	}
	return nil
}

// spent is what a phase has cost so far.
type spent struct {
	used
	redis             time.Duration
	statements, trips float64 // to the database
	lasted            time.Duration
	told              Latencies // from a callback to the notification, sorted
}

// idle measures a server without orders.
func (s *Subject) idle(ctx context.Context) error {
	s.Progress("%s: idle for %s", s.Name, s.Options.Length/2)
	if err := pause(ctx, idleAfter); err != nil {
		return err
	}
	before, err := s.spent()
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := pause(ctx, s.Options.Length/2); err != nil {
		return err
	}
	after, err := s.spent()
	if err != nil {
		return err
	}
	lasted := time.Since(begun)
	share := func(t time.Duration) float64 { return 100 * Ratio(t, lasted) }
	server, redis := share(after.Server-before.Server), share(after.redis-before.redis)
	s.Add("idle, server", "% of a core", server, 0)
	s.Add("idle, Redis", "% of a core", redis, 0)
	s.Add("idle, server and Redis", "% of a core", server+redis, 2)
	if s.Postmaster > 0 {
		s.Add("idle, PostgreSQL", "% of a core", share(after.postgres-before.postgres), 0)
	}
	return nil
}

func pause(ctx context.Context, t time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(t):
		return nil
	}
}

// atRate makes and pays the orders from..to-1 at a rate, and returns what they cost once their
// merchants are told.
func (s *Subject) atRate(ctx context.Context, rate, from, to int) (spent, error) {
	before, err := s.spent()
	if err != nil {
		return spent{}, err
	}
	n := to - from
	called, begun := make([]time.Time, n), time.Now()
	err = openLoop(ctx, float64(rate), n, func(i int, _ time.Time) error {
		if err := s.MakeOrder((from+i)%Merchants, from+i, s.Sink.URL("/n")); err != nil {
			return err
		}
		called[i] = time.Now()
		return s.Call(from + i)
	})
	if err != nil {
		return spent{}, err
	}
	telling, cancel := context.WithTimeout(ctx, NotifyTime)
	defer cancel()
	if _, err := s.Sink.Wait(telling, from, to); err != nil {
		return spent{}, err
	}
	if err := s.Calm(ctx); err != nil { // the last results count too
		return spent{}, err
	}
	after, err := s.spent()
	if err != nil {
		return spent{}, err
	}
	cost := spent{
		used:  used{Server: after.Server - before.Server, postgres: after.postgres - before.postgres},
		redis: after.redis - before.redis, lasted: time.Since(begun),
		statements: after.statements - before.statements, trips: after.trips - before.trips,
	}
	for i := range n {
		at, _ := s.Sink.at(from + i)
		cost.told = append(cost.told, at.Sub(called[i]))
	}
	cost.told = Sorted(cost.told)
	return cost, nil
}

func (s *Subject) reportRate(at string, c spent, n int) {
	s.CPUOf("server"+at, c.Server, n, 0)
	if s.Postmaster > 0 {
		s.CPUOf("PostgreSQL"+at, c.postgres, n, 0)
	}
	s.CPUOf("Redis"+at, c.redis, n, 0)
	if c.statements > 0 {
		s.Add("statements per order"+at, "", c.statements/float64(n), 0)
		s.Add("round trips per order"+at, "", c.trips/float64(n), 0)
	}
	s.Latency("callback in → merchant notified"+at, c.told, 0, 0)
	s.Add("notifications sent twice"+at, "", float64(s.Sink.repeats.Swap(0)), 0)
}

// spent returns the costs until now. Those of the database include what it does for all orders
// together, such as ticks. An older server does not count its statements.
func (s *Subject) spent() (spent, error) {
	var all spent
	var err error
	if all.used, err = s.CPU(); err != nil {
		return all, err
	}
	if s.Redis != nil {
		all.redis, err = cpuTime(s.Redis.process.Process.Pid)
	} else if all.redis, err = FamilyTime(s.Process.PID); err == nil { // Redis is the server's only child
		all.redis -= all.Server
	}
	if err != nil {
		return all, err
	}
	status, body, err := s.API.client.Get(nil, "http://"+s.API.client.Addr+"/metrics")
	if err != nil || status != http.StatusOK {
		return all, fmt.Errorf("read the server's metrics (status %d): %v", status, err)
	}
	all.statements, _ = sumOf(string(body), "backstop_db_statements_total")
	all.trips, _ = sumOf(string(body), "backstop_db_round_trips_total")
	return all, nil
}
