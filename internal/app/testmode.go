package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"backstop/internal/base/config"
	"backstop/internal/base/redisd"
	"backstop/internal/settings/apply"
	"backstop/internal/testmode"

	"github.com/valyala/fasthttp"
)

// testFolder is where test mode keeps its files, in the data folder.
const testFolder = "test"

// testConnections bounds the connections to the address of test mode.
const testConnections = 1000

// TestConfig returns the configuration of test mode: as the live one, with a folder, a database and a Redis of its
// own, and without messages to people. Errors: ErrUsage.
func TestConfig(c config.Config) (config.Config, error) {
	if c.TestListen == "" {
		return c, fmt.Errorf("%w: test mode is off: set BACKSTOP_TEST_LISTEN", ErrUsage)
	}
	if c.DatabaseURL.IsSet() && (!c.TestDatabaseURL.IsSet() || c.TestDatabaseURL.Reveal() == c.DatabaseURL.Reveal()) {
		return c, fmt.Errorf("%w: test mode needs a database of its own: set BACKSTOP_TEST_DATABASE_URL", ErrUsage)
	}
	if c.TestRedisURL.IsSet() && c.TestRedisURL.Reveal() == c.RedisURL.Reveal() {
		return c, fmt.Errorf("%w: test mode needs a Redis of its own, or another database of it: correct BACKSTOP_TEST_REDIS_URL", ErrUsage)
	}
	if c.RedisURL.IsSet() && !c.TestRedisURL.IsSet() {
		if at, err := redisd.Parse(c.RedisURL.Reveal()); err == nil && at.Mode == redisd.Cluster {
			return c, fmt.Errorf("%w: a cluster has one database only: set BACKSTOP_TEST_REDIS_URL to another Redis", ErrUsage)
		}
	}
	if c.OIDCIssuer != "" && c.TestURL == "" {
		return c, fmt.Errorf("%w: the provider of BACKSTOP_OIDC_ISSUER sends people back to the console: set BACKSTOP_TEST_URL", ErrUsage)
	}
	if !c.MasterKey.IsSet() {
		c.MasterKeyFile = c.MasterKeyPath()
	}
	c.Data = filepath.Join(c.Data, testFolder)
	c.Listen, c.TestListen, c.AdminListen, c.PublicURL, c.AdminURL = c.TestListen, "", "", c.TestURL, c.TestURL
	c.Environment, c.HTTPConnections = "test", min(c.HTTPConnections, testConnections)
	c.DatabaseURL = c.TestDatabaseURL
	if c.TestRedisURL.IsSet() {
		c.RedisURL = c.TestRedisURL
	}
	c.AlertURLs, c.ReportURLs, c.AdminPasswordFile = nil, nil, ""
	c.Shadow = false
	c.ClosingGrace = 0 // a payment after the expiry is late
	c.BreakerOpen = min(c.BreakerOpen, testBreaker)
	c.Drain = 0 // it stops when the live application has drained
	return c, nil
}

// testBreaker is how long a breaker stays open at most: an engineer who tries an integration fails often, and soon repairs it.
const testBreaker = 10 * time.Second

// testRetry is the wait before test mode is started again after a failure.
const testRetry = 30 * time.Second

// testApp runs test mode beside the live application. Its failures are logged and raise an alert; the live
// application goes on. A nil testApp does nothing: test mode is off.
type testApp struct {
	o       Options
	running atomic.Pointer[App]
	failed  atomic.Pointer[error] // why it does not run
	ctx     context.Context       // ends it
	cancel  context.CancelFunc
	served  sync.WaitGroup
}

// newTestApp returns nil if test mode is off. Errors: ErrUsage.
func newTestApp(o Options) (*testApp, error) {
	if o.Test || o.Config.TestListen == "" {
		return nil, nil
	}
	c, err := TestConfig(o.Config)
	if err != nil {
		return nil, err
	}
	o.Config, o.Log, o.Test, o.Demo, o.EndDrain = c, o.Log.With("mode", "test"), true, false, nil
	t := &testApp{o: o}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t, nil
}

// handler returns what serves the merchants' requests of test mode: nil while it does not run. The result is nil if
// test mode is off.
func (t *testApp) handler() func() fasthttp.RequestHandler {
	if t == nil {
		return nil
	}
	return func() fasthttp.RequestHandler {
		a := t.running.Load()
		if a == nil || a.server == nil {
			return nil
		}
		select {
		case <-a.Ready():
			return a.server.MerchantHandler()
		default:
			return nil
		}
	}
}

// start starts it. node is the name of the live application's node: one database cannot have two nodes of a name, so
// test mode does not run on the live one.
func (t *testApp) start(node string) {
	if t == nil {
		return
	}
	t.o.Config.NodeName = node
	t.served.Go(t.run)
}

// drain makes its own address say that it is about to stop.
func (t *testApp) drain() {
	if t == nil {
		return
	}
	if a := t.running.Load(); a != nil && a.server != nil {
		a.server.Drain()
	}
}

// Running implements testmode.Issuer.
func (t *testApp) Running() bool { return t != nil && t.running.Load() != nil }

// Issue implements testmode.Issuer. Errors: testmode.ErrAway.
func (t *testApp) Issue(ctx context.Context, code, name string) (testmode.Issued, error) {
	a := t.running.Load()
	if a == nil {
		return testmode.Issued{}, testmode.ErrAway
	}
	return testmode.Issue(ctx, a.applies, code, name, io.Discard)
}

// err returns why it does not run.
func (t *testApp) err() error {
	if t == nil || t.failed.Load() == nil {
		return nil
	}
	return *t.failed.Load()
}

// stop makes it stop.
func (t *testApp) stop() {
	if t != nil {
		t.cancel()
	}
}

// wait returns when it has stopped.
func (t *testApp) wait() {
	if t != nil {
		t.served.Wait()
	}
}

func (t *testApp) run() {
	for {
		err := t.serve()
		if t.ctx.Err() != nil {
			return
		}
		t.failed.Store(&err)
		t.o.Log.Error("test mode does not run, and is tried again", "error", err, "in", testRetry.String())
		select {
		case <-t.ctx.Done():
			return
		case <-time.After(testRetry):
		}
	}
}

func (t *testApp) serve() error {
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	a, err := New(ctx, t.o)
	if err != nil {
		return err
	}
	defer a.Close()
	t.running.Store(a)
	defer t.running.Store(nil)
	go func() {
		select {
		case <-a.Ready():
			t.failed.Store(nil)
		case <-ctx.Done():
		}
	}()
	if err := a.Run(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	return errors.New("it ended by itself")
}

// openSandbox declares the supplier of test mode at its first start.
func (a *App) openSandbox(ctx context.Context) error {
	if !a.o.Test {
		return nil
	}
	var made int
	if err := a.db.Read.NewRaw("SELECT count(*) FROM suppliers WHERE code = ?", testmode.Code).Scan(ctx, &made); err != nil {
		return fmt.Errorf("look for the supplier of test mode: %w", err)
	}
	if made > 0 {
		return nil
	}
	env := a.applies
	env.Out = io.Discard
	return apply.Apply(ctx, env, apply.File{Name: testmode.Code, Text: testmode.Declaration()})
}
