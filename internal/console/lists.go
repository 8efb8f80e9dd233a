package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"backstop/internal/list"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// idOf returns the id of the row with this code in a table; 0 = none.
func idOf(ctx context.Context, q bun.IDB, table, code string) (int64, error) {
	var id []int64
	if err := q.NewRaw("SELECT id FROM ? WHERE code = ?", bun.Ident(table), code).Scan(ctx, &id); err != nil {
		return 0, fmt.Errorf("find a code in %s: %w", table, err)
	}
	if len(id) == 0 {
		return 0, nil
	}
	return id[0], nil
}

// MerchantID returns the id of the merchant with this code; 0 = none.
func (b *Reader) MerchantID(ctx context.Context, code string) (int64, error) {
	return idOf(ctx, b.db.Read, "merchants", code)
}

// SupplierID returns the id of the supplier with this code; 0 = none.
func (b *Reader) SupplierID(ctx context.Context, code string) (int64, error) {
	return idOf(ctx, b.db.Read, "suppliers", code)
}

// RecipientID returns the id of the merchant or subscriber with this code; 0 = none. If both
// exist, the merchant's.
func (b *Reader) RecipientID(ctx context.Context, code string) (int64, error) {
	return recipientID(ctx, b.db.Read, code)
}

func recipientID(ctx context.Context, q bun.IDB, code string) (int64, error) {
	if id, err := idOf(ctx, q, "merchants", code); err != nil || id != 0 {
		return id, err
	}
	return idOf(ctx, q, "subscriptions", code)
}

// coded matches rows by the code of the row that their column refers to.
func coded(table, column string) func(context.Context, list.Lookup, string) (list.Match, error) {
	return func(ctx context.Context, in list.Lookup, code string) (list.Match, error) {
		id, err := idOf(ctx, in.Read, table, code)
		return list.Match{Where: column + " = ?", Args: []any{id}, None: id == 0}, err
	}
}

// choices bounds a select box; other codes can be entered in the URL.
const choices = 500

// codes suggests the codes in a table, of disabled rows too: their data remains.
func codes(table, name string) func(context.Context, bun.IDB) ([]list.Choice, error) {
	return func(ctx context.Context, q bun.IDB) (rows []list.Choice, err error) {
		err = q.NewRaw("SELECT code AS value, ? AS name FROM ? ORDER BY code LIMIT ?", bun.Ident(name), bun.Ident(table), choices).Scan(ctx,
			&rows)
		if err != nil {
			return nil, fmt.Errorf("read the codes of %s: %w", table, err)
		}
		return rows, nil
	}
}

// atRisk matches the rows of one part of the money at risk in a table's list.
func atRisk(table string, match func(report.Rows) list.Match) list.Field {
	return list.Field{Name: "risk", Hidden: true, Values: names(report.Parts...), Match: func(_ context.Context, in list.Lookup,
		part string,
	) (list.Match, error) {
		rows, ok := report.RowsOf(report.Part(part), in.DB.Now())
		if !ok || rows.Table != table {
			return list.Match{None: true}, nil
		}
		return match(rows), nil
	}}
}

// names converts string-typed values to strings.
func names[T ~string](values ...T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}

// byTime sorts a history; events in the same microsecond keep their order.
func byTime(items []Item) {
	slices.SortStableFunc(items, func(a, b Item) int { return cmp.Compare(a.At, b.At) })
}
