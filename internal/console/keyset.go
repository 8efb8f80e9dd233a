package console

import (
	"context"
	"fmt"
	"math"
	"slices"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// PageSize is how many rows a list shows where nobody chose otherwise.
const PageSize = 50

// scanRows bounds what one page looks at where no index serves its filter. The
// page may then hold fewer rows than fit and still have a next one.
const scanRows = 50_000

// countRows bounds how far the rows of a list are counted.
const countRows = 1000

// Cursor is where a page begins. Rows are ordered by id, which grows with time;
// the zero Cursor is the newest page.
type Cursor struct {
	ID    int64
	Newer bool // the rows newer than ID that are nearest to it; else those older
}

// Slice is the part of a list that one page is taken from.
type Slice struct {
	// From and To bound when rows were made (Unix µs), To not included; 0 = no
	// bound. An order that was imported counts from its import.
	From, To int64
	At       Cursor
	Rows     int // that fit the page; 0 = PageSize
	// Uncounted leaves out how many rows the whole list has.
	Uncounted bool
}

// Page is one page of a list, newest first.
type Page[T any] struct {
	Rows []T
	// Older and Newer are the pages beside this one; zero = there is none.
	Older, Newer Cursor
	Newest       int64 // the id of the first row; 0 = there is none
	// Reached is how far the rows were searched (Unix µs) where a bound cut the
	// search short of the window's end; else 0. The page beside goes on from there.
	Reached int64
	Count   int64 // rows of the whole list, as far as they were counted
	More    bool  // there are more than that
}

// bounds are the ids that a page may look at, both included.
type bounds struct {
	low, high int64
	cut       bool // short of the span's end
}

func (s Slice) size() int {
	if s.Rows <= 0 {
		return PageSize
	}
	return s.Rows
}

// ids are the bounds that the span itself sets.
func (s Slice) ids() bounds {
	w := s.window()
	switch {
	case s.At.ID == 0:
	case s.At.Newer:
		w.low = max(w.low, s.At.ID+1)
	default:
		w.high = min(w.high, s.At.ID-1)
	}
	return w
}

// window is the span without its cursor.
func (s Slice) window() bounds {
	w := bounds{high: math.MaxInt64}
	if s.From > 0 {
		w.low = db.IDAt(s.From)
	}
	if s.To > 0 {
		w.high = db.IDAt(s.To) - 1
	}
	return w
}

// order is the direction in which rows are read.
func (s Slice) order() string {
	if s.At.Newer {
		return "ASC"
	}
	return "DESC"
}

// within narrows a query to the bounds and reads one row more than fit, to know
// whether there is a page beside this one.
func (s Slice) within(q *bun.SelectQuery, alias string, w bounds) *bun.SelectQuery {
	id := bun.Safe(alias + ".id")
	return q.Where("? BETWEEN ? AND ?", id, w.low, w.high).OrderExpr("? ?", id, bun.Safe(s.order())).Limit(int64(s.size()) + 1)
}

// scan shortens bounds to as many rows as one page may look at in each of the
// tables: for filters that no index serves.
func (b *Book) scan(ctx context.Context, s Slice, w bounds, tables ...string) (bounds, error) {
	for _, table := range tables {
		var at []int64
		err := b.db.Read.NewSelect().TableExpr("?", bun.Ident(table)).Column("id").Where("id BETWEEN ? AND ?", w.low, w.high).
			OrderExpr("id ?", bun.Safe(s.order())).Limit(1).Offset(int64(b.scanRows)-1).Scan(ctx, &at)
		if err != nil {
			return w, fmt.Errorf("find the end of the page in %s: %w", table, err)
		}
		switch {
		case len(at) == 0:
			continue
		case s.At.Newer:
			w.high = at[0]
		default:
			w.low = at[0]
		}
		w.cut = true
	}
	return w, nil
}

// cut makes a page of what was read in the span's direction.
func cut[T any](s Slice, w bounds, rows []T, id func(T) int64) Page[T] {
	var p Page[T]
	more := len(rows) > s.size()
	rows = rows[:min(len(rows), s.size())]
	if more {
		w.cut = false
	}
	// onward is the page in the direction of reading, back the one it came from.
	onward, back := Cursor{Newer: s.At.Newer}, Cursor{Newer: !s.At.Newer}
	switch {
	case more:
		onward.ID = id(rows[len(rows)-1])
	case w.cut && s.At.Newer:
		onward.ID, p.Reached = w.high, db.IDTime(w.high)
	case w.cut:
		onward.ID, p.Reached = w.low, db.IDTime(w.low)
	}
	switch {
	case s.At.ID == 0:
	case len(rows) > 0:
		back.ID = id(rows[0])
	case s.At.Newer:
		back.ID = s.At.ID + 1
	default:
		back.ID = s.At.ID - 1
	}
	p.Rows, p.Older, p.Newer = rows, onward, back
	if s.At.Newer {
		slices.Reverse(p.Rows)
		p.Older, p.Newer = back, onward
	}
	if len(p.Rows) > 0 {
		p.Newest = id(p.Rows[0])
	}
	if p.Older.ID == 0 {
		p.Older = Cursor{}
	}
	if p.Newer.ID == 0 {
		p.Newer = Cursor{}
	}
	return p
}

// counted adds how many rows the list has, as far as countRows. A list that is
// on one page is counted already; match finds the list's rows by its filter. w is
// what the page looked at.
func counted[T any](ctx context.Context, b *Book, p *Page[T], s Slice, w bounds, scans bool, table, alias string, match func(*bun.SelectQuery) *bun.SelectQuery) error {
	if s.Uncounted {
		return nil
	}
	if s.At.ID == 0 && (p.Older.ID == 0 || p.Reached > 0) {
		p.Count, p.More = int64(len(p.Rows)), p.Reached > 0
		return nil
	}
	if s.At.ID != 0 {
		whole := Slice{From: s.From, To: s.To}
		w = whole.window()
		if scans {
			var err error
			if w, err = b.scan(ctx, whole, w, table); err != nil {
				return err
			}
		}
	}
	in := b.db.Read.NewSelect().TableExpr("? AS ?", bun.Ident(table), bun.Ident(alias)).ColumnExpr("1").
		Where("? BETWEEN ? AND ?", bun.Safe(alias+".id"), w.low, w.high).OrderExpr("? DESC", bun.Safe(alias+".id")).Limit(countRows + 1)
	err := b.db.Read.NewSelect().TableExpr("(?) AS w", match(in)).ColumnExpr("count(*)").Scan(ctx, &p.Count)
	if err != nil {
		return fmt.Errorf("count rows of %s: %w", table, err)
	}
	if p.More = p.Count > countRows || w.cut; p.Count > countRows {
		p.Count = countRows
	}
	return nil
}
