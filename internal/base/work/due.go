package work

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// LookAhead is how long before its due time a row is read, so that the one-second tick does not
// delay it.
const LookAhead = 1200 * time.Millisecond

// DueLanes lists at most limit lanes after the given one that have a row due about now; last is
// where to continue, 0 = past the last one. Each lane costs one index probe, however long its
// backlog is: the table needs an index on (lane, next_at), lane being the column that names it.
func DueLanes(ctx context.Context, d *db.DB, table, lane string, after int64, limit int) (lanes []int64, last int64, err error) {
	now := d.Now() + LookAhead.Microseconds()
	for range limit {
		var row []struct{ Lane, NextAt int64 }
		err := d.Read.NewRaw("SELECT ?0 AS lane, next_at FROM ?1 WHERE next_at IS NOT NULL AND ?0 > ?2 ORDER BY ?0, next_at LIMIT 1",
			bun.Ident(lane), bun.Ident(table), after).Scan(ctx, &row)
		if err != nil {
			return nil, 0, fmt.Errorf("find due %s: %w", table, err)
		}
		if len(row) == 0 {
			return lanes, 0, nil // past the last one
		}
		after = row[0].Lane
		if row[0].NextAt <= now {
			lanes = append(lanes, after)
		}
	}
	return lanes, after, nil
}
