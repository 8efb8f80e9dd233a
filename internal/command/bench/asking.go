package bench

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
	key      string
	counted  chan time.Time // when each query arrived
}

func openAsked(key string) (*asked, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the supplier: %w", err)
	}
	s := &asked{listener: listener, key: key, counted: make(chan time.Time, 4*askedOrders)}
	s.server = &fasthttp.Server{Handler: s.answer, NoDefaultServerHeader: true, CloseOnShutdown: true}
	go func() { _ = s.server.Serve(listener) }()
	return s, nil
}

func (s *asked) answer(c *fasthttp.RequestCtx) {
	select {
	case s.counted <- time.Now():
	default: // more queries than any run makes
	}
	time.Sleep(askedAnswer)
	c.SetContentType("application/x-www-form-urlencoded")
	c.SetBodyString(signed(s.key, "amount=1999&order_no="+string(c.PostArgs().Peek("order_no"))+"&status=0"))
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
func (b *bench) asking(ctx context.Context, e engine) error {
	length, rounds := b.o.Length, cmp.Or(b.o.Rounds, defaultRounds)
	n := int(length.Seconds()) * steadyRate
	total := (1 + 2*rounds) * n
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	s := &subject{bench: b, engine: e, cast: newCast(0), calls: make([]post, total), extra: map[string]string{
		"BACKSTOP_SUPPLIER_ALLOW_CIDRS": "127.0.0.0/8", "BACKSTOP_MASTER_KEY": hex.EncodeToString(key),
	}}
	supplier, err := openAsked(s.cast.supplierKey)
	if err != nil {
		return err
	}
	defer supplier.close()
	s.cast.asked, s.cast.askedRate = "http://"+supplier.listener.Addr().String()+"/query", fullRate
	end, err := s.open(ctx, total)
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
	run := &isolated{subject: s, plan: plan{rates: []int{steadyRate}, rounds: rounds, length: length}}
	if _, err := run.phase(ctx, control, steadyRate); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	var quiet, beside []phase
	var perSecond []float64
	for round := range rounds {
		for i := range 2 {
			asks := (round+i)%2 == 1
			s.progress("%s: round %d of %d, with queries: %t", s.name, round+1, rounds, asks)
			if asks {
				if err := due.set(ctx, settleFor); err != nil {
					return err
				}
				time.Sleep(2 * settleFor)
			}
			from := time.Now()
			x, err := run.phase(ctx, control, steadyRate)
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
				b.report.skip(fmt.Sprintf("%s: the end of a phase, as every order had been queried before it", s.name))
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

func (s *subject) reportAsking(quiet, beside []phase, perSecond []float64) {
	by := spreadOf(perSecond)
	s.report.add(figure{Group: s.name, Name: fmt.Sprintf("orders queried, 8 in flight at %s, median of rounds (%.0f–%.0f)", askedAnswer,
		by.Lowest, by.Highest), Unit: "/s", Value: by.Median}.
		atLeast(140, "≥ 140/s"))
	for _, kind := range []struct {
		name string
		of   func([]phase) latencies
	}{
		{"callback answered, 200/s", func(p []phase) latencies { return pool(p, answeredOf) }},
		{"callback in → merchant notified, 200/s", func(p []phase) latencies { return pool(p, tookOf) }},
	} {
		a, b := kind.of(quiet), kind.of(beside)
		s.latency(kind.name+", without queries", a, 0, 0)
		s.latency(kind.name+", during queries", b, 0, 0)
		goal := 0.0
		if kind.name == "callback answered, 200/s" {
			goal = 1.2
		}
		s.add("… p99, times that without", "", ratio(b.at(0.99), a.at(0.99)), goal)
		var rounds []float64
		for r := range min(len(quiet), len(beside)) {
			rounds = append(rounds, ratio(kind.of(beside[r:r+1]).at(0.99), kind.of(quiet[r:r+1]).at(0.99)))
		}
		by := spreadOf(rounds)
		s.add(fmt.Sprintf("… by round (%.2f–%.2f), median", by.Lowest, by.Highest), "", by.Median, 0)
	}
}

// answeredOf returns how long the callbacks themselves took.
func answeredOf(p phase) latencies {
	took := make(latencies, len(p.took))
	for i, d := range p.took {
		took[i] = d - p.answered[i]
	}
	return took
}

// sharedRate counts queries at the default rate, of two nodes if a second one can use the
// database.
func (s *subject) sharedRate(ctx context.Context, supplier *asked, due *dueOrders) error {
	nodes := 1
	if s.databaseURL != "" {
		extra := map[string]string{"BACKSTOP_NODE_NAME": "second"}
		for _, from := range []map[string]string{settings, s.extra} {
			for name, value := range from {
				extra[name] = value
			}
		}
		other, err := s.o.Start(ctx, Server{DatabaseURL: s.databaseURL, RedisURL: s.redis.url(), Extra: extra})
		if err != nil {
			return fmt.Errorf("start the second node: %w", err)
		}
		defer other.Stop()
		if err := readyAt(ctx, other.URL); err != nil {
			return err
		}
		nodes = 2
	}
	s.cast.askedRate = defaultRate
	text, err := s.cast.declaration()
	if err != nil {
		return err
	}
	if err := s.process.Apply(ctx, text); err != nil {
		return fmt.Errorf("apply settings: %w", err)
	}
	s.progress("%s: the default rate, %d nodes", s.name, nodes)
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
	s.report.add(figure{
		Group: s.name, Name: fmt.Sprintf("orders queried at query_rate %d/s, nodes: %d, over %s", defaultRate, nodes, askedFor), Unit: "/s",
		Value: n,
		Goal:  fmt.Sprintf("%d ± 2/s", defaultRate), Met: &met,
	})
	by, err := due.nodes(ctx, from)
	if err != nil {
		return err
	}
	if len(by) != nodes {
		s.report.skip(fmt.Sprintf("%s: only %d nodes made queries, of %d", s.name, len(by), nodes))
	}
	for i, share := range by {
		s.add(fmt.Sprintf("… of node %d", i+1), "/s", share/askedFor.Seconds(), 0)
	}
	return nil
}

// readyAt waits for a server.
func readyAt(ctx context.Context, address string) error {
	for end := time.Now().Add(startTime); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		status, _, err := fasthttp.Get(nil, address+"/readyz")
		if err == nil && status == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("%s was not ready within %s", address, startTime)
}

// startPayments creates the orders that are queried, and starts their payments.
func (s *subject) startPayments(ctx context.Context, from int) error {
	making, cancel := context.WithTimeout(ctx, 2*createTime)
	defer cancel()
	took, err := closedLoop(making, connections, askedOrders, func(i int) error {
		p, err := s.cast.orderAt(askedCode, i%merchants, from+i, "")
		if err != nil {
			return err
		}
		no, err := s.made(p)
		if err != nil {
			return err
		}
		status, err := s.api.send(post{
			path: "/api/v1/orders/" + url.PathEscape(no) + "/pay", contentType: "application/json", key: p.key, body: []byte("{}"),
		}, nil)
		if err == nil && status != http.StatusOK && status != http.StatusCreated {
			err = fmt.Errorf("a payment was answered %d", status)
		}
		return err
	})
	if err == nil && len(took) < askedOrders {
		err = fmt.Errorf("only %d of %d orders could be created in %s", len(took), askedOrders, 2*createTime)
	}
	return err
}

// dueOrders sets when the orders are due for a query.
type dueOrders struct{ *sql.DB }

func (s *subject) openDue() (*dueOrders, error) {
	d, err := s.openData()
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
