package app

import (
	"context"
	"fmt"
	"strings"

	"backstop/internal/alert"
	"backstop/internal/breaker"
	"backstop/internal/notify"
)

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
