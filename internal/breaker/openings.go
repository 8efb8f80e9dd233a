package breaker

import (
	"context"
	"fmt"

	"backstop/internal/base/db"
	"backstop/internal/recipient"

	"github.com/uptrace/bun"
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

// OpenSince returns since when breakers that are open have been so (Unix µs): a failed probe
// changes the row, but does not open it. One whose history is no longer stored has the time of its row.
func OpenSince(ctx context.Context, d *db.DB, open []*Row) (map[recipient.Recipient]int64, error) {
	since := make(map[recipient.Recipient]int64, len(open))
	ids := make([]int64, len(open))
	for i, r := range open {
		since[r.Owner()], ids[i] = r.ChangedAt, r.OwnerID
	}
	if len(ids) == 0 {
		return since, nil
	}
	var rows []struct {
		OwnerKind   recipient.Kind
		OwnerID, At int64
	}
	err := d.Read.NewRaw("SELECT owner_kind, owner_id, max(at) AS at FROM breaker_history WHERE owner_id IN (?) AND to_state = ?"+
		" AND from_state <> ? GROUP BY 1, 2", bun.List(ids), Open, HalfOpen).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read when breakers opened: %w", err)
	}
	for _, r := range rows {
		since[recipient.Recipient{Kind: r.OwnerKind, ID: r.OwnerID}] = r.At
	}
	return since, nil
}
