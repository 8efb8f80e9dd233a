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
	SteadyRate = 200 // orders per second, of the phases at a fixed rate
	// CreateTime bounds the creation of orders; the ones created by then are used.
	CreateTime = 30 * time.Second
	// NotifyTime bounds the wait for the notifications of all paid orders.
	NotifyTime = 90 * time.Second
	// calls bounds the concurrent calls of the phases at a fixed rate.
	calls   = 1024
	million = 1_000_000
	mb      = 1 << 20
)

// Settings raise the limits per sender, which a single load generator would reach, and allow
// merchants on this machine. All other settings have their defaults.
var Settings = map[string]string{
	"BACKSTOP_NOTIFY_ALLOW_CIDRS": "127.0.0.0/8,::1/128",
	"BACKSTOP_API_RATE":           "1000000/s",
	"BACKSTOP_CALLBACK_RATE":      "1000000/s",
}

// Target is one configuration of the product.
type Target struct {
	Name        string // the group of its figures
	DatabaseURL string
	Drop        func()       // drops the schema
	Redis       *redisServer // nil = the product's own
	Postmaster  int          // process whose family uses PostgreSQL's CPU time; 0 = cannot be measured
}

// Subject is one server under test.
type Subject struct {
	*Bench
	Target
	Process *Process
	Cast    *Cast
	Sink    *sink
	API     *caller
	Calls   []Post            // callbacks by order
	Extra   map[string]string // settings in addition to those of every server
}

// product runs every phase against one fresh server.
func (b *Bench) product(ctx context.Context, e Target) error {
	steady := int(b.Options.Length.Seconds() * SteadyRate)
	total := 2*steady + len(b.Options.Connections)*b.Options.Orders
	all := &Subject{Bench: b, Target: e, Cast: NewCast(0), Calls: make([]Post, total)}
	end, err := all.Open(ctx, total)
	if err != nil {
		return err
	}
	defer end()
	made, err := all.Create(ctx, total, 2*steady)
	if err != nil {
		return err
	}
	if made < total {
		b.Report.Skip(fmt.Sprintf("%s: only %d of %d orders could be created in %s; the bursts are smaller", e.Name, made, total,
			CreateTime))
	}
	base, err := all.steady(ctx, 0, steady)
	if err != nil {
		return err
	}
	all.Latency("callback in → merchant notified, 200/s", base.Took, 5, 20)
	all.Latency("callback answered → merchant notified, 200/s", base.Answered, 0, 0)
	if err := all.Bursts(ctx, 2*steady, made); err != nil {
		return err
	}
	healthy, err := all.steady(ctx, steady, 2*steady)
	if err != nil {
		return err
	}
	all.Latency("callback in → merchant notified, 200/s, while 2 of 20 merchants hang", healthy.Took, 0, 1.2*MS(base.Took.At(0.99)))
	return all.million(ctx, total)
}

// Add reports a figure with the goal of at most goal; 0 = no goal.
func (s *Subject) Add(name, unit string, value, goal float64) {
	f := Figure{Group: s.Name, Name: name, Unit: unit, Value: value}
	if goal > 0 {
		f = f.AtMost(goal)
	}
	s.Report.Add(f)
}

// Latency reports percentiles of sorted latencies, with their goals in milliseconds.
func (s *Subject) Latency(name string, l Latencies, p50, p99 float64) {
	s.Add(name+", p50", "ms", MS(l.At(0.50)), p50)
	s.Add(name+", p99", "ms", MS(l.At(0.99)), p99)
}

func MS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Open opens a sink for this many orders and starts the server; end closes both.
func (s *Subject) Open(ctx context.Context, orders int) (end func(), err error) {
	if s.Sink, err = openSink(orders); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		s.Sink.close()
		return nil, err
	}
	return func() {
		s.API.Close()
		s.Process.Stop()
		s.Sink.close()
	}, nil
}

// start starts the server and measures the time until it is ready and its idle memory.
func (s *Subject) start(ctx context.Context) error {
	begun := time.Now()
	var err error
	all := maps.Clone(Settings)
	maps.Copy(all, s.Extra)
	s.Process, err = s.Options.Start(ctx, Server{DatabaseURL: s.DatabaseURL, RedisURL: s.Redis.URL(), Extra: all})
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	u, err := url.Parse(s.Process.URL)
	if err != nil {
		s.Process.Stop()
		return fmt.Errorf("read the server's address: %w", err)
	}
	s.API = NewCaller(u.Host, calls)
	if err := s.ready(ctx, begun); err != nil {
		s.Process.Stop()
		return err
	}
	return nil
}

// OpenData opens a second connection to the server's database.
func (s *Subject) OpenData() (*sql.DB, error) {
	driver, name := "pgx", s.DatabaseURL
	if name == "" {
		driver, name = "sqlite", "file:"+filepath.Join(s.Process.Data, db.File)+"?_pragma=busy_timeout(30000)&_txlock=immediate"
	}
	d, err := sql.Open(driver, name)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return d, nil
}

// StartTime bounds the start of a server.
const StartTime = 20 * time.Second

func (s *Subject) ready(ctx context.Context, begun time.Time) error {
	for {
		status, _, err := s.API.client.Get(nil, "http://"+s.API.client.Addr+"/readyz")
		if err == nil && status == http.StatusOK {
			break
		}
		if ctx.Err() != nil || time.Since(begun) > StartTime {
			return fmt.Errorf("the server was not ready within %s (status %d): %v", StartTime, status, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
	s.Add("start to ready", "ms", MS(time.Since(begun)), 500)
	// One second of idle ticks, so that the figure is not the one of the startup.
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
	}
	idle, err := memory(s.Process.PID)
	if err != nil {
		return err
	}
	s.Add("memory, idle", "MB", float64(idle)/mb, 60)
	text, err := s.Cast.Declaration()
	if err != nil {
		return err
	}
	if err := s.Process.Apply(ctx, text); err != nil {
		return fmt.Errorf("apply settings: %w", err)
	}
	return s.Cast.await(ctx, s.API)
}

// Create creates orders through the API and returns their number; their indexes have no gaps.
// In the second half below steadyEnd, orders of hanging merchants get a notify_url that never
// answers.
func (s *Subject) Create(ctx context.Context, total, steadyEnd int) (int, error) {
	var before int64
	var err error
	if s.Redis != nil {
		if before, err = s.Redis.memory(ctx); err != nil {
			return 0, err
		}
	}
	making, cancel := context.WithTimeout(ctx, CreateTime)
	defer cancel()
	start := time.Now()
	took, err := ClosedLoop(making, Connections, total, func(i int) error {
		to := s.Sink.URL("/n")
		if i >= steadyEnd/2 && i < steadyEnd && hangs(i) {
			to = s.Sink.URL("/hang")
		}
		return s.MakeOrder(i%Merchants, i, to)
	})
	if err != nil {
		return 0, fmt.Errorf("make orders: %w", err)
	}
	made := len(took) // closedLoop takes indexes in order and finishes each
	if made < steadyEnd {
		return 0, fmt.Errorf("only %d orders could be created in %s", made, CreateTime)
	}
	s.Report.Add(s.rate(s.Name, "orders made through the API", made, time.Since(start)))
	if s.Redis == nil {
		return made, nil
	}
	after, err := s.Redis.memory(ctx)
	if err != nil {
		return 0, err
	}
	s.Add(fmt.Sprintf("Redis memory of %d open orders", made), "MB", float64(after-before)/mb, 5)
	return made, nil
}

// hangs reports whether the merchant of order i hangs or fails.
func hangs(i int) bool { return i%Merchants < hanging }

func (s *Subject) MakeOrder(merchant, i int, notifyURL string) error {
	return s.MakeOrderAt(SupplierCode, merchant, i, notifyURL)
}

func (s *Subject) MakeOrderAt(supplier string, merchant, i int, notifyURL string) error {
	p, err := s.Cast.OrderAt(supplier, merchant, i, notifyURL)
	if err != nil {
		return err
	}
	no, err := s.Made(p)
	if err != nil {
		return err
	}
	if i < len(s.Calls) {
		s.Calls[i] = s.Cast.callbackAt(supplier, no, i)
		s.Sink.expect(no, i)
	}
	return nil
}

// Made creates an order and returns its number.
func (s *Subject) Made(p Post) (string, error) {
	var made struct {
		OrderNo string `json:"order_no"`
	}
	var answer []byte
	status, err := s.API.Send(p, func(body []byte) {
		answer = append(answer, body...)
		_ = json.Unmarshal(body, &made) // a missing number is an error below
	})
	if err != nil {
		return "", err
	}
	if status != http.StatusCreated || made.OrderNo == "" {
		return "", fmt.Errorf("the order %s was answered %d %s", p.Body, status, answer)
	}
	return made.OrderNo, nil
}

// Call posts the callback of an order. Like a supplier, it repeats a callback that is answered
// 503; the duration includes the repeats.
func (s *Subject) Call(i int) error {
	for try := 1; ; try++ {
		status, err := s.API.Send(s.Calls[i], nil)
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
func (s *Subject) steady(ctx context.Context, from, to int) (Phase, error) {
	p, err := s.Notified(ctx, SteadyRate, from, to-from, func(i int) bool { return from > 0 && hangs(i) })
	Sorted(p.Took)
	Sorted(p.Answered)
	return p, err
}

// Phase is the result of a phase at a fixed rate.
type Phase struct {
	Took     Latencies // from a callback's due time to the notification, in order of due times
	Answered Latencies // from a callback's answer to the notification, likewise; negative if the notification was first
	early    int       // number of callbacks due in the first second
	late     Latencies // from a callback's due time until the load generator sent it
	// CPU time of both processes, and the duration of the phase.
	server, generator, Lasted time.Duration
}

// Notified sends n callbacks at a rate and waits until the merchants are notified, except for
// skipped orders.
func (s *Subject) Notified(ctx context.Context, rate, from, n int, skip func(i int) bool) (Phase, error) {
	var p Phase
	before, err := s.CPU()
	if err != nil {
		return p, err
	}
	begun := time.Now()
	dues, answers := make([]time.Time, n), make([]time.Time, n)
	p.late = make(Latencies, n)
	err = openLoop(ctx, float64(rate), n, func(i int, due time.Time) error {
		dues[i], p.late[i] = due, time.Since(due)
		err := s.Call(from + i)
		answers[i] = time.Now()
		return err
	})
	if err != nil {
		return p, err
	}
	notifying, cancel := context.WithTimeout(ctx, NotifyTime)
	defer cancel()
	for i := range n {
		if skip(from + i) {
			continue
		}
		if _, err := s.Sink.Wait(notifying, from+i, from+i+1); err != nil {
			return p, err
		}
		at, _ := s.Sink.at(from + i)
		p.Took, p.Answered = append(p.Took, at.Sub(dues[i])), append(p.Answered, at.Sub(answers[i]))
		if i < rate {
			p.early++
		}
	}
	p.Lasted = time.Since(begun)
	after, err := s.CPU()
	p.server, p.generator = after.Server-before.Server, after.generator-before.generator
	return p, err
}

// used is CPU time.
type used struct{ Server, generator, postgres time.Duration }

// CPU returns the CPU time of the processes so far. That of the load generator includes the
// merchants.
func (s *Subject) CPU() (u used, err error) {
	if u.Server, err = cpuTime(s.Process.PID); err != nil {
		return u, err
	}
	if s.Postmaster > 0 {
		if u.postgres, err = FamilyTime(s.Postmaster); err != nil {
			return u, err
		}
	}
	u.generator, err = cpuTime(os.Getpid())
	return u, err
}

// million creates 1,000,000 open orders, only to measure the memory of Redis.
func (s *Subject) million(ctx context.Context, made int) error {
	if !s.Options.Million || s.Redis == nil {
		return nil
	}
	s.Progress("1,000,000 open orders")
	before, err := s.Redis.memory(ctx)
	if err != nil {
		return err
	}
	if _, err := ClosedLoop(ctx, Connections, million, func(i int) error {
		return s.MakeOrder(i%Merchants, made+i, s.Sink.URL("/n"))
	}); err != nil {
		return fmt.Errorf("make orders: %w", err)
	}
	after, err := s.Redis.memory(ctx)
	if err != nil {
		return err
	}
	s.Add("Redis memory of 1,000,000 more open orders", "MB", float64(after-before)/mb, 5)
	return nil
}
