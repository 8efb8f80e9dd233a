package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"backstop/internal/base/metric"
	"backstop/internal/base/textlimit"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check is one thing that must hold before this node may get requests. Its error
// is shown to everybody who asks: it must not hold a secret.
type Check struct {
	Name string
	Run  func(ctx context.Context) error
	// Warning says that the node may get requests all the same.
	Warning bool
}

// Limits of readiness.
const (
	checkTime = 2 * time.Second        // for one check
	checkAge  = 500 * time.Millisecond // an answer is given again for so long: probes must not become load

	maxCheckError = 300 // bytes of what is said about one check
)

// CheckResult is one line of the answer to /readyz.
type CheckResult struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
	// Warning is what people should look at although the node is ready.
	Warning string `json:"warning,omitempty"`
}

// readiness runs the checks, all at once and each at most once at a time.
type readiness struct {
	checks  []Check
	running []atomic.Bool
	mu      sync.Mutex
	at      time.Time
	results []CheckResult
	last    atomic.Value // results, for those who do not wait
	asking  atomic.Bool
}

// NewReadiness runs none of the checks before it is asked.
func NewReadiness(checks []Check) *readiness {
	return &readiness{checks: checks, running: make([]atomic.Bool, len(checks))}
}

// Ask returns results that are at most checkAge old.
func (r *readiness) Ask() []CheckResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() && time.Since(r.at) < checkAge {
		return r.results
	}
	results := make([]CheckResult, len(r.checks))
	var all sync.WaitGroup
	for i, check := range r.checks {
		all.Go(func() {
			results[i] = CheckResult{Name: check.Name, OK: true}
			err := r.run(i, check)
			switch {
			case err != nil && check.Warning:
				results[i].Warning = textlimit.Clip(err.Error(), maxCheckError)
			case err != nil:
				results[i] = CheckResult{Name: check.Name, Error: textlimit.Clip(err.Error(), maxCheckError)}
			}
		})
	}
	all.Wait()
	r.at, r.results = time.Now(), results
	r.last.Store(results)
	return results
}

// knownFor is how old the results may be that pages speak of.
const knownFor = 2 * time.Second

// known returns the last results without waiting: a page must not hang because
// something that it tells about does. Older ones are asked for anew behind it.
func (r *readiness) known() []CheckResult {
	if !r.mu.TryLock() { // being asked
		last, _ := r.last.Load().([]CheckResult)
		return last
	}
	stale := time.Since(r.at) > knownFor
	r.mu.Unlock()
	if stale && r.asking.CompareAndSwap(false, true) {
		go func() {
			defer r.asking.Store(false)
			r.Ask()
		}()
	}
	last, _ := r.last.Load().([]CheckResult)
	return last
}

// failed says whether a check of one of the names did not hold lately.
func (r *readiness) failed(names ...string) bool {
	return slices.ContainsFunc(r.known(), func(c CheckResult) bool { return !c.OK && slices.Contains(names, c.Name) })
}

// run bounds a check that does not listen to its context, too; as long as it
// hangs, no second one is started.
func (r *readiness) run(i int, check Check) error {
	if !r.running[i].CompareAndSwap(false, true) {
		return errors.New("an earlier check still hangs")
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	done := make(chan error, 1)
	go func() {
		defer cancel()
		defer r.running[i].Store(false)
		done <- check.Run(ctx)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		select {
		case err := <-done: // it ended, and its own cancel was seen first
			return err
		default:
			return errors.New("no answer within " + checkTime.String())
		}
	}
}

// isReady says whether this node should get requests, and why not.
func (s *Server) isReady(c *fiber.Ctx) error {
	results := s.Ready.Ask()
	status, word := http.StatusOK, "ready"
	for _, r := range results {
		if !r.OK {
			status, word = http.StatusServiceUnavailable, "not ready"
		}
	}
	if s.draining.Load() {
		status, word = http.StatusServiceUnavailable, "draining"
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Status(status).JSON(struct {
		Status string        `json:"status"`
		Checks []CheckResult `json:"checks"`
	}{word, results})
}

// alive says that the process answers, and nothing else.
func (s *Server) alive(c *fiber.Ctx) error { return c.SendString("ok\n") }

// metrics serves what package metric lists.
func metrics() fiber.Handler {
	return adaptor.HTTPHandler(promhttp.HandlerFor(metric.Registry, promhttp.HandlerOpts{DisableCompression: true}))
}
