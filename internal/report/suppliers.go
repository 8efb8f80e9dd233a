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

// callsSum counts the calls of one kind to one supplier.
type callsSum struct {
	Supplier  int64
	Op, Class string
	Took      Histogram
}

func (c *callsSum) values() []any { return []any{&c.Supplier, &c.Op, &c.Class, &c.Took} }

// Refused counts n callbacks that were refused on receipt.
func (x *Delta) Refused(supplier int64, outcome string, n int64) {
	sum := callbackSum{Supplier: supplier, Outcome: outcome}
	entry(&x.Refusals, sum, func(c *callbackSum) bool { return c.Supplier == supplier && c.Outcome == outcome }).N += n
}

// Call counts one call to a supplier.
func (x *Delta) Call(supplier int64, op, class string, took time.Duration) {
	sum := callsSum{Supplier: supplier, Op: op, Class: class}
	entry(&x.Calls, sum, func(c *callsSum) bool { return c.Supplier == supplier && c.Op == op && c.Class == class }).Took.Add(took)
}

type supplierKey struct {
	supplier, start int64
	outcome         string
}

type callsKey struct {
	supplier, start int64
	op, class       string
	bucket          int64
}

// suppliers are the sums of the suppliers' pages.
type suppliers struct {
	outcomes map[supplierKey]int64
	calls    map[callsKey]int64
}

func newSuppliers() suppliers {
	return suppliers{outcomes: map[supplierKey]int64{}, calls: map[callsKey]int64{}}
}

// add adds a delta.
func (s *suppliers) add(x *Delta) {
	start := floor(x.Minute, Fine)
	for _, all := range [][]callbackSum{x.Callbacks, x.Refusals} {
		for _, c := range all {
			s.outcomes[supplierKey{c.Supplier, start, c.Outcome}] += c.N
		}
	}
	for i := range x.Calls {
		c := &x.Calls[i]
		for bucket, n := range c.Took {
			if n > 0 {
				s.calls[callsKey{c.Supplier, start, c.Op, c.Class, int64(bucket)}] += n
			}
		}
	}
}

// rows returns the sums as rows, in the order of their keys.
func (s *suppliers) rows() (outcomes []supplierRow, calls []callsRow) {
	for k, n := range s.outcomes {
		outcomes = append(outcomes, supplierRow{SupplierID: k.supplier, Start: k.start, Outcome: k.outcome, N: n})
	}
	slices.SortFunc(outcomes, func(x, y supplierRow) int {
		return cmp.Or(cmp.Compare(x.SupplierID, y.SupplierID), cmp.Compare(x.Start, y.Start), cmp.Compare(x.Outcome, y.Outcome))
	})
	for k, n := range s.calls {
		calls = append(calls, callsRow{SupplierID: k.supplier, Start: k.start, Op: k.op, Class: k.class, Bucket: k.bucket, N: n})
	}
	slices.SortFunc(calls, func(x, y callsRow) int {
		return cmp.Or(cmp.Compare(x.SupplierID, y.SupplierID), cmp.Compare(x.Start, y.Start), cmp.Compare(x.Op, y.Op),
			cmp.Compare(x.Class, y.Class), cmp.Compare(x.Bucket, y.Bucket))
	})
	return outcomes, calls
}

type supplierRow struct {
	bun.BaseModel `bun:"table:report_suppliers,alias:r"`

	SupplierID int64  `bun:"supplier_id,pk"`
	Start      int64  `bun:"start,pk"`
	Outcome    string `bun:"outcome,pk"`
	N          int64  `bun:"n"`
}

type callsRow struct {
	bun.BaseModel `bun:"table:report_calls,alias:r"`

	SupplierID int64  `bun:"supplier_id,pk"`
	Start      int64  `bun:"start,pk"`
	Op         string `bun:"op,pk"`
	Class      string `bun:"class,pk"`
	Bucket     int64  `bun:"bucket,pk"`
	N          int64  `bun:"n"`
}

// SupplierOutcomes counts the callbacks of each supplier by outcome, refused ones too, from one
// time to before another (Unix µs), to five minutes.
func SupplierOutcomes(ctx context.Context, d *db.DB, from, to int64) (map[int64]map[string]int64, error) {
	var rows []supplierRow
	err := d.Read.NewRaw(
		"SELECT supplier_id, outcome, CAST(sum(n) AS BIGINT) AS n FROM report_suppliers WHERE start >= ? AND start < ? GROUP BY supplier_id, outcome",
		floor(from, Fine), floor(to, Fine)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the suppliers' callbacks: %w", err)
	}
	by := map[int64]map[string]int64{}
	for _, r := range rows {
		if by[r.SupplierID] == nil {
			by[r.SupplierID] = map[string]int64{}
		}
		by[r.SupplierID][r.Outcome] += r.N
	}
	return by, nil
}

// Calls is the calls of one kind to one supplier within a time.
type Calls struct {
	Op      string
	Classes map[string]int64
	Took    Histogram
}

// All returns how many there were.
func (c Calls) All() int64 { return c.Took.Count() }

// SupplierCalls returns the calls to each supplier by kind, since a time (Unix µs), to five
// minutes.
func SupplierCalls(ctx context.Context, d *db.DB, since int64) (map[int64][]Calls, error) {
	var rows []callsRow
	err := d.Read.NewRaw(
		"SELECT supplier_id, op, class, bucket, CAST(sum(n) AS BIGINT) AS n FROM report_calls WHERE start >= ? GROUP BY supplier_id, op, class, bucket",
		floor(since, Fine)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the calls to suppliers: %w", err)
	}
	type key struct {
		supplier int64
		op       string
	}
	took, classes := map[key]*Histogram{}, map[key]map[string]int64{}
	for _, r := range rows {
		k := key{r.SupplierID, r.Op}
		if took[k] == nil {
			took[k], classes[k] = new(Histogram), map[string]int64{}
		}
		took[k][min(r.Bucket, int64(len(bounds)))] += r.N
		classes[k][r.Class] += r.N
	}
	by := map[int64][]Calls{}
	for k, h := range took {
		by[k.supplier] = append(by[k.supplier], Calls{Op: k.op, Classes: classes[k], Took: *h})
	}
	for _, all := range by {
		slices.SortFunc(all, func(x, y Calls) int { return cmp.Compare(x.Op, y.Op) })
	}
	return by, nil
}

// LastCallbacks returns the minute (Unix µs) of each supplier's last authentic callback; of one
// older than minutes are kept, the five minutes. refused are the outcomes that are not authentic.
func LastCallbacks(ctx context.Context, d *db.DB, refused []string) (map[int64]int64, error) {
	var rows []struct{ ID, At int64 }
	err := d.Read.NewRaw(
		"SELECT l.id, coalesce((SELECT max(c.start) FROM report_callbacks AS c WHERE c.start >= l.start AND c.start < l.start + ?0 AND c.supplier_id = l.id), l.start) AS at FROM"+
			" (SELECT su.id, (SELECT max(f.start) FROM report_suppliers AS f WHERE f.supplier_id = su.id AND f.outcome NOT IN (?1)) AS start FROM suppliers AS su) AS l"+
			" WHERE l.start IS NOT NULL", Fine.Microseconds(), bun.List(refused)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the suppliers' last callbacks: %w", err)
	}
	by := make(map[int64]int64, len(rows))
	for _, r := range rows {
		by[r.ID] = r.At
	}
	return by, nil
}

// SupplierFiguresFrom returns the start (Unix µs) of the oldest figures of suppliers; 0 = there
// are none.
func SupplierFiguresFrom(ctx context.Context, d *db.DB) (start int64, err error) {
	if err := d.Read.NewRaw("SELECT coalesce(min(start), 0) FROM report_suppliers").Scan(ctx, &start); err != nil {
		return 0, fmt.Errorf("read the first figures of suppliers: %w", err)
	}
	return start, nil
}

// PaidToday returns the money of each supplier's orders that were created since a day began
// (Unix µs, as in DayOf) and have been paid, by currency.
func PaidToday(ctx context.Context, d *db.DB, day int64) (map[int64]Standing, error) {
	var rows []struct {
		SupplierID int64
		Sum        `bun:",extend"`
	}
	err := d.Read.NewRaw(
		"SELECT supplier_id, currency, CAST(sum(paid) AS BIGINT) AS orders, CAST(sum(paid_amount) AS BIGINT) AS minor FROM report_volume"+
			" WHERE span_s = 86400 AND start = ? GROUP BY supplier_id, currency HAVING sum(paid) > 0"+
			" ORDER BY supplier_id, currency", day).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read what suppliers' orders were paid: %w", err)
	}
	by := map[int64]Standing{}
	for _, r := range rows {
		s := by[r.SupplierID]
		s.Sums = append(s.Sums, r.Sum)
		by[r.SupplierID] = s
	}
	return by, nil
}
