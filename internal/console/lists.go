package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/alert"
	"backstop/internal/audit"

	"github.com/uptrace/bun"
)

// ErrNotFound says that there is no such thing to show.
var ErrNotFound = errors.New("there is no such thing")

// Anything says whether the table has a row at all: an empty list that was never
// anything else says what to do first.
func (b *Book) Anything(ctx context.Context, table string) (bool, error) {
	var id []int64
	if err := b.db.Read.NewRaw("SELECT id FROM ? ORDER BY id DESC LIMIT 1", bun.Ident(table)).Scan(ctx, &id); err != nil {
		return false, fmt.Errorf("look for %s: %w", table, err)
	}
	return len(id) > 0, nil
}

// MerchantID finds a merchant by its code; 0 = there is none.
func (b *Book) MerchantID(ctx context.Context, code string) (int64, error) {
	return b.coded(ctx, "merchants", code)
}

// ToldID finds a merchant, or one of the house's systems, by its code; 0 = there is
// none. A merchant comes first where both have it.
func (b *Book) ToldID(ctx context.Context, code string) (int64, error) {
	if id, err := b.coded(ctx, "merchants", code); err != nil || id != 0 {
		return id, err
	}
	return b.coded(ctx, "subscriptions", code)
}

// SupplierID finds a supplier by its code; 0 = there is none.
func (b *Book) SupplierID(ctx context.Context, code string) (int64, error) {
	return b.coded(ctx, "suppliers", code)
}

func (b *Book) coded(ctx context.Context, table, code string) (int64, error) {
	var id []int64
	if err := b.db.Read.NewRaw("SELECT id FROM ? WHERE code = ?", bun.Ident(table), code).Scan(ctx, &id); err != nil {
		return 0, fmt.Errorf("find a code in %s: %w", table, err)
	}
	if len(id) == 0 {
		return 0, nil
	}
	return id[0], nil
}

// where is one condition of a list's filter.
type where struct {
	query string
	args  []any
}

// conditions narrow a query.
type conditions []where

func (c *conditions) add(query string, args ...any) { *c = append(*c, where{query, args}) }

// equal adds a condition where the filter has a value.
func (c *conditions) equal(column, value string) {
	if value != "" {
		c.add(column+" = ?", value)
	}
}

func (c conditions) apply(q *bun.SelectQuery) *bun.SelectQuery {
	for _, w := range c {
		q = q.Where(w.query, w.args...)
	}
	return q
}

// byTime orders a story; what happened at the same microsecond keeps its order.
func byTime(items []Item) {
	slices.SortStableFunc(items, func(a, b Item) int { return cmp.Compare(a.At, b.At) })
}

// Alerts is one page of alerts, newest first; state "" is any.
func (b *Book) Alerts(ctx context.Context, state string, s Slice) (Page[alert.Alert], error) {
	var rows []alert.Alert
	w := s.ids()
	q := s.within(b.db.Read.NewSelect().Model(&rows), "al", w)
	if state != "" {
		q = q.Where("al.state = ?", state)
	}
	if err := q.Scan(ctx); err != nil {
		return Page[alert.Alert]{}, fmt.Errorf("read alerts: %w", err)
	}
	return cut(s, w, rows, func(a alert.Alert) int64 { return a.ID }), nil
}

// Acts is one page of what people did, newest first. Its cursors are numbers.
func (b *Book) Acts(ctx context.Context, q audit.Query, s Slice) (Page[audit.Row], error) {
	q.From, q.To, q.Limit, q.Oldest = s.From, s.To, s.size()+1, s.At.Newer
	if s.At.Newer {
		q.After = s.At.ID
	} else {
		q.Before = s.At.ID
	}
	rows, err := audit.List(ctx, b.db.Read, q)
	if err != nil {
		return Page[audit.Row]{}, err
	}
	return cut(s, bounds{}, rows, func(r audit.Row) int64 { return r.Number }), nil
}
