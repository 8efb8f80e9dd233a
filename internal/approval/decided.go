package approval

import (
	"context"
	"fmt"

	"backstop/internal/base/db"
)

// Tally counts the decisions of one kind with one result, in one currency.
type Tally struct {
	Action   string
	State    State
	Currency string // "" = without money
	N        int64
	Amount   int64
}

// DecidedWithin counts the proposals that were approved, rejected or otherwise ended within a time
// (Unix µs, to is exclusive), with the state that they are in now.
func DecidedWithin(ctx context.Context, d *db.DB, from, to int64) (rows []Tally, err error) {
	err = d.Read.NewRaw("SELECT action, state, currency, count(*) AS n, CAST(sum(amount) AS BIGINT) AS amount FROM approvals"+
		" WHERE decided_at >= ? AND decided_at < ? GROUP BY 1, 2, 3 ORDER BY 1, 2, 3", from, to).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("count decisions: %w", err)
	}
	return rows, nil
}
