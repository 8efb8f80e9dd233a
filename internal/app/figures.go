package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/breaker"
	"backstop/internal/callback"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/report"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"

	"github.com/prometheus/client_golang/prometheus"
)

// snapshot reads the current figures for metrics: money at risk, alerts, clocks.
func (a *App) snapshot(ctx context.Context) metric.Snapshot {
	s := metric.Snapshot{Skew: map[string]time.Duration{"database": a.db.Skew()}}
	_, s.TickAge = a.ticks.Oldest()
	if risk, err := report.AtRisk(ctx, a.db); err == nil {
		for _, part := range report.Parts {
			for _, m := range risk.Parts[part].Sums {
				s.AtRisk = append(s.AtRisk, metric.AtRisk{
					Part: string(part), Currency: m.Currency, Orders: float64(m.Orders),
					Minor: float64(m.Minor),
				})
			}
		}
	}
	s.Orders, s.Untried = a.ordersNotified(ctx)
	if n, err := alert.CountFiring(ctx, a.db.Read); err == nil {
		firing := float64(n)
		s.FiringAlerts = &firing
	}
	if counts, err := compensation.Counts(ctx, a.db.Read); err == nil {
		for _, c := range counts {
			s.Compensations = append(s.Compensations, metric.Compensations{State: string(c.State), Kind: c.Kind, Count: float64(c.Count)})
		}
	}
	if skew, err := a.redisSkew(ctx); err == nil {
		s.Skew["redis"] = skew
	}
	return s
}

// ordersNotified reads the figures of the last hour, the same as on the overview.
func (a *App) ordersNotified(ctx context.Context) (orders *metric.OrdersNotified, untried *metric.Untried) {
	now := a.db.Now()
	if all, err := report.Orders(ctx, a.db, now-(time.Hour-time.Minute).Microseconds(), now, time.Minute); err == nil {
		orders = &metric.OrdersNotified{}
		for _, n := range all {
			orders.Raised, orders.Notified = orders.Raised+float64(n.Raised), orders.Notified+float64(n.Notified)
		}
	}
	if u, err := report.NotTried(ctx, a.db); err == nil {
		untried = &metric.Untried{Orders: float64(u.Orders)}
		if u.Oldest > 0 {
			untried.Oldest = time.Duration(now-u.Oldest) * time.Microsecond
		}
	}
	return orders, untried
}

// maxBacklog bounds the count of compensations.
const maxBacklog = 10_000

// parked returns the ids of the recipients whose notifications are parked.
func (a *App) parked() []int64 { return notify.ParkedIDs(a.breakers, a.settings.Merchants()) }

// backlogs counts what waits in Redis and in the database. An unavailable Redis is left out;
// the database's figure is the authoritative one.
func (a *App) backlogs(ctx context.Context) []metric.Backlog {
	var all []metric.Backlog
	if due, err := notify.Overdue(ctx, a.db, a.parked()); err == nil {
		all = append(all, metric.Backlog{Queue: "due", Tasks: float64(due.Count), Oldest: due.Oldest})
	}
	parked := metric.Backlog{Queue: "parked"}
	for _, id := range a.parked() {
		due, err := notify.Parked(ctx, a.db, a.settings.Merchants().RecipientOf(id))
		if err != nil {
			return all
		}
		parked.Tasks += float64(due.Count)
		parked.Oldest = max(parked.Oldest, due.Oldest)
	}
	all = append(all, parked)
	if b, err := compensation.Waits(ctx, a.db, maxBacklog); err == nil {
		all = append(all, metric.Backlog{Queue: "stuck", Tasks: float64(b.Rows), Oldest: b.Overdue})
	}
	sizes, err := a.queue.Sizes(ctx)
	if err != nil {
		return all
	}
	for _, name := range queue.Names {
		s := sizes[name]
		all = append(all, metric.Backlog{Queue: name, Tasks: float64(s.Pending + s.Active + s.Scheduled + s.Retry), Oldest: s.Latency})
	}
	return all
}

// exportMetrics puts the figures of this process behind /metrics.
func (a *App) exportMetrics() {
	beginCounters()
	metric.SetBuild(a.o.Version, a.o.Commit)
	metric.RegisterPools(a.db.Pools())
	metric.RegisterBacklogs(a.backlogs)
	metric.RegisterSnapshot(a.snapshot)
}

// beginCounters initializes every counter to 0 for all its labels: a counter that first appears
// with its first event shows no increase, and an alert rule on the increase stays silent. The
// counters of group commit are initialized by their writers; those of each supplier begin with its first event.
func beginCounters() {
	// Other kinds of exceptions are not opened by callbacks.
	byCallback := slices.DeleteFunc(slices.Clone(exception.Kinds), func(kind string) bool {
		return kind == exception.NotifyExhausted || kind == exception.SubscriptionExhausted || kind == exception.StuckPaying ||
			kind == exception.CompensationDead || kind == exception.StockShort || kind == exception.BooksDiffer
	})
	metric.Begin(metric.Callbacks, slices.Concat(callback.Refused, payment.Outcomes, byCallback)...)
	metric.Begin(metric.Attempts, notify.Classes...)
	metric.Begin(metric.Notifications, notify.Delivered, notify.RetryWait, notify.Exhausted)
	metric.Begin(metric.BreakerChanges, breaker.Closed, breaker.Open, breaker.HalfOpen)
	metric.Begin(metric.OrdersMoved, order.Statuses[1:]...) // new orders have the first status
	metric.Begin(metric.Exceptions, exception.Kinds...)
	metric.Begin(metric.Nudges, metric.NudgeSent, metric.NudgeDropped)
	for _, op := range suppliercall.Ops {
		metric.Begin(metric.SupplierCalls.MustCurryWith(prometheus.Labels{"op": string(op)}), supplier.Classes...)
	}
	metric.Begin(metric.Alerts, alert.Names...)
	metric.Begin(metric.AlertMessages, alert.Tries...)
}

// readNegative reads which merchants' balances are below their overdraft: disputes, returned
// money and approved adjustments may take them there.
func (a *App) readNegative(ctx context.Context) []alert.Reading {
	accounts, err := ledger.Current(ctx, a.db, "a.balance < 0 AND a.code LIKE ?", ledger.MerchantAccount("%"))
	if err != nil {
		return nil
	}
	below := map[string]*alert.Reading{}
	for _, account := range accounts {
		code := strings.TrimPrefix(account.Code, ledger.MerchantAccount(""))
		m := a.settings.Merchants().ByCode(code)
		if m == nil || account.Balance >= -m.Limit(account.Currency).Overdraft { // a code with ":" is a part of a merchant's account
			continue
		}
		if below[code] == nil {
			below[code] = &alert.Reading{Rule: alert.MerchantNegative, Subject: code}
		}
		below[code].Value += 100
		below[code].Sums.Add(account.Balance, account.Currency)
	}
	all := []alert.Reading{{Rule: alert.MerchantNegative, Rest: true}}
	for _, r := range below {
		all = append(all, *r)
	}
	for _, code := range a.negative { // once more, so that the end of its alert is announced
		if below[code] == nil {
			all = append(all, alert.Reading{Rule: alert.MerchantNegative, Subject: code})
		}
	}
	a.negative = a.negative[:0]
	for code := range below {
		a.negative = append(a.negative, code)
	}
	return all
}

// openedBreaker reads the details of a merchant's open breaker for an alert.
func (a *App) openedBreaker(ctx context.Context, merchant string) (*alert.Opened, error) {
	m := a.settings.Merchants().ByCode(merchant)
	if m == nil {
		return nil, nil
	}
	r, err := breaker.Read(ctx, a.db.Read, m.Recipient())
	if err != nil || r == nil {
		return nil, err
	}
	o := &alert.Opened{Merchant: m.Code, Failures: r.Failures, Since: r.ChangedAt, ProbeAt: r.OpenUntil, Closed: r.State == breaker.Closed}
	if err := a.db.Read.NewRaw("SELECT name FROM merchants WHERE id = ?", m.ID).Scan(ctx, &o.Name); err != nil {
		return nil, fmt.Errorf("read a merchant's name: %w", err)
	}
	c, err := breaker.Opening(ctx, a.db, m.Recipient())
	if err != nil {
		return nil, err
	}
	if c != nil {
		o.Since, o.Failures = c.At, c.Failures
		if c.Cause == breaker.ByHand {
			o.ByHand, o.Reason = c.Actor[strings.Index(c.Actor, ":")+1:], c.Reason
		}
	}
	sums, more, err := notify.ParkedSums(ctx, a.db, m.Recipient())
	for _, s := range sums {
		o.Waiting = append(o.Waiting, alert.Waits{Currency: s.Currency, Count: s.Orders, Minor: s.Minor})
	}
	o.More = more
	return o, err
}
