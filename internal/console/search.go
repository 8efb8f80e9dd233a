package console

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"backstop/internal/base/money"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/payment"

	"github.com/uptrace/bun"
)

const (
	// minEnding is the minimum number of final digits for a search.
	minEnding = 6
	// maxFound bounds the results of each kind.
	maxFound = 50
	// minNamePart is the minimum number of characters of a part of a name.
	minNamePart = 2
)

// Found is the result of a search.
type Found struct {
	Orders []Order
	More   bool // there are more orders
	// Merchants and Suppliers have the text as their code, which is the first one then, or as a
	// part of code or name.
	Merchants, Suppliers []Named
	// Exceptions are about the orders found, or about callbacks for this number although there
	// is no such order; or the number is theirs.
	Exceptions []exception.Item
	// Amount: the text may also be an amount. No index covers amounts; the order list can
	// search for them and shows how far it has searched.
	Amount bool
}

// Search finds orders by our number, the merchant's number, the supplier's trade number, a
// notification's id, or the last six or more digits of a number, and their exceptions: all by
// indexes, however old the order. It finds merchants and suppliers by their codes and names.
func (b *Reader) Search(ctx context.Context, q string) (*Found, error) {
	f := &Found{Amount: len(money.Sums(q)) > 0}
	ids, err := numbered(ctx, b.db.Lists, q)
	if err != nil {
		return nil, err
	}
	for _, look := range []struct {
		query string
		args  []any
		skip  bool
	}{
		{"SELECT order_id FROM payment_attempts WHERE supplier_trade_no = ? AND supplier_trade_no <> ''" +
			" AND " + payment.Moves.In("status", payment.Settled...) + " LIMIT ?", []any{q, maxFound}, false},
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
		if err := b.db.Lists.NewRaw(look.query, look.args...).Scan(ctx, &more); err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		ids = append(ids, more...)
	}
	switch event, err := notify.FindEvent(ctx, b.db.Lists, q); {
	case err == nil:
		ids = append(ids, event.SubjectID)
	case !errors.Is(err, notify.ErrNoDelivery):
		return nil, err
	}
	if len(ids) > 0 {
		err := b.db.Lists.NewSelect().TableExpr("orders AS o").ColumnExpr(orderColumns).Where("o.id IN (?)", bun.List(ids)).
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
	if f.Merchants, err = b.findNamed(ctx, "merchants", "name", q); err != nil {
		return nil, err
	}
	if f.Suppliers, err = b.findNamed(ctx, "suppliers", "kind", q); err != nil {
		return nil, err
	}
	f.Exceptions, err = b.exceptionsAbout(ctx, q, f.Orders)
	return f, err
}

// findNamed finds merchants or suppliers by code, name and another column, that with the code first.
func (b *Reader) findNamed(ctx context.Context, table, also, q string) (found []Named, err error) {
	part := strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(strings.ToLower(q))
	if utf8.RuneCountInString(q) >= minNamePart {
		part = "%" + part + "%"
	}
	err = b.db.Lists.NewRaw(
		"SELECT id, code, name FROM ?0 WHERE code = ?1 OR lower(code) LIKE ?2 ESCAPE '!' OR lower(name) LIKE ?2 ESCAPE '!' OR lower(?4) LIKE ?2 ESCAPE '!'"+
			" ORDER BY CASE WHEN code = ?1 THEN 0 ELSE 1 END, code LIMIT ?3", bun.Ident(table), q, part,
		maxFound, bun.Ident(also)).Scan(ctx, &found)
	if err != nil {
		return nil, fmt.Errorf("search %s: %w", table, err)
	}
	return found, nil
}

// exceptionsAbout finds the exception with an id, and those of order numbers.
func (b *Reader) exceptionsAbout(ctx context.Context, q string, orders []Order) (found []exception.Item, err error) {
	numbers := []string{q}
	for _, o := range orders {
		numbers = append(numbers, o.OrderNo)
	}
	id, _ := strconv.ParseInt(q, 10, 64) // 0 is none's
	for _, look := range []struct {
		where string
		arg   any
	}{{"x.id = ?", id}, {"x.order_no IN (?)", bun.List(numbers)}} {
		var rows []exception.Item
		if err := b.db.Lists.NewSelect().Model(&rows).Where(look.where,
			look.arg).OrderExpr("x.id DESC").Limit(maxFound).Scan(ctx); err != nil {
			return nil, fmt.Errorf("search exceptions: %w", err)
		}
		found = append(found, rows...)
	}
	return found, nil
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
