package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"backstop/internal/base/config"
	"backstop/internal/base/queue"
	"backstop/internal/base/redisd"
)

// firstCheck bounds how long a hanging Redis delays callbacks at start: the client waits
// seconds for each of its hosts, twice.
const firstCheck = 2 * time.Second

// redisAt parses the URL of Redis; nil = embedded.
func redisAt(c config.Config) (*redisd.Options, error) {
	url := c.RedisURL.Reveal()
	if url == "" {
		return nil, nil
	}
	at, err := redisd.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("%w: BACKSTOP_REDIS_URL: %w", ErrUsage, err)
	}
	return &at, nil
}

// openRedis connects to Redis or starts it. An unavailable Redis does not prevent the start,
// because callbacks are taken without it; one that may evict tasks does.
func (a *App) openRedis(ctx context.Context, at *redisd.Options) (err error) {
	a.redis, err = redisd.Open(ctx, redisd.Config{At: at, DataDir: a.o.Config.Data, Logger: a.o.Log})
	if err != nil {
		return err
	}
	a.closing(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if err := a.redis.Close(ctx); err != nil {
			a.o.Log.Warn("stop redis", "error", err)
		}
	})
	a.queue = queue.New(a.redis.Client(), queue.Config{Window: a.o.Config.NotifyWindow, Memory: a.redis.Memory})
	first, cancel := context.WithTimeout(ctx, firstCheck)
	defer cancel()
	err = a.redis.Verify(first)
	if errors.Is(err, redisd.ErrEvicts) {
		return err
	}
	if err != nil {
		a.o.Log.Warn("redis is unavailable; callbacks are taken and notifications sent without it", "error", err)
		go a.verifyRedis(ctx)
	}
	return nil
}

// verifyRedis checks the eviction policy of a Redis that was unavailable at start, as soon as
// it answers.
func (a *App) verifyRedis(ctx context.Context) {
	for ctx.Err() == nil {
		err := a.redis.Verify(ctx)
		if err == nil {
			return
		}
		if errors.Is(err, redisd.ErrEvicts) {
			a.fatal <- err
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}
