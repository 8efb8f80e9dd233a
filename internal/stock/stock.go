// Package stock manages the stock of orders: reserved when an order is created, deducted when
// it is paid, released when it is closed or fails. Stock is never negative and never sold
// twice; CHECK constraints enforce this as well.
package stock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

var (
	// ErrUnknownSKU means that an item names an undeclared SKU.
	ErrUnknownSKU = errors.New("unknown sku")
	// ErrOutOfStock means that there is not enough stock.
	ErrOutOfStock = errors.New("out of stock")
)

// SKU is one article. Stock is the stock on hand, Locked the part of it reserved by open
// orders, Sold what was sold, Applied all that ever came in: Stock + Sold = Applied.
type SKU struct {
	bun.BaseModel `bun:"table:skus,alias:s"`

	ID      int64  `bun:"id,pk"`
	SKU     string `bun:"sku"`
	Stock   int64  `bun:"stock"`
	Locked  int64  `bun:"locked"`
	Sold    int64  `bun:"sold"`
	Applied int64  `bun:"applied"`
}

// Line is an ordered quantity of one SKU.
type Line struct {
	SKU      string `json:"sku" required:"true" max:"64" example:"SKU-1" doc:"The article's number."`
	Quantity int64  `json:"quantity" required:"true" min:"1" max:"1000000" example:"2" doc:"How many of it."`
}

// Reserved is what one order has reserved, by SKU id.
type Reserved map[int64]int64

// Reserve reserves stock for orders in the given order. Each of wants gets either its Reserved
// or an error (ErrOutOfStock, ErrUnknownSKU), and either all of its lines or none.
func Reserve(ctx context.Context, tx db.Tx, d *db.DB, wants [][]Line) ([]Reserved, []error, error) {
	got, errs := make([]Reserved, len(wants)), make([]error, len(wants))
	names := map[string]bool{}
	for _, lines := range wants {
		for _, l := range lines {
			names[l.SKU] = true
		}
	}
	if len(names) == 0 {
		return got, errs, nil
	}
	rows, err := lock(ctx, tx, d, "s.sku IN (?)", bun.List(slices.Collect(maps.Keys(names))))
	if err != nil {
		return nil, nil, err
	}
	bySKU := make(map[string]*SKU, len(rows))
	for _, s := range rows {
		bySKU[s.SKU] = s
	}
	delta := map[int64]int64{}
	for i, lines := range wants {
		got[i], errs[i] = take(bySKU, lines)
		for id, n := range got[i] {
			delta[id] += n
		}
	}
	return got, errs, apply(ctx, tx, delta, "locked = s.locked + _d.quantity")
}

// take reserves all lines of one order from the locked rows, or none.
func take(bySKU map[string]*SKU, lines []Line) (Reserved, error) {
	got := Reserved{}
	for _, l := range lines {
		s := bySKU[l.SKU]
		if s == nil {
			return nil, fmt.Errorf("%w %q", ErrUnknownSKU, l.SKU)
		}
		got[s.ID] += l.Quantity
		if s.Locked+got[s.ID] > s.Stock {
			return nil, fmt.Errorf("%w: %s has %d left", ErrOutOfStock, l.SKU, s.Stock-s.Locked)
		}
	}
	for _, s := range bySKU {
		s.Locked += got[s.ID]
	}
	return got, nil
}

// Deduct converts the reservations of orders into sales.
func Deduct(ctx context.Context, tx db.Tx, d *db.DB, orderIDs []int64) error {
	return settle(ctx, tx, d, orderIDs,
		"stock = s.stock - _d.quantity", "locked = s.locked - _d.quantity", "sold = s.sold + _d.quantity")
}

// Release releases the reservations of orders.
func Release(ctx context.Context, tx db.Tx, d *db.DB, orderIDs []int64) error {
	return settle(ctx, tx, d, orderIDs, "locked = s.locked - _d.quantity")
}

// settle first sums the orders' items by SKU: a statement that matches a row twice changes it
// once.
func settle(ctx context.Context, tx db.Tx, d *db.DB, orderIDs []int64, sets ...string) error {
	if len(orderIDs) == 0 {
		return nil
	}
	var sums []deltaRow
	err := tx.NewRaw(
		"SELECT sku_id AS id, CAST(sum(quantity) AS BIGINT) AS quantity FROM order_items WHERE order_id IN (?) GROUP BY sku_id",
		bun.List(orderIDs)).Scan(ctx, &sums)
	if err != nil {
		return fmt.Errorf("sum order items: %w", err)
	}
	if len(sums) == 0 {
		return nil
	}
	delta := make(map[int64]int64, len(sums))
	for _, s := range sums {
		delta[s.ID] = s.Quantity
	}
	if _, err := lock(ctx, tx, d, "s.id IN (?)", bun.List(slices.Collect(maps.Keys(delta)))); err != nil {
		return err
	}
	return apply(ctx, tx, delta, sets...)
}

type deltaRow struct {
	ID       int64 `bun:"id"`
	Quantity int64 `bun:"quantity"`
}

// lock reads the SKUs by id, the program-wide lock order.
func lock(ctx context.Context, tx db.Tx, d *db.DB, where string, arg any) ([]*SKU, error) {
	var rows []*SKU
	if err := d.ForUpdate(tx.NewSelect().Model(&rows).Where(where, arg).OrderExpr("s.id")).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read stock: %w", err)
	}
	return rows, nil
}

func apply(ctx context.Context, tx db.Tx, delta map[int64]int64, sets ...string) error {
	rows := make([]deltaRow, 0, len(delta))
	for _, id := range slices.Sorted(maps.Keys(delta)) {
		rows = append(rows, deltaRow{ID: id, Quantity: delta[id]})
	}
	if len(rows) == 0 {
		return nil
	}
	q := tx.NewUpdate().With("_d", tx.NewValues(&rows)).Model((*SKU)(nil)).TableExpr("_d").Where("s.id = _d.id")
	for _, set := range sets {
		q = q.Set(set)
	}
	res, err := q.Exec(ctx)
	if err != nil {
		return fmt.Errorf("change stock: %w", err)
	}
	if n, _ := res.RowsAffected(); n != int64(len(rows)) {
		return fmt.Errorf("change stock: %d of %d articles found", n, len(rows))
	}
	return nil
}
