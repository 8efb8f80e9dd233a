package bench

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"backstop/internal/base/db"
)

const (
	steadyRate = 200 // orders per second, of the phases at a fixed rate
	// createTime bounds the creation of orders; the ones created by then are used.
	createTime = 30 * time.Second
	// notifyTime bounds the wait for the notifications of all paid orders.
	notifyTime = 90 * time.Second
	// calls bounds the concurrent calls of the phases at a fixed rate.
	calls   = 1024
	million = 1_000_000
	mb      = 1 << 20
)

// settings raise the limits per sender, which a single load generator would reach, and allow
// merchants on this machine. All other settings have their defaults.
var settings = map[string]string{
	"BACKSTOP_NOTIFY_ALLOW_CIDRS": "127.0.0.0/8,::1/128",
	"BACKSTOP_API_RATE":           "1000000/s",
	"BACKSTOP_CALLBACK_RATE":      "1000000/s",
}

// engine is one configuration of the product.
type engine struct {
	name        string // the group of its figures
	databaseURL string
	redis       *redisServer // nil = the product's own
	postmaster  int          // process whose family uses PostgreSQL's CPU time; 0 = cannot be measured
	floor       *floor       // nil = not measured
}

// subject is one server under test.
type subject struct {
	*bench
	engine
	process *Process
	cast    *cast
	sink    *sink
	api     *caller
	calls   []post            // callbacks by order
	extra   map[string]string // settings in addition to those of every server
}

// product runs every phase against one fresh server.
func (b *bench) product(ctx context.Context, e engine) error {
	steady := int(b.o.Length.Seconds() * steadyRate)
	total := 2*steady + len(b.o.Connections)*b.o.Orders
	if e.floor != nil {
		total += e.floor.orders
	}
	all := &subject{bench: b, engine: e, cast: newCast(0), calls: make([]post, total)}
	end, err := all.open(ctx, total)
	if err != nil {
		return err
	}
	defer end()
	made, err := all.create(ctx, total, 2*steady)
	if err != nil {
		return err
	}
	if made < total {
		b.report.skip(fmt.Sprintf("%s: only %d of %d orders could be created in %s; the bursts are smaller", e.name, made, total,
			createTime))
	}
	base, err := all.steady(ctx, 0, steady)
	if err != nil {
		return err
	}
	all.latency("callback in → merchant notified, 200/s", base.took, 5, 20)
	all.latency("callback answered → merchant notified, 200/s", base.answered, 0, 0)
	if err := all.bursts(ctx, 2*steady, made); err != nil {
		return err
	}
	healthy, err := all.steady(ctx, steady, 2*steady)
	if err != nil {
		return err
	}
	all.latency("callback in → merchant notified, 200/s, while 2 of 20 merchants hang", healthy.took, 0, 1.2*ms(base.took.at(0.99)))
	return all.million(ctx, total)
}

// add reports a figure with the goal of at most goal; 0 = no goal.
func (s *subject) add(name, unit string, value, goal float64) {
	f := figure{Group: s.name, Name: name, Unit: unit, Value: value}
	if goal > 0 {
		f = f.atMost(goal)
	}
	s.report.add(f)
}

// latency reports percentiles of sorted latencies, with their goals in milliseconds.
func (s *subject) latency(name string, l latencies, p50, p99 float64) {
	s.add(name+", p50", "ms", ms(l.at(0.50)), p50)
	s.add(name+", p99", "ms", ms(l.at(0.99)), p99)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// open opens a sink for this many orders and starts the server; end closes both.
func (s *subject) open(ctx context.Context, orders int) (end func(), err error) {
	if s.sink, err = openSink(orders); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		s.sink.close()
		return nil, err
	}
	return func() {
		s.api.close()
		s.process.Stop()
		s.sink.close()
	}, nil
}

// start starts the server and measures the time until it is ready and its idle memory.
func (s *subject) start(ctx context.Context) error {
	begun := time.Now()
	var err error
	all := maps.Clone(settings)
	maps.Copy(all, s.extra)
	s.process, err = s.o.Start(ctx, Server{DatabaseURL: s.databaseURL, RedisURL: s.redis.url(), Extra: all})
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	u, err := url.Parse(s.process.URL)
	if err != nil {
		s.process.Stop()
		return fmt.Errorf("read the server's address: %w", err)
	}
	s.api = newCaller(u.Host, calls)
	if err := s.ready(ctx, begun); err != nil {
		s.process.Stop()
		return err
	}
	return nil
}

// openData opens a second connection to the server's database.
func (s *subject) openData() (*sql.DB, error) {
	driver, name := "pgx", s.databaseURL
	if name == "" {
		driver, name = "sqlite", "file:"+filepath.Join(s.process.Data, db.File)+"?_pragma=busy_timeout(30000)&_txlock=immediate"
	}
	d, err := sql.Open(driver, name)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return d, nil
}

// startTime bounds the start of a server.
const startTime = 20 * time.Second

func (s *subject) ready(ctx context.Context, begun time.Time) error {
	for {
		status, _, err := s.api.client.Get(nil, "http://"+s.api.client.Addr+"/readyz")
		if err == nil && status == http.StatusOK {
			break
		}
		if ctx.Err() != nil || time.Since(begun) > startTime {
			return fmt.Errorf("the server was not ready within %s (status %d): %v", startTime, status, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
	s.add("start to ready", "ms", ms(time.Since(begun)), 500)
	// One second of idle ticks, so that the figure is not the one of the startup.
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
	}
	idle, err := memory(s.process.PID)
	if err != nil {
		return err
	}
	s.add("memory, idle", "MB", float64(idle)/mb, 60)
	text, err := s.cast.declaration()
	if err != nil {
		return err
	}
	if err := s.process.Apply(ctx, text); err != nil {
		return fmt.Errorf("apply settings: %w", err)
	}
	return s.cast.await(ctx, s.api)
}

// create creates orders through the API and returns their number; their indexes have no gaps.
// In the second half below steadyEnd, orders of hanging merchants get a notify_url that never
// answers.
func (s *subject) create(ctx context.Context, total, steadyEnd int) (int, error) {
	var before int64
	var err error
	if s.redis != nil {
		if before, err = s.redis.memory(ctx); err != nil {
			return 0, err
		}
	}
	making, cancel := context.WithTimeout(ctx, createTime)
	defer cancel()
	start := time.Now()
	took, err := closedLoop(making, connections, total, func(i int) error {
		to := s.sink.url("/n")
		if i >= steadyEnd/2 && i < steadyEnd && hangs(i) {
			to = s.sink.url("/hang")
		}
		return s.makeOrder(i%merchants, i, to)
	})
	if err != nil {
		return 0, fmt.Errorf("make orders: %w", err)
	}
	made := len(took) // closedLoop takes indexes in order and finishes each
	if made < steadyEnd {
		return 0, fmt.Errorf("only %d orders could be created in %s", made, createTime)
	}
	s.report.add(s.rate(s.name, "orders made through the API", made, time.Since(start)))
	if s.redis == nil {
		return made, nil
	}
	after, err := s.redis.memory(ctx)
	if err != nil {
		return 0, err
	}
	s.add(fmt.Sprintf("Redis memory of %d open orders", made), "MB", float64(after-before)/mb, 5)
	return made, nil
}

// hangs reports whether the merchant of order i hangs or fails.
func hangs(i int) bool { return i%merchants < hanging }

func (s *subject) makeOrder(merchant, i int, notifyURL string) error {
	return s.makeOrderAt(supplierCode, merchant, i, notifyURL)
}

func (s *subject) makeOrderAt(supplier string, merchant, i int, notifyURL string) error {
	p, err := s.cast.orderAt(supplier, merchant, i, notifyURL)
	if err != nil {
		return err
	}
	no, err := s.made(p)
	if err != nil {
		return err
	}
	if i < len(s.calls) {
		s.calls[i] = s.cast.callbackAt(supplier, no, i)
		s.sink.expect(no, i)
	}
	return nil
}

// made creates an order and returns its number.
func (s *subject) made(p post) (string, error) {
	var made struct {
		OrderNo string `json:"order_no"`
	}
	var answer []byte
	status, err := s.api.send(p, func(body []byte) {
		answer = append(answer, body...)
		_ = json.Unmarshal(body, &made) // a missing number is an error below
	})
	if err != nil {
		return "", err
	}
	if status != http.StatusCreated || made.OrderNo == "" {
		return "", fmt.Errorf("the order %s was answered %d %s", p.body, status, answer)
	}
	return made.OrderNo, nil
}

// call posts the callback of an order. Like a supplier, it repeats a callback that is answered
// 503; the duration includes the repeats.
func (s *subject) call(i int) error {
	for try := 1; ; try++ {
		status, err := s.api.send(s.calls[i], nil)
		switch {
		case err != nil:
			return err
		case status == http.StatusOK:
			return nil
		case status != http.StatusServiceUnavailable || try == 10:
			return fmt.Errorf("callback %d was answered %d", i, status)
		}
	}
}

// steady sends the callbacks from..to-1 at a fixed rate and returns the sorted latencies of the
// merchants that answer.
func (s *subject) steady(ctx context.Context, from, to int) (phase, error) {
	p, err := s.notified(ctx, steadyRate, from, to-from, func(i int) bool { return from > 0 && hangs(i) })
	sorted(p.took)
	sorted(p.answered)
	return p, err
}

// phase is the result of a phase at a fixed rate.
type phase struct {
	took     latencies // from a callback's due time to the notification, in order of due times
	answered latencies // from a callback's answer to the notification, likewise; negative if the notification was first
	early    int       // number of callbacks due in the first second
	late     latencies // from a callback's due time until the load generator sent it
	// CPU time of both processes, and the duration of the phase.
	server, generator, lasted time.Duration
}

// notified sends n callbacks at a rate and waits until the merchants are notified, except for
// skipped orders.
func (s *subject) notified(ctx context.Context, rate, from, n int, skip func(i int) bool) (phase, error) {
	var p phase
	before, err := s.cpu()
	if err != nil {
		return p, err
	}
	begun := time.Now()
	dues, answers := make([]time.Time, n), make([]time.Time, n)
	p.late = make(latencies, n)
	err = openLoop(ctx, float64(rate), n, func(i int, due time.Time) error {
		dues[i], p.late[i] = due, time.Since(due)
		err := s.call(from + i)
		answers[i] = time.Now()
		return err
	})
	if err != nil {
		return p, err
	}
	notifying, cancel := context.WithTimeout(ctx, notifyTime)
	defer cancel()
	for i := range n {
		if skip(from + i) {
			continue
		}
		if _, err := s.sink.wait(notifying, from+i, from+i+1); err != nil {
			return p, err
		}
		at, _ := s.sink.at(from + i)
		p.took, p.answered = append(p.took, at.Sub(dues[i])), append(p.answered, at.Sub(answers[i]))
		if i < rate {
			p.early++
		}
	}
	p.lasted = time.Since(begun)
	after, err := s.cpu()
	p.server, p.generator = after.server-before.server, after.generator-before.generator
	return p, err
}

// used is CPU time.
type used struct{ server, generator, postgres time.Duration }

// cpu returns the CPU time of the processes so far. That of the load generator includes the
// merchants.
func (s *subject) cpu() (u used, err error) {
	if u.server, err = cpuTime(s.process.PID); err != nil {
		return u, err
	}
	if s.postmaster > 0 {
		if u.postgres, err = familyTime(s.postmaster); err != nil {
			return u, err
		}
	}
	u.generator, err = cpuTime(os.Getpid())
	return u, err
}

// million creates 1,000,000 open orders, only to measure the memory of Redis.
func (s *subject) million(ctx context.Context, made int) error {
	if !s.o.Million || s.redis == nil {
		return nil
	}
	s.progress("1,000,000 open orders")
	before, err := s.redis.memory(ctx)
	if err != nil {
		return err
	}
	if _, err := closedLoop(ctx, connections, million, func(i int) error {
		return s.makeOrder(i%merchants, made+i, s.sink.url("/n"))
	}); err != nil {
		return fmt.Errorf("make orders: %w", err)
	}
	after, err := s.redis.memory(ctx)
	if err != nil {
		return err
	}
	s.add("Redis memory of 1,000,000 more open orders", "MB", float64(after-before)/mb, 5)
	return nil
}
