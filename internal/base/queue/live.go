package queue

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// An idle task server of asynq sleeps between polls and cannot be woken. New notifications must
// not wait for that, so their nudges are elements of a list, which a blocking pop takes at once.
const (
	liveKey = "asynq:{notify}:live" // in the queue's scheme, which the rights of a Redis user name
	// liveKept is for how long nudges are of use: the tick finds their rows within seconds.
	liveKept = time.Minute
	// popFor bounds a blocking pop, which cancelling its context does not end.
	popFor = time.Second
)

// push appends nudges to the list, each with its time.
func (c *Client) push(ctx context.Context, payloads [][]byte) error {
	if len(payloads) == 0 {
		return nil // the window is full
	}
	elements := make([]any, len(payloads))
	for i, p := range payloads {
		elements[i] = append(strconv.AppendInt(nil, time.Now().UnixMilli(), 10), append([]byte{' '}, p...)...)
	}
	pipe := c.rdb.Pipeline()
	pipe.RPush(ctx, liveKey, elements...)
	pipe.Expire(ctx, liveKey, liveKept)
	_, err := pipe.Exec(ctx)
	return err
}

// Nudged passes the nudges of the live lane to take until ctx ends. While Redis is unavailable, it
// tries again every second.
func (c *Client) Nudged(ctx context.Context, log *slog.Logger, take func([]Nudge)) {
	for ctx.Err() == nil {
		got, err := c.rdb.BLPop(ctx, popFor, liveKey).Result()
		switch {
		case errors.Is(err, redis.Nil), ctx.Err() != nil:
			continue
		case err != nil:
			log.Debug("take nudges", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(popFor):
			}
			continue
		}
		_, payload, _ := bytes.Cut([]byte(got[1]), []byte{' '})
		nudges, err := DecodeNudges(asynq.NewTask(TaskNotify, payload))
		if err != nil {
			log.Warn("take nudges", "error", err)
			continue
		}
		take(nudges)
	}
}

// liveSize adds the list to the size of its lane; oldest is its first element.
func liveSize(s Size, waiting int64, oldest string) Size {
	s.Pending += int(waiting)
	at, _, _ := bytes.Cut([]byte(oldest), []byte{' '})
	if ms, err := strconv.ParseInt(string(at), 10, 64); err == nil {
		s.Latency = max(s.Latency, time.Since(time.UnixMilli(ms)), 0)
	}
	return s
}
