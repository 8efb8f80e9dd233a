package payment

import (
	"context"
	"fmt"
	"math"

	"backstop/internal/order"

	"github.com/uptrace/bun"
)

// duePage bounds the entries that one statement passes over. After hours in which nothing
// read them there may be millions, of orders that were paid.
const duePage = 20_000

// Mark is a position among the orders by next_at and id.
type Mark struct{ At, ID int64 }

// end is behind every order.
var end = Mark{At: math.MaxInt64}

// End reports whether nothing is behind the mark.
func (m Mark) End() bool { return m == end }

// Due are the open orders that are due, the first ones first: behind a mark, until a moment
// (Unix µs), at most limit. seen is up to where it has looked, which may be a part of the
// way where much that is over lies between.
func Due(ctx context.Context, q bun.IDB, from Mark, to int64, limit int) (due []Moment, seen Mark, err error) {
	var rows []struct {
		Moment `bun:",extend"`

		Open bool
		Last bool // of what one statement passes over
	}
	err = q.NewRaw("SELECT "+momentColumns+", o.open, o.number = ? AS last FROM (SELECT o.id, o.next_at, o.status, o.expires_at, o.supplier_id, "+order.IsOpen("o")+" AS open,"+
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

// Moment is an order and when it is due.
type Moment struct {
	ID, NextAt int64
	Status     order.Status
	ExpiresAt  int64
	Supplier   int64 // that an open payment was started at, else the order's
}

// momentColumns are those of a Moment, of an order o. An order has at most one open payment
// that was started by us.
var momentColumns = "o.id, o.next_at, o.status, o.expires_at, " + order.AskedAt("o") + " AS supplier"

// IsAsked is the condition of SQL that a supplier is asked about an order as it is, with the
// moment in its place: from its timeout on a paying order moves to closing first.
var IsAsked = "(status = '" + string(order.Closing) + "' OR status = '" + string(order.Paying) + "' AND expires_at > ?)"

// dueMost bounds the orders of one page of DueOf.
const dueMost = 5000

// DueOf are the orders of one supplier that it is to be asked about, as of Due. It goes through
// the orders of all suppliers page by page: the supplier is a part of no index, and with it in
// the condition PostgreSQL would read and sort all that is due for each page.
func DueOf(ctx context.Context, q bun.IDB, supplierID, from, to int64, limit int) (due []Moment, err error) {
	mark := Mark{At: from}
	for size := limit; len(due) < limit && !mark.End(); size = min(2*size, dueMost) {
		var page []Moment
		if page, mark, err = Due(ctx, q, mark, to, size); err != nil {
			return nil, err
		}
		for _, m := range page {
			asked := m.Status == order.Closing || m.Status == order.Paying && m.ExpiresAt > to // as IsAsked
			if m.Supplier == supplierID && asked && len(due) < limit {
				due = append(due, m)
			}
		}
	}
	return due, nil
}

// Moments are those of open orders by their ids.
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
