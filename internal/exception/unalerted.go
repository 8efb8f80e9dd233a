package exception

import (
	"context"
	"fmt"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/base/money"
)

// Unalerted counts the exceptions of a kind opened since the last alert, and their money.
type Unalerted struct {
	Kind  string
	Count int64
	Sums  money.Totals
}

// maxUnalerted bounds one call; the next call continues.
const maxUnalerted = 2000

// TakeUnalerted counts the exceptions without an alert and marks them in the same transaction,
// so that none alerts twice and none is left out.
func TakeUnalerted(ctx context.Context, tx db.Tx, d *db.DB) ([]Unalerted, error) {
	var rows []struct {
		Kind, Currency string
		Amount         int64
	}
	err := tx.NewRaw("UPDATE exceptions SET alerted_at = ? WHERE alerted_at IS NULL AND id IN"+
		" (SELECT id FROM exceptions WHERE alerted_at IS NULL ORDER BY id LIMIT ?) RETURNING kind, currency, amount", d.Now(),
		maxUnalerted).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("mark exceptions as alerted: %w", err)
	}
	var all []Unalerted
	for _, r := range rows {
		i := slices.IndexFunc(all, func(u Unalerted) bool { return u.Kind == r.Kind })
		if i < 0 {
			i, all = len(all), append(all, Unalerted{Kind: r.Kind})
		}
		all[i].Count++
		all[i].Sums.Add(r.Amount, r.Currency)
	}
	return all, nil
}
