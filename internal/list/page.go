package list

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// PageSize is the default number of rows per page.
const PageSize = 50

// scanRows bounds how many rows one query scans if no index covers the filter. A page may then
// be short although there is a next page.
const scanRows = 50_000

// CountRows bounds the count of a list's rows, if they are not also added up.
const CountRows = 1000

// Cursor is where a page begins; the zero Cursor means the newest page.
type Cursor struct {
	ID    int64
	Newer bool // true = the rows just newer than ID, false = the rows older
}

// Slice is the part of a list to read.
type Slice struct {
	// From and To bound when rows were created (Unix µs; To is exclusive); 0 = no bound.
	// Imported orders count from their import.
	From, To int64
	At       Cursor
	Rows     int // rows per page; 0 = PageSize
	// Only restricts the rows to these keys; nil = any.
	Only []int64
	// Uncounted skips counting the rows of the whole list. Totals also adds them up, if they
	// have money, and by cause, if they can fail.
	Uncounted, Totals bool
	all               bool // one of the slices of Each: an export has all the time that it needs
}

// reader returns the connections that read the slice.
func (s Slice) reader(d *db.DB) *bun.DB {
	if s.all {
		return d.Read
	}
	return d.Lists
}

// Page is one page of a list, newest first.
type Page[T any] struct {
	Rows []T
	// Older and Newer are the adjacent pages; zero = none.
	Older, Newer Cursor
	Newest       int64 // key of the first row; 0 = no rows
	// Reached is how far back rows were searched (Unix µs) if a limit ended the search early;
	// otherwise 0. The next page continues there.
	Reached int64
	Count   int64  // rows of the whole list, as far as counted
	More    bool   // there are more than Count
	Totals  Totals // of the whole list, if they were asked for
}

// bounds are the keys that may be read, both included.
type bounds struct {
	low, high int64
	cut       bool // ends before the slice does
}

func (s Slice) size() int {
	if s.Rows <= 0 {
		return PageSize
	}
	return s.Rows
}

// window converts the slice's time range to keys.
func (s Slice) window(from *Source) bounds {
	w := bounds{high: math.MaxInt64}
	if s.From > 0 && from.Time == "" {
		w.low = db.IDAt(s.From)
	}
	if s.To > 0 && from.Time == "" {
		w.high = db.IDAt(s.To) - 1
	}
	return w
}

// from restricts bounds to the rows beyond a cursor.
func (w bounds) from(at Cursor) bounds {
	switch {
	case at.ID == 0:
	case at.Newer:
		w.low = max(w.low, at.ID+1)
	default:
		w.high = min(w.high, at.ID-1)
	}
	return w
}

func direction(newer bool) bun.Safe {
	if newer {
		return "ASC"
	}
	return "DESC"
}

// Read reads one page. key returns the key of a row.
func Read[T any](ctx context.Context, d *db.DB, q Query, s Slice, key func(*T) int64) (Page[T], error) {
	p, err := q.plan(ctx, d, s)
	if err != nil {
		return Page[T]{}, err
	}
	page, w, err := readPage(ctx, p, key)
	if err != nil || s.Uncounted {
		return page, err
	}
	if s.Totals {
		if page.Totals, err = p.totals(ctx); err != nil || q.Spec.HasMoney() && !page.Totals.More {
			page.Count = page.Totals.Rows
			return page, err
		}
	}
	if s.At.ID == 0 && (page.Older.ID == 0 || page.Reached > 0) && !p.gathered() {
		page.Count, page.More = int64(len(page.Rows)), page.Reached > 0 // this page has all rows
		return page, nil
	}
	if s.At.ID != 0 {
		if w, err = p.bounds(ctx, Cursor{}); err != nil {
			return page, err
		}
	}
	page.Count, page.More, err = p.count(ctx, w, CountRows)
	return page, err
}

// readPage reads the plan's page and returns the bounds that it searched.
func readPage[T any](ctx context.Context, p *plan, key func(*T) int64) (page Page[T], w bounds, err error) {
	if len(p.parts) == 0 {
		return page, w, nil
	}
	if w, err = p.bounds(ctx, p.slice.At); err != nil {
		return page, w, err
	}
	var rows []T
	for _, x := range p.parts {
		var more []T
		q := p.read.NewSelect().Model(&more).ModelTableExpr("? AS ?", bun.Ident(x.Table), bun.Ident(x.Alias))
		if x.Columns != "" {
			q = q.ColumnExpr(x.Columns)
		}
		if x.Joins != "" {
			q = q.Join(x.Joins)
		}
		if err := p.ordered(x, q, w, p.slice.At.Newer, p.slice.size()+1).Scan(ctx); err != nil {
			return page, w, fmt.Errorf("read %s: %w", x.Table, err)
		}
		rows = append(rows, more...)
	}
	if len(p.parts) > 1 {
		slices.SortFunc(rows, func(a, b T) int {
			if p.slice.At.Newer {
				return cmp.Compare(key(&a), key(&b))
			}
			return cmp.Compare(key(&b), key(&a))
		})
	}
	return cut(p.slice, w, rows, key), w, nil
}

// ordered restricts a query of a part to the bounds, ordered by key.
func (p *plan) ordered(x *part, q *bun.SelectQuery, w bounds, newer bool, limit int) *bun.SelectQuery {
	if x.gathered {
		q = q.Where("? IN (?)", x.key(), bun.List(x.nearest(w, newer, limit)))
	} else {
		q = x.narrow(q)
	}
	// A key that is not a time is bounded only if necessary: the index on the filter's columns
	// then also provides the order.
	if x.Time == "" || w.low > 0 && w.high < math.MaxInt64 {
		q = q.Where("? BETWEEN ? AND ?", x.key(), w.low, w.high)
	} else if w.low > 0 {
		q = q.Where("? >= ?", x.key(), w.low)
	} else if w.high < math.MaxInt64 {
		q = q.Where("? <= ?", x.key(), w.high)
	}
	return q.OrderExpr("? ?", x.key(), direction(newer)).Limit(int64(limit))
}

// nearest returns the first gathered keys within bounds, in a direction.
func (x *part) nearest(w bounds, newer bool, limit int) []int64 {
	from, _ := slices.BinarySearch(x.keys, w.low)
	to, found := slices.BinarySearch(x.keys, w.high)
	if found {
		to++
	}
	keys := x.keys[from:max(from, to)]
	switch {
	case len(keys) <= limit:
		return keys
	case newer:
		return keys[:limit]
	}
	return keys[len(keys)-limit:]
}

// bounds returns the keys that a read from a cursor may scan.
func (p *plan) bounds(ctx context.Context, at Cursor) (bounds, error) {
	if len(p.parts) == 0 {
		return bounds{}, nil
	}
	w := p.slice.window(p.parts[0].Source).from(at)
	if !p.scans {
		return w, nil
	}
	for _, x := range p.parts {
		var last []int64
		err := p.read.NewSelect().TableExpr("?", bun.Ident(x.Table)).Column(x.Key).Where("? BETWEEN ? AND ?", bun.Ident(x.Key), w.low,
			w.high).
			OrderExpr("? ?", bun.Ident(x.Key), direction(at.Newer)).Limit(1).Offset(int64(p.spec.scanRows())-1).Scan(ctx, &last)
		if err != nil {
			return w, fmt.Errorf("find how far %s is searched: %w", x.Table, err)
		}
		switch {
		case len(last) == 0:
			continue
		case at.Newer:
			w.high = last[0]
		default:
			w.low = last[0]
		}
		w.cut = true
	}
	return w, nil
}

// cut makes a page of the rows read in the slice's direction.
func cut[T any](s Slice, w bounds, rows []T, key func(*T) int64) Page[T] {
	var p Page[T]
	more := len(rows) > s.size()
	rows = rows[:min(len(rows), s.size())]
	if more {
		w.cut = false
	}
	// onward continues in the direction of reading; back returns to the previous page.
	onward, back := Cursor{Newer: s.At.Newer}, Cursor{Newer: !s.At.Newer}
	switch {
	case more:
		onward.ID = key(&rows[len(rows)-1])
	case w.cut && s.At.Newer:
		onward.ID, p.Reached = w.high, db.IDTime(w.high)
	case w.cut:
		onward.ID, p.Reached = w.low, db.IDTime(w.low)
	}
	switch {
	case s.At.ID == 0:
	case len(rows) > 0:
		back.ID = key(&rows[0])
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
		p.Newest = key(&p.Rows[0])
	}
	if p.Older.ID == 0 {
		p.Older = Cursor{}
	}
	if p.Newer.ID == 0 {
		p.Newer = Cursor{}
	}
	return p
}
