package settings

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/base/db"
	"backstop/internal/ledger"
	"backstop/internal/stock"

	"github.com/uptrace/bun"
)

// chunk bounds the number of values in an IN list.
const chunk = 1000

// ReadStock reads the initial stock of SKUs, by number.
func ReadStock(ctx context.Context, d *db.DB, names []string) (map[string]*SKU, error) {
	known := map[string]*SKU{}
	for part := range slices.Chunk(names, chunk) {
		var rows []stock.SKU
		if err := d.Read.NewSelect().Model(&rows).Where("s.sku IN (?)", bun.List(part)).Scan(ctx); err != nil {
			return nil, fmt.Errorf("read skus: %w", err)
		}
		for _, r := range rows {
			known[r.SKU] = &SKU{SKU: r.SKU, Stock: r.Applied}
		}
	}
	return known, nil
}

// ReadOpenings reads booked opening balances, by reference.
func ReadOpenings(ctx context.Context, d *db.DB, refs []string) (map[string]int64, error) {
	booked := map[string]int64{}
	for part := range slices.Chunk(refs, chunk) {
		var rows []ledger.Transfer
		if err := d.Read.NewSelect().Model(&rows).Where("t.ref IN (?)", bun.List(part)).Scan(ctx); err != nil {
			return nil, fmt.Errorf("read opening balances: %w", err)
		}
		for _, t := range rows {
			booked[t.Ref] = t.Amount
		}
	}
	return booked, nil
}

// AllStock reads the initial stock of all SKUs, sorted.
func AllStock(ctx context.Context, d *db.DB) (all []SKU, err error) {
	var rows []stock.SKU
	if err := d.Read.NewSelect().Model(&rows).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read skus: %w", err)
	}
	for _, r := range rows {
		all = append(all, SKU{SKU: r.SKU, Stock: r.Applied})
	}
	slices.SortFunc(all, func(a, b SKU) int { return strings.Compare(a.SKU, b.SKU) })
	return all, nil
}

// AllOpenings reads all opening balances, sorted by merchant and currency.
func AllOpenings(ctx context.Context, d *db.DB) (all []Account, err error) {
	var rows []ledger.Transfer
	err = d.Read.NewSelect().Model(&rows).Where("t.debit_account IN (SELECT id FROM accounts WHERE code = ?)", ledger.Opening).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read opening balances: %w", err)
	}
	for _, t := range rows {
		merchant, currency, _ := strings.Cut(strings.TrimPrefix(t.Ref, "opening:"), ":")
		if a := (Account{Merchant: merchant, Currency: currency, Balance: t.Amount}); a.Ref() == t.Ref {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b Account) int { return strings.Compare(a.Ref(), b.Ref()) })
	return all, nil
}
