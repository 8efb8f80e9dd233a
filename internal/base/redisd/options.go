package redisd

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// Timeouts of one connection. Callers that cannot wait this long pass a context: it
// bounds dialling, reading and writing alike.
const (
	dialTimeout = 2 * time.Second
	ioTimeout   = 3 * time.Second
)

// Client connects lazily: it succeeds while Redis is down, and commands fail until it is
// up.
func (o Options) Client() redis.UniversalClient {
	return redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: o.Addrs, IsClusterMode: o.Mode == Cluster, MasterName: o.Master,
		Username: o.Username, Password: string(o.Password), DB: o.DB,
		SentinelUsername: o.SentinelUsername, SentinelPassword: string(o.SentinelPassword),
		Dialer:      o.dialer(),
		DialTimeout: dialTimeout, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout,
		ContextTimeoutEnabled: true, DisableIdentity: true,
	})
}

// dialer replaces the library's own TLS dialler, which ignores the context: a hanging Redis
// would delay a callback by the whole dial timeout.
func (o Options) dialer() func(context.Context, string, string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: dialTimeout, KeepAlive: time.Minute}
	if !o.TLS {
		return plain.DialContext
	}
	// Without a ServerName the certificate is checked against the dialled host, which is
	// right for every node of a cluster.
	secure := &tls.Dialer{NetDialer: plain, Config: &tls.Config{MinVersion: tls.VersionTLS12}}
	return secure.DialContext
}

// connOpt makes the clients of asynq's servers and of Asynqmon. Each has its own pool, so
// that no group of workers can use up another's connections, and each may be closed by its
// creator.
type connOpt Options

var _ asynq.RedisConnOpt = connOpt{}

// MakeRedisClient returns a new client.
func (o connOpt) MakeRedisClient() any {
	client := Options(o).Client()
	client.AddHook(paced{})
	return client
}

// failurePause is how long a worker's command waits after a failure. asynq polls for the
// next task at once, whatever the error was: a Redis that refuses commands would get
// thousands of requests a second.
const failurePause = 100 * time.Millisecond

// paced is a hook that slows down a failing client.
type paced struct{}

func (paced) DialHook(next redis.DialHook) redis.DialHook { return next }

func (paced) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil && !errors.Is(err, redis.Nil) && !redis.HasErrorPrefix(err, "NOSCRIPT") {
			pause(ctx, failurePause)
		}
		return err
	}
}

func (paced) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
