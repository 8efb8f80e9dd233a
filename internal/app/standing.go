package app

import (
	"context"
	"time"

	"backstop/internal/alert"
	"backstop/internal/metric"
	"backstop/internal/report"
)

// standing is how things stand for metrics: money at risk, alerts, clocks.
func (a *App) standing(ctx context.Context) metric.Standing {
	s := metric.Standing{Skew: map[string]time.Duration{"database": a.db.Skew()}}
	if risk, err := report.AtRisk(ctx, a.db); err == nil {
		for _, part := range report.Parts {
			for _, m := range risk.Parts[part].Sums {
				s.AtRisk = append(s.AtRisk, metric.AtRisk{Part: string(part), Currency: m.Currency, Orders: float64(m.Orders), Minor: float64(m.Minor)})
			}
		}
	}
	if n, err := alert.CountFiring(ctx, a.db.Read); err == nil {
		firing := float64(n)
		s.FiringAlerts = &firing
	}
	if skew, err := a.redisSkew(ctx); err == nil {
		s.Skew["redis"] = skew
	}
	return s
}
