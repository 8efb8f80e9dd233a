package app

import (
	"cmp"
	"time"

	"backstop/internal/breaker"
)

// breakerPolicy is when a merchant's breaker opens: its own rules, and the
// program's where it has none.
func (a *App) breakerPolicy(merchantID int64) breaker.Policy {
	c := a.o.Config
	p := breaker.Policy{
		Failures: c.BreakerFailures, Open: c.BreakerOpen,
		RatePercent: c.BreakerRate, Window: c.BreakerWindow, Least: c.BreakerLeast,
	}
	m := a.settings.Merchants().ByID(merchantID)
	if m == nil {
		return p
	}
	own := m.Settings.Breaker
	p.Failures = cmp.Or(own.Failures, p.Failures)
	p.Open = cmp.Or(time.Duration(own.OpenMS)*time.Millisecond, p.Open)
	p.RatePercent = cmp.Or(own.RatePercent, p.RatePercent)
	p.Window = cmp.Or(time.Duration(own.WindowMS)*time.Millisecond, p.Window)
	return p
}
