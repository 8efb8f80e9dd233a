package notify

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"backstop/internal/base/failpoint"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
)

// Tasks is the part of the queue that the Nudger uses.
type Tasks interface {
	Notify(ctx context.Context, lane queue.Lane, nudges []queue.Nudge) error
	NotifyAt(ctx context.Context, lane queue.Lane, second time.Time, nudges []queue.Nudge) error
	Expire(ctx context.Context, moment time.Time) error
}

// Limits of a Nudger.
const (
	nudgeBuffer = 4096
	// retryAhead is how far ahead a retry is put into Redis; later ones wait in SQL, where the
	// tick finds them.
	retryAhead = 60 * time.Second
	// retryFlush is how long retries for the same second are collected into one task.
	retryFlush = 100 * time.Millisecond
)

// Nudger tells the workers through Redis that rows are due. It is best effort: nothing waits
// for it and nothing is lost with it, because the rows hold their due times.
type Nudger struct {
	tasks Tasks
	now   func() int64
	log   *slog.Logger
	fresh chan []queue.Nudge
	later chan queue.Nudge
	// expiring holds times at which orders expire, in Unix µs.
	expiring chan int64
	stop     chan struct{}
	done     chan struct{}
	router   atomic.Pointer[LaneRouter]
}

// LaneRouter returns the lane for nudges of the recipient with this id ("" = the default for
// the kind of nudge); false = its notifications are parked.
type LaneRouter func(id int64) (lane queue.Lane, ok bool)

// Route sets the router; without one, nudges use the default lane of their kind.
func (n *Nudger) Route(r LaneRouter) { n.router.Store(&r) }

// NewNudger starts a Nudger; now returns the database's time.
func NewNudger(tasks Tasks, now func() int64, log *slog.Logger) *Nudger {
	n := &Nudger{
		tasks: tasks, now: now, log: log,
		fresh: make(chan []queue.Nudge, nudgeBuffer), later: make(chan queue.Nudge, nudgeBuffer),
		expiring: make(chan int64, nudgeBuffer),
		stop:     make(chan struct{}), done: make(chan struct{}),
	}
	go n.run()
	return n
}

// Now nudges rows that are due. It never blocks.
func (n *Nudger) Now(nudges []queue.Nudge) {
	if len(nudges) == 0 {
		return
	}
	select {
	case n.fresh <- nudges:
	default:
		metric.Nudges.WithLabelValues(metric.NudgeDropped).Add(float64(len(nudges)))
	}
}

// Later nudges a row at its due time, or leaves it to the tick if that is far off.
func (n *Nudger) Later(nudge queue.Nudge) {
	if nudge.At-n.now() > retryAhead.Microseconds() {
		return
	}
	select {
	case n.later <- nudge:
	default:
		metric.Nudges.WithLabelValues(metric.NudgeDropped).Inc()
	}
}

// Expiring nudges for orders that expire at the given times (Unix µs). The queue makes one task
// for all times within one second.
func (n *Nudger) Expiring(moments []int64) {
	for _, at := range moments {
		select {
		case n.expiring <- at:
		default:
			return // the tick finds them
		}
	}
}

// Close sends pending nudges and stops.
func (n *Nudger) Close() {
	close(n.stop)
	<-n.done
}

func (n *Nudger) run() {
	defer close(n.done)
	buckets := map[int64][]queue.Nudge{} // by whole second
	flush := time.NewTicker(retryFlush)
	defer flush.Stop()
	for {
		select {
		case nudges := <-n.fresh:
			n.sendNow(nudges)
		case nudge := <-n.later:
			second := nudge.At / 1_000_000
			buckets[second] = append(buckets[second], nudge)
		case at := <-n.expiring:
			if err := n.tasks.Expire(context.Background(), time.UnixMicro(at)); err != nil {
				n.log.Debug("nudge a timeout", "error", err)
			}
		case <-flush.C:
			n.sendBuckets(buckets)
		case <-n.stop:
			n.sendBuckets(buckets)
			return
		}
	}
}

// sendNow makes one task of everything in the buffer.
func (n *Nudger) sendNow(nudges []queue.Nudge) {
	for more := true; more; {
		select {
		case next := <-n.fresh:
			nudges = append(nudges, next...)
			more = len(nudges) < queue.Batch
		default:
			more = false
		}
	}
	for lane, part := range n.lanes(queue.Live, nudges) {
		err := n.tasks.Notify(context.Background(), lane, part)
		failpoint.Hit("after_enqueue")
		n.count(len(part), err)
	}
}

// lanes divides nudges by lane: those for slow recipients have their own, and parked ones are
// dropped.
func (n *Nudger) lanes(usual queue.Lane, nudges []queue.Nudge) map[queue.Lane][]queue.Nudge {
	router := n.router.Load()
	if router == nil {
		return map[queue.Lane][]queue.Nudge{usual: nudges}
	}
	parts := map[queue.Lane][]queue.Nudge{}
	for _, nudge := range nudges {
		lane, ok := (*router)(nudge.Recipient)
		if !ok {
			continue
		}
		if lane == "" {
			lane = usual
		}
		parts[lane] = append(parts[lane], nudge)
	}
	return parts
}

func (n *Nudger) sendBuckets(buckets map[int64][]queue.Nudge) {
	for second, nudges := range buckets {
		for lane, part := range n.lanes(queue.Retry, nudges) {
			n.count(len(part), n.tasks.NotifyAt(context.Background(), lane, time.Unix(second, 0), part))
		}
		delete(buckets, second)
	}
}

// count updates the metrics. An error is logged for debugging only: an unavailable Redis is
// logged by its own check, and the tick does the work.
func (n *Nudger) count(nudges int, err error) {
	result := metric.NudgeSent
	if err != nil {
		result = metric.NudgeDropped
		n.log.Debug("nudge", "nudges", nudges, "error", err)
	}
	metric.Nudges.WithLabelValues(result).Add(float64(nudges))
}
