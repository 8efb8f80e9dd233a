// Package app puts the program together: what main and the tests start.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/egress"
	"backstop/internal/base/mask"
	"backstop/internal/base/queue"
	"backstop/internal/base/redisd"
	"backstop/internal/base/seal"
	"backstop/internal/base/trace"
	"backstop/internal/batch"
	"backstop/internal/breaker"
	"backstop/internal/callback"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/fund/booking"
	"backstop/internal/fund/dispute"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/notify/websocket"
	"backstop/internal/orderquery"
	"backstop/internal/pause"
	"backstop/internal/payment"
	"backstop/internal/sandbox"
	"backstop/internal/savedview"
	"backstop/internal/settings"
	"backstop/internal/settings/apply"
	"backstop/internal/signin"
	"backstop/internal/suppliercall"
	"backstop/internal/sweep"
	"backstop/internal/testmode"
	"backstop/jobs"
	"backstop/migrations"
	"backstop/web"
	"backstop/web/routes"

	"github.com/hibiken/asynqmon"
)

// Roles of a serving process.
type Roles struct{ Web, Worker, Scheduler bool }

// Options of a serving process.
type Options struct {
	Config config.Config
	Roles  Roles
	Log    *slog.Logger
	// LogState returns why Log cannot be written at the moment; nil = unknown.
	LogState func() error
	Out      io.Writer // for the one-time password and the URL
	// EndDrain ends a drain early; nil = never.
	EndDrain <-chan os.Signal
	// Version is shown on the root page. Together with Commit it identifies the build, which
	// should be the same on all nodes.
	Version, Commit string
	// Demo prints a new password at each start.
	Demo bool
	// Test: this is test mode beside another App of the process, with a configuration of TestConfig.
	Test bool
}

// App is one serving process.
type App struct {
	o          Options
	folder     *Folder
	db         *db.DB
	redis      *redisd.Redis
	keys       *seal.Keyring
	audit      *audit.Log
	settings   *settings.Store
	policy     *access.Policy
	queue      *queue.Client
	nudger     *notify.Nudger
	processor  *payment.Processor
	dispatcher *notify.Dispatcher
	// acks is what merchants have acknowledged; acknowledged is what the life before left of it.
	acks         *notify.Acks
	acknowledged notify.Recovered
	// compensations is nil without workers.
	compensations *compensation.Runner
	// sweeps is nil without workers.
	sweeps   *sweep.Runner
	sockets  *websocket.Hub
	breakers *breaker.Cache
	pauses   *pause.Pauses
	// supplierBreakers are the breakers of suppliers; calls makes the calls to them.
	supplierBreakers *breaker.Cache
	calls            *suppliercall.Caller
	advance          *orderquery.Worker
	batches          *batch.Batches
	batchRunner      *batch.Runner // nil without workers
	approvals        *approval.Desk
	views            *savedview.Views
	refunds          *refund.Machine
	disputes         *dispute.Machine
	payouts          *payout.Machine
	applies          apply.Env     // of changes of settings that were decided
	tracer           *trace.Tracer // nil = off
	ledger           *ledger.Ledger
	server           *web.Server
	listener         net.Listener
	// adminListener is the console's own listener; nil = none.
	adminListener net.Listener
	test          *testApp           // nil = test mode is off
	sandbox       *testmode.Supplier // nil = this is not test mode
	jobs          *jobs.Jobs
	ticks         jobs.Ticks
	unreadable    []string         // settings that were unreadable at the watch's last reading
	negative      []string         // merchants whose balances were below zero then
	signIn        *signin.Provider // nil = operators sign in by password
	fatal         chan error
	ready         chan struct{}
	closers       []func() // in the order in which they were opened
}

// longestAttempt is the longest timeout of an attempt; leases depend on it.
const longestAttempt = 10 * time.Second

// ErrUsage marks options that cannot be combined with the configuration.
var ErrUsage = errors.New("wrong usage")

// New opens everything but does not listen yet. Close it, also after Run.
func New(ctx context.Context, o Options) (*App, error) {
	if _, embedded := o.Config.Embedded(); embedded && o.Roles != (Roles{true, true, true}) {
		return nil, fmt.Errorf("%w: a subset of roles needs a Redis that the others share: set BACKSTOP_REDIS_URL", ErrUsage)
	}
	at, err := redisAt(o)
	if err != nil {
		return nil, err
	}
	test, err := newTestApp(o)
	if err != nil {
		return nil, err
	}
	if err := NeedKeys(o.Config); err != nil {
		return nil, err
	}
	a := &App{o: o, test: test, fatal: make(chan error, 4), ready: make(chan struct{})}
	if err := a.open(ctx, at); err != nil {
		a.Close()
		return nil, err
	}
	a.build()
	return a, nil
}

// open opens what the parts depend on. Close closes what was opened, also after a failure.
func (a *App) open(ctx context.Context, at *redisd.Options) (err error) {
	if a.folder, err = LockFolder(a.o.Config.Data); err != nil {
		return err
	}
	a.closing(func() { a.folder.Close() })
	for _, step := range []func(context.Context) error{a.openDB, a.openKeys, a.openApplies, a.openAudit, a.openTraces, a.openSandbox} {
		if err = step(ctx); err != nil {
			return err
		}
	}
	if err = a.openRedis(ctx, at); err != nil {
		return err
	}
	a.settings, a.policy = settings.NewStore(a.db, a.kinds(), a.keys, a.o.Log), newPolicy()
	a.settings.InShadow(a.o.Config.Shadow)
	a.settings.GrantTo(a.policy)
	a.openCalls()
	if a.signIn, err = signin.FromConfig(a.o.Config, a.db.NowTime); err != nil {
		return err
	}
	if a.signIn != nil {
		a.closing(a.signIn.Close)
	}
	if err = a.settings.Refresh(ctx); err != nil {
		return err
	}
	if err = a.checkRoles(ctx); err != nil {
		return err
	}
	now := a.settings.Current()
	if err = a.db.Uses(ctx, now.Version, now.Unreadable()); err != nil {
		return err
	}
	// Tasks arrive before the first tick, so pauses and open breakers must be read first.
	a.pauses = pause.New(a.db)
	a.breakers = breaker.NewCache(a.db, a.breakerPolicy)
	a.breakers.Closes = a.resendWhenBack
	return errors.Join(a.pauses.Refresh(ctx), a.breakers.Refresh(ctx), a.supplierBreakers.Refresh(ctx))
}

// checkRoles refuses a role of the configuration that was never declared: mistyped, it would oblige nobody
// to give a second factor. One that was disabled is fine. Roles of one's own are declared in the live database
// only.
func (a *App) checkRoles(ctx context.Context) error {
	if a.o.Test {
		return nil
	}
	named := map[string][]string{"BACKSTOP_REQUIRE_TOTP": a.o.Config.RequireTOTP}
	for _, x := range a.o.Config.OIDCRoles {
		named["BACKSTOP_OIDC_ROLES"] = append(named["BACKSTOP_OIDC_ROLES"], x.Role)
	}
	for name, roles := range named {
		missing, err := access.Undeclared(ctx, a.db.Read, roles)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			return fmt.Errorf("%w: %s names %s, which is no role: correct it, or declare it first (roles: of the apply file)", ErrUsage,
				name, missing[0])
		}
	}
	return nil
}

// supplierPolicy says when the breaker of a supplier opens.
var supplierPolicy = breaker.Policy{Failures: 5, Open: time.Minute, Window: time.Minute}

// openCalls creates the caller of suppliers. It has its own connections and its own allowed
// ranges.
func (a *App) openCalls() {
	c := a.o.Config
	out := egress.New(egress.Config{Allow: c.SupplierAllowCIDRs})
	a.closing(out.Close)
	a.settings.CallThrough(suppliercall.NewClient(out, c.SupplierTimeout))
	a.supplierBreakers = breaker.NewSupplierCache(a.db, supplierPolicy)
	a.calls = suppliercall.New(suppliercall.Options{
		DB: a.db, Breakers: a.supplierBreakers, InFlight: c.SupplierInFlight, Timeout: c.SupplierTimeout, Mask: mask.Call,
		Shadow: c.Shadow, Log: a.o.Log,
	})
	a.closing(a.calls.Close)
}

func (a *App) closing(f func()) { a.closers = append(a.closers, f) }

// openDB opens and migrates the database, and releases leases of this node's earlier runs.
func (a *App) openDB(ctx context.Context) error {
	name, err := a.folder.nodeName(a.o.Config.NodeName)
	if err != nil {
		return err
	}
	a.db, err = db.Open(ctx, db.Options{
		URL: a.o.Config.DatabaseURL.Reveal(), Dir: a.o.Config.Data, Pool: a.o.Config.DatabasePool, Node: name,
		Sends: a.o.Roles.Worker,
	})
	if err != nil {
		return err
	}
	a.closing(func() { a.db.Close() })
	if a.db.Superuser() {
		a.o.Log.Warn("the role of BACKSTOP_DATABASE_URL is a superuser, whom PostgreSQL lets read and write its server's files: use an ordinary role")
	}
	applied, err := migrations.Apply(ctx, a.db)
	if err != nil {
		return err
	}
	for _, m := range applied {
		a.o.Log.Info("migrate", "applied", m)
	}
	err = migrations.Partition(ctx, a.db, a.o.Log)
	if errors.Is(err, db.ErrInUse) { // retried by a job; see jobs.Run
		a.o.Log.Warn("the months of a table could not be added; retrying every hour", "error", err)
	} else if err != nil {
		return err
	}
	earlier, err := migrations.Join(ctx, a.db)
	if err != nil {
		return err
	}
	if a.acks, err = notify.OpenAcks(a.o.Config.Data, a.o.Log); err != nil {
		return err
	}
	a.closing(a.acks.Close)
	if a.acknowledged, err = a.acks.Recover(ctx, a.db, earlier); err != nil {
		return err
	}
	var released int64
	for _, release := range []func(context.Context, *db.DB, []int64) (int64, error){
		notify.ReleaseLeases, compensation.ReleaseLeases,
		orderquery.ReleaseLeases, batch.ReleaseLeases,
	} {
		n, err := release(ctx, a.db, earlier)
		if err != nil {
			return err
		}
		released += n
	}
	if released > 0 {
		a.o.Log.Info("recover", "released_leases", released)
	}
	if err := a.db.Forget(ctx, earlier); err != nil {
		return err
	}
	// The number of senders must be known before this process sends.
	return a.db.Beat(ctx)
}

// openAudit adds the retired keys.
func (a *App) openAudit(ctx context.Context) (err error) {
	if a.keys, err = settings.WithRetired(ctx, a.db, a.keys); err != nil {
		return err
	}
	a.audit = audit.New(a.db, a.keys)
	return nil
}

// openKeys opens the master keys and publishes what all nodes must agree on.
func (a *App) openKeys(ctx context.Context) (err error) {
	out := &made{out: a.o.Out, log: a.o.Log}
	if a.keys, err = Keys(ctx, a.o.Config, a.db, out); err != nil {
		return err
	}
	if _, err = settings.UseKeys(ctx, a.db, a.keys); err != nil {
		return err
	}
	return a.db.Publish(ctx, db.Fingerprint{
		KeyIDs: strings.Join(a.keys.IDs(), ","), Ranges: egress.NewRules(a.o.Config.NotifyAllowCIDRs).String(),
		Build: strings.TrimSpace(a.o.Version + " " + a.o.Commit), Shadow: strconv.FormatBool(a.o.Config.Shadow),
	})
}

// made reports a new key on the terminal and in the log.
type made struct {
	out io.Writer
	log *slog.Logger
}

func (m *made) Write(line []byte) (int, error) {
	m.log.Warn(strings.TrimSpace(string(line)))
	return m.out.Write(line)
}

// build creates the working parts, each from those before it.
func (a *App) build() {
	c := a.o.Config
	out := egress.New(egress.Config{Allow: c.NotifyAllowCIDRs, Local: map[string]func(*http.Request) (*http.Response,
		error){sandbox.Host: sandbox.Endpoint}})
	a.closing(out.Close)
	a.nudger = notify.NewNudger(a.queue, a.db.Now, a.o.Log)
	a.closing(a.nudger.Close)
	a.ledger = ledger.New(a.db)
	channels := a.openChannels(out)
	if a.o.Roles.Worker || a.o.Roles.Web {
		a.dispatcher = notify.NewDispatcher(notify.Options{
			DB: a.db, Directory: a.settings.Merchants, Channels: channels, Nudger: a.nudger,
			Breakers: a.breakers, Concurrency: c.NotifyConcurrency, Timeout: longestAttempt, Log: a.o.Log, Tracer: a.tracer,
			Acks: a.acks, Unmetered: a.o.Test, LinkedOnly: !a.o.Roles.Worker, Paused: func() bool { return a.pauses.Paused(pause.Notifications) },
		})
		dispatcher := a.dispatcher // the field is nil after the shutdown
		a.sockets.OnConnect = func(merchantID int64) { a.connected(dispatcher, merchantID) }
		a.nudger.Route(a.dispatcher.Lane)
		a.dispatcher.Finish(a.acknowledged)
	}
	refusals := callback.NewRefusals(callback.RefusalOptions{DB: a.db, Rate: int(c.RefusedRate), Rows: c.RefusedRows, Log: a.o.Log})
	a.closing(refusals.Close)
	books := booking.Deps{
		DB: a.db, Settings: a.settings, Ledger: a.ledger, Nudger: a.nudger, Local: a.dispatcher,
		Schedule: a.compensateSchedule(), Nudge: a.nudgeCompensations,
	}
	a.openRefunds(out, books)
	a.disputes = dispute.New(dispute.Options{Deps: books, Refunds: a.refunds})
	a.openPayouts(out, books)
	a.processor = payment.New(payment.Options{
		DB: a.db, Settings: a.settings, Ledger: a.ledger, Nudger: a.nudger, Local: a.dispatcher, CheckURL: out.CheckURL,
		Batch: c.CommitBatch, Writers: c.CommitWriters, Queue: c.CallbackQueue, Wait: c.CallbackWait,
		Expiry: c.OrderExpiry, ExpiryMax: c.OrderExpiryMax, ClosingGrace: c.ClosingGrace,
		Refunds: a.refunds, Payouts: a.payouts, Disputes: a.disputes, Calls: a.calls, CallTimeout: c.SupplierTimeout,
		CallbackURL: a.callbackURL, Keys: a.keys,
		Steps: payment.Steps{Query: c.QuerySteps, Close: c.CloseSteps},
		Spare: refusals.Spare, Requery: a.requery, Log: a.o.Log,
	})
	a.closing(a.processor.Close)
	a.advance = orderquery.New(orderquery.Options{
		DB: a.db, Settings: a.settings, Payments: a.processor, Calls: a.calls, Steps: payment.Steps{
			Query: c.QuerySteps,
			Close: c.CloseSteps,
		},
		Grace: c.ClosingGrace, InFlight: c.SupplierInFlight, Log: a.o.Log, QueryOnly: !a.o.Roles.Worker, Stuck: a.rerunStuck,
	})
	a.processor.QueryBy(a.querySoon)
	if a.o.Roles.Worker {
		a.compensations = compensation.NewRunner(compensation.Options{
			DB: a.db, Kinds: a.compensationKinds(), Schedule: a.compensateSchedule(), Concurrency: c.CompensateConcurrency,
			PerLane: c.SupplierInFlight, Time: 3 * c.SupplierTimeout, Shut: a.compensationsWait, Log: a.o.Log,
		})
	}
	if a.o.Roles.Worker {
		a.sweeps = Sweeps(c, a.db, a.settings, a.keys, a.o.Log)
	}
	a.openBatches()
	a.views = &savedview.Views{DB: a.db, Policy: a.policy, Lists: console.ViewLists()}
	if !a.o.Test { // the figures of a process are those of its live application
		a.exportMetrics()
	}
	operators := access.NewOperators(a.db, a.audit)
	a.approvals = a.desk(operators)
	acts := a.acts(channels, operators)
	a.batches.Use(acts, a.approvals)
	if a.o.Roles.Web {
		receiver := callback.New(callback.Options{
			DB: a.db, Settings: a.settings, Payments: a.processor, Refusals: refusals,
			Wait: c.CallbackWait, Tracer: a.tracer,
		})
		if a.o.Test {
			a.sandbox = testmode.New(testmode.Options{DB: a.db, Settings: a.settings, Receive: receiver.Receive, Log: a.o.Log})
			a.closing(a.sandbox.Close)
		}
		a.server = web.New(web.Options{
			Config: c, DB: a.db, Settings: a.settings, Keys: a.keys, Audit: a.audit, Callbacks: receiver, Payments: a.processor,
			Refunds: a.refunds, Payouts: a.payouts, Disputes: a.disputes,
			Acts: acts, Batches: a.batches, Views: a.views, Operators: operators, Sessions: access.NewSessions(a.db, a.keys, c.SessionIdle,
				c.SessionMax),
			QueueEngine: string(a.redis.Engine()), Queues: a.queue.Sizes, RedisSkew: a.redisSkew, Alerts: a.alertTargets,
			Monitor: a.monitor(), Sockets: a.sockets, Breakers: a.breakers, Pauses: a.pauses, Approvals: a.approvals, Applies: a.applies,
			Texts:    Texts(),
			TestMode: a.test.handler(), Sandbox: a.sandbox,
			Provider: a.signIn, Mail: a.mailer(), Checks: a.checks(), Version: a.o.Version, Log: a.o.Log,
		}, routes.Table)
	}
}

// querySoon passes orders to the worker of this process, or to those of others.
func (a *App) querySoon(due []payment.Moment) {
	if a.o.Roles.Worker {
		a.advance.Offer(due)
		return
	}
	nudges := make([]queue.Nudge, len(due))
	for i, m := range due {
		nudges[i] = queue.Nudge{Delivery: m.ID, Recipient: m.Supplier, At: m.NextAt}
	}
	go func() { _ = a.queue.Advance(context.Background(), nudges) }() // best effort: the tick finds the rows
}

// monitorPath is the path of Asynqmon, behind the console's login.
const monitorPath = "/asynqmon"

// monitor returns Asynqmon on our Redis, read-only. Payloads are shown as they are; they
// contain only ids.
func (a *App) monitor() http.Handler {
	m := asynqmon.New(asynqmon.Options{RootPath: monitorPath, RedisConnOpt: a.redis.Asynq(), ReadOnly: true})
	a.closing(func() { _ = m.Close() })
	return m
}
