// Package demo simulates buyers, suppliers and merchants against a running server on this
// machine, with the usual failures of payments: repeated callbacks, wrong amounts, forgeries,
// late payments, disputes, and merchants that are slow, down or hanging.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"backstop/internal/simulator"
)

// Options of a demo.
type Options struct {
	URL     string // of the server, loopback only
	Console string // URL of the console; empty = URL
	Out     io.Writer
	// Apply applies a declaration, as `backstop apply`.
	Apply func(ctx context.Context, yaml []byte) error
	// History writes the past weeks of merchants with these addresses, by code, and returns of
	// how many orders; nil = there is no past.
	History func(ctx context.Context, urls map[string]string) (orders int, err error)
	Rate    float64       // orders per second, 0 = 5, at most 100
	For     time.Duration // 0 = until ctx ends
	// Orders is the maximum number of orders; 0 = 100,000.
	Orders int
	Seed   uint64 // of all random choices; 0 = a random one
	// Callable means that the server may call suppliers on this machine: payments are started
	// there, and payments whose callback is lost are found by queries.
	Callable bool
}

// MaxRate is the maximum rate, in orders per second.
const MaxRate = 100

const (
	defaultRate   = 5
	defaultOrders = 100_000
	// maxStories bounds the running stories. At the highest rate, the longest ones (late
	// payments) need a fifth of it.
	maxStories   = 4096
	summaryEvery = 10 * time.Second
	// settleTime is how long running stories may take to end; leaveTime is the same after an
	// interrupt, which may have ended the server too.
	settleTime = 15 * time.Second
	leaveTime  = time.Second
	// summaryTime bounds the requests of one summary.
	summaryTime = 5 * time.Second
)

// ErrNotAllowed means that the server would not send notifications to this machine.
var ErrNotAllowed = errors.New(
	"the server does not send notifications to this machine, where the demo's merchants are: start it with BACKSTOP_NOTIFY_ALLOW_CIDRS=127.0.0.0/8,::1/128")

// Run runs until For is over, Orders are created or ctx ends, and prints what happens. The
// end of ctx is not an error.
func Run(ctx context.Context, o Options) error {
	if o.Rate <= 0 {
		o.Rate = defaultRate
	}
	o.Rate = min(o.Rate, MaxRate)
	if o.Orders <= 0 {
		o.Orders = defaultOrders
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	to, err := newServer(o.URL)
	if err != nil {
		return err
	}
	defer to.http.CloseIdleConnections()
	o.Console = cmp.Or(o.Console, to.url)
	// The keys differ in each run: o.Seed only chooses the stories.
	suppliers, err := simulator.New(simulator.Options{Seed: rand.Uint64(), Codes: codes, Callbacks: to.url + "/callback"})
	if err != nil {
		return fmt.Errorf("start the suppliers: %w", err)
	}
	defer suppliers.Close()
	if _, err := suppliers.SetPayout(codes[answerLost.kind()], simulator.EachNumber, simulator.PayoutScript{LoseAnswers: 1}); err != nil {
		return fmt.Errorf("lose the answers about payouts: %w", err)
	}
	base, closeSuppliers, err := serve(ctx, suppliers, o.Callable)
	if err != nil {
		return err
	}
	defer closeSuppliers()
	shops, err := openShops()
	if err != nil {
		return err
	}
	defer closeShops(shops)
	text, err := declaration(suppliers.Accounts(), base, shops)
	if err != nil {
		return err
	}
	if err := o.Apply(ctx, text); err != nil {
		return fmt.Errorf("declare the demo's suppliers and merchants: %w", err)
	}
	s := &stage{
		o: o, to: to, suppliers: suppliers, payers: suppliers.Accounts(), shops: shops, run: randomHex(4),
		dice: rand.New(rand.NewPCG(o.Seed, 0)), tally: newTally(o.Out),
	}
	if err := s.ready(ctx); err != nil {
		return quiet(ctx, err)
	}
	s.tally.log("console: %s/  (%g orders/s, seed %d)", o.Console, o.Rate, o.Seed)
	if o.History != nil {
		start := time.Now()
		urls := make(map[string]string, len(shops))
		for _, m := range shops {
			urls[m.code] = m.server.URL()
		}
		n, err := o.History(ctx, urls)
		if err != nil {
			return quiet(ctx, err)
		}
		if n > 0 {
			s.tally.log("figures of the last two weeks: %d orders, one in every five minutes stored with all its rows, in %s", n,
				time.Since(start).Round(10*time.Millisecond))
		}
	}
	s.play(ctx)
	return nil
}

// serve makes the suppliers callable and returns their base URL; "" = not callable.
func serve(ctx context.Context, suppliers *simulator.Simulator, callable bool) (base string, closeServer func(), err error) {
	if !callable {
		return "", func() {}, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("open the suppliers: %w", err)
	}
	server := &http.Server{Handler: suppliers, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}

// quiet returns nil instead of an error after an interrupt.
func quiet(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// stage is one run of the demo.
type stage struct {
	o         Options
	to        *server
	suppliers *simulator.Simulator
	payers    []*simulator.Account
	shops     []*shop
	run       string     // prefix of this run's numbers, unique for each run
	dice      *rand.Rand // used by the loop of play only
	tally     *tally
	tasks     sync.WaitGroup
}

// readyTime bounds the server's start and its use of new settings (2 s).
const readyTime = 10 * time.Second

// ready waits until the server uses the new keys, and checks that it may notify the demo's
// merchants.
func (s *stage) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		_, err := s.to.create(ctx, s.shops[0], newOrder{
			OutTradeNo: s.run + "-0", Amount: 1, Currency: s.payers[0].Currency, Supplier: s.payers[0].Code,
			Subject: "demo: probe", NotifyURL: s.shops[0].server.URL(), ExpiresIn: 1,
		})
		var refused *apiError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refused) && refused.Field == "notify_url":
			return fmt.Errorf("%w (%s)", ErrNotAllowed, refused.Message)
		case refused != nil && refused.status != http.StatusUnauthorized && refused.status < http.StatusInternalServerError:
			return fmt.Errorf("the server refuses the demo's orders: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf(
				"the server at %s did not accept the demo's orders within %s (does it use the database to which the demo's settings were applied?): %w", s.to.url, readyTime, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// play starts stories at the given rate and prints a summary regularly.
func (s *stage) play(ctx context.Context) {
	playing := ctx
	if s.o.For > 0 {
		var cancel context.CancelFunc
		playing, cancel = context.WithTimeout(ctx, s.o.For)
		defer cancel()
	}
	// Running stories get time to end, whatever ends the demo.
	stories, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	s.loop(playing, stories)
	patience := settleTime
	if ctx.Err() != nil {
		patience = leaveTime
	}
	stop := time.AfterFunc(patience, cut)
	defer stop.Stop()
	s.tasks.Wait()
	s.summary(ctx, "end")
}

func (s *stage) loop(playing, stories context.Context) {
	next := time.NewTicker(time.Duration(float64(time.Second) / s.o.Rate))
	defer next.Stop()
	summary := time.NewTicker(summaryEvery)
	defer summary.Stop()
	slots := make(chan struct{}, maxStories)
	for n := 1; n <= s.o.Orders; {
		select {
		case <-playing.Done():
			return
		case <-summary.C:
			s.tasks.Go(func() { s.summary(stories, "so far") })
		case <-next.C:
			select {
			case slots <- struct{}{}:
			default:
				continue // the server is too slow: no more stories for now
			}
			story := s.cast(n)
			n++
			s.tasks.Go(func() {
				defer func() { <-slots }()
				story.play(stories)
			})
		}
	}
}
