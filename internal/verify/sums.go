package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"backstop/internal/ledger"
	"backstop/internal/order"
	"backstop/internal/stock"

	"github.com/uptrace/bun"
)

// Sums over rows older than a minute no longer change: transfers never do, and the history has
// the status at any time. So most rows are summed in pages up to a cut, and one short snapshot
// adds those after it and compares.

// twice reports only what a check of sums finds twice in a row: a transaction that took longer
// than the cut allows is complete by the second time. row returns what a key stands for; nil =
// nothing that has a page.
func twice(check func(context.Context, *Invariant) (map[string]string, error), row func(key string) Row) func(context.Context,
	*Invariant) error {
	return func(ctx context.Context, i *Invariant) error {
		first, err := check(ctx, i)
		if err != nil || len(first) == 0 {
			return err
		}
		second, err := check(ctx, new(Invariant)) // the rows were counted the first time
		if err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(second)) {
			if first[key] == "" {
				continue
			}
			var is Row
			if row != nil {
				is = row(key)
			}
			i.violated(second[key], is)
		}
		return nil
	}
}

// balances compares the folded balance of each account with its entries.
func (r *run) balances(ctx context.Context, i *Invariant) (map[string]string, error) {
	cut, sums := r.cut(), map[int64]int64{}
	err := r.paged(ctx, "transfers", "id", cut, func(from, to int64) error {
		return addTransfers(ctx, r.db.Read, sums, 1, "t.id > ? AND t.id <= ?", from, min(to, cut))
	})
	if err != nil {
		return nil, err
	}
	wrong := map[string]string{}
	err = r.db.Snapshot(ctx, func(ctx context.Context, tx bun.IDB) error {
		if err := addTransfers(ctx, tx, sums, 1, "t.id > ?", cut); err != nil {
			return err
		}
		total := maps.Clone(sums)
		where, from, err := ledger.Unfolded(ctx, tx)
		if err != nil {
			return err
		}
		if err := addTransfers(ctx, tx, sums, -1, where, from); err != nil {
			return err
		}
		var accounts []ledger.Account
		if err := tx.NewSelect().Model(&accounts).Scan(ctx); err != nil {
			return fmt.Errorf("read accounts: %w", err)
		}
		i.Examined += int64(len(accounts))
		currencies := map[string]int64{}
		for _, a := range accounts {
			currencies[a.Currency] += total[a.ID]
			if a.Balance != sums[a.ID] {
				name := a.Code + " " + a.Currency
				wrong[name] = fmt.Sprintf("account %s has the balance %d, its folded entries sum up to %d", name, a.Balance, sums[a.ID])
			}
		}
		for currency, sum := range currencies {
			if sum != 0 {
				wrong[currency] = fmt.Sprintf("all entries in %s sum up to %d instead of 0", currency, sum)
			}
		}
		return nil
	})
	return wrong, err
}

// addTransfers adds the matching transfers to the sums by account.
func addTransfers(ctx context.Context, q bun.IDB, sums map[int64]int64, sign int64, where string, args ...any) error {
	more, err := ledger.Sums(ctx, q, where, args...)
	for id, amount := range more {
		sums[id] += sign * amount
	}
	return err
}

// held is the quantity of each SKU in open and paid orders.
type held map[int64]struct{ open, paid int64 }

func (h held) add(sku int64, status order.Status, quantity int64) {
	n := h[sku]
	switch {
	case status.Open():
		n.open += quantity
	case status == order.Paid:
		n.paid += quantity
	}
	h[sku] = n
}

// stock compares each SKU with the items of the orders.
func (r *run) stock(ctx context.Context, i *Invariant) (map[string]string, error) {
	cut, sums := r.cut(), held{}
	err := r.paged(ctx, "order_items", "order_id", cut, func(from, to int64) error {
		err := r.probing(ctx, func(ctx context.Context, tx bun.IDB) error {
			n, err := addItems(ctx, tx, sums, 1, cut, "i.order_id > ? AND i.order_id <= ?", from, min(to, cut))
			i.Examined += n
			return err
		})
		if err == nil {
			r.report(i)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	wrong := map[string]string{}
	err = r.db.Snapshot(ctx, func(ctx context.Context, tx bun.IDB) error {
		// Orders that changed since the cut count with their current status.
		const moved = "i.order_id IN (SELECT m.order_id FROM order_history m WHERE m.id > ?" +
			" UNION ALL SELECT c.order_id FROM callbacks c WHERE c.id > ? AND c.outcome = 'paid')"
		before, err := addItems(ctx, tx, sums, -1, cut, moved, cut, cut)
		if err != nil {
			return err
		}
		now, err := addItems(ctx, tx, sums, 1, never, moved, cut, cut)
		if err != nil {
			return err
		}
		var skus []stock.SKU
		if err := tx.NewSelect().Model(&skus).Scan(ctx); err != nil {
			return fmt.Errorf("read skus: %w", err)
		}
		i.Examined += now - before + int64(len(skus))
		compare(skus, sums, wrong)
		return nil
	})
	return wrong, err
}

func compare(skus []stock.SKU, sums held, wrong map[string]string) {
	for _, s := range skus {
		h := sums[s.ID]
		delete(sums, s.ID)
		if s.Locked < 0 || s.Locked > s.Stock || s.Stock+s.Sold != s.Applied || s.Locked != h.open || s.Sold != h.paid {
			wrong[s.SKU] = fmt.Sprintf("sku %s has stock %d, locked %d, sold %d of %d applied; open orders hold %d, paid ones %d",
				s.SKU, s.Stock, s.Locked, s.Sold, s.Applied, h.open, h.paid)
		}
	}
	for id, h := range sums {
		if h.open != 0 || h.paid != 0 {
			wrong[fmt.Sprintf("id %d", id)] = fmt.Sprintf("orders hold an article of id %d that is not stored", id)
		}
	}
}

// addItems adds the items of the matching orders to the sums, by each order's status as of the
// cut, and returns the number of items.
func addItems(ctx context.Context, q bun.IDB, sums held, sign, cut int64, where string, args ...any) (items int64, err error) {
	var rows []struct {
		SKUID    int64 `bun:"sku_id"`
		Status   order.Status
		Quantity int64
		Items    int64
	}
	query := "SELECT s.sku_id, s.status, CAST(sum(s.quantity) AS BIGINT) AS quantity, count(*) AS items FROM (" +
		"SELECT i.sku_id, i.quantity - i.short AS quantity, CASE WHEN i.order_id < " + kept +
		" THEN (SELECT o.status FROM orders o WHERE o.id = i.order_id)" +
		" WHEN EXISTS (SELECT 1 FROM order_payments p WHERE p.order_id = i.order_id AND p.source_id <= ?) THEN 'paid'" + // the final status
		" ELSE (SELECT h.to_status FROM order_history h WHERE h.order_id = i.order_id AND h.id <= ?" +
		" ORDER BY h.version DESC LIMIT 1) END AS status FROM order_items i WHERE " + where +
		") AS s WHERE s.status IS NOT NULL GROUP BY s.sku_id, s.status"
	if err := q.NewRaw(query, append([]any{cut, cut}, args...)...).Scan(ctx, &rows); err != nil {
		return 0, fmt.Errorf("sum order items: %w", err)
	}
	for _, row := range rows {
		sums.add(row.SKUID, row.Status, sign*row.Quantity)
		items += row.Items
	}
	return items, nil
}
