package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"backstop/internal/command/bench"

	"github.com/valyala/fasthttp"
)

const (
	askedCode   = "bench-asked" // code of the supplier that is queried
	askedOrders = 10_000
	askedAnswer = 50 * time.Millisecond // time that the supplier takes to answer
	fullRate    = 1000                  // its query_rate, so high that the calls in flight are the limit
	defaultRate = 50                    // the default query_rate
	// askedFor is how long queries at the default rate are counted. settleFor is the wait
	// before that: the server needs it to find the orders and to reach a steady rate.
	askedFor  = 20 * time.Second
	settleFor = 3 * time.Second
	// joinTime bounds the wait until both nodes share the rate.
	joinTime = 40 * time.Second
)

// asked is a supplier that answers every query that the order is not paid yet.
type asked struct {
	listener net.Listener
	server   *fasthttp.Server
	cast     *bench.Cast
	rate     int            // its query_rate
	counted  chan time.Time // when each query arrived
}

func openAsked(c *bench.Cast) (*asked, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the supplier: %w", err)
	}
	s := &asked{listener: listener, cast: c, rate: fullRate, counted: make(chan time.Time, 4*askedOrders)}
	s.server = &fasthttp.Server{Handler: s.answer, NoDefaultServerHeader: true, CloseOnShutdown: true}
	go func() { _ = s.server.Serve(listener) }()
	return s, nil
}

func (s *asked) declare(all map[string]any, _, suppliers []map[string]any) {
	config := s.cast.Config()
	config["query_url"], config["answer_format"] = "http://"+s.listener.Addr().String()+"/query", "form"
	config["paying_values"] = []string{"0"}
	all["suppliers"] = append(suppliers, map[string]any{
		"code": askedCode, "kind": "sortedparams", "enabled": true, "query_rate": fmt.Sprintf("%d/s", s.rate), "config": config,
	})
}

func (s *asked) answer(c *fasthttp.RequestCtx) {
	select {
	case s.counted <- time.Now():
	default: // more queries than any run makes
	}
	time.Sleep(askedAnswer)
	c.SetContentType("application/x-www-form-urlencoded")
	c.SetBodyString(bench.Signed(s.cast.SupplierKey, "amount=1999&order_no="+string(c.PostArgs().Peek("order_no"))+"&status=0"))
}

func (s *asked) close() {
	_ = s.listener.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.server.ShutdownWithContext(ctx)
}

// count returns how many queries arrived in an interval, and forgets all recorded ones.
func (s *asked) count(from, to time.Time) (n int) {
	for {
		select {
		case at := <-s.counted:
			if !at.Before(from) && at.Before(to) {
				n++
			}
		default:
			return n
		}
	}
}

// asking measures how fast suppliers are queried, the effect on callbacks, and whether two
// nodes share one rate.
func asking(ctx context.Context, b *bench.Bench, e bench.Target) error {
	length, rounds := b.Options.Length, cmp.Or(b.Options.Rounds, bench.DefaultRounds)
	n := int(length.Seconds()) * bench.SteadyRate
	total := (1 + 2*rounds) * n
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	s := &subject{&bench.Subject{Bench: b, Target: e, Cast: bench.NewCast(0), Calls: make([]bench.Post, total), Extra: map[string]string{
		"BACKSTOP_SUPPLIER_ALLOW_CIDRS": "127.0.0.0/8", "BACKSTOP_MASTER_KEY": hex.EncodeToString(key),
	}}}
	supplier, err := openAsked(s.Cast)
	if err != nil {
		return err
	}
	defer supplier.close()
	s.Cast.More = supplier.declare
	end, err := s.Open(ctx, total)
	if err != nil {
		return err
	}
	defer end()
	due, err := s.openDue()
	if err != nil {
		return err
	}
	defer due.Close()
	if err := s.startPayments(ctx, total); err != nil {
		return err
	}
	if err := due.set(ctx, time.Hour); err != nil {
		return err
	}
	run := &bench.Isolated{Subject: s.Subject, Plan: bench.Plan{Rates: []int{bench.SteadyRate}, Rounds: rounds, Length: length}}
	if _, err := run.Phase(ctx, bench.Control, bench.SteadyRate); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	var quiet, beside []bench.Phase
	var perSecond []float64
	for round := range rounds {
		for i := range 2 {
			asks := (round+i)%2 == 1
			s.Progress("%s: round %d of %d, with queries: %t", s.Name, round+1, rounds, asks)
			if asks {
				if err := due.set(ctx, settleFor); err != nil {
					return err
				}
				time.Sleep(2 * settleFor)
			}
			from := time.Now()
			x, err := run.Phase(ctx, bench.Control, bench.SteadyRate)
			if err != nil {
				return err
			}
			if !asks {
				quiet = append(quiet, x)
				continue
			}
			to := time.Now()
			beside = append(beside, x)
			perSecond = append(perSecond, float64(supplier.count(from, to))/to.Sub(from).Seconds())
			left, err := due.left(ctx)
			if err != nil {
				return err
			}
			if left == 0 {
				b.Report.Skip(fmt.Sprintf("%s: the end of a phase, as every order had been queried before it", s.Name))
			}
			if err := due.set(ctx, time.Hour); err != nil {
				return err
			}
			time.Sleep(settleFor)
		}
	}
	s.reportAsking(quiet, beside, perSecond)
	return s.sharedRate(ctx, supplier, due)
}

func (s *subject) reportAsking(quiet, beside []bench.Phase, perSecond []float64) {
	by := bench.SpreadOf(perSecond)
	s.Report.Add(bench.Figure{Group: s.Name, Name: fmt.Sprintf("orders queried, 8 in flight at %s, median of rounds (%.0f–%.0f)",
		askedAnswer, by.Lowest, by.Highest), Unit: "/s", Value: by.Median}.
		AtLeast(140, "≥ 140/s"))
	for _, kind := range []struct {
		name string
		of   func([]bench.Phase) bench.Latencies
	}{
		{"callback answered, 200/s", func(p []bench.Phase) bench.Latencies { return bench.Pool(p, answeredOf) }},
		{"callback in → merchant notified, 200/s", func(p []bench.Phase) bench.Latencies { return bench.Pool(p, bench.TookOf) }},
	} {
		a, b := kind.of(quiet), kind.of(beside)
		s.Latency(kind.name+", without queries", a, 0, 0)
		s.Latency(kind.name+", during queries", b, 0, 0)
		goal := 0.0
		if kind.name == "callback answered, 200/s" {
			goal = 1.2
		}
		s.Add("… p99, times that without", "", bench.Ratio(b.At(0.99), a.At(0.99)), goal)
		var rounds []float64
		for r := range min(len(quiet), len(beside)) {
			rounds = append(rounds, bench.Ratio(kind.of(beside[r:r+1]).At(0.99), kind.of(quiet[r:r+1]).At(0.99)))
		}
		by := bench.SpreadOf(rounds)
		s.Add(fmt.Sprintf("… by round (%.2f–%.2f), median", by.Lowest, by.Highest), "", by.Median, 0)
	}
}

// answeredOf returns how long the callbacks themselves took.
func answeredOf(p bench.Phase) bench.Latencies {
	took := make(bench.Latencies, len(p.Took))
	for i, d := range p.Took {
		took[i] = d - p.Answered[i]
	}
	return took
}

// sharedRate counts queries at the default rate, of two nodes if a second one can use the
// database.
func (s *subject) sharedRate(ctx context.Context, supplier *asked, due *dueOrders) error {
	nodes := 1
	if s.DatabaseURL != "" {
		extra := map[string]string{"BACKSTOP_NODE_NAME": "second"}
		for _, from := range []map[string]string{bench.Settings, s.Extra} {
			for name, value := range from {
				extra[name] = value
			}
		}
		other, err := s.Options.Start(ctx, bench.Server{DatabaseURL: s.DatabaseURL, RedisURL: s.Redis.URL(), Extra: extra})
		if err != nil {
			return fmt.Errorf("start the second node: %w", err)
		}
		defer other.Stop()
		if err := readyAt(ctx, other.URL); err != nil {
			return err
		}
		nodes = 2
	}
	supplier.rate = defaultRate
	text, err := s.Cast.Declaration()
	if err != nil {
		return err
	}
	if err := s.Process.Apply(ctx, text); err != nil {
		return fmt.Errorf("apply settings: %w", err)
	}
	s.Progress("%s: the default rate, %d nodes", s.Name, nodes)
	if nodes > 1 { // each sees the other after its next beat
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(joinTime / 3):
		}
	}
	if err := due.set(ctx, settleFor); err != nil {
		return err
	}
	time.Sleep(3 * settleFor)
	from := time.Now()
	supplier.count(from, from) // forget earlier queries
	time.Sleep(askedFor)
	to := time.Now()
	n := float64(supplier.count(from, to)) / to.Sub(from).Seconds()
	met := n >= defaultRate-2 && n <= defaultRate+2
	s.Report.Add(bench.Figure{
		Group: s.Name, Name: fmt.Sprintf("orders queried at query_rate %d/s, nodes: %d, over %s", defaultRate, nodes, askedFor), Unit: "/s",
		Value: n,
		Goal:  fmt.Sprintf("%d ± 2/s", defaultRate), Met: &met,
	})
	by, err := due.nodes(ctx, from)
	if err != nil {
		return err
	}
	if len(by) != nodes {
		s.Report.Skip(fmt.Sprintf("%s: only %d nodes made queries, of %d", s.Name, len(by), nodes))
	}
	for i, share := range by {
		s.Add(fmt.Sprintf("… of node %d", i+1), "/s", share/askedFor.Seconds(), 0)
	}
	return nil
}

// readyAt waits for a server.
func readyAt(ctx context.Context, address string) error {
	for end := time.Now().Add(bench.StartTime); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		status, _, err := fasthttp.Get(nil, address+"/readyz")
		if err == nil && status == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("%s was not ready within %s", address, bench.StartTime)
}

// startPayments creates the orders that are queried, and starts their payments.
func (s *subject) startPayments(ctx context.Context, from int) error {
	making, cancel := context.WithTimeout(ctx, 2*bench.CreateTime)
	defer cancel()
	took, err := bench.ClosedLoop(making, bench.Connections, askedOrders, func(i int) error {
		p, err := s.Cast.OrderAt(askedCode, i%bench.Merchants, from+i, "")
		if err != nil {
			return err
		}
		no, err := s.Made(p)
		if err != nil {
			return err
		}
		status, err := s.API.Send(bench.Post{
			Path: "/api/v1/orders/" + url.PathEscape(no) + "/pay", ContentType: "application/json", Key: p.Key, Body: []byte("{}"),
		}, nil)
		if err == nil && status != http.StatusOK && status != http.StatusCreated {
			err = fmt.Errorf("a payment was answered %d", status)
		}
		return err
	})
	if err == nil && len(took) < askedOrders {
		err = fmt.Errorf("only %d of %d orders could be created in %s", len(took), askedOrders, 2*bench.CreateTime)
	}
	return err
}

// dueOrders sets when the orders are due for a query.
type dueOrders struct{ *sql.DB }

func (s *subject) openDue() (*dueOrders, error) {
	d, err := s.OpenData()
	return &dueOrders{d}, err
}

// set makes all orders due after a time, spread over a second, as if they had not been queried
// yet. Orders that are already due when that is committed may be found only a minute later.
func (d *dueOrders) set(ctx context.Context, after time.Duration) error {
	_, err := d.ExecContext(ctx, fmt.Sprintf("UPDATE orders SET next_at = %d - id %% 1000000, query_tries = 0 WHERE status = 'paying'",
		time.Now().Add(after).UnixMicro()))
	if err != nil {
		return fmt.Errorf("make orders due: %w", err)
	}
	return nil
}

// left returns how many orders are due.
func (d *dueOrders) left(ctx context.Context) (n int, err error) {
	if err := d.QueryRowContext(ctx, fmt.Sprintf("SELECT count(*) FROM orders WHERE status = 'paying' AND next_at <= %d",
		time.Now().UnixMicro())).Scan(&n); err != nil {
		return 0, fmt.Errorf("count the orders: %w", err)
	}
	return n, nil
}

// nodes returns how many queries each node made within askedFor from a moment.
func (d *dueOrders) nodes(ctx context.Context, from time.Time) (by []float64, err error) {
	rows, err := d.QueryContext(ctx,
		fmt.Sprintf("SELECT count(*) FROM supplier_calls WHERE op = 'query' AND started_at BETWEEN %d AND %d GROUP BY node ORDER BY node",
			from.UnixMicro(), from.Add(askedFor).UnixMicro()))
	if err != nil {
		return nil, fmt.Errorf("count the calls: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var n float64
		if err := rows.Scan(&n); err != nil {
			return nil, fmt.Errorf("count the calls: %w", err)
		}
		by = append(by, n)
	}
	return by, rows.Err()
}
