package app

import (
	"cmp"
	"time"

	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/recipient"
)

// breakerPolicy returns when a recipient's breaker opens: by its own rules, and by the
// program's where it has none.
func (a *App) breakerPolicy(to recipient.Recipient) breaker.Policy {
	c := a.o.Config
	p := breaker.Policy{
		Failures: c.BreakerFailures, Open: c.BreakerOpen,
		RatePercent: c.BreakerRate, Window: c.BreakerWindow, MinSamples: c.BreakerLeast,
	}
	m := a.settings.Merchants().ByID(to.ID)
	if m == nil {
		return p
	}
	return ownPolicy(p, m.Settings.Breaker)
}

// ownPolicy applies a merchant's own settings to a policy.
func ownPolicy(p breaker.Policy, own merchant.Breaker) breaker.Policy {
	p.Failures = cmp.Or(own.Failures, p.Failures)
	p.Open = cmp.Or(time.Duration(own.OpenMS)*time.Millisecond, p.Open)
	p.RatePercent = max(0, cmp.Or(own.RatePercent, p.RatePercent)) // merchant.NoRate is negative
	p.Window = cmp.Or(time.Duration(own.WindowMS)*time.Millisecond, p.Window)
	p.MinSamples = cmp.Or(own.MinSamples, p.MinSamples)
	return p
}
