package exception

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
)

// Query asks for exceptions, newest first. Empty fields do not filter.
type Query struct {
	OrderNo string
	Kind    string
	State   State
	Before  int64 // only ids smaller than this; 0 = from the newest
	Limit   int
}

// List returns one page, newest first, and the Before of the next page; 0 = there
// is none.
func List(ctx context.Context, q bun.IDB, f Query) (items []Item, next int64, err error) {
	in := q.NewSelect().Model(&items).OrderExpr("x.id DESC").Limit(int64(f.Limit) + 1)
	for _, filter := range []struct{ column, value string }{
		{"x.order_no", f.OrderNo}, {"x.kind", f.Kind}, {"x.state", string(f.State)},
	} {
		if filter.value != "" {
			in = in.Where("? = ?", bun.Safe(filter.column), filter.value)
		}
	}
	if f.Before > 0 {
		in = in.Where("x.id < ?", f.Before)
	}
	if err := in.Scan(ctx); err != nil {
		return nil, 0, fmt.Errorf("read exceptions: %w", err)
	}
	if len(items) > f.Limit {
		items = items[:f.Limit]
		next = items[f.Limit-1].ID
	}
	return items, next, nil
}
