package queue

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"backstop/internal/base/queue/queuetest"
	"backstop/internal/base/waittest"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// connect returns a connection as the program makes it.
func connect(t *testing.T, s *queuetest.Server) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true, DisableIdentity: true})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// serve runs the asynq server of every group and the reader of the live lane, with one handler for
// all tasks.
func serve(t *testing.T, rdb redis.UniversalClient, handler asynq.HandlerFunc) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() {
		New(rdb, Config{}).Nudged(ctx, quiet, func(list []Nudge) { _ = handler(ctx, asynq.NewTask(TaskNotify, encodeNudges(list)[0])) })
	})
	t.Cleanup(func() { stop(); reading.Wait() })
	for _, group := range Groups {
		server := asynq.NewServerFromRedisClient(rdb, ServerConfig(group, quiet))
		if err := server.Start(handler); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Shutdown)
	}
}

func nudges(n int) []Nudge {
	list := make([]Nudge, n)
	for i := range list {
		list[i] = Nudge{Delivery: int64(i + 1), Recipient: int64(i%7 + 1), At: int64(i)}
	}
	return list
}

func sizes(t *testing.T, c *Client) map[string]Size {
	t.Helper()
	m, err := c.Sizes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEveryTaskReachesItsHandler(t *testing.T) {
	rdb := connect(t, queuetest.Start(t))
	c := New(rdb, Config{})
	var mu sync.Mutex
	tasks := map[string]int{} // by queue
	got := map[string][]int64{}
	serve(t, rdb, func(ctx context.Context, task *asynq.Task) error {
		queue, polled := asynq.GetQueueName(ctx)
		if !polled {
			queue = string(Live)
		}
		var ids []int64
		var err error
		switch task.Type() {
		case TaskNotify:
			list, e := DecodeNudges(task)
			for _, n := range list {
				ids, err = append(ids, n.Delivery), e
			}
		case TaskExpire:
			var second int64
			second, err = strconv.ParseInt(string(task.Payload()), 10, 64)
			ids = []int64{second}
		}
		mu.Lock()
		defer mu.Unlock()
		tasks[queue]++
		got[queue] = append(got[queue], ids...)
		return err
	})

	var want []int64
	for _, n := range nudges(130) {
		want = append(want, n.Delivery)
	}
	bucket := time.Now().Truncate(time.Second)
	for _, err := range []error{
		c.Notify(t.Context(), Live, nudges(130)), c.Notify(t.Context(), Retry, nudges(130)),
		c.Notify(t.Context(), Delayed, nudges(130)), c.Notify(t.Context(), Slow, nudges(130)),
		c.Alert(t.Context()), c.Sweep(t.Context()), c.Expire(t.Context(), bucket), c.Notify(t.Context(), Live, nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	waittest.Until(t, "all is handled", func() bool {
		mu.Lock()
		defer mu.Unlock()
		n := 0
		for _, count := range tasks {
			n += count
		}
		return n == 4*3+3
	})
	mu.Lock()
	defer mu.Unlock()
	for _, queue := range Names {
		slices.Sort(got[queue])
		count, ids := 3, want // 64 + 64 + 2
		switch queue {
		case TimeoutQueue:
			count, ids = 1, []int64{bucket.Unix()}
		case AlertQueue, SweepQueue:
			count, ids = 1, nil
		case CompensateQueue:
			count, ids = 0, nil
		}
		if tasks[queue] != count || !slices.Equal(got[queue], ids) {
			t.Errorf("%s: %d tasks with %d ids, want %d with %d", queue, tasks[queue], len(got[queue]), count, len(ids))
		}
	}
}

func TestNotifyAtArrivesInItsSecond(t *testing.T) {
	rdb := connect(t, queuetest.Start(t))
	c := New(rdb, Config{})
	arrived := make(chan time.Time, 2)
	serve(t, rdb, func(context.Context, *asynq.Task) error {
		arrived <- time.Now()
		return nil
	})
	at := time.Now().Add(1500 * time.Millisecond)
	if err := c.NotifyAt(t.Context(), Retry, at, nudges(1)); err != nil {
		t.Fatal(err)
	}
	if err := c.Expire(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	second := at.Truncate(time.Second)
	nudged, expired := <-arrived, <-arrived
	t.Logf("nudge %s, expiry %s after the second", nudged.Sub(second), expired.Sub(second))
	if nudged.Before(second) || nudged.After(second.Add(2*time.Second)) {
		t.Errorf("nudge for %s arrived at %s", second, nudged)
	}
	if expired.Before(at) {
		t.Errorf("expiry of %s arrived at %s: before the order expires", at, expired)
	}
}

func TestNotifyAtRefusesMoreThanAMinute(t *testing.T) {
	c := New(connect(t, queuetest.Start(t)), Config{})
	if err := c.NotifyAt(t.Context(), Retry, time.Now().Add(MaxAhead+2*time.Second), nudges(1)); !errors.Is(err, ErrTooFarAhead) {
		t.Errorf("beyond: %v", err)
	}
	if err := c.NotifyAt(t.Context(), Retry, time.Now().Add(MaxAhead), nudges(1)); err != nil {
		t.Errorf("a minute: %v", err)
	}
	if n := sizes(t, c)[string(Retry)].Scheduled; n != 1 {
		t.Errorf("%d tasks", n)
	}
}

func TestDeadRedisCostsOneTimeout(t *testing.T) {
	for name, f := range map[string]struct{ die, live func(*queuetest.Server) }{
		"hanging": {(*queuetest.Server).Hang, (*queuetest.Server).Resume},
		"down":    {(*queuetest.Server).Down, (*queuetest.Server).Up},
	} {
		t.Run(name, func(t *testing.T) {
			s := queuetest.Start(t)
			c := New(connect(t, s), Config{})
			if err := c.Notify(t.Context(), Live, nudges(1)); err != nil {
				t.Fatal(err)
			}
			f.die(s)
			began := time.Now()
			if err := c.Notify(t.Context(), Live, nudges(1)); !errors.Is(err, ErrUnavailable) {
				t.Errorf("first: %v", err)
			}
			first := time.Since(began)
			began = time.Now()
			for range 1000 {
				if err := c.Notify(t.Context(), Live, nudges(1)); !errors.Is(err, ErrUnavailable) {
					t.Fatal(err)
				}
			}
			rest := time.Since(began)
			t.Logf("first call %s, the next thousand %s", first, rest)
			// On a busy machine the thousand may outlast openFor and meet a probe.
			if first > 2*callTimeout || rest > 2*callTimeout {
				t.Errorf("first call %s, the next thousand %s", first, rest)
			}
			f.live(s)
			waittest.Until(t, "it is used again", func() bool { return c.Notify(t.Context(), Live, nudges(1)) == nil })
		})
	}
}

func TestCallerThatGivesUpDoesNotOpenTheCircuit(t *testing.T) {
	c := New(connect(t, queuetest.Start(t)), Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Notify(ctx, Live, nudges(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := c.Notify(t.Context(), Live, nudges(1)); err != nil {
		t.Errorf("the next caller: %v", err)
	}
}

func TestFlushLosesNudgesAndNothingElse(t *testing.T) {
	s := queuetest.Start(t)
	rdb := connect(t, s)
	c := New(rdb, Config{})
	handled := make(chan int64, 10)
	serve(t, rdb, func(_ context.Context, task *asynq.Task) error {
		list, err := DecodeNudges(task)
		if err == nil {
			handled <- list[0].Delivery
		}
		return err
	})
	inspector := asynq.NewInspectorFromRedisClient(rdb)
	for round := range int64(3) {
		if err := c.NotifyAt(t.Context(), Retry, time.Now().Add(time.Minute), nudges(1)); err != nil {
			t.Fatal(err)
		}
		s.Flush()
		c.window.mu.Lock()
		c.window.taken = time.Time{} // as if a second had passed
		c.window.mu.Unlock()
		if err := c.Notify(t.Context(), Live, []Nudge{{Delivery: round + 1, Recipient: 1}}); err != nil {
			t.Fatal(err)
		}
		select {
		case id := <-handled:
			if id != round+1 {
				t.Errorf("handled %d in round %d", id, round)
			}
		case <-time.After(time.Minute):
			t.Fatal("not handled after FLUSHALL")
		}
		if queues, err := inspector.Queues(); err != nil || len(queues) != len(Names) {
			t.Errorf("the inspector sees %v, %v", queues, err)
		}
	}
}

func TestPoisonedTaskIsRunOnceAndPutAway(t *testing.T) {
	s := queuetest.Start(t)
	rdb := connect(t, s)
	c := New(rdb, Config{})
	if _, err := asynq.NewClientFromRedisClient(rdb).Enqueue(asynq.NewTask(TaskNotify, []byte(`[[1,2]]`)),
		asynq.Queue(string(Retry))); err != nil {
		t.Fatal(err)
	}
	if err := c.Notify(t.Context(), Retry, nudges(1)); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	runs := map[bool]int{}
	serve(t, rdb, func(_ context.Context, task *asynq.Task) error {
		_, err := DecodeNudges(task)
		mu.Lock()
		defer mu.Unlock()
		runs[err == nil]++
		return err
	})
	waittest.Until(t, "the poisoned task is archived, the other done", func() bool {
		got := sizes(t, c)[string(Retry)]
		return got == Size{Archived: 1}
	})
	mu.Lock()
	defer mu.Unlock()
	if !maps.Equal(runs, map[bool]int{false: 1, true: 1}) {
		t.Errorf("runs by success: %v", runs)
	}
}

func TestSizesCountEveryState(t *testing.T) {
	s := queuetest.Start(t)
	rdb := connect(t, s)
	c := New(rdb, Config{})
	if got := sizes(t, c); len(got) != len(Names) || !reflect.DeepEqual(got["notify"], Size{}) {
		t.Errorf("empty: %+v", got)
	}
	if err := c.Notify(t.Context(), Live, nudges(2*Batch)); err != nil {
		t.Fatal(err)
	}
	if err := c.NotifyAt(t.Context(), Live, time.Now().Add(time.Minute), nudges(1)); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{"retry": 3, "archived": 4} {
		for i := range n {
			if err := rdb.ZAdd(t.Context(), key("notify", name), redis.Z{Member: i}).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := rdb.LPush(t.Context(), key("notify", "active"), "a").Err(); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the oldest task's wait is seen", func() bool { return sizes(t, c)["notify"].Latency > 20*time.Millisecond })
	got := sizes(t, c)["notify"]
	if got.Latency > 10*time.Second {
		t.Errorf("latency %s", got.Latency)
	}
	got.Latency = 0
	if want := (Size{Pending: 2, Active: 1, Scheduled: 1, Retry: 3, Archived: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestClusterCarriesEveryQueue(t *testing.T) {
	addrs := strings.Split(strings.TrimPrefix(queuetest.StartCluster(t), "redis-cluster://"), ",")
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	defer rdb.Close()
	c := New(rdb, Config{})
	for _, lane := range []Lane{Live, Retry, Delayed, Slow} {
		if err := c.Notify(t.Context(), lane, nudges(1)); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		c.Alert(t.Context()), c.Sweep(t.Context()), c.Expire(t.Context(), time.Now().Add(-time.Minute)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	pending := func(queue string) int {
		if queue == CompensateQueue {
			return 0
		}
		return 1
	}
	for queue, size := range sizes(t, c) {
		if size.Pending != pending(queue) || (size.Latency > 0) != (size.Pending > 0) {
			t.Errorf("%s: %+v", queue, size)
		}
	}
}
