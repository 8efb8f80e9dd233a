package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Point is the results of attempts within one time span.
type Point struct {
	Start               int64 // Unix µs
	OK, Retried, Failed int64
	TookUS              int64     // in total
	Took                Histogram // response time of merchants
	Lag                 Histogram // from the payment to the first attempt
}

func (p *Point) merge(o *Point) {
	p.OK, p.Retried, p.Failed, p.TookUS = p.OK+o.OK, p.Retried+o.Retried, p.Failed+o.Failed, p.TookUS+o.TookUS
	p.Took.merge(&o.Took)
	p.Lag.merge(&o.Lag)
}

// add adds a row.
func (p *Point) add(r row) error {
	p.OK, p.Retried, p.Failed, p.TookUS = p.OK+r.OK, p.Retried+r.Retried, p.Failed+r.Failed, p.TookUS+r.TookUS
	return cmp.Or(p.Took.add(r.Took), p.Lag.add(r.Lag))
}

// Attempts returns the number of attempts.
func (p Point) Attempts() int64 { return p.OK + p.Retried + p.Failed }

// Rate returns the share of attempts that the merchant acknowledged, 0 to 1; false = no
// attempts.
func (p Point) Rate() (float64, bool) {
	if p.Attempts() == 0 {
		return 0, false
	}
	return float64(p.OK) / float64(p.Attempts()), true
}

// Total returns the sum of all points.
func Total(points []Point) (t Point) {
	for i := range points {
		t.merge(&points[i])
	}
	return t
}

const (
	// minutesKept is the retention of per-minute figures: on Monday those of the weekend are
	// still there. Hours are kept longer.
	minutesKept = 72 * time.Hour
	// VolumeKept is the retention of the orders by five minutes: a forecast compares with the
	// same time of four weeks, and is itself compared with last week.
	VolumeKept = 36 * 24 * time.Hour
	// causesKept is the retention of failures, waits and the backlog by five minutes: a day and the
	// same day of last week.
	causesKept = 9 * 24 * time.Hour
	// hoursKept is the retention of hours of failures, waits and volume. Days are kept longer.
	hoursKept = 100 * 24 * time.Hour
)

// Outcomes returns one point per step, from the step that contains from to the one that
// contains to (Unix µs), including empty ones. merchant 0 means all. A step is a whole number
// of minutes; for whole hours, the hourly figures are read.
func Outcomes(ctx context.Context, d *db.DB, merchant, from, to int64, step time.Duration) ([]Point, error) {
	if step < time.Minute || step%time.Minute != 0 || to < from {
		return nil, fmt.Errorf("no outcomes from %d to %d in steps of %s", from, to, step)
	}
	table := "report_minutes"
	if step%time.Hour == 0 {
		table = "report_hours"
	}
	first := floor(from, step)
	points := make([]Point, (to-first)/step.Microseconds()+1)
	for i := range points {
		points[i].Start = first + int64(i)*step.Microseconds()
	}
	var rows []row
	err := d.Read.NewSelect().Model(&rows).ModelTableExpr("? AS row", bun.Ident(table)).
		Where("recipient_id = ?", merchant).Where("start >= ? AND start <= ?", first, to).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", table, err)
	}
	for _, r := range rows {
		if err := points[(r.Start-first)/step.Microseconds()].add(r); err != nil {
			return nil, err
		}
	}
	return points, nil
}

// Health is the results of the attempts at one merchant.
type Health struct {
	Merchant int64
	Point            // over the whole time
	Trend    []Point // in trendSteps equal parts
}

const (
	trendSteps = 12
	// healthRows bounds the minutes read: 300 merchants for an hour.
	healthRows = 18_000
)

// Merchants returns the health of at most limit merchants since a time (Unix µs, about an hour
// ago), those with the lowest rate first; with many merchants the oldest minutes are left out.
func Merchants(ctx context.Context, d *db.DB, since int64, limit int) ([]Health, error) {
	var rows []row
	err := d.Read.NewSelect().Model(&rows).ModelTableExpr("report_minutes AS row").Where("start >= ?", floor(since, time.Minute)).
		OrderExpr("start DESC, recipient_id DESC").Limit(healthRows).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the merchants' figures: %w", err)
	}
	all, err := healthOf(rows, floor(since, time.Minute), d.Now())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(x, y Health) int {
		a, _ := x.Rate()
		b, _ := y.Rate()
		return cmp.Or(cmp.Compare(a, b), cmp.Compare(x.Merchant, y.Merchant))
	})
	return all[:min(len(all), limit)], nil
}

// Supplier counts the authentic callbacks of one supplier.
type Supplier struct {
	ID        int64
	Callbacks int64
	PerMinute []int64 // from the first requested minute; the last one is in progress
	Outcomes  map[string]int64
}

// Suppliers returns the callbacks since a time (Unix µs) by supplier and minute, the busiest
// supplier first.
func Suppliers(ctx context.Context, d *db.DB, since int64) ([]Supplier, error) {
	first, now := floor(since, time.Minute), d.Now()
	minutes := int((now-first)/time.Minute.Microseconds()) + 1
	if minutes < 1 || time.Duration(minutes)*time.Minute > minutesKept {
		return nil, fmt.Errorf("no callbacks by the minute since %d", since)
	}
	var rows []callbackRow
	err := d.Read.NewSelect().Model(&rows).Where("r.start >= ? AND r.start <= ?", first, now).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the suppliers' figures: %w", err)
	}
	var all []Supplier
	for _, r := range rows {
		i := slices.IndexFunc(all, func(s Supplier) bool { return s.ID == r.SupplierID })
		if i < 0 {
			i, all = len(all), append(all, Supplier{ID: r.SupplierID, PerMinute: make([]int64, minutes), Outcomes: map[string]int64{}})
		}
		all[i].Callbacks += r.N
		all[i].PerMinute[(r.Start-first)/time.Minute.Microseconds()] += r.N
		all[i].Outcomes[r.Outcome] += r.N
	}
	slices.SortFunc(all, func(x, y Supplier) int { return cmp.Compare(y.Callbacks, x.Callbacks) })
	return all, nil
}

// cleanRows is the number of rows per DELETE, few enough to delay no other write.
const cleanRows = 500

// Clean deletes a bounded number of figures past their retention, and returns how many. keep is
// the retention of hourly and daily figures and of the history of money at risk.
func Clean(ctx context.Context, d *db.DB, keep time.Duration) (removed int64, err error) {
	for _, t := range []struct {
		table, key, of string
		keep           time.Duration
	}{
		{"report_minutes", "start, recipient_id", "TRUE", min(keep, minutesKept)},
		{"report_hours", "start, recipient_id", "TRUE", keep},
		{"report_callbacks", "start, supplier_id, outcome", "TRUE", min(keep, minutesKept)},
		{"report_suppliers", "supplier_id, start, outcome", "TRUE", min(keep, causesKept)},
		{"report_calls", "supplier_id, start, op, class, bucket", "TRUE", min(keep, minutesKept)},
		{"report_orders", "span_s, start, currency", "span_s = 60", min(keep, minutesKept)},
		{"report_orders", "span_s, start, currency", "span_s < 0", min(keep, minutesKept)},
		{"report_orders", "span_s, start, currency", "span_s = 300", min(keep, VolumeKept)},
		{"report_orders", "span_s, start, currency", "span_s = 3600", keep},
		{"report_orders", "span_s, start, currency", "span_s = 86400", keep},
		{"report_failures", "span_s, start, class, currency", "span_s = 300", min(keep, causesKept)},
		{"report_failures", "span_s, start, class, currency", "span_s = 3600", min(keep, hoursKept)},
		{"report_failures", "span_s, start, class, currency", "span_s = 86400", keep},
		{"report_waits", "span_s, start, bucket", "span_s = 300", min(keep, causesKept)},
		{"report_waits", "span_s, start, bucket", "span_s = 3600", min(keep, hoursKept)},
		{"report_waits", "span_s, start, bucket", "span_s = 86400", keep},
		{"report_volume", "span_s, start, merchant_id, supplier_id, currency", "span_s = 3600", min(keep, hoursKept)},
		{"report_volume", "span_s, start, merchant_id, supplier_id, currency", "span_s = 86400", keep},
		{"report_backlog", "start", "TRUE", min(keep, causesKept)},
		{"report_risk", "start, part, currency", "TRUE", keep},
	} {
		key := bun.Safe(t.key)
		res, err := d.NewRaw("DELETE FROM ? WHERE (?) IN (SELECT ? FROM ? WHERE ? AND start < ? ORDER BY start LIMIT ?)",
			bun.Ident(t.table), key, key, bun.Ident(t.table), bun.Safe(t.of), d.Now()-t.keep.Microseconds(), cleanRows).Exec(ctx)
		if err != nil {
			return removed, fmt.Errorf("clean up %s: %w", t.table, err)
		}
		n, _ := res.RowsAffected()
		removed += n
	}
	return removed, nil
}
