// Package redisd provides the program's Redis: the one at a URL or, without a URL, a
// redis-server that the program starts, supervises and stops itself.
//
// Redis holds only nudges (which rows to look at now); the rows themselves are in the
// database. So a Redis that is down or empty delays work by seconds and loses none of it,
// and no failure here stops a running program.
package redisd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// Engine is what kind of server the program's Redis is.
type Engine string

// Engines.
const (
	External  Engine = "external"   // given by URL
	Child     Engine = "child"      // a redis-server that the program runs
	InProcess Engine = "in-process" // a stand-in for development if no redis-server is found
)

// checkTimeout bounds Check, which /readyz calls.
const checkTimeout = time.Second

// Config selects a Redis.
type Config struct {
	// At is the external Redis, from Parse; nil for an embedded one.
	At *Options
	// DataDir is the program's data folder, which the caller has locked: the embedded
	// Redis keeps its file in DataDir/redis.
	DataDir string
	Logger  *slog.Logger
}

// Redis is the program's Redis.
type Redis struct {
	engine Engine
	opts   Options
	client redis.UniversalClient
	log    *slog.Logger
	warned sync.Map // messages that warnOnce has logged
	stop   func(context.Context) error
}

// Open connects to the Redis at cfg.At, or starts the embedded one. An external Redis need
// not be up: callbacks must be accepted without it, and the caller calls Verify until it
// answers. An embedded one that does not start is an error.
func Open(ctx context.Context, cfg Config) (*Redis, error) {
	bridgeLibraryLog(cfg.Logger)
	if cfg.At != nil {
		return newRedis(External, *cfg.At, cfg.Logger, nil), nil
	}
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return openInProcess(cfg.Logger)
	}
	return openChild(ctx, program, cfg)
}

func newRedis(engine Engine, opts Options, log *slog.Logger, stop func(context.Context) error) *Redis {
	return &Redis{engine: engine, opts: opts, client: opts.Client(), log: log, stop: stop}
}

func openChild(ctx context.Context, program string, cfg Config) (*Redis, error) {
	data, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		return nil, fmt.Errorf("embedded redis: %w", err)
	}
	c, err := startChild(ctx, program, data, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("embedded redis: %w", err)
	}
	r := newRedis(Child, Options{Mode: Single, Addrs: []string{c.socket}}, cfg.Logger, c.close)
	if err := r.Verify(ctx); err != nil {
		return nil, fmt.Errorf("embedded redis: %w", errors.Join(err, r.Close(ctx)))
	}
	return r, nil
}

func openInProcess(log *slog.Logger) (*Redis, error) {
	m, err := startMini()
	if err != nil {
		return nil, fmt.Errorf("in-process redis: %w", err)
	}
	log.Warn("no redis-server on PATH: using a slow in-process stand-in that stores nothing, for development only; " +
		"install redis-server or set BACKSTOP_REDIS_URL")
	opts := Options{Mode: Single, Addrs: []string{m.server.Addr()}, Password: m.password}
	return newRedis(InProcess, opts, log, m.close), nil
}

// Client is the shared client. It respects the deadlines of contexts.
func (r *Redis) Client() redis.UniversalClient { return r.client }

// Asynq makes asynq's own clients. Each has its own connections and is closed by its
// creator: an asynq.Server or Asynqmon closes its own when it stops.
func (r *Redis) Asynq() asynq.RedisConnOpt { return connOpt(r.opts) }

// Engine is what kind of server this Redis is.
func (r *Redis) Engine() Engine { return r.engine }

// Close closes the connections and stops an embedded Redis. It returns within a few
// seconds even if Redis hangs.
func (r *Redis) Close(ctx context.Context) error {
	err := r.client.Close()
	if r.stop != nil {
		err = errors.Join(err, r.stop(ctx))
	}
	return err
}

var libraryLog sync.Once

// bridgeLibraryLog sends the client library's lines (lost connections, moved masters) to our
// log at debug level instead of standard error. The setting is global, so the first logger is
// kept.
func bridgeLibraryLog(log *slog.Logger) {
	libraryLog.Do(func() { redis.SetLogger(libraryLogger{log}) })
}

type libraryLogger struct{ log *slog.Logger }

// Printf implements the library's logger.
func (l libraryLogger) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis client: "+fmt.Sprintf(format, args...))
	}
}
