package list

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// ErrTooMany: a query finds more rows than IDs may return.
var ErrTooMany = errors.New("too many rows match: narrow the filter")

// gathered reports whether the keys of all that matches are gathered.
func (p *plan) gathered() bool {
	return slices.ContainsFunc(p.parts, func(x *part) bool { return x.gathered })
}

// count counts what matches within bounds, as far as limit; more: there is more, or may
// be beyond the bounds.
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

// Newer is how many rows are newer than the one of a key, counted as far as limit; more:
// there are more.
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

// Any reports whether the list has a row at all, whatever the terms: a list that was
// always empty shows what to do first.
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

// idRows is how many keys IDs reads at once: nothing is held for long in the database.
const idRows = 500

// IDs are the keys of all that matches in the slice's time and is below a key, oldest
// first. Errors: ErrTooMany.
func (q Query) IDs(ctx context.Context, d *db.DB, s Slice, below int64, limit int) ([]int64, error) {
	s.At, s.Rows = Cursor{ID: below}, idRows
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
	for {
		page, _, err := readPage(ctx, p, func(r *row) int64 { return r.Key })
		if err != nil {
			return nil, err
		}
		for _, r := range page.Rows {
			keys = append(keys, r.Key)
		}
		if len(keys) > limit {
			return nil, ErrTooMany
		}
		if p.slice.At = page.Older; p.slice.At == (Cursor{}) {
			slices.Reverse(keys)
			return keys, nil
		}
	}
}
