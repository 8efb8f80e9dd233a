package list

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// ErrTooMany means that a query matches more rows than IDs may return.
var ErrTooMany = errors.New("too many rows match: narrow the filter")

// gathered reports whether the keys of all matches are gathered.
func (p *plan) gathered() bool {
	return slices.ContainsFunc(p.parts, func(x *part) bool { return x.gathered })
}

// count counts matches within bounds, up to limit; more = there are more, or there may be more
// beyond the bounds.
func (p *plan) count(ctx context.Context, w bounds, limit int) (n int64, more bool, err error) {
	for _, x := range p.parts {
		if x.gathered {
			n += int64(len(x.nearest(w, true, fewRows)))
			continue
		}
		var part int64
		in := p.read.NewSelect().TableExpr("? AS ?", bun.Ident(x.Table), bun.Ident(x.Alias)).ColumnExpr("1")
		err := p.read.NewSelect().TableExpr("(?) AS w", p.ordered(x, in, w, false, limit+1)).ColumnExpr("count(*)").Scan(ctx, &part)
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

// Newer counts the rows that are newer than the one with a key, up to limit; more = there are
// more.
func (q Query) Newer(ctx context.Context, d *db.DB, s Slice, than int64, limit int) (n int64, more bool, err error) {
	return q.Between(ctx, d, s, than, math.MaxInt64, limit)
}

// Between counts the rows that are newer than the one with a key and whose keys are at most upTo.
func (q Query) Between(ctx context.Context, d *db.DB, s Slice, than, upTo int64, limit int) (n int64, more bool, err error) {
	return q.countFrom(ctx, d, s, Cursor{ID: than, Newer: true}, upTo, limit)
}

// Count counts the rows in the slice's time range, up to limit; more = there are more, or there
// may be.
func (q Query) Count(ctx context.Context, d *db.DB, s Slice, limit int) (n int64, more bool, err error) {
	return q.countFrom(ctx, d, s, Cursor{}, math.MaxInt64, limit)
}

func (q Query) countFrom(ctx context.Context, d *db.DB, s Slice, at Cursor, upTo int64, limit int) (n int64, more bool, err error) {
	p, err := q.plan(ctx, d, s)
	if err != nil {
		return 0, false, err
	}
	w, err := p.bounds(ctx, at)
	if err != nil {
		return 0, false, err
	}
	w.high = min(w.high, upTo)
	n, more, err = p.count(ctx, w, limit)
	return min(n, int64(limit)), more || n > int64(limit), err
}

// Missing returns the first term that no row can ever match, such as a merchant that does not
// exist; nil = there is none.
func (q Query) Missing(ctx context.Context, d *db.DB) (*Term, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	for _, t := range q.Terms {
		none := true
		for i := range q.Spec.Sources {
			m, err := t.match(ctx, Lookup{DB: d, Read: d.Lists, Source: &q.Spec.Sources[i], Query: q}, q.Spec.field(t.Name))
			if err != nil {
				return nil, err
			}
			none = none && m.None
		}
		if none {
			return &t, nil
		}
	}
	return nil, nil
}

// Any reports whether the list has any row, ignoring the terms except Spec.Of: an empty list shows
// what to do first.
func (q Query) Any(ctx context.Context, d *db.DB) (bool, error) {
	of := q.Get(q.Spec.Of)
	q.Terms = nil
	q = q.With(q.Spec.Of, of)
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

// sumRows bounds how many rows are summed; see Spec.SumRows.
const sumRows = 20_000

// Sum is the money of some rows in one currency.
type Sum struct {
	Currency string `bun:"currency"`
	Rows     int64  `bun:"rows"`
	Minor    int64  `bun:"minor"`
}

// Totals are the rows of a list that were added up.
type Totals struct {
	Sums   []Sum   // by currency; rows without a currency are left out
	Causes []Cause // of the rows that failed, most rows first
	Rows   int64   // with and without a currency
	More   bool    // there are more rows, or there may be
}

// Cause is the rows of a list that failed for one cause.
type Cause struct {
	Value string
	Rows  int64 // with and without a currency
	Sums  []Sum // as in Totals
}

// maxCauses bounds the causes of one list.
const maxCauses = 16

// add adds the rows of one currency that have the same cause.
func (t *Totals) add(cause string, s Sum) {
	t.Rows += s.Rows
	t.Sums = addSum(t.Sums, s)
	if cause == "" {
		return
	}
	i := slices.IndexFunc(t.Causes, func(c Cause) bool { return c.Value == cause })
	if i < 0 {
		i, t.Causes = len(t.Causes), append(t.Causes, Cause{Value: cause})
	}
	c := &t.Causes[i]
	c.Rows, c.Sums = c.Rows+s.Rows, addSum(c.Sums, s)
}

// addSum adds money to sums in the order of their currencies.
func addSum(all []Sum, s Sum) []Sum {
	if last := len(all) - 1; last >= 0 && all[last].Currency == s.Currency {
		all[last].Rows, all[last].Minor = all[last].Rows+s.Rows, all[last].Minor+s.Minor
		return all
	}
	if s.Currency == "" {
		return all
	}
	return append(all, s)
}

// totals adds up all matches in the slice's time range by currency and by cause. Of more rows than
// Spec.SumRows only the newest are added up; none are if no index covers the filter and there are
// more rows than that.
func (p *plan) totals(ctx context.Context) (t Totals, err error) {
	spec, whole := *p.spec, *p
	limit := spec.sumRows()
	spec.ScanRows, whole.spec = min(spec.scanRows(), limit), &spec
	// A list with money, or with causes, has one source that has them.
	whole.parts = slices.DeleteFunc(slices.Clone(p.parts), func(x *part) bool { return !x.addsUp() })
	w, err := whole.bounds(ctx, Cursor{})
	if err != nil || w.cut {
		return Totals{More: true}, err
	}
	expr := func(text string, none string) bun.Safe { return bun.Safe(cmp.Or(text, none)) }
	for _, x := range whole.parts {
		in := p.ordered(x, p.read.NewSelect().TableExpr("? AS ?", bun.Ident(x.Table), bun.Ident(x.Alias)), w, false, limit).
			ColumnExpr("? AS minor, ? AS currency, ? AS cause", expr(x.Money.Minor, "0"), expr(x.Money.Currency, "''"), expr(x.Cause, "''"))
		var rows []struct {
			Sum   `bun:",extend"`
			Cause string `bun:"cause"`
		}
		err := p.read.NewSelect().TableExpr("(?) AS w",
			in).ColumnExpr("currency, cause, count(*) AS rows, CAST(sum(minor) AS BIGINT) AS minor").
			GroupExpr("currency, cause").OrderExpr("currency, cause").Scan(ctx, &rows)
		if err != nil {
			return Totals{}, fmt.Errorf("add up %s: %w", x.Table, err)
		}
		for _, r := range rows {
			t.add(r.Cause, r.Sum)
		}
	}
	slices.SortStableFunc(t.Causes, func(a, b Cause) int { return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Value, b.Value)) })
	t.Causes = t.Causes[:min(len(t.Causes), maxCauses)]
	t.More = t.Rows >= int64(limit)
	return t, nil
}

// eachRows is how many rows Each and IDs read per query, so that no query holds resources for
// long.
const eachRows = 500

// Each calls fn with each row that read returns from the slice's cursor on, newest first, and
// stops at the first error. Rows added meanwhile are not included.
func Each[T any](s Slice, read func(Slice) (Page[T], error), fn func(T) error) error {
	for s.Rows, s.Uncounted, s.all = eachRows, true, true; ; {
		page, err := read(s)
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			if err := fn(row); err != nil {
				return err
			}
		}
		if s.At = page.Older; s.At == (Cursor{}) {
			return nil
		}
	}
}

// IDs returns the keys below the given one of all matches in the slice's time range, oldest
// first. Errors: ErrTooMany.
func (q Query) IDs(ctx context.Context, d *db.DB, s Slice, below int64, limit int) ([]int64, error) {
	s.At, s.all = Cursor{ID: below}, true
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
	err = Each(p.slice, func(s Slice) (Page[row], error) {
		p.slice = s
		page, _, err := readPage(ctx, p, func(r *row) int64 { return r.Key })
		return page, err
	}, func(r row) error {
		if len(keys) == limit {
			return ErrTooMany
		}
		keys = append(keys, r.Key)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(keys)
	return keys, nil
}
