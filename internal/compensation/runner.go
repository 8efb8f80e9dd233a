package compensation

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/base/work"
)

// leaseMargin is added to the time of a run, so that its result is written long before another
// node may claim the row.
const leaseMargin = 10 * time.Second

// unknownAgain is when to retry an item whose kind this version does not have: a newer node may
// have it.
const unknownAgain = 30 * time.Second

// Options of a Runner.
type Options struct {
	DB          *db.DB
	Kinds       []Kind
	Schedule    Schedule
	Concurrency int           // running on this node at a time
	PerLane     int           // of those, per supplier or merchant
	Time        time.Duration // of one run
	// Shut reports whether nothing in a lane may run now: its supplier's breaker is open, or an
	// operator has paused everything. Its items wait, uncounted. nil = never.
	Shut func(lane int64) bool
	Log  *slog.Logger
}

// Runner runs due items on this node.
type Runner struct {
	o      Options
	kinds  map[string]Kind
	worker *work.Worker[*Item, *try]
}

// try is one try of an item with its result.
type try struct {
	item   *Item
	at     int64 // Unix µs
	took   time.Duration
	result Result

	state State // new state, set by commit
	next  *int64
	spent bool // its last try failed, but nothing can replace it
	renew bool // its schedule begins anew
}

// NewRunner starts a Runner. It panics if a kind is given twice.
func NewRunner(o Options) *Runner {
	r := &Runner{o: o, kinds: map[string]Kind{}}
	for _, k := range o.Kinds {
		if _, twice := r.kinds[k.Name]; twice {
			panic("compensation: the kind " + k.Name + " is given twice")
		}
		r.kinds[k.Name] = k
	}
	r.worker = work.NewWorker(work.Options[*Item, *try]{
		DB: o.DB, Slots: work.NewSlots(work.SlotOptions{Size: o.Concurrency, Gate: r.gate}), Source: &source{o.DB},
		Lease: o.Time + leaseMargin,
		Run:   r.run, Commit: r.commit, Written: r.written, Observe: metric.ObserveBatch("compensations"), Log: o.Log,
	})
	return r
}

func (r *Runner) gate(lane int64) work.Gate {
	return work.Gate{Open: r.o.Shut == nil || !r.o.Shut(lane), Max: r.o.PerLane}
}

// Offer takes items that are due now or soon; a nudge names the item and its lane. It never
// blocks; what does not fit stays in its row.
func (r *Runner) Offer(nudges []queue.Nudge) {
	jobs := make([]work.Job, len(nudges))
	for i, n := range nudges {
		jobs[i] = work.Job{ID: n.Delivery, Lane: n.Recipient, At: n.At}
	}
	r.worker.Offer(jobs...)
}

// Pull makes the runner read the due items of lanes. It needs no Redis.
func (r *Runner) Pull(lanes []int64) { r.worker.Pull(lanes...) }

// Close accepts no more items, waits for running ones until ctx ends, and then cancels them.
func (r *Runner) Close(ctx context.Context) { r.worker.Close(ctx) }

// run tries an item once. A try cancelled by our own shutdown does not count.
func (r *Runner) run(ctx context.Context, _ work.Slot, x *Item) work.Ran[*try] {
	failpoint.Hit("compensation_run")
	kind, ok := r.kinds[x.Kind]
	if !ok {
		return work.Ran[*try]{ReleaseAt: r.o.DB.Now() + unknownAgain.Microseconds()}
	}
	t, began := &try{item: x, at: r.o.DB.Now()}, time.Now()
	t.result = r.attempt(ctx, kind, *x)
	t.took = time.Since(began)
	done := t.result.IsDone()
	if ctx.Err() != nil && !done && !t.result.dead {
		return work.Ran[*try]{ReleaseAt: r.o.DB.Now()}
	}
	return work.Ran[*try]{Results: []*try{t}, OK: done, Took: t.took}
}

func (r *Runner) attempt(ctx context.Context, kind Kind, x Item) (result Result) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Time)
	defer cancel()
	defer func() {
		if what := recover(); what != nil {
			r.o.Log.Error("a compensation panicked", "id", x.ID, "kind", x.Kind, "panic", fmt.Sprint(what), "stack", string(debug.Stack()))
			result = Later(Poison, fmt.Sprintf("panicked: %v", what))
		}
	}()
	if x.Attempts > x.MaxAttempts { // the last try was claimed, and its node ended
		return DeadLetter(Poison, "a node ended during its last try")
	}
	if err := kind.Check(x.Payload); err != nil {
		return DeadLetter(Payload, err.Error())
	}
	return kind.Run(ctx, x)
}

// written logs a committed result, and keeps the item in memory if its next try is soon.
func (r *Runner) written(t *try) {
	r.o.Log.Info("compensate", "id", t.item.ID, "kind", t.item.Kind, "order_no", t.item.OrderNo, "attempt", t.item.Attempts,
		"class", t.result.Class, "took_ms", t.took.Milliseconds(), "result", t.state)
	if t.next != nil && *t.next-r.o.DB.Now() < holdFor.Microseconds() {
		r.worker.Offer(work.Job{ID: t.item.ID, Lane: t.item.Lane, At: *t.next})
	}
}

// holdFor is how far ahead an item is kept in memory; the tick finds the others.
const holdFor = time.Minute
