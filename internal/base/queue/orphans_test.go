package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"backstop/internal/base/queue/queuetest"
)

func TestOrphansAreDeletedAndLiveTasksAreNot(t *testing.T) {
	s := queuetest.Start(t)
	rdb := connect(t, s)
	c := New(rdb, Config{})

	// A live task in every state that asynq knows.
	handling, release := make(chan struct{}, 1), make(chan struct{})
	server := asynq.NewServerFromRedisClient(rdb, ServerConfig(WorkGroup, quiet))
	mux := asynq.NewServeMux()
	mux.HandleFunc(TaskAlert, func(ctx context.Context, _ *asynq.Task) error {
		handling <- struct{}{}
		<-release
		return nil
	})
	mux.HandleFunc("retry", func(context.Context, *asynq.Task) error { return errors.New("we are broken") })
	mux.HandleFunc("archive", func(context.Context, *asynq.Task) error { return asynq.SkipRetry })
	mux.HandleFunc("keep", func(context.Context, *asynq.Task) error { return nil })
	if err := server.Start(mux); err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	defer close(release)
	client := asynq.NewClientFromRedisClient(rdb)
	for _, kind := range []string{"retry", "archive", "keep"} {
		if _, err := client.Enqueue(asynq.NewTask(kind, nil), asynq.Queue(AlertQueue), asynq.Retention(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Alert(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-handling
	if err := c.Notify(t.Context(), Live, nudges(300*Batch)); err != nil { // several steps
		t.Fatal(err)
	}
	if err := c.NotifyAt(t.Context(), Live, time.Now().Add(time.Minute), nudges(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Enqueue(asynq.NewTask("x", nil), asynq.Queue(AlertQueue), asynq.Group("g")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a task stands in every state", func() bool {
		size := sizes(t, c)[AlertQueue]
		return size.Active == 1 && size.Archived == 1 && size.Retry == 1 && rdb.ZCard(t.Context(), key(AlertQueue, "completed")).Val() == 1
	})
	live := bodies(t, s)

	// Ghosts, as scripts that stop in the middle and "archive all" leave them.
	plantGhosts(t, s, "notify", AlertQueue)
	for range 2 { // a second look within the grace deletes nothing
		count, err := c.Orphans(t.Context(), 100_000)
		if err != nil || count.Suspected < 14 || count.Deleted != 0 {
			t.Fatalf("within the grace: %+v, %v", count, err)
		}
	}
	c.orphans.grace = 0
	count, err := c.Orphans(t.Context(), 100_000)
	if err != nil || count.Deleted != 14 || count.Suspected != 0 {
		t.Errorf("after the grace: %+v, %v", count, err)
	}
	if n := bodies(t, s); n != live {
		t.Errorf("%d bodies, want the %d of the live tasks", n, live)
	}
}

// plantGhosts leaves seven bodies in each queue that nothing leads to.
func plantGhosts(t *testing.T, s *queuetest.Server, queues ...string) {
	t.Helper()
	for i, state := range []string{"pending", "active", "scheduled", "retry", "archived", "completed", ""} {
		for _, queue := range queues {
			fields := []any{"msg", "x", "state", state}
			if state == "" {
				fields = fields[:2]
			}
			if err := s.Client().HSet(t.Context(), key(queue, fmt.Sprintf("t:ghost-%d", i)), fields...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func bodies(t *testing.T, s *queuetest.Server) int {
	t.Helper()
	keys, err := s.Client().Keys(t.Context(), "asynq:{*}:t:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return len(keys)
}

func TestOrphansGoOnWhereTheyStopped(t *testing.T) {
	s := queuetest.Start(t)
	rdb := connect(t, s)
	c := New(rdb, Config{})
	c.orphans.grace = 0
	for i := range 1000 {
		if err := rdb.HSet(t.Context(), key("notify", fmt.Sprintf("t:%d", i)), "state", "archived").Err(); err != nil {
			t.Fatal(err)
		}
	}
	calls := 0
	for ; bodies(t, s) > 0; calls++ {
		count, err := c.Orphans(t.Context(), 500)
		if err != nil || count.Looked > 500 || calls > 500 {
			t.Fatalf("call %d: %+v, %v", calls, count, err)
		}
	}
	if calls < 4 { // two looks at 1,000 keys in calls of 500
		t.Errorf("done after %d calls", calls)
	}
}

func TestOrphanHuntRemembersABoundedNumber(t *testing.T) {
	h := orphanHunt{seen: map[string]time.Time{"old": time.Now().Add(-2 * suspectLife)}}
	h.forget()
	var ids []string
	for i := range maxSuspects + 10 {
		ids = append(ids, fmt.Sprint(i))
	}
	if ripe := h.judge("", ids); len(ripe) != 0 || len(h.seen) != maxSuspects {
		t.Errorf("%d ripe at first sight, %d remembered", len(ripe), len(h.seen))
	}
}
