package console

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/base/moves"
	"backstop/internal/notify"
	"backstop/internal/payment"

	"github.com/uptrace/bun"
)

const (
	// minEnding is the minimum number of final digits for a search.
	minEnding = 6
	// maxFound bounds the results of each kind.
	maxFound = 50
)

// Found is the result of a search.
type Found struct {
	Orders    []Order
	Merchants []Named
	// Exceptions: callbacks were received for this number although there is no such order.
	Exceptions bool
	More       bool // there are more orders
	// Amount: the text may also be an amount. No index covers amounts; the order list can
	// search for them and shows how far it has searched.
	Amount bool
}

// Search finds orders by our number, the merchant's number, the supplier's trade number, a
// notification's id, or the last six or more digits of a number, and merchants by code. All by
// indexes, however old the order.
func (b *Reader) Search(ctx context.Context, q string) (*Found, error) {
	f := &Found{Amount: len(money.Sums(q)) > 0}
	ids, err := numbered(ctx, b.db.Read, q)
	if err != nil {
		return nil, err
	}
	for _, look := range []struct {
		query string
		args  []any
		skip  bool
	}{
		{"SELECT order_id FROM payment_attempts WHERE supplier_trade_no = ? AND supplier_trade_no <> ''" +
			" AND " + moves.In("status", payment.Settled...) + " LIMIT ?", []any{q, maxFound}, false},
		{
			"SELECT id FROM orders WHERE substr(order_no, length(order_no) - 5) = ? AND substr(order_no, length(order_no) - ?) = ? LIMIT ?",
			[]any{ending(q), len(q) - 1, q, maxFound + 1},
			ending(q) == "",
		},
	} {
		if look.skip {
			continue
		}
		var more []int64
		if err := b.db.Read.NewRaw(look.query, look.args...).Scan(ctx, &more); err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		ids = append(ids, more...)
	}
	switch event, err := notify.FindEvent(ctx, b.db.Read, q); {
	case err == nil:
		ids = append(ids, event.SubjectID)
	case !errors.Is(err, notify.ErrNoDelivery):
		return nil, err
	}
	if len(ids) > 0 {
		err := b.db.Read.NewSelect().TableExpr("orders AS o").ColumnExpr(orderColumns).Where("o.id IN (?)", bun.List(ids)).
			OrderExpr("o.id DESC").Limit(maxFound+1).Scan(ctx, &f.Orders)
		if err != nil {
			return nil, fmt.Errorf("read the orders that were found: %w", err)
		}
		f.More = len(f.Orders) > maxFound
		f.Orders = f.Orders[:min(len(f.Orders), maxFound)]
		if err := b.addNotifyStatus(ctx, f.Orders); err != nil {
			return nil, err
		}
	}
	err = b.db.Read.NewRaw("SELECT id, code, name FROM merchants WHERE code = ?", q).Scan(ctx, &f.Merchants)
	if err != nil {
		return nil, fmt.Errorf("search merchants: %w", err)
	}
	if len(f.Orders) == 0 {
		var one []int64
		err = b.db.Read.NewRaw("SELECT id FROM exceptions WHERE order_no = ? LIMIT 1", q).Scan(ctx, &one)
		f.Exceptions = len(one) > 0
	}
	return f, err
}

// IsEnding reports whether a text may be the last digits of a number.
func IsEnding(q string) bool { return ending(q) != "" }

// ending returns the indexed part of a number's last digits; "" = the text is not one.
func ending(q string) string {
	if len(q) < minEnding || strings.Trim(q, "0123456789") != "" {
		return ""
	}
	return q[len(q)-minEnding:]
}
