package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"backstop/internal/base/waittest"

	"github.com/hibiken/asynq"
)

// An idle node may ask Redis 40 times a second: each look costs 0.03 % of a core.
func TestIdleServersAskRarely(t *testing.T) {
	t.Parallel()
	queried := 0.0
	for _, group := range Groups {
		c := ServerConfig(group, quiet)
		// A poll looks into each queue, and forwarding into its scheduled and its retried tasks.
		queried += float64(len(c.Queues)) * (1/c.TaskCheckInterval.Seconds() + 2/c.DelayedTaskCheckInterval.Seconds())
	}
	if queried > 40 {
		t.Errorf("%.0f looks a second", queried)
	}
}

func TestEveryQueueHasWorkersInOneGroup(t *testing.T) {
	t.Parallel()
	var served []string
	for _, group := range Groups {
		for queue := range ServerConfig(group, quiet).Queues {
			served = append(served, queue)
		}
	}
	slices.Sort(served)
	if want := slices.Sorted(slices.Values(Names)); !slices.Equal(served, want) {
		t.Errorf("served %v, want each of %v once", served, want)
	}
	for kind, timeout := range taskTimeouts {
		if timeout < time.Second || timeout%time.Second != 0 {
			t.Errorf("%s: asynq has whole seconds, not %s", kind, timeout)
		}
	}
}

func TestFaultsOfOursAreRetriedSoon(t *testing.T) {
	t.Parallel()
	config := ServerConfig(NotifyGroup, quiet)
	for n, want := range map[int]time.Duration{
		-1: time.Second, 0: time.Second, 1: 2 * time.Second, 4: 16 * time.Second, 5: maxRetryDelay, 1 << 40: maxRetryDelay,
	} {
		if got := config.RetryDelayFunc(n, errors.New("x"), asynq.NewTask("x", nil)); got != want {
			t.Errorf("after %d retries %s, want %s", n, got, want)
		}
	}
	if config.IsFailure(fmt.Errorf("stopped: %w", context.Canceled)) || config.IsFailure(nil) ||
		!config.IsFailure(context.DeadlineExceeded) {
		t.Error("only a fault costs a retry")
	}
}

func TestServerLogRepeatsItselfRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		log := ServerConfig(WorkGroup, slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelInfo}))).Logger
		for range 300 { // a minute of a Redis that is down
			log.Error("Failed to forward scheduled tasks: dial tcp: connection refused")
			log.Warn("another kind of line")
			log.Info("Starting processing")
			waittest.Pass(200 * time.Millisecond)
		}
		if n := strings.Count(text.String(), "Failed to forward"); n != 6 {
			t.Errorf("%d lines in a minute, want one in 10 s", n)
		}
		if strings.Contains(text.String(), "Starting") || !strings.Contains(text.String(), "another kind") ||
			!strings.Contains(text.String(), "group=work") {
			t.Errorf("log: %s", text.String())
		}
		for i := range 10 * maxLogKeys {
			log.Error(fmt.Sprintf("%d kinds of lines", i))
		}
		if n := len(log.(*serverLog).last); n > maxLogKeys {
			t.Errorf("%d kinds remembered", n)
		}
	})
}

func TestCircuitLetsOneCallerProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := circuit{begun: time.Now()}
		if !allowsAll(&c) {
			t.Error("closed, yet it refuses")
		}
		c.failed()
		waittest.Pass(openFor - time.Millisecond)
		if c.allow() {
			t.Error("open, yet it allows")
		}
		waittest.Pass(time.Millisecond)
		var allowed atomic.Int64
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() {
				if c.allow() {
					allowed.Add(1)
				}
			})
		}
		callers.Wait()
		if n := allowed.Load(); n != 1 {
			t.Errorf("%d callers probe at once", n)
		}
		waittest.Pass(probeFor) // a probe that never came back
		if !c.allow() {
			t.Error("stays open forever")
		}
		c.succeeded()
		if !allowsAll(&c) {
			t.Error("does not close after a success")
		}
	})
}

func allowsAll(c *circuit) bool {
	for range 3 {
		if !c.allow() {
			return false
		}
	}
	return true
}
