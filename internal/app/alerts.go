package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"backstop/internal/alert"
	"backstop/internal/alert/send"
	"backstop/internal/analytics"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/money"
	"backstop/internal/base/queue"
	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/dailyreport"
	"backstop/internal/notify"
	"backstop/internal/pause"
	"backstop/internal/recipient"
	"backstop/internal/report"
	"backstop/internal/settings"
	"backstop/jobs"
	"backstop/views/figures"
	"backstop/views/overview"
)

// alerts returns the levels that the watch reads, and the targets of its messages.
func (a *App) alerts() (jobs.Alerts, error) {
	c := a.o.Config
	targets, err := send.Targets(revealed(c.AlertURLs))
	if err != nil {
		return jobs.Alerts{}, err
	}
	reports, err := send.Targets(revealed(c.ReportURLs))
	if err != nil {
		err = fmt.Errorf("BACKSTOP_REPORT_URLS: %w", err)
	}
	return jobs.Alerts{
		Targets: targets, Reports: reports,
		Style: alert.Style{
			Language: c.AlertLanguage, Zone: c.Timezone, Console: a.ConsoleURL(), Opened: a.openedBreaker,
			Supplier: a.supplierState, Runbook: overview.RunbookPath,
		},
		Local: a.readHere, Shared: a.readShared,
		Merchant: a.merchantName,
		Awaited: func(ctx context.Context, supplierID int64) money.Totals {
			ids, args := report.AwaitedOf(supplierID)
			all, _ := report.CountQueried(ctx, a.db, ids, args) // on an error the alert goes out without its money
			return all.Sums
		},
	}, err
}

// mailer sends mails by the server of the daily reports; nil = there is none. A wrong URL is an error
// of alerts.
func (a *App) mailer() send.Mailer {
	targets, err := send.Targets(revealed(a.o.Config.ReportURLs))
	if err != nil {
		return nil
	}
	return send.NewMailer(targets)
}

func revealed(secrets []config.Secret) []string {
	all := make([]string, len(secrets))
	for i, s := range secrets {
		all[i] = s.Reveal()
	}
	return all
}

// dailyReports makes the daily reports, and writes their mails to the given targets.
func (a *App) dailyReports(targets []alert.Target) *dailyreport.Keeper {
	c := a.o.Config
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Name()
	}
	return &dailyreport.Keeper{
		DB: a.db, Zone: c.Timezone, Objective: c.NotifyObjective.Share(), Log: a.o.Log, Targets: names,
		Compose: func(ctx context.Context, r *dailyreport.Report) (dailyreport.Mail, error) {
			return figures.DailyMessage(ctx, r, c.AlertLanguage, c.Timezone, a.ConsoleURL())
		},
	}
}

// supplierState returns the state of a supplier's breaker, and what waits for it.
func (a *App) supplierState(ctx context.Context, code string) (*alert.Supplier, error) {
	s, ok := a.settings.Current().Suppliers.Lookup(code)
	if !ok {
		return nil, nil
	}
	owner := recipient.OfSupplier(s.ID)
	r, err := breaker.Read(ctx, a.db.Read, owner)
	if err != nil || r == nil {
		return nil, err
	}
	x := &alert.Supplier{Failures: r.Failures, Since: r.ChangedAt, ProbeAt: r.OpenUntil, Closed: r.State == breaker.Closed}
	if c, err := breaker.Opening(ctx, a.db, owner); err != nil {
		return nil, err
	} else if c != nil {
		x.Since, x.Failures = c.At, c.Failures
	}
	ids, args := report.AwaitedOf(s.ID)
	all, err := report.CountQueried(ctx, a.db, ids, args)
	x.Orders, x.More, x.Sums = all.Orders, all.More, all.Sums
	return x, err
}

// alertTargets returns the names of the targets and the style of messages, for the console.
// Invalid URLs have ended the program before the first request.
func (a *App) alertTargets() ([]string, alert.Style) {
	alerts, _ := a.alerts()
	names := make([]string, len(alerts.Targets))
	for i, t := range alerts.Targets {
		names[i] = t.Name()
	}
	return names, alerts.Style
}

// down returns the level of something that either works or does not.
func down(err error) int64 {
	if err != nil {
		return 100
	}
	return 0
}

// What the subjects of ClockSkew add to the node's name.
const clockOfDatabase, clockOfRedis = " – database", " – Redis"

// readGone ends the alerts about what was removed: nodes that run no more, and queues and other
// parts that this version does not have.
func (a *App) readGone(ctx context.Context) []alert.Reading {
	all := []alert.Reading{
		{Rule: alert.QueueLength, Rest: true, Except: append([]string{"due", "stuck"}, queue.Names...)},
		{Rule: alert.QueuePaused, Rest: true, Except: pause.Names},
		{Rule: alert.NodesDiffer, Rest: true, Except: db.Parts},
	}
	nodes, err := a.db.Nodes(ctx)
	if err != nil {
		return all
	}
	var names, clocks []string
	for _, n := range nodes {
		names, clocks = append(names, n.Name), append(clocks, n.Name+clockOfDatabase, n.Name+clockOfRedis)
	}
	return append(all,
		alert.Reading{Rule: alert.RedisDown, Rest: true, Except: names},
		alert.Reading{Rule: alert.WrongKey, Rest: true, Except: names},
		alert.Reading{Rule: alert.TestModeDown, Rest: true, Except: names},
		alert.Reading{Rule: alert.ClockSkew, Rest: true, Except: clocks},
	)
}

// readHere reads what may be healthy on one node and not on another. The watch itself checks
// the database.
func (a *App) readHere(ctx context.Context) []alert.Reading {
	node := a.db.NodeName()
	redis := a.redis.Check(ctx)
	all := []alert.Reading{
		{Rule: alert.RedisDown, Subject: node, Value: down(redis)},
		{Rule: alert.ClockSkew, Subject: node + clockOfDatabase, Value: a.db.Skew().Abs().Milliseconds()},
		{Rule: alert.TestModeDown, Subject: node, Value: down(a.test.err())},
	}
	if err := a.checkKeys(ctx); err == nil || errors.Is(err, settings.ErrForeignKey) {
		all = append(all, alert.Reading{Rule: alert.WrongKey, Subject: node, Value: down(err)})
	}
	if redis != nil {
		return all
	}
	if skew, err := a.redisSkew(ctx); err == nil {
		all = append(all, alert.Reading{Rule: alert.ClockSkew, Subject: node + clockOfRedis, Value: skew.Abs().Milliseconds()})
	}
	return all
}

// redisSkew returns how far this node's clock is ahead of Redis's, compared at the middle of
// the round trip.
func (a *App) redisSkew(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	at, err := a.redis.Client().Time(ctx).Result()
	if err != nil {
		return 0, fmt.Errorf("read redis's clock: %w", err)
	}
	return start.Add(time.Since(start) / 2).Sub(at), nil
}

// readShared reads what is the same on every node. What cannot be read is left out, so its
// alert neither fires nor ends.
func (a *App) readShared(ctx context.Context) []alert.Reading {
	all := a.readGone(ctx)
	parked := a.parked()
	if due, err := notify.Overdue(ctx, a.db, parked); err == nil {
		all = append(all, alert.Reading{Rule: alert.QueueLength, Subject: "due", Value: due.Count})
		held, err := notify.Held(ctx, a.db, parked)
		if err == nil {
			err = report.SampleBacklog(ctx, a.db, due.Count, held.Count)
		}
		if err != nil {
			a.o.Log.Warn("the backlog is not recorded, so its forecast has a gap", "error", err)
		}
	}
	all = append(all, a.readForecasts(ctx)...)
	all = append(all, a.readPauses(ctx)...)
	if late, err := compensation.Waits(ctx, a.db, maxBacklog); err == nil {
		all = append(all, alert.Reading{Rule: alert.QueueLength, Subject: "stuck", Value: late.Late})
	}
	ids, args := report.NoResult(a.db.Now())
	if stuck, err := report.CountQueried(ctx, a.db, ids, args); err == nil {
		all = append(all, alert.Reading{Rule: alert.StuckOrders, Subject: "orders", Value: stuck.Orders * 100, Sums: stuck.Sums})
	}
	all = append(all, a.readSettings()...)
	all = append(all, a.readNegative(ctx)...)
	if rules, err := alert.Rules(ctx, a.db.Read); err == nil {
		over := windows(rules)
		all = append(all, a.readAttempts(ctx, over)...)
		all = append(all, a.readSuppliers(ctx, over[alert.SupplierSilent])...)
	}
	all = append(all, a.readNodes(ctx)...)
	sizes, err := a.queue.Sizes(ctx)
	if err != nil {
		return all
	}
	for _, name := range queue.Names {
		// Scheduled tasks are not overdue: they are the timeouts of the next hour.
		all = append(all, alert.Reading{Rule: alert.QueueLength, Subject: name, Value: int64(sizes[name].Pending + sizes[name].Retry)})
	}
	return all
}

// readPauses reads which queues are paused.
func (a *App) readPauses(ctx context.Context) (all []alert.Reading) {
	paused, err := pause.Read(ctx, a.db.Read)
	if err != nil {
		return nil
	}
	for _, name := range pause.Names {
		r := alert.Reading{Rule: alert.QueuePaused, Subject: name}
		if slices.ContainsFunc(paused, func(p pause.Pause) bool { return p.Name == name }) {
			r.Value = 100
		}
		all = append(all, r)
	}
	return all
}

// readForecasts reads in how many minutes levels are forecast to cross their limits. Beyond its
// limit a level has an alert of its own, and no forecast.
func (a *App) readForecasts(ctx context.Context) (all []alert.Reading) {
	limits, err := alert.ForecastLimits(ctx, a.db.Read)
	if err != nil {
		return nil
	}
	for _, f := range []struct {
		rule, subject string
		read          func(context.Context, *db.DB, float64) (analytics.Outlook, error)
		limit         float64
	}{
		{alert.QueueForecast, "due", analytics.Backlog, limits.Backlog},
		{alert.RateForecast, "all", analytics.SuccessRate, limits.Rate},
	} {
		o, err := f.read(ctx, a.db, f.limit)
		if err != nil || o.Unsure { // an alert that fires goes on, and none begins
			continue
		}
		all = append(all, alert.Reading{Rule: f.rule, Rest: true})
		if minutes, known := o.Minutes(); known {
			all = append(all, alert.Reading{Rule: f.rule, Subject: f.subject, Value: minutes})
		}
	}
	return all
}

// readNodes reads where running nodes differ, and what waits because nodes cannot send it.
func (a *App) readNodes(ctx context.Context) (all []alert.Reading) {
	if nodes, err := a.db.Nodes(ctx); err == nil {
		differ := db.Differ(nodes)
		for _, part := range db.Parts {
			r := alert.Reading{Rule: alert.NodesDiffer, Subject: part}
			if slices.Contains(differ, part) {
				r.Value = 100
			}
			all = append(all, r)
		}
	}
	waiting, err := notify.FaultsWaiting(ctx, a.db)
	if err != nil {
		return all
	}
	for _, cause := range notify.Faults {
		r := alert.Reading{Rule: alert.OurFault, Subject: string(cause)}
		for _, w := range waiting {
			if w.Cause != cause {
				continue
			}
			r.Value = w.Count * 100
			for currency, minor := range w.Sums {
				r.Sums.Add(minor, currency)
			}
		}
		all = append(all, r)
	}
	return all
}

// readSettings reads whose settings are unusable. Those that are usable again are reported as 0
// once; otherwise the end of their alerts would not be announced.
func (a *App) readSettings() []alert.Reading {
	broken := a.settings.Current().Unreadable()
	all := []alert.Reading{{Rule: alert.Unreadable, Rest: true}}
	for _, name := range broken {
		all = append(all, alert.Reading{Rule: alert.Unreadable, Subject: name, Value: 100})
	}
	for _, name := range a.unreadable {
		if !slices.Contains(broken, name) {
			all = append(all, alert.Reading{Rule: alert.Unreadable, Subject: name})
		}
	}
	a.unreadable = broken
	return all
}

const (
	// minAttempts and minMerchant keep a few failed attempts from counting as a rate.
	minAttempts = 20
	minMerchant = 5
)

// windows returns the windows over which the rules' levels are measured.
func windows(rules []alert.Rule) map[string]time.Duration {
	by := make(map[string]time.Duration, len(rules))
	for _, r := range rules {
		by[r.Name] = time.Duration(r.WindowS) * time.Second
	}
	return by
}

// readAttempts reads the results of recent attempts, in total and per merchant.
func (a *App) readAttempts(ctx context.Context, over map[string]time.Duration) []alert.Reading {
	now := a.db.Now()
	var all []alert.Reading
	for _, rate := range []struct {
		rule  string
		level func(report.Point) (value, of int64) // of = 0: no level
	}{
		{alert.SuccessRate, func(t report.Point) (int64, int64) { return t.OK * 10_000, t.Attempts() }},
		{alert.AnswerTime, func(t report.Point) (int64, int64) { return t.TookUS / 1000, t.Attempts() }},
		{alert.ErrorRate, func(t report.Point) (int64, int64) { return t.Failed * 10_000, t.OK + t.Failed }},
	} {
		points, err := report.Outcomes(ctx, a.db, 0, now-over[rate.rule].Microseconds(), now, time.Minute)
		if err != nil {
			return nil
		}
		all = append(all, alert.Reading{Rule: rate.rule, Rest: true})
		total := report.Total(points)
		if value, of := rate.level(total); total.Attempts() >= minAttempts && of > 0 {
			all = append(all, alert.Reading{Rule: rate.rule, Subject: "all", Value: value / of})
		}
	}
	merchants, err := report.Merchants(ctx, a.db, now-over[alert.SlowMerchant].Microseconds(), merchantsWatched)
	if err != nil {
		return all
	}
	if len(merchants) < merchantsWatched {
		all = append(all, alert.Reading{Rule: alert.SlowMerchant, Rest: true})
	}
	for _, m := range merchants {
		if p95, ok := m.Took.Quantile(.95); ok && m.Attempts() >= minMerchant {
			all = append(all, alert.Reading{Rule: alert.SlowMerchant, Subject: a.merchantName(m.Merchant), Value: p95.Milliseconds()})
		}
	}
	return all
}

// merchantsWatched bounds one reading; the worst merchants come first.
const merchantsWatched = 1000

func (a *App) merchantName(id int64) string {
	if m := a.settings.Merchants().ByID(id); m != nil {
		return m.Code
	}
	return strconv.FormatInt(id, 10)
}

// readSuppliers compares recent callbacks of suppliers with the usual number at this hour.
func (a *App) readSuppliers(ctx context.Context, over time.Duration) []alert.Reading {
	flows, err := report.Flows(ctx, a.db, over)
	if err != nil {
		return nil
	}
	all := []alert.Reading{{Rule: alert.SupplierSilent, Rest: true}}
	for _, f := range flows {
		s, ok := a.settings.Current().Suppliers.ByID(f.Supplier)
		level, known := f.Level()
		if !ok || !s.Enabled || !known {
			continue
		}
		all = append(all, alert.Reading{Rule: alert.SupplierSilent, Subject: s.Code, Value: level})
	}
	return all
}
