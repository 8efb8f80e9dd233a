package order

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/moves"

	"github.com/uptrace/bun"
)

// An ended order keeps its next_at, so that a payment changes no index. Queries by next_at must
// therefore also check the status, and start at the watermark.

// IsOpen returns the SQL condition that an order (by its alias) is open.
func IsOpen(alias string) string { return Moves.In(alias+".status", Moves.Open()...) }

const dueFrom = "orders_due_from"

// DueFrom is the watermark as SQL (Unix µs): no open order has an earlier next_at.
const DueFrom = "coalesce((SELECT value FROM settings WHERE name = '" + dueFrom + "'), 0)"

// Watermark reads DueFrom.
func Watermark(ctx context.Context, q bun.IDB) (at int64, err error) {
	if err = q.NewRaw("SELECT "+DueFrom).Scan(ctx, &at); err != nil {
		return 0, fmt.Errorf("read the watermark of due orders: %w", err)
	}
	return at, nil
}

// Advance moves the watermark, unless it has changed since it was read: an import may have
// brought an order that is due earlier, or another process was faster.
func Advance(ctx context.Context, d *db.DB, from, to int64) error {
	if _, err := d.NewRaw("UPDATE settings SET value = ? WHERE name = ? AND value = ?", to, dueFrom, from).Exec(ctx); err != nil {
		return fmt.Errorf("move the watermark of due orders: %w", err)
	}
	return nil
}

// lowerWatermark moves the watermark below everything an import has staged. It always changes
// it, so that nobody who read it before can move it.
func lowerWatermark(ctx context.Context, tx db.Tx, runID int64) error {
	_, err := tx.NewRaw("UPDATE settings SET value = CASE WHEN value < i.next_at THEN value ELSE i.next_at END - 1"+
		" FROM (SELECT min(next_at) AS next_at FROM import_orders WHERE run_id = ?) AS i WHERE name = ? AND i.next_at IS NOT NULL", runID,
		dueFrom).Exec(ctx)
	if err != nil {
		return fmt.Errorf("lower the watermark of due orders: %w", err)
	}
	return nil
}

// RetryClose is the wait before retrying to close an order.
const RetryClose = time.Minute

// Postpone reschedules orders that cannot be closed, so that they hold up neither others nor
// the watermark.
func Postpone(ctx context.Context, d *db.DB, ids []int64, until int64) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := d.NewRaw("UPDATE orders AS o SET next_at = ?, close_tries = o.close_tries + 1 WHERE o.id IN (?) AND "+IsOpen("o"), until,
		bun.List(ids)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("postpone orders that cannot be closed: %w", err)
	}
	return nil
}

// OpenAttempts are the statuses of payment attempts that may still be paid. A test in package
// payment, which owns attempts, keeps the list complete.
var OpenAttempts = []string{"created", "submitted", "unknown"}

// QueriedSupplier returns an SQL expression for the supplier at which an order is queried: that of its
// open payment, else the order's.
func QueriedSupplier(alias string) string {
	return "coalesce((SELECT max(a.supplier_id) FROM payment_attempts AS a WHERE a.order_id = " + alias + ".id AND a.supplier_id <> 0" +
		" AND " + moves.Words("a.status", OpenAttempts...) + "), " + alias + ".supplier_id)"
}
