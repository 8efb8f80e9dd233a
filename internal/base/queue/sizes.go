package queue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// allQueues is the key of asynq's set of queue names.
const allQueues = "asynq:queues"

// key returns one of a queue's keys in asynq's scheme. The braces keep all of them on one
// node of a cluster.
func key(queue, name string) string { return "asynq:{" + queue + "}:" + name }

// ProbeKeys returns unused keys, one on the node of each queue: if they can be written, so
// can tasks.
func ProbeKeys() []string {
	keys := make([]string, len(Names))
	for i, queue := range Names {
		keys[i] = key(queue, "probe")
	}
	return keys
}

// Size is the number of tasks in a queue: for metrics and operators, never for decisions
// about rows.
type Size struct {
	Pending, Active, Scheduled, Retry, Archived int
	// Latency is how long the oldest pending task has waited.
	Latency time.Duration
}

// Sizes returns the size of every queue from plain counters. asynq's own inspector also
// samples memory, in a script that blocks Redis.
func (c *Client) Sizes(ctx context.Context) (map[string]Size, error) {
	type row struct {
		pending, active, scheduled, retry, archived *redis.IntCmd
		oldest                                      *redis.StringCmd
	}
	pipe := c.rdb.Pipeline()
	rows := make(map[string]row, len(Names))
	for _, queue := range Names {
		rows[queue] = row{
			pending:   pipe.LLen(ctx, key(queue, "pending")),
			active:    pipe.LLen(ctx, key(queue, "active")),
			scheduled: pipe.ZCard(ctx, key(queue, "scheduled")),
			retry:     pipe.ZCard(ctx, key(queue, "retry")),
			archived:  pipe.ZCard(ctx, key(queue, "archived")),
			oldest:    pipe.LIndex(ctx, key(queue, "pending"), -1),
		}
	}
	live, first := pipe.LLen(ctx, liveKey), pipe.LIndex(ctx, liveKey, 0)
	if _, err := pipe.Exec(ctx); err != nil && err != redis.Nil {
		return nil, fmt.Errorf("queue sizes: %w", err)
	}
	sizes := make(map[string]Size, len(Names))
	oldest := make(map[string]string)
	for queue, r := range rows {
		sizes[queue] = Size{
			Pending: int(r.pending.Val()), Active: int(r.active.Val()), Scheduled: int(r.scheduled.Val()),
			Retry: int(r.retry.Val()), Archived: int(r.archived.Val()),
		}
		if id := r.oldest.Val(); id != "" {
			oldest[queue] = id
		}
	}
	if err := c.addLatency(ctx, sizes, oldest); err != nil {
		return sizes, err
	}
	sizes[string(Live)] = liveSize(sizes[string(Live)], live.Val(), first.Val())
	return sizes, nil
}

// addLatency adds how long the oldest tasks have been pending.
func (c *Client) addLatency(ctx context.Context, sizes map[string]Size, oldest map[string]string) error {
	if len(oldest) == 0 {
		return nil
	}
	pipe := c.rdb.Pipeline()
	since := make(map[string]*redis.StringCmd, len(oldest))
	for queue, id := range oldest {
		since[queue] = pipe.HGet(ctx, key(queue, "t:"+id), "pending_since")
	}
	if _, err := pipe.Exec(ctx); err != nil && err != redis.Nil {
		return fmt.Errorf("queue latency: %w", err)
	}
	for queue, cmd := range since {
		// A task that a worker has taken meanwhile has no pending_since and no longer waits.
		if nanos, err := strconv.ParseInt(cmd.Val(), 10, 64); err == nil {
			size := sizes[queue]
			size.Latency = max(0, time.Since(time.Unix(0, nanos)))
			sizes[queue] = size
		}
	}
	return nil
}
