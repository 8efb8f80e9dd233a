package breaker

import (
	"context"
	"fmt"

	"backstop/internal/base/db"
	"backstop/internal/recipient"
)

// Openings returns how often each breaker opened within a time (Unix µs, to is exclusive).
func Openings(ctx context.Context, d *db.DB, from, to int64) (map[recipient.Recipient]int64, error) {
	var rows []struct {
		OwnerKind  recipient.Kind
		OwnerID, N int64
	}
	err := d.Read.NewRaw(
		"SELECT owner_kind, owner_id, count(*) AS n FROM breaker_history WHERE id >= ? AND id < ? AND from_state = ? AND to_state = ? GROUP BY 1, 2",
		db.IDAt(from), db.IDAt(to), Closed, Open).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("count how often breakers opened: %w", err)
	}
	all := make(map[recipient.Recipient]int64, len(rows))
	for _, r := range rows {
		all[recipient.Recipient{Kind: r.OwnerKind, ID: r.OwnerID}] = r.N
	}
	return all, nil
}
