package report

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/money"
	"backstop/internal/order"
)

const (
	// queriedOften is how many queries an order must have had to count as having no result, and
	// noResultAfter how long after the last of them.
	queriedOften  = 3
	noResultAfter = 30 * time.Minute
	// queriedRows bounds the rows counted, dueRead those read for the count.
	queriedRows = 10_000
	dueRead     = 200_000
)

// waitsForResult is the condition that the supplier of an order o is being queried.
var waitsForResult = order.Moves.In("o.status", order.Paying, order.Closing)

// NoResult returns a query for the ids of orders that were queried three times, the last time
// over half an hour ago, and are still paying or closing. It has its own index (migration
// orders_queried).
func NoResult(now int64) (ids string, args []any) {
	return "SELECT o.id FROM orders AS o WHERE o.next_at >= " + order.DueFrom + " AND o.query_tries > " + strconv.Itoa(queriedOften-1) +
			" AND " + waitsForResult +
			" AND (SELECT c.started_at FROM supplier_calls AS c WHERE c.order_id = o.id AND c.op = 'query' ORDER BY c.id LIMIT 1 OFFSET " +
			strconv.Itoa(queriedOften-1) + ") < ?",
		[]any{now - noResultAfter.Microseconds()}
}

// AwaitedOf returns a query for the ids of orders waiting for a result from a supplier: paying
// or closing, with their open payment there.
func AwaitedOf(supplierID int64) (ids string, args []any) {
	return "SELECT w.id FROM (SELECT o.id, " + order.QueriedSupplier("o") +
			" AS supplier FROM (SELECT id, status, supplier_id FROM orders WHERE next_at >= " + order.DueFrom +
			" ORDER BY next_at LIMIT " + strconv.Itoa(dueRead) + ") AS o WHERE " + waitsForResult + ") AS w WHERE w.supplier = ?",
		[]any{supplierID}
}

// awaitedRead bounds the orders that Awaiting reads, those due first.
const awaitedRead = 20_000

// Awaiting returns the orders that wait for a result from each supplier, as AwaitedOf. Cut: those
// due last were not counted.
func Awaiting(ctx context.Context, d *db.DB) (map[int64]Standing, error) {
	var rows []struct {
		Supplier int64
		Sum      `bun:",extend"`
	}
	err := d.Read.NewRaw("WITH due AS (SELECT id, status, supplier_id, currency, amount FROM orders WHERE next_at >= "+order.DueFrom+
		" ORDER BY next_at LIMIT ?0)"+
		" SELECT w.supplier, w.currency, count(*) AS orders, CAST(sum(w.amount) AS BIGINT) AS minor FROM"+
		" (SELECT "+order.QueriedSupplier("o")+" AS supplier, o.currency, o.amount FROM due AS o WHERE "+waitsForResult+
		") AS w GROUP BY w.supplier, w.currency"+
		" UNION ALL SELECT 0, '', count(*), 0 FROM due", awaitedRead).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("count orders that wait for suppliers: %w", err)
	}
	by, cut := map[int64]Standing{}, false
	for _, r := range rows {
		if r.Currency == "" {
			cut = r.Orders >= awaitedRead
			continue
		}
		s := by[r.Supplier]
		s.Add(r.Sum)
		by[r.Supplier] = s
	}
	if cut {
		for id, s := range by {
			s.Cut = true
			by[id] = s
		}
	}
	return by, nil
}

// Queried counts orders, and their money by currency.
type Queried struct {
	Orders int64
	More   bool // there are more than were counted
	Sums   money.Totals
}

// CountQueried counts the orders of NoResult or AwaitedOf.
func CountQueried(ctx context.Context, d *db.DB, ids string, args []any) (a Queried, err error) {
	var rows []Sum
	err = d.Read.NewRaw(
		"SELECT currency, count(*) AS orders, CAST(sum(amount) AS BIGINT) AS minor FROM (SELECT currency, amount FROM orders WHERE id IN ("+
			ids+
			") LIMIT "+strconv.Itoa(queriedRows)+") AS w GROUP BY currency", args...).Scan(ctx, &rows)
	if err != nil {
		return Queried{}, fmt.Errorf("count orders that wait for a result: %w", err)
	}
	for _, s := range rows {
		a.Orders += s.Orders
		a.Sums.Add(s.Minor, s.Currency)
	}
	a.More = a.Orders >= queriedRows
	return a, nil
}
