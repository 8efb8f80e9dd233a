package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/config"
	"backstop/jobs"
)

// Run serves until ctx ends, drains, and stops within the shutdown time: no new requests and
// tasks; running ones are finished or released. It returns nil after an orderly stop.
func (a *App) Run(ctx context.Context) error {
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	if a.server != nil {
		if err := a.listen(); err != nil {
			stopWork()
			return err
		}
	}
	// The password must have been printed when the server becomes ready.
	if err := a.greet(work); err != nil {
		stopWork()
		return err
	}
	served := a.serve()
	defer a.test.wait()
	// From here on callbacks arrive, so every return needs shutdown.
	defer a.shutdown(stopWork)
	defer a.test.stop()
	err := a.start(work)
	if err != nil {
		return err
	}
	close(a.ready)
	a.test.start(a.db.NodeName())
	debug.FreeOSMemory() // memory used by the start: parsed policies, templates, settings
	select {
	case <-ctx.Done():
		a.o.Log.Info("stop", "reason", "signal")
		err = a.drain(served)
	case err = <-a.fatal:
	case err = <-served:
	}
	return err
}

// drain gives load balancers time to select another node, while this one still accepts
// everything.
func (a *App) drain(served <-chan error) error {
	if a.server == nil || a.o.Config.Drain == 0 {
		return nil
	}
	a.o.Log.Info("drain", "for", a.o.Config.Drain.String())
	a.server.Drain()
	a.test.drain()
	over := time.NewTimer(a.o.Config.Drain)
	defer over.Stop()
	select {
	case <-over.C:
	case s := <-a.o.EndDrain:
		a.o.Log.Info("the drain ends early", "signal", s.String())
	case err := <-a.fatal:
		return err
	case err := <-served:
		return err
	}
	return nil
}

// start begins the background work. The signal that stops the program does not interrupt it,
// because a start cut off half-way would look like a failure.
func (a *App) start(ctx context.Context) (err error) {
	alerts, err := a.alerts()
	if err != nil {
		return err
	}
	a.jobs, err = jobs.Start(ctx, jobs.Options{
		DB: a.db, Settings: a.settings, Processor: a.processor, Dispatcher: a.dispatcher, Advance: a.advance,
		Compensations: a.compensations, Approvals: a.approvals, Batches: a.batchRunner, Breakers: a.breakers, Pauses: a.pauses,
		SupplierBreakers: a.supplierBreakers, Ledger: a.ledger, Disputes: a.disputes, Views: a.views,
		Queue: a.queue, Redis: a.redis.Asynq(), Log: a.o.Log, Audit: a.audit, Workers: a.o.Roles.Worker, Scheduler: a.o.Roles.Scheduler,
		CleanupEvery: a.o.Config.CleanupEvery, Zone: a.o.Config.Timezone,
		Nights: SweepPlan(a.o.Config), Sweeps: a.sweeps, Ticks: &a.ticks, Unmetered: a.o.Test,
		Fatal: func(err error) { a.fatal <- err }, Alerts: alerts, Daily: a.dailyReports(alerts.Reports),
		Retention: jobs.Retention{
			Callbacks: a.o.Config.RetentionCallbacks, Attempts: a.o.Config.RetentionAttempts, History: a.o.Config.RetentionHistory,
			Notifications: a.o.Config.RetentionNotifications, Reports: a.o.Config.RetentionReports,
		},
	})
	if err != nil {
		return err
	}
	a.o.Log.Info("serve", "url", a.URL(), "console", a.ConsoleURL(), "roles", a.o.Roles.String(), "database", a.db.Engine(), "redis",
		string(a.redis.Engine()),
		"node", a.db.NodeName())
	return nil
}

// Ready is closed once Run serves.
func (a *App) Ready() <-chan struct{} { return a.ready }

// listen opens the listeners.
func (a *App) listen() (err error) {
	setting := "BACKSTOP_LISTEN"
	if a.o.Test {
		setting = "BACKSTOP_TEST_LISTEN"
	}
	if a.listener, err = a.listenOn(a.o.Config.Listen, setting); err != nil || a.o.Config.AdminListen == "" {
		return err
	}
	a.adminListener, err = a.listenOn(a.o.Config.AdminListen, "BACKSTOP_ADMIN_LISTEN")
	return err
}

func (a *App) listenOn(address, setting string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, CannotListen(address, setting, err)
	}
	a.closing(func() { l.Close() }) // in case it is never served
	return l, nil
}

// CannotListen explains why nothing can listen on the address of a setting.
func CannotListen(address, setting string, err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("this user may not listen on %s: ports below 1024 need a privilege (setcap cap_net_bind_service=+ep), "+
			"or a proxy before another port: set %s", address, setting)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is taken: is another server running there? Stop it, or set %s", address, setting)
	}
	return fmt.Errorf("cannot listen on %s (%w): set %s to an address of this machine", address, err, setting)
}

// serve serves the listeners; the channel receives how each ended.
func (a *App) serve() <-chan error {
	served := make(chan error, 2)
	if a.server == nil {
		return served
	}
	go func() { served <- a.server.Serve(a.listener) }()
	if a.adminListener != nil {
		go func() { served <- a.server.ServeAdmin(a.adminListener) }()
	}
	return served
}

// URL returns the base URL of callbacks and the merchant API, once Run listens.
func (a *App) URL() string { return urlOf(a.o.Config.PublicURL, a.listener) }

// ConsoleURL returns the URL of the console, once Run listens.
func (a *App) ConsoleURL() string {
	if a.adminListener != nil {
		return urlOf(a.o.Config.AdminURL, a.adminListener)
	}
	return urlOf(a.o.Config.AdminURL, a.listener)
}

// urlOf returns the configured URL, or else that of the listener, whose port may be any.
func urlOf(configured string, l net.Listener) string {
	if configured != "" || l == nil {
		return configured
	}
	return config.PublicFrom(l.Addr().String())
}

// greet creates the first operator on an empty installation and prints the console's URL.
func (a *App) greet(ctx context.Context) error {
	operators := access.NewOperators(a.db, a.audit)
	var given func() (string, error)
	if a.o.Config.AdminPasswordFile != "" {
		given = a.adminPassword
	}
	password, made, err := operators.EnsureAdmin(ctx, given)
	if err == nil && !made && a.o.Demo {
		password, err = operators.ResetPassword(ctx, access.FirstAdmin)
		made = true
	}
	switch {
	case errors.Is(err, access.ErrPassword):
		return fmt.Errorf("BACKSTOP_ADMIN_PASSWORD_FILE: %w", err)
	case err != nil:
		return err
	case made && password == "":
		fmt.Fprintln(a.o.Out, "admin one-time password: the one in BACKSTOP_ADMIN_PASSWORD_FILE")
	case made:
		fmt.Fprintf(a.o.Out, "%sadmin one-time password: %s\n", a.mode(), password)
	}
	if a.o.Demo {
		if err := a.greetDeciders(ctx, operators); err != nil {
			return err
		}
	}
	if a.server != nil {
		fmt.Fprintf(a.o.Out, "%sconsole: %s\n", a.mode(), a.ConsoleURL())
	}
	return nil
}

// mode begins the lines of the greeting that are about test mode.
func (a *App) mode() string {
	if a.o.Test {
		return "test mode: "
	}
	return ""
}

// demoDeciders are the demo's operators for decisions by two people: one proposes, the other
// approves. They are named after their roles.
var demoDeciders = []string{access.Finance, access.Lead}

// greetDeciders adds the demo's operators that are missing and prints new passwords for them.
func (a *App) greetDeciders(ctx context.Context, operators *access.Operators) error {
	for _, name := range demoDeciders {
		password, err := operators.Add(ctx, name, name, "")
		if errors.Is(err, access.ErrExists) {
			password, err = operators.ResetPassword(ctx, name)
		}
		if errors.Is(err, access.ErrDisabled) {
			continue
		}
		if err != nil {
			return fmt.Errorf("operator %s of the demo: %w", name, err)
		}
		fmt.Fprintf(a.o.Out, "%s one-time password: %s\n", name, password)
	}
	return nil
}

// maxPasswordFile bounds how much of the first password's file is read, in bytes.
const maxPasswordFile = 4096

// adminPassword reads the password of the first operator from its file.
func (a *App) adminPassword() (string, error) {
	f, err := os.Open(a.o.Config.AdminPasswordFile)
	if err != nil {
		return "", fmt.Errorf("BACKSTOP_ADMIN_PASSWORD_FILE: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPasswordFile))
	if err != nil {
		return "", fmt.Errorf("BACKSTOP_ADMIN_PASSWORD_FILE: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// shutdown stops the intake, then the workers, then what they depend on, all within the
// shutdown time.
func (a *App) shutdown(stopWork context.CancelFunc) {
	// Attempts at merchants may take 10 s; those still running one second before the end are
	// cancelled and released.
	ctx, cancel := context.WithTimeout(context.Background(), a.o.Config.ShutdownTimeout-time.Second)
	defer cancel()
	if a.server != nil {
		grace, cancel := context.WithTimeout(ctx, a.o.Config.CallbackWait+time.Second)
		defer cancel()
		if err := a.server.Shutdown(grace); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			a.o.Log.Warn("stop the web server", "error", err)
		}
	}
	if a.jobs != nil {
		half, cancel := context.WithTimeout(ctx, a.o.Config.ShutdownTimeout/2)
		defer cancel()
		a.jobs.Stop(half) // the other half is for the attempts
	}
	if a.batchRunner != nil { // before what it nudges
		a.batchRunner.Close(ctx)
	}
	if a.compensations != nil { // before the dispatcher, which it may nudge
		a.compensations.Close(ctx)
		a.compensations = nil
	}
	a.advance.Close(ctx)
	if a.dispatcher != nil {
		a.dispatcher.Close(ctx)
		a.dispatcher = nil
	}
	stopWork()
}

// Close closes everything, in the reverse order of opening.
func (a *App) Close() {
	// Nil if New failed or Run was never called; a second Close does nothing.
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if a.batchRunner != nil {
		a.batchRunner.Close(ended)
	}
	if a.compensations != nil {
		a.compensations.Close(ended)
	}
	if a.advance != nil {
		a.advance.Close(ended)
	}
	if a.dispatcher != nil {
		a.dispatcher.Close(ended)
	}
	for _, f := range slices.Backward(a.closers) {
		f()
	}
	a.closers = nil
}

// ParseRoles parses "web,worker,scheduler" or a part of it; empty = all.
func ParseRoles(text string) (r Roles, err error) {
	if text == "" {
		return Roles{true, true, true}, nil
	}
	for _, word := range strings.Split(text, ",") {
		switch strings.TrimSpace(word) {
		case "web":
			r.Web = true
		case "worker":
			r.Worker = true
		case "scheduler":
			r.Scheduler = true
		default:
			return Roles{}, fmt.Errorf("%w: --roles accepts web, worker and scheduler, not %q", ErrUsage, word)
		}
	}
	return r, nil
}

// String formats the roles for ParseRoles.
func (r Roles) String() string {
	var words []string
	for _, w := range []struct {
		on   bool
		name string
	}{{r.Web, "web"}, {r.Worker, "worker"}, {r.Scheduler, "scheduler"}} {
		if w.on {
			words = append(words, w.name)
		}
	}
	return strings.Join(words, ",")
}
