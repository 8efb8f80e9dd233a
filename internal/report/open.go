package report

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
)

// What is not over is found by two ways: by the index of due rows, and, of deliveries that
// were created as claimed and are in no index, by their ids.
const (
	// Unindexed holds for a delivery that was created as claimed and is not over.
	Unindexed = "status = 'sending' AND next_at IS NULL AND lease_until IS NOT NULL"
	// CheckedTo is a query for the id up to which there is none of these.
	CheckedTo = "SELECT value FROM settings WHERE name = 'claims_checked'"
)

// OpenDeliveries returns a query for all columns of the deliveries that are not over. The id
// stands in it as a number, or the planner would not know that few rows are above it.
func OpenDeliveries(ctx context.Context, q bun.IDB) (string, error) {
	var checked int64
	if err := q.NewRaw(CheckedTo).Scan(ctx, &checked); err != nil {
		return "", fmt.Errorf("read how far claims are checked: %w", err)
	}
	return fmt.Sprintf("SELECT * FROM deliveries WHERE next_at IS NOT NULL UNION ALL SELECT * FROM deliveries WHERE id > %d AND %s", checked, Unindexed), nil
}
