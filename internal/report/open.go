package report

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
)

// Open deliveries are found in two ways: by the index of due rows and, for those created as
// claimed, which are in no index, by their ids.
const (
	// Unindexed is the condition for an open delivery that was created as claimed.
	Unindexed = "status = 'sending' AND next_at IS NULL AND lease_until IS NOT NULL"
	// CheckedTo is a query for the id up to which there are none of these.
	CheckedTo = "SELECT value FROM settings WHERE name = 'claims_checked'"
)

// OpenDeliveries returns a query for all columns of the open deliveries. It contains the id as
// a literal, so that the planner knows that few rows are above it.
func OpenDeliveries(ctx context.Context, q bun.IDB) (string, error) {
	var checked int64
	if err := q.NewRaw(CheckedTo).Scan(ctx, &checked); err != nil {
		return "", fmt.Errorf("read how far claims are checked: %w", err)
	}
	return fmt.Sprintf("SELECT * FROM deliveries WHERE next_at IS NOT NULL UNION ALL SELECT * FROM deliveries WHERE id > %d AND %s",
		checked, Unindexed), nil
}
