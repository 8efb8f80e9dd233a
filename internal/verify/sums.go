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

// Rows that are older than a minute do not change any more in what the sums are
// made of: a transfer never does, and a status as of a moment ago is in the
// history. So the bulk is summed in pages up to a cut, and one short snapshot
// adds what came after it and compares.

// twice reports what a check of sums finds two times in a row: a transaction that
// took longer than the cut allows for is complete by then.
func twice(i *Invariant, check func(*Invariant) (map[string]string, error)) error {
	first, err := check(i)
	if err != nil || len(first) == 0 {
		return err
	}
	second, err := check(new(Invariant)) // the rows were counted the first time
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(second)) {
		if first[key] != "" {
			i.violated(second[key])
		}
	}
	return nil
}

// balances compares the folded balance of each account with its entries.
func (r *run) balances(ctx context.Context, i *Invariant) error {
	return twice(i, func(i *Invariant) (map[string]string, error) { return r.balancesOnce(ctx, i) })
}

func (r *run) balancesOnce(ctx context.Context, i *Invariant) (map[string]string, error) {
	cut, sums := r.cut(), map[int64]int64{}
	err := r.paged(ctx, "transfers", "id", cut, func(from, to int64) error {
		return addSides(ctx, r.db.Read, sums, 1, "t.id > ? AND t.id <= ?", from, min(to, cut))
	})
	if err != nil {
		return nil, err
	}
	wrong := map[string]string{}
	err = r.db.Snapshot(ctx, func(ctx context.Context, tx bun.IDB) error {
		if err := addSides(ctx, tx, sums, 1, "t.id > ?", cut); err != nil {
			return err
		}
		total := maps.Clone(sums)
		if err := addSides(ctx, tx, sums, -1, "t.journal_id IN (SELECT j.id FROM journals j WHERE NOT j.folded)"); err != nil {
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

// addSides adds both sides of the matching entries to the sums per account.
func addSides(ctx context.Context, q bun.IDB, sums map[int64]int64, sign int64, where string, args ...any) error {
	var rows []struct{ ID, Amount int64 }
	query := "SELECT s.id, CAST(sum(s.amount) AS BIGINT) AS amount FROM (" +
		"SELECT t.credit_account AS id, t.amount AS amount FROM transfers t WHERE " + where +
		" UNION ALL SELECT t.debit_account, -t.amount FROM transfers t WHERE " + where + ") AS s GROUP BY s.id"
	if err := q.NewRaw(query, append(slices.Clone(args), args...)...).Scan(ctx, &rows); err != nil {
		return fmt.Errorf("sum entries: %w", err)
	}
	for _, s := range rows {
		sums[s.ID] += sign * s.Amount
	}
	return nil
}

// held is what orders hold of the articles: how many pieces by article and by
// the kind of status.
type held map[int64]*struct{ open, paid int64 }

func (h held) add(sku int64, status order.Status, quantity int64) {
	if h[sku] == nil {
		h[sku] = new(struct{ open, paid int64 })
	}
	switch {
	case status.Open():
		h[sku].open += quantity
	case status == order.Paid:
		h[sku].paid += quantity
	}
}

// stock compares each article with the items of the orders.
func (r *run) stock(ctx context.Context, i *Invariant) error {
	return twice(i, func(i *Invariant) (map[string]string, error) { return r.stockOnce(ctx, i) })
}

func (r *run) stockOnce(ctx context.Context, i *Invariant) (map[string]string, error) {
	cut, sums := r.cut(), held{}
	err := r.paged(ctx, "order_items", "order_id", cut, func(from, to int64) error {
		err := r.probing(ctx, func(ctx context.Context, tx bun.IDB) error {
			n, err := addItems(ctx, tx, sums, 1, cut, "i.order_id > ? AND i.order_id <= ?", from, min(to, cut))
			i.Examined += n
			return err
		})
		if err == nil {
			r.tell(i)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	wrong := map[string]string{}
	err = r.db.Snapshot(ctx, func(ctx context.Context, tx bun.IDB) error {
		// Orders that moved since the cut count as they stand now.
		const moved = "i.order_id IN (SELECT m.order_id FROM order_history m WHERE m.id > ?)"
		before, err := addItems(ctx, tx, sums, -1, cut, moved, cut)
		if err != nil {
			return err
		}
		now, err := addItems(ctx, tx, sums, 1, never, moved, cut)
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
		var open, paid int64
		if h := sums[s.ID]; h != nil {
			open, paid = h.open, h.paid
		}
		delete(sums, s.ID)
		if s.Locked < 0 || s.Locked > s.Stock || s.Stock+s.Sold != s.Applied || s.Locked != open || s.Sold != paid {
			wrong[s.SKU] = fmt.Sprintf("sku %s has stock %d, locked %d, sold %d of %d applied; open orders hold %d, paid ones %d",
				s.SKU, s.Stock, s.Locked, s.Sold, s.Applied, open, paid)
		}
	}
	for id, h := range sums {
		if h.open != 0 || h.paid != 0 {
			wrong[fmt.Sprintf("id %d", id)] = fmt.Sprintf("orders hold an article of id %d that is not there", id)
		}
	}
}

// addItems adds the items of the matching orders to the sums, by the status that
// each order had as of the cut, and returns how many items that are.
func addItems(ctx context.Context, q bun.IDB, sums held, sign, cut int64, where string, args ...any) (items int64, err error) {
	var rows []struct {
		SKUID    int64 `bun:"sku_id"`
		Status   order.Status
		Quantity int64
		Items    int64
	}
	query := "SELECT s.sku_id, s.status, CAST(sum(s.quantity) AS BIGINT) AS quantity, count(*) AS items FROM (" +
		"SELECT i.sku_id, i.quantity, CASE WHEN i.order_id < " + kept + " THEN (SELECT o.status FROM orders o WHERE o.id = i.order_id)" +
		" ELSE (SELECT h.to_status FROM order_history h WHERE h.order_id = i.order_id AND h.id <= ?" +
		" ORDER BY h.version DESC LIMIT 1) END AS status FROM order_items i WHERE " + where +
		") AS s WHERE s.status IS NOT NULL GROUP BY s.sku_id, s.status"
	if err := q.NewRaw(query, append([]any{cut}, args...)...).Scan(ctx, &rows); err != nil {
		return 0, fmt.Errorf("sum order items: %w", err)
	}
	for _, row := range rows {
		sums.add(row.SKUID, row.Status, sign*row.Quantity)
		items += row.Items
	}
	return items, nil
}
