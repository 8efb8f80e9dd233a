package payment

import (
	"context"
	"fmt"
	"math"

	"backstop/internal/order"

	"github.com/uptrace/bun"
)

// duePage bounds the rows scanned by one statement. If nothing has read them for hours there
// may be millions, of paid orders.
const duePage = 20_000

// Mark is a position among the orders by next_at and id.
type Mark struct{ At, ID int64 }

// end is after every order.
var end = Mark{At: math.MaxInt64}

// End reports whether nothing follows the mark.
func (m Mark) End() bool { return m == end }

// Due returns the open orders that are due, in order: after a mark, up to a time (Unix µs), at
// most limit. seen is how far it has read, which may be less if many ended orders lie between.
func Due(ctx context.Context, q bun.IDB, from Mark, to int64, limit int) (due []Moment, seen Mark, err error) {
	var rows []struct {
		Moment `bun:",extend"`

		Open bool
		Last bool // of those scanned by one statement
	}
	err = q.NewRaw("SELECT "+momentColumns+
		", o.open, o.number = ? AS last FROM (SELECT o.id, o.next_at, o.status, o.expires_at, o.supplier_id, "+order.IsOpen("o")+
		" AS open,"+
		" row_number() OVER (ORDER BY o.next_at, o.id) AS number FROM orders AS o WHERE o.next_at >= ? AND o.next_at <= ? AND (o.next_at > ? OR o.id > ?)"+
		" ORDER BY o.next_at, o.id LIMIT ?) AS o WHERE o.open OR o.number = ? ORDER BY o.next_at, o.id LIMIT ?",
		duePage, from.At, to, from.At, from.ID, duePage, duePage, limit).Scan(ctx, &rows)
	if err != nil {
		return nil, Mark{}, fmt.Errorf("find orders that are due: %w", err)
	}
	seen = end
	for _, r := range rows {
		if r.Open {
			due = append(due, r.Moment)
		}
		if r.Last || len(rows) == limit {
			seen = Mark{r.NextAt, r.ID}
		}
	}
	return due, seen, nil
}

// Moment is an order with the time at which it is due.
type Moment struct {
	ID, NextAt int64
	Status     order.Status
	ExpiresAt  int64
	Supplier   int64 // of the open payment, else the order's
}

// momentColumns are the columns of a Moment of an order o. An order has at most one open
// payment started by us.
var momentColumns = "o.id, o.next_at, o.status, o.expires_at, " + order.QueriedSupplier("o") + " AS supplier"

// IsQueried is the SQL condition, with the current time as its parameter, that the supplier is
// queried about an order: from its timeout on, a paying order must move to closing first.
var IsQueried = "(status = '" + string(order.Closing) + "' OR status = '" + string(order.Paying) + "' AND expires_at > ?)"

// dueMost bounds the orders per page of DueOf.
const dueMost = 5000

// DueOf returns one supplier's orders that are due for a query, as of Due. It reads the orders
// of all suppliers page by page: no index contains the supplier, and with the supplier in the
// condition PostgreSQL would read and sort everything due for each page.
func DueOf(ctx context.Context, q bun.IDB, supplierID, from, to int64, limit int) (due []Moment, err error) {
	mark := Mark{At: from}
	for size := limit; len(due) < limit && !mark.End(); size = min(2*size, dueMost) {
		var page []Moment
		if page, mark, err = Due(ctx, q, mark, to, size); err != nil {
			return nil, err
		}
		for _, m := range page {
			queried := m.Status == order.Closing || m.Status == order.Paying && m.ExpiresAt > to // as IsAsked
			if m.Supplier == supplierID && queried && len(due) < limit {
				due = append(due, m)
			}
		}
	}
	return due, nil
}

// Moments reads open orders by id.
func Moments(ctx context.Context, q bun.IDB, ids []int64) (due []Moment, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = q.NewRaw("SELECT "+momentColumns+" FROM orders AS o WHERE o.id IN (?) AND "+order.IsOpen("o"), bun.List(ids)).Scan(ctx, &due)
	if err != nil {
		return nil, fmt.Errorf("read when orders are due: %w", err)
	}
	return due, nil
}
