package list

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// ErrTooMany says that a query finds more rows than may be taken up together.
var ErrTooMany = errors.New("too many rows match: narrow the filter")

// gathered says that all that matches is known by its keys.
func (p *plan) gathered() bool {
	return slices.ContainsFunc(p.parts, func(x *part) bool { return x.gathered })
}

// count counts what matches within bounds, as far as limit; more says that there is
// more, or may be beyond the bounds.
func (p *plan) count(ctx context.Context, w bounds, limit int) (n int64, more bool, err error) {
	for _, x := range p.parts {
		if x.gathered {
			n += int64(len(x.nearest(w, true, fewRows)))
			continue
		}
		var part int64
		in := p.db.Read.NewSelect().TableExpr("? AS ?", bun.Ident(x.Table), bun.Ident(x.Alias)).ColumnExpr("1")
		err := p.db.Read.NewSelect().TableExpr("(?) AS w", p.ordered(x, in, w, false, limit+1)).ColumnExpr("count(*)").Scan(ctx, &part)
		if err != nil {
			return 0, false, fmt.Errorf("count rows of %s: %w", x.Table, err)
		}
		n += part
	}
	if p.gathered() {
		return n, false, nil
	}
	return min(n, int64(limit)), n > int64(limit) || w.cut, nil
}

// Newer is how many rows came since the one of a key, counted as far as limit; more
// says that there are more.
func (q Query) Newer(ctx context.Context, d *db.DB, s Slice, than int64, limit int) (n int64, more bool, err error) {
	p, err := q.plan(ctx, d, s)
	if err != nil {
		return 0, false, err
	}
	w, err := p.bounds(ctx, Cursor{ID: than, Newer: true})
	if err != nil {
		return 0, false, err
	}
	n, more, err = p.count(ctx, w, limit)
	return min(n, int64(limit)), more || n > int64(limit), err
}

// Any says whether the list has a row at all, whatever the terms: an empty list that
// was never anything else says what to do first.
func (q Query) Any(ctx context.Context, d *db.DB) (bool, error) {
	q.Terms = nil
	p, err := q.plan(ctx, d, Slice{})
	if err != nil {
		return false, err
	}
	w, err := p.bounds(ctx, Cursor{})
	if err != nil {
		return false, err
	}
	n, _, err := p.count(ctx, w, 1)
	return n > 0, err
}

// Sum is the money of rows in one currency.
type Sum struct {
	Currency string `bun:"currency"`
	Rows     int64  `bun:"rows"`
	Minor    int64  `bun:"minor"`
}

// Sums is the money of all that matches in the slice's time, by currency; what is
// about no money is left out. No more than 50,000 rows of a source are added up, the
// newest: more says that there may be others.
func (q Query) Sums(ctx context.Context, d *db.DB, s Slice) (sums []Sum, more bool, err error) {
	p, err := q.plan(ctx, d, s)
	if err != nil {
		return nil, false, err
	}
	w, err := p.bounds(ctx, Cursor{})
	if err != nil {
		return nil, false, err
	}
	more = w.cut
	by := map[string]Sum{}
	for _, x := range p.parts {
		if x.Money == (Money{}) {
			continue
		}
		in := p.db.Read.NewSelect().TableExpr("? AS ?", bun.Ident(x.Table), bun.Ident(x.Alias))
		if x.gathered {
			in = x.narrow(p.amongFew(x)).Where("? BETWEEN ? AND ?", x.key(), w.low, w.high)
		} else {
			in = p.ordered(x, in, w, false, scanRows)
		}
		in = x.joined(in).ColumnExpr("? AS minor, ? AS currency", bun.Safe(x.Money.Minor), bun.Safe(x.Money.Currency))
		var rows []Sum
		err := p.db.Read.NewSelect().TableExpr("(?) AS w", in).ColumnExpr("currency, count(*) AS rows, CAST(sum(minor) AS BIGINT) AS minor").
			GroupExpr("currency").Scan(ctx, &rows)
		if err != nil {
			return nil, false, fmt.Errorf("sum up %s: %w", x.Table, err)
		}
		read := int64(0)
		for _, r := range rows {
			read += r.Rows
			if r.Currency != "" {
				by[r.Currency] = Sum{r.Currency, by[r.Currency].Rows + r.Rows, by[r.Currency].Minor + r.Minor}
			}
		}
		more = more || !x.gathered && read >= scanRows
	}
	for _, r := range by {
		sums = append(sums, r)
	}
	slices.SortFunc(sums, func(a, b Sum) int { return cmp.Compare(a.Currency, b.Currency) })
	return sums, more, nil
}

// eachRows is how many rows Each and IDs read at once.
const eachRows = 500

// Each gives all that matches in the slice's time to fn, newest first, and stops at
// its first error. It reads a page at a time: nothing is held for long, neither in
// memory nor in the database. After limit rows it ends with ErrTooMany.
func Each[T any](ctx context.Context, d *db.DB, q Query, s Slice, limit int, key func(*T) int64, fn func(T) error) error {
	p, err := q.plan(ctx, d, s)
	if err != nil {
		return err
	}
	return each(ctx, p, limit, key, fn)
}

func each[T any](ctx context.Context, p *plan, limit int, key func(*T) int64, fn func(T) error) error {
	given := 0
	for p.slice.Rows = eachRows; ; {
		page, _, err := readPage(ctx, p, key)
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			if given == limit {
				return ErrTooMany
			}
			given++
			if err := fn(row); err != nil {
				return err
			}
		}
		if p.slice.At = page.Older; p.slice.At == (Cursor{}) {
			return nil
		}
	}
}

// IDs are the keys of all that matches in the slice's time and is below a key, oldest
// first: what a plan about them freezes. Errors: ErrTooMany.
func (q Query) IDs(ctx context.Context, d *db.DB, s Slice, below int64, limit int) ([]int64, error) {
	s.At = Cursor{ID: below}
	p, err := q.plan(ctx, d, s)
	if err != nil {
		return nil, err
	}
	type row struct {
		Key int64 `bun:"key"`
	}
	for _, x := range p.parts {
		only := *x.Source
		only.Columns, only.Joins = x.Alias+"."+x.Key+" AS key", ""
		x.Source = &only
	}
	keys := []int64{}
	err = each(ctx, p, limit, func(r *row) int64 { return r.Key }, func(r row) error {
		keys = append(keys, r.Key)
		return nil
	})
	slices.Reverse(keys)
	return keys, err
}
