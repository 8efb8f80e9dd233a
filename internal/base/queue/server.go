package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

// Group is a set of queues with workers of their own: no group waits for another's.
type Group string

// Groups.
const (
	NotifyGroup Group = "notify"
	WorkGroup   Group = "work"
	// CompensateGroup has a server of its own: stuck work never waits for new work.
	CompensateGroup Group = "compensate"
	// SweepGroup has a server of its own with two workers: the sweep does not delay live work.
	SweepGroup Group = "sweep"
)

// Groups is every group, in the order of their urgency.
var Groups = []Group{NotifyGroup, WorkGroup, CompensateGroup, SweepGroup}

// groupConfig is the configuration of one group.
type groupConfig struct {
	queues map[string]int // queue to its share of turns when all have work
	// workers is how many tasks a node runs at once. Notify tasks are passed to the
	// dispatcher and take microseconds; the others do their work in the handler.
	workers int
	// poll is how often an idle server looks into each of its queues, and forward how often due
	// scheduled tasks become pending.
	poll, forward time.Duration
}

// An idle server asks Redis some 25 times a second, at 0.03 % of a core for each look. What needs
// milliseconds does not wait for one: new notifications come by Nudged, and due rows are read by
// the database tick a second before their time.
var groupConfigs = map[Group]groupConfig{
	NotifyGroup: {
		queues:  map[string]int{string(Live): 4, string(Retry): 3, string(Delayed): 2, string(Slow): 1},
		workers: 8, poll: time.Second, forward: time.Second,
	},
	WorkGroup: {
		queues: map[string]int{TimeoutQueue: 3, AlertQueue: 1}, workers: 16, poll: 500 * time.Millisecond, forward: time.Second,
	},
	CompensateGroup: {queues: map[string]int{CompensateQueue: 1}, workers: 16, poll: 500 * time.Millisecond, forward: time.Second},
	SweepGroup:      {queues: map[string]int{SweepQueue: 1}, workers: 2, poll: time.Second, forward: time.Second},
}

const (
	// shutdownTimeout lets a notification attempt (10 s at most) end within the 15 s that the
	// program has to stop.
	shutdownTimeout = 12 * time.Second
	// janitorEvery is slow, as no task is kept after success.
	janitorEvery = 5 * time.Minute
	// maxRetryDelay bounds the wait after an error of ours: the database tick reads the rows
	// again within seconds anyway.
	maxRetryDelay = 30 * time.Second
)

// ServerConfig returns the configuration of a group's asynq server. It panics on an unknown group.
func ServerConfig(group Group, log *slog.Logger) asynq.Config {
	g, ok := groupConfigs[group]
	if !ok {
		panic(fmt.Sprintf("queue: no group %q", group))
	}
	return asynq.Config{
		Queues:                   maps.Clone(g.queues),
		Concurrency:              g.workers,
		TaskCheckInterval:        g.poll,
		DelayedTaskCheckInterval: g.forward,
		ShutdownTimeout:          shutdownTimeout,
		JanitorInterval:          janitorEvery,
		RetryDelayFunc:           func(n int, _ error, _ *asynq.Task) time.Duration { return retryDelay(n) },
		IsFailure:                isFailure,
		Logger:                   &serverLog{log: log.With("group", string(group))},
		LogLevel:                 asynq.InfoLevel,
	}
}

// retryDelay is 1, 2, 4 … seconds up to maxRetryDelay.
func retryDelay(n int) time.Duration {
	if n >= 5 {
		return maxRetryDelay
	}
	return time.Second << max(n, 0)
}

// isFailure excludes tasks that our own shutdown has cancelled: they use no retry.
func isFailure(err error) bool { return err != nil && !errors.Is(err, context.Canceled) }

const (
	// logEvery is how often one kind of line is written: while Redis is down, every server
	// logs five errors a second.
	logEvery = 10 * time.Second
	// logKey is the length of the prefix, in bytes, that identifies a kind of line.
	logKey = 24
	// maxLogKeys bounds how many kinds are kept.
	maxLogKeys = 64
)

// serverLog writes asynq's lines to our log. Its info lines, about starting and stopping, are
// debug lines here.
type serverLog struct {
	log *slog.Logger

	mu   sync.Mutex
	last map[string]time.Time
}

func (l *serverLog) Debug(args ...any) { l.log.Debug("asynq: " + fmt.Sprint(args...)) }
func (l *serverLog) Info(args ...any)  { l.log.Debug("asynq: " + fmt.Sprint(args...)) }
func (l *serverLog) Warn(args ...any)  { l.write(slog.LevelWarn, args) }
func (l *serverLog) Error(args ...any) { l.write(slog.LevelError, args) }
func (l *serverLog) Fatal(args ...any) { l.write(slog.LevelError, args) }

func (l *serverLog) write(level slog.Level, args []any) {
	line := fmt.Sprint(args...)
	if l.due(line[:min(len(line), logKey)]) {
		l.log.Log(context.Background(), level, "asynq: "+line)
	}
}

// due reports whether a line of this kind may be written again.
func (l *serverLog) due(kind string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.last[kind]; ok && time.Since(last) < logEvery {
		return false
	}
	if l.last == nil || len(l.last) >= maxLogKeys {
		l.last = make(map[string]time.Time)
	}
	l.last[kind] = time.Now()
	return true
}
