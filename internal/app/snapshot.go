package app

import (
	"context"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/metric"
	"backstop/internal/compensation"
	"backstop/internal/report"
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
