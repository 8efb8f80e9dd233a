package batch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

const (
	// lease is how long a process that ended blocks its batches. Each step renews it, and so
	// does the watch during a call.
	lease = 20 * time.Second
	// maxRuns is how many batches one process runs at a time.
	maxRuns = 4
	// stepTime is roughly how long one step takes at the batch's rate; a pause takes effect
	// within it.
	stepTime = 500 * time.Millisecond
	// again is the wait after a database error.
	again = time.Second
)

// Runner runs batches on this node.
type Runner struct {
	b      *Batches
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu   sync.Mutex
	runs map[int64]bool
}

// NewRunner returns a Runner. Nothing runs before Offer or Tick.
func NewRunner(b *Batches) *Runner {
	ctx, cancel := context.WithCancel(context.Background())
	return &Runner{b: b, ctx: ctx, cancel: cancel, runs: map[int64]bool{}}
}

// Tick finds running batches that no process has claimed.
func (r *Runner) Tick(ctx context.Context) error {
	var ids []int64
	d := r.b.o.DB
	err := d.Read.NewRaw("SELECT id FROM batches WHERE state = ? AND lease_until <= ? ORDER BY id LIMIT ?", Running, d.Now(),
		maxRuns).Scan(ctx, &ids)
	if err != nil {
		return fmt.Errorf("find batches that run: %w", err)
	}
	r.Offer(ids...)
	return nil
}

// Offer runs the batches that this process can claim, in the background. It never blocks.
func (r *Runner) Offer(ids ...int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if r.runs[id] || len(r.runs) >= maxRuns || r.ctx.Err() != nil {
			continue
		}
		r.runs[id] = true
		r.all.Go(func() {
			defer func() {
				r.mu.Lock()
				delete(r.runs, id)
				r.mu.Unlock()
			}()
			if err := r.run(r.ctx, id); err != nil && r.ctx.Err() == nil {
				r.b.o.Log.Error("run a batch", "batch", (&Batch{ID: id}).No(), "error", db.ErrorText(err))
			}
		})
	}
}

// Close accepts no more batches and waits for running steps until ctx ends. Another process
// continues.
func (r *Runner) Close(ctx context.Context) {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	ended := make(chan struct{})
	go func() { r.all.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// run processes one batch until it ends, is paused, or this process ends.
func (r *Runner) run(ctx context.Context, id int64) error {
	x, err := r.b.claim(ctx, id)
	if err != nil || x == nil {
		return err
	}
	defer r.b.release(context.WithoutCancel(ctx), id)
	k, ok := r.b.kind(x.Action, x.Object)
	if !ok {
		return nil // a newer node has it
	}
	away, err := r.b.isAway(ctx, k, x)
	if err != nil {
		return err
	}
	if away {
		return notLost(r.b.finish(ctx, x, Stopped, ByDrift))
	}
	for ctx.Err() == nil {
		began := time.Now()
		rate, err := r.b.rateOf(ctx, id)
		if err != nil {
			return err
		}
		n, err := r.b.step(ctx, id, stepOf(rate))
		wait := time.Duration(n)*time.Second/time.Duration(rate) - time.Since(began)
		switch {
		case errors.Is(err, errLost):
			return nil
		case err != nil:
			r.b.o.Log.Warn("a step of a batch failed; it is retried", "batch", x.No(), "error", db.ErrorText(err))
			wait = again
		}
		if wait > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
	}
	return nil
}

// stepOf returns how many rows one step takes at a rate.
func stepOf(rate int64) int {
	return int(min(max(rate*int64(stepTime)/int64(time.Second), 1), stepRows))
}

func notLost(err error) error {
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}

// claim takes the lease of a running batch; nil = another process has it.
func (b *Batches) claim(ctx context.Context, id int64) (*Batch, error) {
	now := b.o.DB.Now()
	res, err := b.o.DB.NewRaw("UPDATE batches SET lease_owner = ?, lease_until = ? WHERE id = ? AND state = ? AND lease_until <= ?",
		b.o.DB.Boot(), now+lease.Microseconds(), id, Running, now).Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("claim a batch: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return nil, err
	}
	return Find(ctx, b.o.DB, id)
}

// release gives up the lease.
func (b *Batches) release(ctx context.Context, id int64) {
	_, err := b.o.DB.NewRaw("UPDATE batches SET lease_owner = 0, lease_until = 0 WHERE id = ? AND lease_owner = ?", id,
		b.o.DB.Boot()).Exec(ctx)
	if err != nil {
		b.o.Log.Warn("release a batch", "batch", (&Batch{ID: id}).No(), "error", db.ErrorText(err))
	}
}

// ReleaseLeases releases the batches of boots that have ended, so that others can continue at
// once.
func ReleaseLeases(ctx context.Context, d *db.DB, boots []int64) (int64, error) {
	if len(boots) == 0 {
		return 0, nil
	}
	res, err := d.NewRaw("UPDATE batches SET lease_owner = 0, lease_until = 0 WHERE lease_owner IN (?)", bun.List(boots)).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("release batches of earlier runs: %w", err)
	}
	return res.RowsAffected()
}

func (b *Batches) rateOf(ctx context.Context, id int64) (int64, error) {
	var rate int64
	if err := b.o.DB.Read.NewRaw("SELECT rate FROM batches WHERE id = ?", id).Scan(ctx, &rate); err != nil {
		return 0, fmt.Errorf("read the rate of a batch: %w", err)
	}
	return max(rate, 1), nil
}

// watch calls cancel once the batch is no longer running, or ctx ends. Meanwhile it renews the
// lease.
func (b *Batches) watch(ctx context.Context, id int64, cancel func()) {
	tick := time.NewTicker(stepTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		res, err := b.o.DB.NewRaw("UPDATE batches SET lease_until = ? WHERE id = ? AND state = ? AND lease_owner = ?",
			b.o.DB.Now()+lease.Microseconds(), id, Running, b.o.DB.Boot()).Exec(ctx)
		if err != nil {
			continue // the step itself finds out
		}
		if n, err := res.RowsAffected(); err == nil && n == 0 {
			cancel()
			return
		}
	}
}
