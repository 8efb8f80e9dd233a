package settings

import (
	"context"
	"fmt"
	"strconv"

	"github.com/uptrace/bun"
)

// unreadRow is a row with columns that cannot be read: SQLite accepts text in a numeric column.
type unreadRow struct {
	ID   int64 // 0 = not a number
	Code string
	err  error
}

// readRows reads a whole table. If that fails, it reads each row separately and returns the
// unreadable ones apart.
func readRows[R any](ctx context.Context, q bun.IDB, table string) (rows []R, unread []unreadRow, err error) {
	if q.NewSelect().Model(&rows).OrderExpr("id").Scan(ctx) == nil {
		return rows, nil, nil
	}
	var all []struct{ ID, Code string }
	if err := q.NewRaw("SELECT CAST(id AS TEXT) AS id, code FROM ? ORDER BY code", bun.Ident(table)).Scan(ctx, &all); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", table, err)
	}
	rows = nil
	for _, a := range all {
		var row R
		err := q.NewSelect().Model(&row).Where("code = ?", a.Code).Scan(ctx)
		if ctx.Err() != nil {
			return nil, nil, fmt.Errorf("read %s: %w", table, ctx.Err())
		}
		if err != nil {
			id, _ := strconv.ParseInt(a.ID, 10, 64)
			unread = append(unread, unreadRow{ID: id, Code: a.Code, err: err})
			continue
		}
		rows = append(rows, row)
	}
	return rows, unread, nil
}
