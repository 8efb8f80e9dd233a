package approval

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/money"
)

// Waiting proposals are reported when one of them has waited for an hour, and every four hours after
// that; one that has not been reported yet makes no other message before then.
const (
	saidAfter = time.Hour
	saidEvery = 4 * time.Hour
)

// Waits are the proposals that wait for a second person.
type Waits struct {
	Count  int64
	Sums   money.Totals
	Oldest time.Duration // age of the oldest
}

// TakeWaiting returns the proposals that wait if they are due to be reported, and marks them in the
// same transaction, so that they are not reported twice. A zero Count = nothing is due.
func TakeWaiting(ctx context.Context, tx db.Tx, d *db.DB) (w Waits, err error) {
	now := d.Now()
	var due []int64
	err = tx.NewRaw("SELECT id FROM approvals WHERE state = 'waiting' AND made_at <= ? AND NOT EXISTS"+
		" (SELECT 1 FROM approvals WHERE state = 'waiting' AND alerted_at > ?) LIMIT 1",
		now-saidAfter.Microseconds(), now-saidEvery.Microseconds()).Scan(ctx, &due)
	if err != nil {
		return w, fmt.Errorf("look for proposals that wait: %w", err)
	}
	if len(due) == 0 {
		return w, nil
	}
	var rows []Approval
	err = tx.NewRaw("UPDATE approvals SET alerted_at = ? WHERE state = 'waiting' RETURNING amount, currency, made_at", now).Scan(ctx, &rows)
	if err != nil {
		return w, fmt.Errorf("mark proposals as alerted: %w", err)
	}
	for _, a := range rows {
		w.Count++
		w.Sums.Add(a.Amount, a.Currency)
		w.Oldest = max(w.Oldest, time.Duration(now-a.MadeAt)*time.Microsecond)
	}
	return w, nil
}
