package apply

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"backstop/internal/ledger"
	"backstop/internal/stock"

	"github.com/uptrace/bun"
)

// skus declares articles. Stock lives from then on: a second look at the file
// must not undo what was sold since.
func (w *writer) skus(ctx context.Context, all []skuDecl) error {
	known := map[string]int64{} // what was applied first, by sku
	for part := range slices.Chunk(all, chunk) {
		names := make([]string, len(part))
		for i, s := range part {
			names[i] = s.sku
		}
		var rows []stock.SKU
		if err := w.tx.NewSelect().Model(&rows).Where("s.sku IN (?)", bun.List(names)).Scan(ctx); err != nil {
			return fmt.Errorf("read skus: %w", err)
		}
		for _, r := range rows {
			known[r.SKU] = r.Applied
		}
	}
	var made []stock.SKU
	for _, s := range all {
		applied, exists := known[s.sku]
		switch {
		case !exists:
			made = append(made, stock.SKU{ID: w.env.DB.NewID(), SKU: s.sku, Stock: s.stock, Applied: s.stock})
			w.say(created, "sku "+s.sku, "")
		case applied != s.stock:
			w.say(unchanged, "sku "+s.sku, "live stock is never overwritten")
		default:
			w.say(unchanged, "sku "+s.sku, "")
		}
	}
	if len(made) == 0 {
		return nil
	}
	if _, err := w.tx.NewInsert().Model(&made).Exec(ctx); err != nil {
		return fmt.Errorf("write skus: %w", err)
	}
	return nil
}

// accounts books opening balances, each once, as entries of the ledger.
func (w *writer) accounts(ctx context.Context, d *declared) error {
	if len(d.accounts) == 0 {
		return nil
	}
	if err := w.checkAccounts(ctx, d); err != nil {
		return err
	}
	booked, err := w.opened(ctx, d.accounts)
	if err != nil {
		return err
	}
	var entries []ledger.Entry
	for _, a := range d.accounts {
		ref, name := a.ref(), "account "+a.merchant+" "+a.currency
		was, done := booked[ref]
		switch {
		case !done && a.balance == 0:
			w.say(unchanged, name, "") // an entry of nothing is none
		case !done:
			entries = append(entries, ledger.Entry{
				Debit: ledger.Opening, Credit: ledger.MerchantAccount(a.merchant), Amount: a.balance, Currency: a.currency, Ref: ref,
			})
			w.say(opened, name, strconv.FormatInt(a.balance, 10))
		case was != a.balance:
			w.say(unchanged, name, fmt.Sprintf("opened with %d; an opening balance is applied once", was))
		default:
			w.say(unchanged, name, "")
		}
	}
	writes := w.tx.Writes()
	if err := w.env.Ledger.Post(ctx, w.tx, writes, entries); err != nil {
		return err
	}
	return writes.Exec(ctx)
}

// ref makes the opening balance unique for good.
func (a accountDecl) ref() string { return "opening:" + a.merchant + ":" + a.currency }

// checkAccounts finds accounts of merchants that neither the file nor the
// database has.
func (w *writer) checkAccounts(ctx context.Context, d *declared) error {
	var codes []string
	if err := w.tx.NewRaw("SELECT code FROM merchants").Scan(ctx, &codes); err != nil {
		return fmt.Errorf("read merchants: %w", err)
	}
	known := make(map[string]bool, len(codes))
	for _, c := range codes {
		known[c] = true
	}
	for _, a := range d.accounts {
		if !known[a.merchant] {
			a.at.at("merchant").wrong("there is no merchant %q: declare it under merchants", a.merchant)
		}
	}
	return d.problems.err()
}

// opened finds the opening balances that are booked already, by their reference.
func (w *writer) opened(ctx context.Context, all []accountDecl) (map[string]int64, error) {
	opened := map[string]int64{}
	for part := range slices.Chunk(all, chunk) {
		refs := make([]string, len(part))
		for i, a := range part {
			refs[i] = a.ref()
		}
		var rows []ledger.Transfer
		if err := w.tx.NewSelect().Model(&rows).Where("t.ref IN (?)", bun.List(refs)).Scan(ctx); err != nil {
			return nil, fmt.Errorf("read opening balances: %w", err)
		}
		for _, t := range rows {
			opened[t.Ref] = t.Amount
		}
	}
	return opened, nil
}
