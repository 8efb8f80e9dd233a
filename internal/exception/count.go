package exception

import (
	"context"
	"fmt"

	"backstop/internal/base/db"
)

// Counted counts the exceptions of one kind in one currency.
type Counted struct {
	Kind     string
	Currency string // "" = without money
	N        int64
	Amount   int64
}

const counted = "SELECT kind, currency, count(*) AS n, CAST(sum(amount) AS BIGINT) AS amount FROM exceptions WHERE "

// OpenedWithin counts the exceptions that were opened within a time (Unix µs, to is exclusive).
func OpenedWithin(ctx context.Context, d *db.DB, from, to int64) (rows []Counted, err error) {
	err = d.Read.NewRaw(counted+"id >= ? AND id < ? GROUP BY 1, 2 ORDER BY 1, 2", db.IDAt(from), db.IDAt(to)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("count opened exceptions: %w", err)
	}
	return rows, nil
}

// EndedWithin counts the exceptions that ended within a time (Unix µs, to is exclusive) and have
// not been opened again.
func EndedWithin(ctx context.Context, d *db.DB, from, to int64) (rows []Counted, err error) {
	err = d.Read.NewRaw(counted+"resolved_at >= ? AND resolved_at < ? AND NOT "+Moves.In("state", Moves.Open()...)+
		" GROUP BY 1, 2 ORDER BY 1, 2", from, to).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("count ended exceptions: %w", err)
	}
	return rows, nil
}
