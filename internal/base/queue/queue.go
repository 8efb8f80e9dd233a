// Package queue carries nudges through Redis: which rows to look at now.
//
// The row in the database is the truth and holds what is due when; a task holds ids, many
// at a time, and may be lost, duplicated or late without harm. The handler of a task reads
// the rows first, and the database tick nudges again for rows that are still due. So every
// function here returns within a fraction of a second, and callers on a hot path ignore the
// error.
//
// Tasks have random ids and no uniqueness lock: an archived or orphaned task with a fixed
// id would block its row forever. Nothing is retained after success.
package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// Lane is a queue of notifications.
type Lane string

// Lanes.
const (
	Live    Lane = "notify"         // new
	Retry   Lane = "notify_retry"   // due for another attempt
	Delayed Lane = "notify_delayed" // waited for an open breaker
	Slow    Lane = "notify_slow"    // of merchants that answer slowly
)

// The other queues.
const (
	CompensateQueue = "compensate"
	TimeoutQueue    = "timeout"
	SweepQueue      = "sweep"
	AlertQueue      = "alert"
)

// Names is every queue of the program.
var Names = []string{
	string(Live), string(Retry), string(Delayed), string(Slow),
	CompensateQueue, TimeoutQueue, SweepQueue, AlertQueue,
}

// Task types. DecodeNudges reads TaskNotify, which all lanes carry, TaskCompensate,
// TaskAdvance and TaskBatch; the others have no ids and only start a read of the database.
const (
	TaskNotify     = "notify"
	TaskCompensate = "compensate:run"
	TaskAdvance    = "compensate:advance" // orders to query: their ids and suppliers
	TaskBatch      = "compensate:batch"   // running batches: their ids
	TaskExpire     = "expire"
	TaskAlert      = "alert"
	TaskSweep      = "sweep"
)

// taskTimeouts is how long a handler may take before asynq cancels its context and runs
// the task again. The handler of TaskNotify only passes ids on; the others do the work
// themselves. A sweep ends itself after six hours.
var taskTimeouts = map[string]time.Duration{
	TaskNotify:     30 * time.Second,
	TaskCompensate: 30 * time.Second,
	TaskAdvance:    30 * time.Second,
	TaskBatch:      30 * time.Second,
	TaskExpire:     time.Minute,
	TaskAlert:      time.Minute,
	TaskSweep:      7 * time.Hour,
}

const (
	// Batch is the maximum number of ids in one task.
	Batch = 64
	// MaxAhead is how far ahead NotifyAt schedules a task. What is due later waits in the
	// database, so that Redis holds one minute of retries and not a day of them.
	MaxAhead = time.Minute
	// ExpireHorizon is how far ahead Expire writes a bucket: 3,600 tasks at most.
	ExpireHorizon = time.Hour
	// maxRetry is how often a task runs again after an error of its handler. Attempts to
	// notify a merchant are counted in the row, not here.
	maxRetry = 25
	// callTimeout bounds one call, so that callbacks are answered even if Redis hangs;
	// taskTimeout is added for each further task of the call.
	callTimeout = 300 * time.Millisecond
	taskTimeout = 5 * time.Millisecond
)

// Errors of a nudge. None of them needs handling by the caller: the row stays due and the
// database tick nudges again.
var (
	// ErrWindowFull means that Redis already holds enough tasks of this queue, or that its
	// memory is nearly full. Some of the ids may have been written.
	ErrWindowFull = errors.New("queue window is full")
	// ErrUnavailable means that Redis did not take the task in time.
	ErrUnavailable = errors.New("queue is unavailable")
	// ErrTooFarAhead means that a time is more than MaxAhead from now.
	ErrTooFarAhead = fmt.Errorf("more than %s ahead", MaxAhead)
)

// Config sets a Client's bounds.
type Config struct {
	// Window is how many ids one queue may hold in Redis, counted in full tasks
	// of Batch ids. 0 means DefaultWindow.
	Window int
	// Memory returns how many bytes Redis uses and may use (0: no limit). Nil, or an error,
	// means that memory is not a bound.
	Memory func(context.Context) (used, limit int64, err error)
}

// DefaultWindow is 2,000 tasks per queue: about 6 MB in Redis, and several seconds of work,
// which the tick refills every second.
const DefaultWindow = 2000 * Batch

// Client sends nudges. It is safe for concurrent use and runs nothing in the
// background.
type Client struct {
	rdb     redis.UniversalClient
	asynq   *asynq.Client
	circuit circuit
	window  window
	buckets buckets
}

// New returns a Client on a connection that the caller keeps and closes. The connection must
// respect the deadlines of contexts (ContextTimeoutEnabled); otherwise a hanging Redis delays
// a callback by the connection's own timeout.
func New(rdb redis.UniversalClient, cfg Config) *Client {
	if cfg.Window <= 0 {
		cfg.Window = DefaultWindow
	}
	return &Client{
		rdb:     rdb,
		asynq:   asynq.NewClientFromRedisClient(rdb),
		circuit: circuit{begun: time.Now()},
		window:  window{rdb: rdb, memory: cfg.Memory, max: max(1, cfg.Window/Batch)},
	}
}

// Notify nudges deliveries that are due now. On the live lane they do not wait for a poll, see
// Nudged.
func (c *Client) Notify(ctx context.Context, lane Lane, nudges []Nudge) error {
	return c.send(ctx, string(lane), TaskNotify, encodeNudges(nudges), time.Time{})
}

// NotifyAt nudges deliveries that are due within one future second. Tasks are scheduled by
// whole seconds: the task arrives when the second begins, and Nudge.At says when within it
// each delivery is due.
func (c *Client) NotifyAt(ctx context.Context, lane Lane, second time.Time, nudges []Nudge) error {
	second = second.Truncate(time.Second)
	if time.Until(second) > MaxAhead {
		return fmt.Errorf("notify at %s: %w", second.UTC().Format(time.RFC3339), ErrTooFarAhead)
	}
	return c.send(ctx, string(lane), TaskNotify, encodeNudges(nudges), second)
}

// Expire schedules, at a moment, the expiry of the orders that are due by then. There is one
// task per whole second (rounded up, so that all of them are due), not one per order: another
// call for the same second costs nothing. The payload is the second, for operators only. A
// second beyond ExpireHorizon is left to the database tick.
func (c *Client) Expire(ctx context.Context, moment time.Time) error {
	second := moment.Add(time.Second - 1).Truncate(time.Second)
	ahead := time.Until(second)
	if ahead > ExpireHorizon || ahead > 0 && !c.buckets.claim(second) {
		return nil
	}
	err := c.send(ctx, TimeoutQueue, TaskExpire, [][]byte{strconv.AppendInt(nil, second.Unix(), 10)}, second)
	if err != nil {
		c.buckets.release(second)
	}
	return err
}

// Compensate nudges compensations that are due now: Delivery is a compensation, Recipient its
// lane.
func (c *Client) Compensate(ctx context.Context, nudges []Nudge) error {
	return c.send(ctx, CompensateQueue, TaskCompensate, encodeNudges(nudges), time.Time{})
}

// Advance nudges orders that are due for a query: Delivery is an order, Recipient its
// supplier.
func (c *Client) Advance(ctx context.Context, nudges []Nudge) error {
	return c.send(ctx, CompensateQueue, TaskAdvance, encodeNudges(nudges), time.Time{})
}

// Batch nudges a running batch. It has no recipient, so its id stands for both.
func (c *Client) Batch(ctx context.Context, id int64) error {
	return c.send(ctx, CompensateQueue, TaskBatch, encodeNudges([]Nudge{{Delivery: id, Recipient: id}}), time.Time{})
}

// Alert nudges the alert messages that are due.
func (c *Client) Alert(ctx context.Context) error {
	return c.send(ctx, AlertQueue, TaskAlert, [][]byte{nil}, time.Time{})
}

// Sweep nudges a worker to continue the running sweep.
func (c *Client) Sweep(ctx context.Context) error {
	return c.send(ctx, SweepQueue, TaskSweep, [][]byte{nil}, time.Time{})
}

// send writes one task per payload, as many as the window has room for.
func (c *Client) send(ctx context.Context, queue, kind string, payloads [][]byte, at time.Time) error {
	if len(payloads) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("nudge %s: %w", queue, err)
	}
	if !c.circuit.allow() {
		return fmt.Errorf("nudge %s: %w", queue, ErrUnavailable)
	}
	bound, cancel := context.WithTimeout(ctx, callTimeout+time.Duration(len(payloads)-1)*taskTimeout)
	defer cancel()
	room, err := c.window.reserve(bound, queue, len(payloads))
	if err == nil {
		err = c.write(bound, queue, kind, payloads[:room], at)
	}
	switch {
	case err != nil && ctx.Err() != nil: // the caller gave up: Redis may be healthy
		return fmt.Errorf("nudge %s: %w", queue, ctx.Err())
	case err != nil:
		c.circuit.failed()
		return fmt.Errorf("nudge %s: %w: %w", queue, ErrUnavailable, err)
	}
	if room > 0 {
		c.circuit.succeeded()
	}
	if room < len(payloads) {
		return fmt.Errorf("nudge %s: %w", queue, ErrWindowFull)
	}
	return nil
}

func (c *Client) write(ctx context.Context, queue, kind string, payloads [][]byte, at time.Time) error {
	if queue == string(Live) && at.IsZero() {
		return c.push(ctx, payloads)
	}
	options := []asynq.Option{asynq.Queue(queue), asynq.MaxRetry(maxRetry), asynq.Timeout(taskTimeouts[kind])}
	if !at.IsZero() {
		options = append(options, asynq.ProcessAt(at))
	}
	for _, payload := range payloads {
		_, err := c.asynq.EnqueueContext(ctx, asynq.NewTask(kind, payload), options...)
		// Ids are random: a conflict is our own task, whose reply was lost and which the
		// connection has sent again.
		if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
			return err
		}
	}
	return nil
}
