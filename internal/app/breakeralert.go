package app

import (
	"context"
	"fmt"
	"strings"

	"backstop/internal/alert"
	"backstop/internal/breaker"
	"backstop/internal/notify"
)

// openedBreaker reads what people must know of a merchant's breaker that has opened.
func (a *App) openedBreaker(ctx context.Context, merchant string) (*alert.Opened, error) {
	m := a.settings.Merchants().ByCode(merchant)
	if m == nil {
		return nil, nil
	}
	r, err := breaker.Read(ctx, a.db.Read, m.ID)
	if err != nil || r == nil {
		return nil, err
	}
	o := &alert.Opened{Merchant: m.Code, Failures: r.Failures, Since: r.ChangedAt, ProbeAt: r.OpenUntil, Closed: r.State == breaker.Closed}
	if err := a.db.Read.NewRaw("SELECT name FROM merchants WHERE id = ?", m.ID).Scan(ctx, &o.Name); err != nil {
		return nil, fmt.Errorf("read a merchant's name: %w", err)
	}
	changes, err := breaker.History(ctx, a.db, m.ID, 0, changesRead)
	if err != nil {
		return nil, err
	}
	for _, c := range changes { // the newest that opened it; a probe that fails is none
		if c.To == breaker.Open && c.From != breaker.HalfOpen {
			o.Since, o.Failures = c.At, c.Failures
			if c.Cause == breaker.ByHand {
				o.ByHand, o.Reason = c.Actor[strings.Index(c.Actor, ":")+1:], c.Reason
			}
			break
		}
	}
	sums, more, err := notify.ParkedSums(ctx, a.db, m.ID)
	for _, s := range sums {
		o.Waiting = append(o.Waiting, alert.Waits{Currency: s.Currency, Count: s.Orders, Minor: s.Minor})
	}
	o.More = more
	return o, err
}

// changesRead bounds the look for the change that opened a breaker.
const changesRead = 100
