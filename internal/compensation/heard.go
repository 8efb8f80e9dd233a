package compensation

import (
	"context"
	"fmt"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/base/money"
)

// Heard is how many exceptions of a kind were opened since the last look, and
// their money.
type Heard struct {
	Kind  string
	Count int64
	Sums  money.Totals
}

// heardMost bounds one look; the next one goes on.
const heardMost = 2000

// Unheard counts exceptions that no alert has told of yet, and marks them in the
// same transaction: none is told twice and none is left out.
func Unheard(ctx context.Context, tx db.Tx, d *db.DB) ([]Heard, error) {
	var rows []struct {
		Kind, Currency string
		Amount         int64
	}
	err := tx.NewRaw("UPDATE exceptions SET alerted_at = ? WHERE alerted_at IS NULL AND id IN"+
		" (SELECT id FROM exceptions WHERE alerted_at IS NULL ORDER BY id LIMIT ?) RETURNING kind, currency, amount", d.Now(), heardMost).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("mark exceptions as told: %w", err)
	}
	var all []Heard
	for _, r := range rows {
		i := slices.IndexFunc(all, func(h Heard) bool { return h.Kind == r.Kind })
		if i < 0 {
			i, all = len(all), append(all, Heard{Kind: r.Kind})
		}
		all[i].Count++
		all[i].Sums.Add(r.Amount, r.Currency)
	}
	return all, nil
}
