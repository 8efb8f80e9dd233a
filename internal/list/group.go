package list

import (
	"context"
	"fmt"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Group is how many rows of a list have a value in a column.
type Group struct {
	Value string `bun:"value"`
	Rows  int64  `bun:"rows"`
}

// Groups counts the matches in the slice's time range by the values of a column, at most max
// groups, the largest first. Of more rows than Spec.SumRows only the newest are counted; nothing
// is if no index covers the filter and there are more rows than that. more = there are more rows,
// or there may be. The list must have one source.
func (q Query) Groups(ctx context.Context, d *db.DB, s Slice, column string, max int) (groups []Group, more bool, err error) {
	p, err := q.plan(ctx, d, s)
	if err != nil {
		return nil, false, err
	}
	spec, limit := *p.spec, p.spec.sumRows()
	spec.ScanRows = min(spec.scanRows(), limit)
	p.spec = &spec
	w, err := p.bounds(ctx, Cursor{})
	if err != nil || w.cut {
		return nil, true, err
	}
	if len(p.parts) == 0 {
		return nil, false, nil
	}
	x := p.parts[0]
	in := p.ordered(x, p.read.NewSelect().TableExpr("? AS ?", bun.Ident(x.Table), bun.Ident(x.Alias)), w, false, limit+1).
		ColumnExpr("?.? AS value", bun.Ident(x.Alias), bun.Ident(column))
	err = p.read.NewSelect().TableExpr("(?) AS w",
		in).ColumnExpr("value, count(*) AS rows").GroupExpr("value").OrderExpr("rows DESC, value").Scan(ctx, &groups)
	if err != nil {
		return nil, false, fmt.Errorf("count groups of %s: %w", x.Table, err)
	}
	n := int64(0)
	for _, g := range groups {
		n += g.Rows
	}
	return groups[:min(len(groups), max)], n > int64(limit), nil
}
