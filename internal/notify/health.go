package notify

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/recipient"

	"github.com/uptrace/bun"
)

const (
	// After unhealthyAfter failures in a row an endpoint is avoided, if there is another, for
	// unhealthyFor; then one attempt at a time probes it.
	unhealthyAfter = 3
	unhealthyFor   = 30 * time.Second
	unhealthyProbe = 12 * time.Second // longer than an attempt takes
	// okEvery is how often the last success of a healthy endpoint is written.
	okEvery = time.Minute
	// healthEvery is how often a node reads what other nodes wrote.
	healthEvery = 2 * time.Second
	healthRows  = 10_000
)

// endpointKey identifies one endpoint of a recipient.
type endpointKey struct {
	owner recipient.Recipient
	name  string
}

func compareEndpoints(a, b endpointKey) int {
	return cmp.Or(cmp.Compare(a.owner.ID, b.owner.ID), cmp.Compare(a.name, b.name))
}

// condition is an endpoint's health as this node has read it.
type condition struct {
	failures int64 // in a row
	again    int64 // Unix µs from which on it is tried although unhealthy
}

// health is a node's view of the endpoints: its own results at once, those of other nodes
// within seconds. It only serves to choose between endpoints; a wrong choice costs one attempt.
type health struct {
	db  *db.DB
	log *slog.Logger

	mu      sync.Mutex
	failing map[endpointKey]condition
	okAt    map[endpointKey]int64 // when this node last wrote a success
	waits   map[waitKey]int64     // until when an address gets nothing

	stop func() // ends run and waits for it
}

func newHealth(o *Options) *health {
	h := &health{db: o.DB, log: o.Log, failing: map[endpointKey]condition{}, okAt: map[endpointKey]int64{}, waits: map[waitKey]int64{}}
	h.read() // so that a new node does not first try what fails on the others
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { h.run(ctx) })
	h.stop = func() { cancel(); running.Wait() }
	return h
}

func (h *health) run(ctx context.Context) {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			h.read()
		case <-ctx.Done():
			return
		}
	}
}

// read reads what all nodes wrote. On an error the last view stays.
func (h *health) read() {
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	h.readWaits(ctx)
	var rows []struct {
		RecipientID  int64
		ToSubscriber bool
		Endpoint     string
		Failures     int64
		LastFailedAt int64
	}
	err := h.db.Read.NewRaw("SELECT recipient_id, to_subscriber, endpoint, failures, last_failed_at FROM endpoint_health"+
		" WHERE failures > 0 AND last_failed_at IS NOT NULL ORDER BY last_failed_at DESC LIMIT ?", healthRows).Scan(ctx, &rows)
	if err != nil {
		h.log.Error("read the health of endpoints", "error", db.ErrorText(err))
		return
	}
	failing := make(map[endpointKey]condition, len(rows))
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range rows {
		k := endpointKey{recipient.Of(r.RecipientID, r.ToSubscriber), r.Endpoint}
		failing[k] = condition{r.Failures, max(r.LastFailedAt+unhealthyFor.Microseconds(), h.failing[k].again)}
	}
	h.failing = failing
}

// unhealthy reports whether to avoid an endpoint. Once its time is over, one attempt is let
// through.
func (h *health) unhealthy(k endpointKey, now int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.failing[k]
	if c.failures < unhealthyAfter {
		return false
	}
	if now < c.again {
		return true
	}
	c.again = now + unhealthyProbe.Microseconds()
	h.failing[k] = c
	return false
}

// healthRow is what a batch of results adds to an endpoint's row.
type healthRow struct {
	bun.BaseModel `bun:"table:endpoint_health,alias:eh"`

	RecipientID  int64  `bun:"recipient_id,pk"`
	ToSubscriber bool   `bun:"to_subscriber"`
	Endpoint     string `bun:"endpoint,pk"`
	Failures     int64  `bun:"failures"`
	LastOKAt     *int64 `bun:"last_ok_at"`
	LastFailedAt *int64 `bun:"last_failed_at"`
	LastError    string `bun:"last_error"`
	Reason       string `bun:"reason"`
}

// note adds up results by endpoint and returns what to write: failures, the first success after
// them, and occasionally the success of a healthy endpoint. Call noted once it is committed: a
// transaction that is repeated must write the same.
func (h *health) note(won []*outcome, now int64) (written []healthRow, noted func()) {
	rows := map[endpointKey]*healthRow{}
	for _, o := range won {
		if o.endpoint == "" || o.attempt.Class == Internal {
			continue
		}
		k := o.endpointKey()
		r := rows[k]
		if r == nil {
			r = &healthRow{RecipientID: k.owner.ID, ToSubscriber: k.owner.IsSubscriber(), Endpoint: k.name}
			rows[k] = r
		}
		if o.attempt.Class == OK {
			r.Failures, r.LastOKAt, r.LastError = 0, &now, ""
			continue
		}
		r.Failures, r.LastFailedAt, r.LastError = r.Failures+1, &now, o.attempt.Error
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	// The same order on all nodes, which prevents deadlocks.
	for _, k := range slices.SortedFunc(maps.Keys(rows), compareEndpoints) {
		if r := rows[k]; r.LastFailedAt != nil || h.failing[k].failures > 0 || now-h.okAt[k] >= okEvery.Microseconds() {
			written = append(written, *r)
		}
	}
	return written, func() { h.learn(written, now) }
}

// learn adds what was written to this node's view.
func (h *health) learn(written []healthRow, now int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range written {
		k := endpointKey{recipient.Of(r.RecipientID, r.ToSubscriber), r.Endpoint}
		before := h.failing[k]
		if r.LastOKAt != nil {
			before.failures, h.okAt[k] = 0, now
		}
		if before.failures += r.Failures; before.failures == 0 {
			delete(h.failing, k)
		} else {
			h.failing[k] = condition{before.failures, now + unhealthyFor.Microseconds()}
		}
	}
}
