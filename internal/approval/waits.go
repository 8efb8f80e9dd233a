package approval

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/base/db"
)

// A waiting proposal is reported one hour after it was made, and every four hours after that.
const (
	saidAfter = time.Hour
	saidEvery = 4 * time.Hour
)

// maxSaid bounds one call of TakeWaiting; the next one goes on.
const maxSaid = 100

// Waits is a proposal that has been waiting for a while.
type Waits struct {
	Action, Object, ObjectID string
	No                       string // public id
	Maker                    string // name
	Amount                   int64  // minor units
	Currency                 string // "" = no money involved
	Age                      time.Duration
}

// TakeWaiting returns the proposals that are due to be reported as waiting, and marks them in
// the same transaction, so that none is reported twice.
func TakeWaiting(ctx context.Context, tx db.Tx, d *db.DB) ([]Waits, error) {
	now := d.Now()
	var rows []Approval
	err := tx.NewRaw("UPDATE approvals SET alerted_at = ? WHERE id IN (SELECT id FROM approvals WHERE state = 'waiting' AND made_at <= ?"+
		" AND (alerted_at IS NULL OR alerted_at <= ?) ORDER BY id LIMIT ?) AND state = 'waiting' RETURNING *",
		now, now-saidAfter.Microseconds(), now-saidEvery.Microseconds(), maxSaid).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("mark proposals as alerted: %w", err)
	}
	made := make([]*Approval, len(rows))
	for i := range rows {
		made[i] = &rows[i]
	}
	names, err := Names(ctx, tx, made...)
	if err != nil {
		return nil, err
	}
	all := make([]Waits, len(rows))
	for i, a := range rows {
		all[i] = Waits{
			Action: a.Action, Object: a.Object, ObjectID: a.ObjectID, No: a.No(), Maker: names[a.Maker], Amount: a.Amount,
			Currency: a.Currency,
			Age:      time.Duration(now-a.MadeAt) * time.Microsecond,
		}
	}
	return all, nil
}
