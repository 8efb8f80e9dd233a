package notify

import (
	"context"
	"fmt"

	"backstop/internal/act"
	"backstop/internal/batch"

	"github.com/uptrace/bun"
)

// BatchObject is the object name of deliveries in batches.
const BatchObject = "delivery"

// resultSQL is what came of a delivery d by now; see Results. Its arguments are those of resultArgs.
var resultSQL = "CASE WHEN " + Moves.In("d.status", Delivered) + " THEN ? WHEN " + Moves.In("d.status", Exhausted) + " OR " +
	Moves.In("d.status", RetryWait) + " AND d.next_at > ? THEN ? ELSE ? END"

func (a Acts) resultArgs(more ...any) []any {
	return append([]any{ResultNotified, a.DB.Now(), ResultRefused, ResultWaiting}, more...)
}

// resultsOf returns the result so far of each notification.
func (a Acts) resultsOf(ctx context.Context, q bun.IDB, ids []int64) (map[int64]string, error) {
	var rows []struct {
		ID     int64
		Result string
	}
	if err := q.NewRaw("SELECT d.id, "+resultSQL+" AS result FROM deliveries AS d WHERE d.id IN (?)",
		a.resultArgs(bun.List(ids))...).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read what came of notifications: %w", err)
	}
	by := make(map[int64]string, len(rows))
	for _, r := range rows {
		by[r.ID] = r.Result
	}
	return by, nil
}

// results counts the results so far of the notifications in a batch, up to a number, including
// those that went on by themselves meanwhile.
func (a Acts) results(ctx context.Context, q bun.IDB, batchID, upTo int64) (sums []act.Sum, err error) {
	err = q.NewRaw("SELECT "+resultSQL+" AS result, r.currency, count(*) AS orders, CAST(sum(r.amount) AS BIGINT) AS minor"+
		" FROM batch_rows AS r JOIN deliveries AS d ON d.id = r.object_id WHERE r.batch_id = ? AND r.state <> ?"+
		" AND r.number <= ? GROUP BY 1, r.currency ORDER BY 1, r.currency",
		a.resultArgs(batchID, batch.RowWaiting, upTo)...).Scan(ctx, &sums)
	if err != nil {
		return nil, fmt.Errorf("read what came of a batch: %w", err)
	}
	return sums, nil
}
