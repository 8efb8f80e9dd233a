package report

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/base/db"
)

// Flowed is how many authentic callbacks of one outcome came within one step.
type Flowed struct {
	Start   int64  `bun:"start"` // Unix µs
	Outcome string `bun:"outcome"`
	N       int64  `bun:"n"`
}

// Callbacks returns authentic callbacks from one moment to another (Unix µs) by step and
// outcome; steps without any are left out. supplier 0 is all of them. kept is false where
// from is more than 72 hours ago: figures are not kept for longer.
func Callbacks(ctx context.Context, d *db.DB, supplier, from, to int64, step time.Duration) (all []Flowed, kept bool, err error) {
	if from < d.Now()-minutesKept.Microseconds() {
		return nil, false, nil
	}
	q := d.Read.NewSelect().TableExpr("report_callbacks AS rc").ColumnExpr("rc.start - rc.start % ? AS start, rc.outcome, CAST(sum(rc.n) AS BIGINT) AS n", step.Microseconds()).
		Where("rc.start >= ? AND rc.start <= ?", floor(from, step), to).GroupExpr("1, 2").OrderExpr("1, 2")
	if supplier != 0 {
		q = q.Where("rc.supplier_id = ?", supplier)
	}
	if err := q.Scan(ctx, &all); err != nil {
		return nil, true, fmt.Errorf("read callbacks over time: %w", err)
	}
	return all, true, nil
}
