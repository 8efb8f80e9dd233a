package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// sink is the server of all merchants. It records when the first notification of each order
// arrives.
type sink struct {
	listener net.Listener
	server   *fasthttp.Server
	started  time.Time
	hangs    chan struct{} // closed at the end: ends requests to /hang

	Orders  sync.Map       // order number → index
	arrived []atomic.Int64 // nanoseconds since started, by index; 0 = not yet
	repeats atomic.Int64
}

// openSink listens on a free loopback port; orders is the number of orders to record.
func openSink(orders int) (*sink, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the sink: %w", err)
	}
	s := &sink{
		listener: listener, started: time.Now(), hangs: make(chan struct{}), arrived: make([]atomic.Int64, orders),
	}
	s.server = &fasthttp.Server{Handler: s.take, NoDefaultServerHeader: true, Concurrency: 20_000, CloseOnShutdown: true}
	go func() { _ = s.server.Serve(listener) }()
	return s, nil
}

// URL returns the URL of an endpoint: "/n" answers at once, "/hang" never.
func (s *sink) URL(path string) string { return "http://" + s.host() + path }

func (s *sink) host() string { return s.listener.Addr().String() }

// expect sets the index of an order.
func (s *sink) expect(orderNo string, index int) { s.Orders.Store(orderNo, index) }

var orderField = []byte(`"order_no":"`)

func (s *sink) take(c *fasthttp.RequestCtx) {
	if string(c.Path()) == "/hang" {
		<-s.hangs
		return
	}
	c.SetBodyString("success")
	_, rest, found := bytes.Cut(c.PostBody(), orderField)
	end := bytes.IndexByte(rest, '"')
	if !found || end < 0 {
		return
	}
	index, known := s.Orders.Load(string(rest[:end]))
	if known && !s.arrived[index.(int)].CompareAndSwap(0, int64(time.Since(s.started))) {
		s.repeats.Add(1)
	}
}

// at returns when an order's notification arrived; false = not yet.
func (s *sink) at(index int) (time.Time, bool) {
	ns := s.arrived[index].Load()
	return s.started.Add(time.Duration(ns)), ns != 0
}

var errNotNotified = errors.New("merchants were not notified in time")

// Wait waits until the notifications of the orders from..to-1 have arrived, and returns
// the time of the last one.
func (s *sink) Wait(ctx context.Context, from, to int) (time.Time, error) {
	last := time.Time{}
	for i := from; i < to; {
		at, arrived := s.at(i)
		if arrived {
			if at.After(last) {
				last = at
			}
			i++
			continue
		}
		select {
		case <-ctx.Done():
			missing := 0
			for j := i; j < to; j++ {
				if _, arrived := s.at(j); !arrived {
					missing++
				}
			}
			return last, fmt.Errorf("%w: %d of %d orders are missing", errNotNotified, missing, to-from)
		case <-time.After(time.Millisecond):
		}
	}
	return last, nil
}

func (s *sink) close() {
	close(s.hangs)
	_ = s.listener.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.server.ShutdownWithContext(ctx)
}
