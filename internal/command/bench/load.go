package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// connections is the number of kept-alive connections of the load generator; a second burst
// uses manyConnections.
const (
	Connections     = 64
	manyConnections = 512
)

// Latencies are the times of one phase.
type Latencies []time.Duration

// At returns the percentile p, from 0 to 1; 0 if there is no sample. The samples must be sorted.
func (l Latencies) At(p float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[min(int(p*float64(len(l))), len(l)-1)]
}

func Sorted(l Latencies) Latencies {
	slices.Sort(l)
	return l
}

// caller posts prepared requests to one server.
type caller struct{ client *fasthttp.HostClient }

// NewCaller returns a caller of host (address and port) with at most maxConns connections.
func NewCaller(host string, maxConns int) *caller {
	return &caller{&fasthttp.HostClient{
		Addr: host, MaxConns: maxConns, MaxConnWaitTimeout: 10 * time.Second,
		ReadTimeout: 15 * time.Second, WriteTimeout: 5 * time.Second,
		// A POST is never repeated automatically.
		RetryIf: func(*fasthttp.Request) bool { return false },
	}}
}

// Post is a prepared request.
type Post struct {
	Path, ContentType, Key string
	Body                   []byte
}

// Send posts one request. keep, if not nil, gets the answer's body.
func (c *caller) Send(p Post, keep func([]byte)) (status int, err error) {
	return c.do(fasthttp.MethodPost, p, keep)
}

// Get is send for a GET.
func (c *caller) Get(path, key string, keep func([]byte)) (status int, err error) {
	return c.do(fasthttp.MethodGet, Post{Path: path, Key: key}, keep)
}

func (c *caller) do(method string, p Post, keep func([]byte)) (status int, err error) {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.SetMethod(method)
	req.SetRequestURI("http://" + c.client.Addr + p.Path)
	req.Header.SetContentType(p.ContentType)
	if p.Key != "" {
		req.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+p.Key)
	}
	req.SetBodyRaw(p.Body)
	if err := c.client.Do(req, resp); err != nil {
		return 0, fmt.Errorf("%s %s: %w", method, p.Path, err)
	}
	if keep != nil {
		keep(resp.Body())
	}
	return resp.StatusCode(), nil
}

func (c *caller) Close() { c.client.CloseIdleConnections() }

// ClosedLoop runs do for 0 to n-1 with this many workers, until all are done or ctx ends. It
// returns the durations in the order of i, and the first error.
func ClosedLoop(ctx context.Context, workers, n int, do func(i int) error) (Latencies, error) {
	took := make(Latencies, n)
	var (
		next  atomic.Int64
		wg    sync.WaitGroup
		once  sync.Once
		wrong error
	)
	stop := make(chan struct{})
	for range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				select {
				case <-stop:
					return
				default:
				}
				start := time.Now()
				if err := do(i); err != nil {
					once.Do(func() { wrong = err; close(stop) })
					return
				}
				took[i] = max(time.Since(start), 1) // 0 stands for "not done"
			}
		})
	}
	wg.Wait()
	done := took[:0]
	for _, d := range took {
		if d > 0 {
			done = append(done, d)
		}
	}
	return done, wrong
}

// openLoop runs do for 0 to n-1 at a fixed rate, without waiting for earlier calls: a server
// that stalls cannot slow down its own measurement. do gets the time at which it was due.
func openLoop(ctx context.Context, perSecond float64, n int, do func(i int, due time.Time) error) error {
	var (
		wg    sync.WaitGroup
		once  sync.Once
		wrong error
	)
	gap := time.Duration(float64(time.Second) / perSecond)
	start := time.Now()
	for i := range n {
		due := start.Add(time.Duration(i) * gap)
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			if err := do(i, due); err != nil {
				once.Do(func() { wrong = err })
			}
		})
	}
	wg.Wait()
	return wrong
}
