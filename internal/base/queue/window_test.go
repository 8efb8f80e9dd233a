package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"backstop/internal/base/queue/queuetest"
	"backstop/internal/base/waittest"
)

func TestExpireWritesOneTaskASecond(t *testing.T) {
	s := queuetest.Start(t)
	c := New(connect(t, s), Config{Window: 1})
	base := time.Now().Add(time.Minute).Truncate(time.Second)
	for i := range 1000 { // four seconds: one whole, and parts of three
		if err := c.Expire(t.Context(), base.Add(time.Duration(i)*3*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Expire(t.Context(), time.Now().Add(ExpireHorizon+2*time.Second)); err != nil {
		t.Fatal(err)
	}
	scores, err := s.Client().ZRangeWithScores(t.Context(), key(TimeoutQueue, "scheduled"), 0, -1).Result()
	if err != nil || len(scores) != 4 {
		t.Fatalf("%d tasks, %v; want 4", len(scores), err)
	}
	for i, z := range scores {
		if want := base.Add(time.Duration(i) * time.Second).Unix(); int64(z.Score) != want {
			t.Errorf("task %d at %d, want %d", i, int64(z.Score), want)
		}
	}

	s.Down()
	later := base.Add(time.Hour / 2)
	if err := c.Expire(t.Context(), later); !errors.Is(err, ErrUnavailable) {
		t.Errorf("while down: %v", err)
	}
	s.Up()
	waittest.Until(t, "the second that could not be written is written", func() bool {
		return c.Expire(t.Context(), later) == nil && sizes(t, c)[TimeoutQueue].Scheduled == 5
	})
}

func TestBucketsForgetWhatIsOver(t *testing.T) {
	var b buckets
	start := time.Now().Add(-time.Hour)
	for i := range maxBuckets + 1 {
		if !b.claim(start.Add(time.Duration(i) * time.Second)) {
			t.Fatalf("second %d is accepted", i)
		}
	}
	if n := len(b.sent); n > 600 {
		t.Errorf("%d seconds remembered, an hour of them has passed", n)
	}
	if b.claim(start.Add(time.Duration(maxBuckets) * time.Second)) {
		t.Error("a second ahead was forgotten")
	}
}

func TestFullWindowTakesNoMore(t *testing.T) {
	s := queuetest.Start(t)
	c := New(connect(t, s), Config{Window: 2 * Batch})
	if err := c.Notify(t.Context(), Live, nudges(5*Batch)); !errors.Is(err, ErrWindowFull) {
		t.Errorf("five tasks: %v", err)
	}
	if err := c.Notify(t.Context(), Live, nudges(1)); !errors.Is(err, ErrWindowFull) {
		t.Errorf("one more: %v", err)
	}
	other := New(connect(t, s), Config{Window: 2 * Batch})
	if err := other.Notify(t.Context(), Live, nudges(1)); !errors.Is(err, ErrWindowFull) {
		t.Errorf("another node: %v", err)
	}
	if err := c.NotifyAt(t.Context(), Retry, time.Now().Add(30*time.Second), nudges(3*Batch)); !errors.Is(err, ErrWindowFull) {
		t.Errorf("three delayed tasks: %v", err)
	}
	if err := c.Notify(t.Context(), Slow, nudges(1)); err != nil {
		t.Errorf("another queue: %v", err)
	}
	got := sizes(t, c)
	if got["notify"].Pending != 2 || got["notify_retry"].Scheduled != 2 || got["notify_slow"].Pending != 1 {
		t.Errorf("in Redis: %+v", got)
	}
	s.Flush()
	waittest.Until(t, "room made is seen", func() bool { return c.Notify(t.Context(), Live, nudges(1)) == nil })
}

func TestNearlyFullMemoryTakesNoMore(t *testing.T) {
	s := queuetest.Start(t)
	for _, m := range []struct {
		used, limit int64
		err, want   error
	}{
		{69, 100, nil, nil},
		{70, 100, nil, ErrWindowFull},
		{70, 0, nil, nil},
		{70, 100, errors.New("forbidden"), nil},
	} {
		s.Flush()
		c := New(connect(t, s), Config{Memory: func(context.Context) (int64, int64, error) { return m.used, m.limit, m.err }})
		err := c.Notify(t.Context(), Live, nudges(1))
		expire := c.Expire(t.Context(), time.Now().Add(time.Minute))
		if !errors.Is(err, m.want) || !errors.Is(expire, m.want) {
			t.Errorf("%+v: %v, %v", m, err, expire)
		}
		if got := sizes(t, c); (got["notify"].Pending == 0) != (m.want != nil) || (got["timeout"].Scheduled == 0) != (m.want != nil) {
			t.Errorf("%+v: in Redis %+v", m, got)
		}
	}
}
