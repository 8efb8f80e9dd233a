package stock

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Short is an ordered quantity of one SKU that is only partly in stock.
type Short struct {
	OrderID  int64
	SKU      string
	Quantity int64 // ordered
	Short    int64 // pieces that are gone
}

// Resell sells again what the orders had reserved and released, as far as it is still in stock.
// Missing pieces are marked in order_items.short, not sold, and returned; the oldest orders are
// served first.
func Resell(ctx context.Context, tx db.Tx, d *db.DB, orderIDs []int64) ([]Short, error) {
	if len(orderIDs) == 0 {
		return nil, nil
	}
	var items []struct{ OrderID, SKUID, Quantity int64 }
	err := tx.NewRaw("SELECT order_id, sku_id AS skuid, quantity FROM order_items WHERE order_id IN (?) ORDER BY order_id, sku_id",
		bun.List(orderIDs)).Scan(ctx, &items)
	if err != nil {
		return nil, fmt.Errorf("read order items: %w", err)
	}
	ids := map[int64]bool{}
	for _, i := range items {
		ids[i.SKUID] = true
	}
	rows, err := lock(ctx, tx, d, "s.id IN (?)", bun.List(slices.Sorted(maps.Keys(ids))))
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]*SKU, len(rows))
	for _, s := range rows {
		byID[s.ID] = s
	}
	sold := map[int64]int64{}
	var short []Short
	for _, i := range items {
		s := byID[i.SKUID]
		if s == nil {
			return nil, fmt.Errorf("%w of id %d", ErrUnknownSKU, i.SKUID)
		}
		n := min(i.Quantity, s.Stock-s.Locked-sold[s.ID])
		if n > 0 {
			sold[s.ID] += n
		}
		if n == i.Quantity {
			continue
		}
		short = append(short, Short{OrderID: i.OrderID, SKU: s.SKU, Quantity: i.Quantity, Short: i.Quantity - n})
		if _, err := tx.NewRaw("UPDATE order_items SET short = ? WHERE order_id = ? AND sku_id = ?", i.Quantity-n, i.OrderID,
			i.SKUID).Exec(ctx); err != nil {
			return nil, fmt.Errorf("mark short items: %w", err)
		}
	}
	return short, apply(ctx, tx, sold, "stock = s.stock - _d.quantity", "sold = s.sold + _d.quantity")
}
