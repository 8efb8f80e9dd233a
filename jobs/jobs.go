// Package jobs runs Asynq tasks and periodic work; each is one call of the domain. An error
// returned to Asynq means a failure of the program itself; the failure of a merchant or a
// supplier is an outcome and is stored in its row.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"backstop/internal/alert"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/batch"
	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/dailyreport"
	"backstop/internal/fund/dispute"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/orderquery"
	"backstop/internal/pause"
	"backstop/internal/payment"
	"backstop/internal/report"
	"backstop/internal/savedview"
	"backstop/internal/settings"
	"backstop/internal/sweep"

	"github.com/go-co-op/gocron/v2"
	"github.com/hibiken/asynq"
)

// Options of the workers.
type Options struct {
	DB         *db.DB
	Settings   *settings.Store
	Processor  *payment.Processor
	Dispatcher *notify.Dispatcher
	// Compensations runs compensations; nil without workers.
	Compensations *compensation.Runner
	Advance       *orderquery.Worker
	// Batches processes batches; nil without workers.
	Batches *batch.Runner
	// Approvals ends proposals that were not decided in time; nil without a scheduler.
	Approvals *approval.Desk
	Breakers  *breaker.Cache
	// Pauses is what operators have paused.
	Pauses *pause.Pauses
	// SupplierBreakers are the breakers of suppliers.
	SupplierBreakers *breaker.Cache
	Ledger           *ledger.Ledger
	Disputes         *dispute.Machine
	Views            *savedview.Views
	Queue            *queue.Client
	Redis            asynq.RedisConnOpt
	Log              *slog.Logger
	Retention        Retention
	Alerts           Alerts
	// Daily makes the daily reports; nil without a scheduler.
	Daily *dailyreport.Keeper
	Audit *audit.Log

	// Workers runs the task servers and the tick. Scheduler runs the clean-up and the alerts,
	// and starts the nightly sweep. A process with a Dispatcher but no workers looks for
	// deliveries that it alone can send.
	Workers, Scheduler bool
	CleanupEvery       time.Duration
	// Nights is when the nightly sweep starts. Sweeps continues it; nil without workers.
	Nights sweep.Plan
	Sweeps *sweep.Runner
	Zone   *time.Location
	// Ticks records when the ticks ran; nil = not recorded.
	Ticks *Ticks
	// Unmetered leaves the gauges of the process to other Jobs.
	Unmetered bool
	// Fatal ends this process: its node slot is lost.
	Fatal func(error)
}

// Jobs runs task servers and periodic work.
type Jobs struct {
	o       Options
	servers []*asynq.Server
	cron    gocron.Scheduler // of the daily times
	// periodic is the work that runs again and again; stopPace ends it, and pacing waits for it.
	periodic []periodic
	stopPace context.CancelFunc
	pacing   sync.WaitGroup
	// nudged is the reader of new notifications' nudges; stopNudged ends it.
	nudged     sync.WaitGroup
	stopNudged context.CancelFunc
	// sweeping is the context of the sweep; stopSweep cancels it.
	sweeping  context.Context
	stopSweep context.CancelFunc
	watcher   watcher
	waker     *notify.Waker
	after     int64 // the last merchant of the previous tick
	// afterLane is the last lane of compensations of the previous tick.
	afterLane int64
}

// Start begins to take tasks. While Redis is unavailable, the servers keep trying and the tick
// does the work.
func Start(ctx context.Context, o Options) (*Jobs, error) {
	cron, err := gocron.NewScheduler(gocron.WithStopTimeout(5*time.Second), gocron.WithLocation(o.Zone))
	if err != nil {
		return nil, fmt.Errorf("create the scheduler: %w", err)
	}
	j := &Jobs{o: o, cron: cron, watcher: newWatcher(o), waker: notify.NewWaker(o.DB, o.Breakers, o.Queue)}
	j.sweeping, j.stopSweep = context.WithCancel(ctx)
	j.schedule()
	if err := j.scheduleSweeps(); err != nil {
		return nil, err
	}
	cron.Start()
	j.startPace(ctx)
	if !o.Workers {
		return j, nil
	}
	mux := asynq.NewServeMux()
	mux.HandleFunc(queue.TaskNotify, j.notify)
	mux.HandleFunc(queue.TaskExpire, j.expire)
	mux.HandleFunc(queue.TaskCompensate, j.compensate)
	mux.HandleFunc(queue.TaskAdvance, j.advance)
	mux.HandleFunc(queue.TaskBatch, j.batch)
	mux.HandleFunc(queue.TaskAlert, func(ctx context.Context, _ *asynq.Task) error { return j.watcher.send(ctx) })
	mux.HandleFunc(queue.TaskSweep, j.sweep)
	nudged, stop := context.WithCancel(ctx)
	j.stopNudged = stop
	j.nudged.Go(func() { o.Queue.Nudged(nudged, o.Log, o.Dispatcher.Offer) })
	for _, g := range queue.Groups {
		srv := asynq.NewServer(o.Redis, queue.ServerConfig(g, o.Log))
		go j.serve(ctx, srv, mux)
		j.servers = append(j.servers, srv)
	}
	return j, nil
}

// serve starts a task server, again and again while Redis cannot be reached.
func (j *Jobs) serve(ctx context.Context, srv *asynq.Server, mux *asynq.ServeMux) {
	for ctx.Err() == nil {
		err := srv.Start(mux)
		if err == nil || errors.Is(err, asynq.ErrServerClosed) {
			return
		}
		j.o.Log.Warn("start a task server", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// notify passes ids to the dispatcher and returns: the task does not wait for a merchant's
// answer.
func (j *Jobs) notify(_ context.Context, t *asynq.Task) error {
	nudges, err := queue.DecodeNudges(t)
	if err != nil {
		return err
	}
	j.o.Dispatcher.Offer(nudges)
	return nil
}

func (j *Jobs) expire(ctx context.Context, _ *asynq.Task) error {
	_, err := j.o.Processor.Expire(ctx)
	return err
}

// expireProposals ends the proposals that were not decided in time. If several nodes do so, each
// proposal still ends once.
func (j *Jobs) expireProposals(ctx context.Context) error {
	_, err := j.o.Approvals.Expire(ctx)
	return err
}

// apart is the time between the starts of periodic jobs. If all of them ran at once, payments
// that arrive at that moment would wait for the processor.
const apart = 20 * time.Millisecond

// every adds periodic work. A tick begins with the process: the work that an earlier process
// left is due, and a process that crashes within a second of each start would never do it.
func (j *Jobs) every(d time.Duration, name string, run func(context.Context) error) {
	p := periodic{name, d, time.Duration(len(j.periodic)+1) * apart, run}
	if d != tickEvery && d != nightEvery {
		p.first += d
	}
	j.periodic = append(j.periodic, p)
}

// startPace starts the periodic work.
func (j *Jobs) startPace(ctx context.Context) {
	ctx, j.stopPace = context.WithCancel(ctx)
	for _, p := range j.periodic {
		if p.every == tickEvery {
			j.o.Ticks.done(p.name)
		}
		j.pacing.Go(func() { j.pace(ctx, p) })
	}
}

// Periods of the work.
const (
	tickEvery     = time.Second
	settingsEvery = 500 * time.Millisecond
	beatEvery     = 10 * time.Second
	// disputesEvery is how often disputes are matched that arrived before their payment.
	disputesEvery = 20 * time.Second
	// reportEvery is how often a node checks whether the report of a day is missing.
	reportEvery = 20 * time.Second
	// viewsEvery is how often views with alerts are evaluated.
	viewsEvery = 30 * time.Second
)

func (j *Jobs) schedule() {
	list := []struct {
		on    bool
		every time.Duration
		name  string
		run   func(context.Context) error
	}{
		{true, settingsEvery, "refresh settings", j.refreshSettings},
		{true, breaker.RefreshEvery, "refresh breakers", j.refreshBreakers},
		{true, breaker.RefreshEvery, "refresh pauses", j.o.Pauses.Refresh},
		{j.o.Workers, tickEvery, "wake for probes", j.waker.Wake},
		{true, tickEvery, "compare the clocks", j.clocks},
		{true, beatEvery, "beat", j.beat},
		{j.o.Dispatcher != nil, tickEvery, "tick deliveries", j.deliveries},
		{j.o.Dispatcher != nil, tickEvery, "tick pings", j.o.Dispatcher.SendPings},
		{j.o.Dispatcher != nil, tickEvery, "release lost claims", j.o.Dispatcher.ReleaseLost},
		{j.o.Workers, tickEvery, "tick timeouts", j.timeouts},
		{j.o.Workers, tickEvery, "tick compensations", j.compensations},
		{j.o.Batches != nil, tickEvery, "tick batches", func(ctx context.Context) error { return j.o.Batches.Tick(ctx) }},
		{j.o.Workers, tickEvery, "tick suppliers", j.o.Advance.Tick},
		{j.o.Dispatcher != nil, tickEvery, "publish slow merchants and faults", j.publish},
		{j.o.Workers, tickEvery, "fold the ledger", j.onOneNode(foldLedger, j.ledger)},
		{j.o.Workers, tickEvery, "fold the reports", j.onOneNode(foldReports, j.report)},
		{true, watchEvery, "watch", j.watcher.levels},
		{j.o.Scheduler, tickEvery, "end expired proposals", j.expireProposals},
		{j.o.Scheduler, disputesEvery, "match disputes", j.matchDisputes},
		{j.o.Scheduler, announceEvery, "announce alerts", j.watcher.announce},
		{j.o.Scheduler, resendEvery, "send alerts", j.watcher.send},
		{j.o.Scheduler, viewsEvery, "watch views", j.watchViews},
		{j.o.Scheduler, j.o.CleanupEvery, "clean up", j.cleanup},
		{j.o.Scheduler, monthsEvery, "add partitions", j.addPartitions},
		{j.o.Scheduler && j.o.Daily != nil, reportEvery, "make daily reports", j.dailyReports},
		{j.o.Scheduler, auditHeadEvery, "sign the head of the audit", j.auditHead},
	}
	for _, l := range list {
		if l.on {
			j.every(l.every, l.name, l.run)
		}
	}
}

// dailyReports makes the reports that are missing; a task sends their mails.
func (j *Jobs) dailyReports(ctx context.Context) error {
	mails, err := j.o.Daily.Run(ctx)
	if err != nil || !mails {
		return err
	}
	if err := j.o.Queue.Alert(ctx); err != nil {
		j.o.Log.Debug("nudge the mails of a report", "error", err) // the periodic send finds them
	}
	return nil
}

// matchDisputes books disputes whose payment has arrived since.
func (j *Jobs) matchDisputes(ctx context.Context) error {
	_, err := j.o.Disputes.MatchLater(ctx)
	return err
}

// watchViews alerts operators of rows in their views. One node does it for all.
func (j *Jobs) watchViews(ctx context.Context) error {
	mine, err := j.o.DB.Lease(ctx, "views", 3*viewsEvery)
	if err != nil || !mine {
		return err
	}
	return j.o.Views.Watch(ctx)
}

// refreshSettings reads changed settings and publishes the version that is in use.
func (j *Jobs) refreshSettings(ctx context.Context) error {
	if err := j.o.Settings.Refresh(ctx); err != nil {
		return err
	}
	now := j.o.Settings.Current()
	return j.o.DB.Uses(ctx, now.Version, now.Unreadable())
}

// refreshBreakers reads what other nodes and operators did to breakers.
func (j *Jobs) refreshBreakers(ctx context.Context) error {
	if err := errors.Join(j.o.Breakers.Refresh(ctx), j.o.SupplierBreakers.Refresh(ctx)); err != nil {
		return err
	}
	if j.o.Unmetered {
		return nil
	}
	states := map[breaker.State]int{}
	for _, r := range j.o.Breakers.All() {
		states[r.State]++
	}
	for _, s := range []breaker.State{breaker.Open, breaker.HalfOpen} {
		metric.Breakers.WithLabelValues(string(s)).Set(float64(states[s]))
	}
	return nil
}

// publish writes what this node's dispatcher found out about merchants, for the other nodes.
func (j *Jobs) publish(ctx context.Context) error {
	return errors.Join(j.o.Dispatcher.PublishSlow(ctx), j.o.Dispatcher.PublishFaults(ctx))
}

// clocks measures the database's clock again when this node's wall clock was set.
func (j *Jobs) clocks(ctx context.Context) error {
	step, err := j.o.DB.ClockStep(ctx)
	if err != nil || step == 0 {
		return err
	}
	if !j.o.Unmetered {
		metric.ClockSteps.Inc()
	}
	direction := "forward"
	if step < 0 {
		direction = "back"
	}
	by := step.Abs().Round(time.Millisecond).String()
	j.o.Log.Warn("the wall clock was set: check the time service", "direction", direction, "by", by, "skew", j.o.DB.Skew().String())
	return j.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		return alert.Record(ctx, tx, j.o.DB, []alert.Event{{Rule: alert.ClockStep, Subject: j.o.DB.NodeName() + ", " + direction + " " + by, Count: 1}})
	})
}

func (j *Jobs) beat(ctx context.Context) error {
	err := j.o.DB.Beat(ctx)
	if errors.Is(err, db.ErrEvicted) || errors.Is(err, db.ErrNameTaken) {
		j.o.Fatal(err)
	}
	return err
}

// maxFold bounds the transactions of one run.
const maxFold = 20

func foldAll(ctx context.Context, fold func(context.Context) (int, error)) error {
	for range maxFold {
		if n, err := fold(ctx); err != nil || n == 0 {
			return err
		}
	}
	return nil
}

func (j *Jobs) ledger(ctx context.Context) error { return foldAll(ctx, j.o.Ledger.Fold) }

// report folds the figures and periodically records the money at risk. A counter below zero is
// corrected at once, with an alert.
func (j *Jobs) report(ctx context.Context) error {
	if err := foldAll(ctx, func(ctx context.Context) (int, error) { return report.Fold(ctx, j.o.DB, j.o.Zone) }); err != nil {
		return err
	}
	if below, err := report.BelowZero(ctx, j.o.DB); err != nil {
		return err
	} else if below && j.o.Sweeps != nil {
		if _, err := j.o.Sweeps.Figures(ctx); err != nil {
			return err
		}
	}
	return report.Sample(ctx, j.o.DB)
}

// Stop takes no more tasks and waits for running ones, at most until ctx ends: with a Redis that
// accepts connections but does not answer, Asynq needs half a minute. Tasks are only hints, so
// nothing depends on its shutdown.
func (j *Jobs) Stop(ctx context.Context) {
	j.stopSweep()
	j.stopPace()
	var ending sync.WaitGroup
	if j.stopNudged != nil {
		j.stopNudged()
		ending.Go(j.nudged.Wait)
	}
	for _, s := range j.servers {
		ending.Go(func() {
			s.Stop() // no new tasks while the others shut down
			s.Shutdown()
		})
	}
	ending.Go(func() {
		if err := j.cron.Shutdown(); err != nil {
			j.o.Log.Warn("stop the scheduler", "error", err)
		}
	})
	ending.Go(func() {
		j.pacing.Wait()
		j.yieldFolds(ctx)
	})
	ended := make(chan struct{})
	go func() { ending.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		j.o.Log.Warn("the queue did not stop in time; the rows of its tasks are found in the database")
	}
}
