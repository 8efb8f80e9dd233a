package callback

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"backstop/internal/exception"
	"backstop/internal/payment"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// Query asks for callbacks, newest first. Empty fields do not filter.
type Query struct {
	OrderNo  string // also the reference of a callback that found no order
	Supplier string // code
	Outcome  string
	// Refused includes callbacks that were refused. An outcome that only refused
	// ones have includes them too.
	Refused bool
	Before  int64 // only ids smaller than this; 0 = from the newest
	Limit   int

	scan int // stands for scanRows where it is set, for tests
}

// Row is one callback as people look for it.
type Row struct {
	ID         int64           `bun:"id"`
	Supplier   string          `bun:"supplier"`
	ReceivedAt int64           `bun:"received_at"` // Unix µs
	RemoteAddr string          `bun:"remote_addr"`
	Outcome    string          `bun:"outcome"`
	RawSteps   json.RawMessage `bun:"steps"`
	OrderNo    string          `bun:"order_no"`
	Steps      []supplier.Step `bun:"-"`
}

// refusedOutcomes are those that stand in refused_callbacks.
var refusedOutcomes = []string{UnknownSupplier, DisabledSupplier, WrongAddress, BadSignature, Unparsable, AdapterFailed}

// Outcomes are all that a recorded callback may have.
var Outcomes = slices.Concat([]string{payment.Paid, payment.Repeat, payment.Ignored, payment.FailedTry, payment.OrderFailed, payment.OrderClosed}, exception.Kinds, refusedOutcomes)

// IsRefusal says whether an outcome is one that only refused callbacks have.
func IsRefusal(outcome string) bool { return slices.Contains(refusedOutcomes, outcome) }

// scanRows bounds what one page may read where no index serves the filter. A
// page may then hold fewer rows than asked for and still have a next one.
const scanRows = 50_000

// source is one of the two tables.
type source struct {
	table   string
	columns string
	where   func(q *bun.SelectQuery, f Query) *bun.SelectQuery
}

var taken = source{
	table: "callbacks",
	columns: "c.id, COALESCE((SELECT su.code FROM suppliers AS su WHERE su.id = c.supplier_id), '') AS supplier," +
		" c.received_at, c.remote_addr, c.outcome, c.steps, c.order_no",
	where: func(q *bun.SelectQuery, f Query) *bun.SelectQuery {
		if f.OrderNo != "" {
			q = q.Where("c.order_no = ?", f.OrderNo)
		}
		if f.Supplier != "" {
			q = q.Where("c.supplier_id = (SELECT su.id FROM suppliers AS su WHERE su.code = ?)", f.Supplier)
		}
		return q
	},
}

var refused = source{
	table:   "refused_callbacks",
	columns: "c.id, c.supplier, c.received_at, c.remote_addr, c.outcome, c.steps, '' AS order_no",
	where: func(q *bun.SelectQuery, f Query) *bun.SelectQuery {
		if f.Supplier != "" {
			q = q.Where("c.supplier = ?", f.Supplier)
		}
		return q
	},
}

// List returns one page, newest first, and the Before of the next page; 0 = there
// is none.
func List(ctx context.Context, q bun.IDB, f Query) (rows []Row, next int64, err error) {
	floor := int64(0)
	for _, s := range f.sources() {
		at, err := s.floor(ctx, q, f)
		if err != nil {
			return nil, 0, err
		}
		floor = max(floor, at)
	}
	for _, s := range f.sources() {
		more, err := s.page(ctx, q, f, floor)
		if err != nil {
			return nil, 0, err
		}
		rows = append(rows, more...)
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(b.ID, a.ID) })
	next = floor // rows of that id and newer are all on this page
	if len(rows) > f.Limit {
		rows = rows[:f.Limit]
		next = rows[f.Limit-1].ID
	}
	for i := range rows {
		if err := json.Unmarshal(rows[i].RawSteps, &rows[i].Steps); err != nil {
			return nil, 0, fmt.Errorf("steps of callback %d: %w", rows[i].ID, err)
		}
	}
	return rows, next, nil
}

// sources: a refused callback belongs to no order, so an order's callbacks are
// never among them.
func (f Query) sources() []source {
	onlyRefused := slices.Contains(refusedOutcomes, f.Outcome)
	switch {
	case onlyRefused && f.OrderNo == "":
		return []source{refused}
	case onlyRefused:
		return nil
	case f.Refused && f.OrderNo == "":
		return []source{taken, refused}
	default:
		return []source{taken}
	}
}

// floor is the oldest id that this page looks at, 0 = all. Ids grow with time in
// both tables, so that one cursor serves both.
func (s source) floor(ctx context.Context, q bun.IDB, f Query) (int64, error) {
	if f.OrderNo != "" || f.Supplier == "" && f.Outcome == "" {
		return 0, nil // an index serves the order number, and the id itself the rest
	}
	var at []int64
	in := q.NewSelect().TableExpr("? AS c", bun.Ident(s.table)).ColumnExpr("c.id").OrderExpr("c.id DESC").Limit(1).Offset(int64(cmp.Or(f.scan, scanRows)) - 1)
	if f.Before > 0 {
		in = in.Where("c.id < ?", f.Before)
	}
	if err := in.Scan(ctx, &at); err != nil {
		return 0, fmt.Errorf("find the end of the page in %s: %w", s.table, err)
	}
	if len(at) == 0 {
		return 0, nil
	}
	return at[0], nil
}

// page reads one row more than asked for, to know whether there is a next page.
func (s source) page(ctx context.Context, q bun.IDB, f Query, floor int64) (rows []Row, err error) {
	in := q.NewSelect().TableExpr("? AS c", bun.Ident(s.table)).ColumnExpr(s.columns).OrderExpr("c.id DESC").Limit(int64(f.Limit) + 1)
	if f.Before > 0 {
		in = in.Where("c.id < ?", f.Before)
	}
	if floor > 0 {
		in = in.Where("c.id >= ?", floor)
	}
	if f.Outcome != "" {
		in = in.Where("c.outcome = ?", f.Outcome)
	}
	if err := s.where(in, f).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.table, err)
	}
	return rows, nil
}
