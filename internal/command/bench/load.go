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
	connections     = 64
	manyConnections = 512
)

// latencies are the times of one phase.
type latencies []time.Duration

// at returns the percentile p, from 0 to 1; 0 if there is no sample. The samples must be sorted.
func (l latencies) at(p float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[min(int(p*float64(len(l))), len(l)-1)]
}

func sorted(l latencies) latencies {
	slices.Sort(l)
	return l
}

// caller posts prepared requests to one server.
type caller struct{ client *fasthttp.HostClient }

// newCaller returns a caller of host (address and port) with at most maxConns connections.
func newCaller(host string, maxConns int) *caller {
	return &caller{&fasthttp.HostClient{
		Addr: host, MaxConns: maxConns, MaxConnWaitTimeout: 10 * time.Second,
		ReadTimeout: 15 * time.Second, WriteTimeout: 5 * time.Second,
		// A POST is never repeated automatically.
		RetryIf: func(*fasthttp.Request) bool { return false },
	}}
}

// post is a prepared request.
type post struct {
	path, contentType, key string
	body                   []byte
}

// send posts one request. keep, if not nil, gets the answer's body.
func (c *caller) send(p post, keep func([]byte)) (status int, err error) {
	return c.do(fasthttp.MethodPost, p, keep)
}

// get is send for a GET.
func (c *caller) get(path, key string, keep func([]byte)) (status int, err error) {
	return c.do(fasthttp.MethodGet, post{path: path, key: key}, keep)
}

func (c *caller) do(method string, p post, keep func([]byte)) (status int, err error) {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.SetMethod(method)
	req.SetRequestURI("http://" + c.client.Addr + p.path)
	req.Header.SetContentType(p.contentType)
	if p.key != "" {
		req.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+p.key)
	}
	req.SetBodyRaw(p.body)
	if err := c.client.Do(req, resp); err != nil {
		return 0, fmt.Errorf("%s %s: %w", method, p.path, err)
	}
	if keep != nil {
		keep(resp.Body())
	}
	return resp.StatusCode(), nil
}

func (c *caller) close() { c.client.CloseIdleConnections() }

// closedLoop runs do for 0 to n-1 with this many workers, until all are done or ctx ends. It
// returns the durations in the order of i, and the first error.
func closedLoop(ctx context.Context, workers, n int, do func(i int) error) (latencies, error) {
	took := make(latencies, n)
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
