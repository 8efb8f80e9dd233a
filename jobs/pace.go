package jobs

import (
	"context"
	"sync"
	"time"

	"backstop/internal/base/db"
)

// periodic is work that runs again and again on this node. Tickers count by the monotonic clock,
// so that setting the wall clock neither stops nor hurries it.
type periodic struct {
	name  string
	every time.Duration
	first time.Duration // before the first run
	run   func(context.Context) error
}

// pace runs periodic work until ctx ends. If a run has not ended when the next one is due, the
// next one is skipped.
func (j *Jobs) pace(ctx context.Context, p periodic) {
	first := time.NewTimer(p.first)
	defer first.Stop()
	select {
	case <-ctx.Done():
		return
	case <-first.C:
	}
	ticker := time.NewTicker(p.every)
	defer ticker.Stop()
	for {
		j.once(ctx, p.name, p.run)
		if p.every == tickEvery {
			j.o.Ticks.done(p.name)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// once runs work and logs its error.
func (j *Jobs) once(ctx context.Context, name string, run func(context.Context) error) {
	if err := run(ctx); err != nil && ctx.Err() == nil {
		j.o.Log.Error(name, "error", db.ErrorText(err))
	}
}

// Ticks are the ends of the last runs of each tick.
type Ticks struct {
	mu   sync.Mutex
	last map[string]time.Time // with monotonic readings
}

// done records that a tick has ended now, or that its first one is ahead. A nil Ticks records
// nothing.
func (t *Ticks) done(name string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		t.last = map[string]time.Time{}
	}
	t.last[name] = time.Now()
}

// Oldest returns the tick that has not run for the longest time, and for how long; "" = none
// has begun.
func (t *Ticks) Oldest() (name string, age time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n, at := range t.last {
		if d := time.Since(at); name == "" || d > age {
			name, age = n, d
		}
	}
	return name, age
}
