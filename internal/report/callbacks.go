package report

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/base/db"
)

// Flowed counts the authentic callbacks of one outcome within one step.
type Flowed struct {
	Start   int64  `bun:"start"` // Unix µs
	Outcome string `bun:"outcome"`
	N       int64  `bun:"n"`
}

// Callbacks returns the authentic callbacks between two times (Unix µs) by step and outcome;
// empty steps are left out. supplier 0 means all. kept is false if from is more than 72 hours
// ago, the retention of these figures.
func Callbacks(ctx context.Context, d *db.DB, supplier, from, to int64, step time.Duration) (all []Flowed, kept bool, err error) {
	if from < d.Now()-minutesKept.Microseconds() {
		return nil, false, nil
	}
	q := d.Read.NewSelect().TableExpr("report_callbacks AS rc").ColumnExpr(
		"rc.start - rc.start % ? AS start, rc.outcome, CAST(sum(rc.n) AS BIGINT) AS n", step.Microseconds()).
		Where("rc.start >= ? AND rc.start <= ?", floor(from, step), to).GroupExpr("1, 2").OrderExpr("1, 2")
	if supplier != 0 {
		q = q.Where("rc.supplier_id = ?", supplier)
	}
	if err := q.Scan(ctx, &all); err != nil {
		return nil, true, fmt.Errorf("read callbacks over time: %w", err)
	}
	return all, true, nil
}
