package compensation

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/money"

	"github.com/uptrace/bun"
)

// maxShown bounds the tries read of one item; the newest are read.
const maxShown = 200

// Find reads an item with its tries, oldest first; nil = not found.
func Find(ctx context.Context, q bun.IDB, id int64) (*Item, []Try, error) {
	// First: an item may be newer than its tries, never older.
	var tries []Try
	newest := q.NewSelect().Model((*Try)(nil)).Where("ct.compensation_id = ?", id).OrderExpr("ct.number DESC").Limit(maxShown)
	if err := q.NewSelect().TableExpr("(?) AS n", newest).ColumnExpr("n.*").OrderExpr("n.number").Scan(ctx, &tries); err != nil {
		return nil, nil, fmt.Errorf("read the tries of a compensation: %w", err)
	}
	var rows []*Item
	if err := q.NewSelect().Model(&rows).Where("cp.id = ?", id).Scan(ctx); err != nil {
		return nil, nil, fmt.Errorf("read a compensation: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil, nil
	}
	return rows[0], tries, nil
}

// DeadOf returns the newest dead item about an order; nil = none.
func DeadOf(ctx context.Context, q bun.IDB, orderNo string) (*Item, error) {
	var rows []*Item
	if err := q.NewSelect().Model(&rows).Where("cp.order_no = ?", orderNo).Where("cp.state = ?",
		Dead).OrderExpr("cp.id DESC").Limit(1).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the dead compensations of an order: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return rows[0], nil
}

// List reads items that are open or dead and match a filter, newest first. Errors:
// *act.FieldError.
func List(ctx context.Context, q bun.IDB, f *Filter, limit int) (rows []*Item, err error) {
	where, err := Redrive{Filter: f}.where(ctx, q)
	if err != nil {
		return nil, err
	}
	err = where(q.NewSelect().Model(&rows)).Where("cp.state IN (?)", bun.List(append(Moves.Open(), Moves.NeedsPerson()...))).
		OrderExpr("cp.id DESC").Limit(int64(limit)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("list compensations: %w", err)
	}
	return rows, nil
}

// Group counts the items of one state, kind, cause and supplier.
type Group struct {
	Kind       string
	Cause      Cause
	SupplierID int64 // 0 = none
	Count      int64
	OldestAt   int64 // when opened, Unix µs
	Sums       money.Totals
}

// maxGrouped bounds the items that are grouped; the oldest are. Groups serve to decide what to
// do first.
const maxGrouped = 100_000

// Groups groups the items of a state, the largest group first; cut = there are more items than
// were read.
func Groups(ctx context.Context, q bun.IDB, state State) (all []Group, cut bool, err error) {
	var rows []struct {
		Kind       string
		Cause      Cause
		SupplierID int64
		Currency   string
		Count      int64
		OldestAt   int64
		Minor      int64
	}
	err = q.NewRaw(
		"SELECT kind, cause, supplier_id, currency, count(*) AS count, min(opened_at) AS oldest_at, CAST(sum(amount) AS BIGINT) AS minor"+
			" FROM (SELECT kind, cause, supplier_id, currency, opened_at, amount FROM compensations WHERE state = ? ORDER BY id LIMIT ?) AS w"+
			" GROUP BY kind, cause, supplier_id, currency ORDER BY kind, cause, supplier_id, currency", state, maxGrouped).Scan(ctx, &rows)
	if err != nil {
		return nil, false, fmt.Errorf("group compensations: %w", err)
	}
	var seen int64
	for _, r := range rows {
		seen += r.Count
		last := len(all) - 1
		if last < 0 || all[last].Kind != r.Kind || all[last].Cause != r.Cause || all[last].SupplierID != r.SupplierID {
			all = append(all, Group{Kind: r.Kind, Cause: r.Cause, SupplierID: r.SupplierID, OldestAt: r.OldestAt})
			last++
		}
		g := &all[last]
		g.Count += r.Count
		g.OldestAt = min(g.OldestAt, r.OldestAt)
		if r.Currency != "" {
			g.Sums.Add(r.Minor, r.Currency)
		}
	}
	return all, seen == maxGrouped, nil
}

// Count is the number of items of a state and a kind.
type Count struct {
	State State
	Kind  string
	Count int64
}

// maxCounted bounds the count of each state.
const maxCounted = 100_000

// Counts counts open and dead items, up to maxCounted of each state.
func Counts(ctx context.Context, q bun.IDB) (all []Count, err error) {
	for _, s := range append(Moves.Open(), Moves.NeedsPerson()...) {
		var rows []Count
		err := q.NewRaw("SELECT kind, count(*) AS count FROM (SELECT kind FROM compensations WHERE state = ? LIMIT ?) AS w GROUP BY kind",
			s, maxCounted).Scan(ctx, &rows)
		if err != nil {
			return nil, fmt.Errorf("count compensations: %w", err)
		}
		by := map[string]int64{}
		for _, r := range rows {
			by[r.Kind] = r.Count
		}
		for _, kind := range Names {
			all = append(all, Count{State: s, Kind: kind, Count: by[kind]})
		}
	}
	return all, nil
}

// Backlog describes the waiting items.
type Backlog struct {
	Rows, Late int64 // open; of those, overdue
	More       bool  // there are more than were counted
	Oldest     int64 // due time of the first (Unix µs); 0 = none waits
	Overdue    time.Duration
}

// Waits counts open items, in the order in which they are due, at most limit.
func Waits(ctx context.Context, d *db.DB, limit int) (Backlog, error) {
	var b Backlog
	now := d.Now()
	err := d.Read.NewRaw("SELECT count(*) AS rows, count(CASE WHEN next_at < ? THEN 1 END) AS late, coalesce(min(next_at), 0) AS oldest"+
		" FROM (SELECT next_at FROM compensations WHERE next_at IS NOT NULL ORDER BY next_at LIMIT ?) AS w", now-lateAfter.Microseconds(),
		limit).Scan(ctx, &b)
	if err != nil {
		return Backlog{}, fmt.Errorf("count waiting compensations: %w", err)
	}
	b.More = b.Rows == int64(limit)
	if b.Oldest > 0 && b.Oldest < now {
		b.Overdue = time.Duration(now-b.Oldest) * time.Microsecond
	}
	return b, nil
}

// lateAfter is when a due item counts as late; the tick finds it before that.
const lateAfter = 5 * time.Second
