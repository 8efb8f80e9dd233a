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

// Check is one condition for this node to receive requests. Its error is public and must not
// contain a secret.
type Check struct {
	Name string
	Run  func(ctx context.Context) error
	// Degrades means that the node still commits callbacks while the check fails.
	Degrades bool
}

// Limits of readiness.
const (
	checkTime = 1500 * time.Millisecond // for one check: load balancers wait at most 2 s
	checkAge  = 500 * time.Millisecond  // results are reused this long, so that probes cause no load

	maxCheckError = 300 // bytes of one check's error
)

// CheckResult is one check's result in the answer to /readyz.
type CheckResult struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`

	err      error
	degrades bool
	since    time.Time // with a monotonic reading; since when it fails
}

// Degraded is a check that fails while the node still commits callbacks.
type Degraded struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	// Since is when it began to fail: the time that has passed by the monotonic clock, before now.
	Since time.Time `json:"since"`
}

// readiness runs the checks, all at once and each at most once at a time.
type readiness struct {
	checks  []Check
	running []atomic.Bool
	mu      sync.Mutex // held while the checks run
	last    atomic.Pointer[checked]
	behind  atomic.Bool // known is refreshing the results
}

// checked is the results at one time.
type checked struct {
	at      time.Time
	results []CheckResult
}

// NewReadiness returns a readiness that runs no check before Ask.
func NewReadiness(checks []Check) *readiness {
	r := &readiness{checks: checks, running: make([]atomic.Bool, len(checks))}
	r.last.Store(new(checked))
	return r
}

// Ask returns results that are at most checkAge old.
func (r *readiness) Ask() []CheckResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.last.Load(); time.Since(last.at) < checkAge {
		return last.results
	}
	results, before := make([]CheckResult, len(r.checks)), r.last.Load().results
	var all sync.WaitGroup
	for i, check := range r.checks {
		all.Go(func() {
			begun := time.Now()
			err := r.run(i, check)
			results[i] = CheckResult{Name: check.Name, OK: err == nil, degrades: check.Degrades}
			if err == nil {
				return
			}
			results[i].Error, results[i].err, results[i].since = textlimit.Clip(err.Error(), maxCheckError), err, begun
			if len(before) > 0 && !before[i].OK {
				results[i].since = before[i].since
			}
		})
	}
	all.Wait()
	r.last.Store(&checked{time.Now(), results})
	return results
}

// knownFor is the maximum age of results on pages.
const knownFor = 2 * time.Second

// known returns the last results without waiting, because a page must not hang on a check. It
// refreshes older results in the background.
func (r *readiness) known() []CheckResult {
	last := r.last.Load()
	if time.Since(last.at) > knownFor && r.behind.CompareAndSwap(false, true) {
		go func() {
			defer r.behind.Store(false)
			r.Ask()
		}()
	}
	return last.results
}

// failed returns why one of the named checks failed recently; nil = none did.
func (r *readiness) failed(names ...string) error {
	for _, c := range r.known() {
		if c.err != nil && slices.Contains(names, c.Name) {
			return c.err
		}
	}
	return nil
}

// run also bounds a check that ignores its context; while one hangs, no second one is started.
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
	case <-time.After(checkTime):
		return errors.New("no answer within " + checkTime.String())
	}
}

// isReady reports whether this node should receive requests, and why not.
func (s *Server) isReady(c *fiber.Ctx) error {
	results, degraded := s.Ready.Ask(), []Degraded{}
	status, word := http.StatusOK, "ready"
	now := s.DB.NowTime()
	for _, r := range results {
		switch {
		case r.OK:
		case r.degrades:
			degraded = append(degraded, Degraded{r.Name, r.Error, now.Add(-time.Since(r.since)).Truncate(time.Second)})
		default:
			status, word = http.StatusServiceUnavailable, "not ready"
		}
	}
	if status == http.StatusOK && len(degraded) > 0 {
		word = "degraded"
	}
	if s.draining.Load() {
		status, word = http.StatusServiceUnavailable, "draining"
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Status(status).JSON(struct {
		Status   string        `json:"status"`
		Degraded []Degraded    `json:"degraded"`
		Checks   []CheckResult `json:"checks"`
	}{word, degraded, results})
}

// alive reports only that the process responds.
func (s *Server) alive(c *fiber.Ctx) error { return c.SendString("ok\n") }

// metrics serves the metrics of package metric.
func metrics() fiber.Handler {
	return adaptor.HTTPHandler(promhttp.HandlerFor(metric.Registry, promhttp.HandlerOpts{DisableCompression: true}))
}
