package suppliercall

import (
	"context"
	"fmt"

	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// known are the answers after which "not found" is not believed, because the supplier knew the
// reference.
var known = []string{
	string(supplier.AnswerPaid), string(supplier.AnswerPaying), string(supplier.AnswerClosed),
	string(supplier.AnswerFailed), Refunded,
}

// WasKnown reports whether the supplier has ever answered about a reference. Timeouts and
// earlier "not found" answers do not count.
func WasKnown(ctx context.Context, q bun.IDB, orderID int64, reference string) (bool, error) {
	var n int
	err := q.NewRaw("SELECT count(*) FROM supplier_calls WHERE order_id = ? AND reference = ? AND op IN (?) AND status IN (?)",
		orderID, reference, bun.List([]Op{Query, Close}), bun.List(known)).Scan(ctx, &n)
	if err != nil {
		return false, fmt.Errorf("read earlier answers: %w", err)
	}
	return n > 0, nil
}

// Started returns when the payment with a reference was last started (Unix µs; a start may be
// repeated with the same reference); 0 = never.
func Started(ctx context.Context, q bun.IDB, orderID int64, reference string) (at int64, err error) {
	err = q.NewRaw("SELECT coalesce(max(started_at), 0) FROM supplier_calls WHERE order_id = ? AND reference = ? AND op = ?", orderID,
		reference, Pay).Scan(ctx, &at)
	if err != nil {
		return 0, fmt.Errorf("read when a payment was started: %w", err)
	}
	return at, nil
}
