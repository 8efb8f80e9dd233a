package queue

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// sampleEvery is the maximum age of a sample that shows room.
	sampleEvery = time.Second
	// sampleFull is the maximum age of one that shows none: workers may have made room since.
	sampleFull = 50 * time.Millisecond
	// maxMemory is the share of Redis's memory beyond which nothing is added: a full Redis
	// cannot be drained, because taking a task out is a write too.
	maxMemory = 0.7
)

// window bounds how many tasks a queue has in Redis; the rest waits in the database. It
// samples Redis when it is used, and counts what it has let through since. Several nodes
// together can exceed the bound by what each of them lets through in a second.
type window struct {
	rdb    redis.UniversalClient
	memory func(context.Context) (used, limit int64, err error)
	max    int // tasks

	mu       sync.Mutex
	taken    time.Time
	sampling bool
	tasks    map[string]int // in Redis at the sample, plus those let through since
	full     bool           // Redis's memory is
}

// reserve returns how many of n tasks may be written. Expiry buckets are bounded
// by their horizon and not counted.
func (w *window) reserve(ctx context.Context, queue string, n int) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stale(queue, n) && !w.sampling {
		if err := w.sample(ctx); err != nil {
			return 0, err
		}
	}
	if w.full {
		return 0, nil
	}
	if queue == TimeoutQueue {
		return n, nil
	}
	n = max(0, min(n, w.max-w.tasks[queue]))
	w.tasks[queue] += n
	return n, nil
}

func (w *window) stale(queue string, n int) bool {
	age := time.Since(w.taken)
	noRoom := w.full || queue != TimeoutQueue && w.tasks[queue]+n > w.max
	return w.tasks == nil || age > sampleEvery || noRoom && age > sampleFull
}

// sample reads from Redis with the lock released: meanwhile, other callers use the old sample.
func (w *window) sample(ctx context.Context) error {
	w.sampling = true
	if w.tasks == nil {
		w.tasks = make(map[string]int)
	}
	w.mu.Unlock()
	tasks, err := countTasks(ctx, w.rdb)
	full := err == nil && w.memoryFull(ctx)
	w.mu.Lock()
	w.sampling = false
	if err != nil {
		return err
	}
	w.tasks, w.full, w.taken = tasks, full, time.Now()
	return nil
}

func (w *window) memoryFull(ctx context.Context) bool {
	if w.memory == nil {
		return false
	}
	used, limit, err := w.memory(ctx)
	return err == nil && limit > 0 && float64(used) >= maxMemory*float64(limit)
}

// countTasks counts the waiting tasks of each queue. It also writes the set of queue names:
// asynq does so once per process only, and after a FLUSHALL Asynqmon would show no queues
// until a restart.
func countTasks(ctx context.Context, rdb redis.UniversalClient) (map[string]int, error) {
	pipe := rdb.Pipeline()
	counts := make(map[string][]*redis.IntCmd, len(Names))
	for _, queue := range Names {
		counts[queue] = []*redis.IntCmd{
			pipe.LLen(ctx, key(queue, "pending")),
			pipe.ZCard(ctx, key(queue, "scheduled")),
			pipe.ZCard(ctx, key(queue, "retry")),
		}
		pipe.SAdd(ctx, allQueues, queue)
	}
	counts[string(Live)] = append(counts[string(Live)], pipe.LLen(ctx, liveKey))
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	tasks := make(map[string]int, len(Names))
	for queue, cmds := range counts {
		for _, cmd := range cmds {
			tasks[queue] += int(cmd.Val())
		}
	}
	return tasks, nil
}

// buckets are the seconds that already have their expiry task.
type buckets struct {
	mu   sync.Mutex
	sent map[int64]struct{}
}

// maxBuckets is the size at which past seconds are deleted: more than the seconds of the
// horizon.
const maxBuckets = int(ExpireHorizon/time.Second) + 500

// claim is true for the first caller of a second.
func (b *buckets) claim(second time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.sent[second.Unix()]; ok {
		return false
	}
	if b.sent == nil {
		b.sent = make(map[int64]struct{})
	}
	if len(b.sent) >= maxBuckets {
		now := time.Now().Unix()
		maps.DeleteFunc(b.sent, func(second int64, _ struct{}) bool { return second < now })
	}
	b.sent[second.Unix()] = struct{}{}
	return true
}

// release removes a second whose task could not be written.
func (b *buckets) release(second time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sent, second.Unix())
}
