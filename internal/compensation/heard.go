package compensation

import (
	"context"
	"fmt"

	"backstop/internal/db"

	"github.com/uptrace/bun"
)

// Heard is how many exceptions of a kind were opened since the last look.
type Heard struct {
	Kind  string
	Count int64
}

// heardMost bounds one look; the next one goes on.
const heardMost = 2000

// Unheard counts exceptions that no alert has told of yet, and marks them in the
// same transaction: none is told twice and none is left out.
func Unheard(ctx context.Context, tx bun.Tx, d *db.DB) ([]Heard, error) {
	var kinds []string
	err := tx.NewRaw("UPDATE exceptions SET alerted_at = ? WHERE alerted_at IS NULL AND id IN"+
		" (SELECT id FROM exceptions WHERE alerted_at IS NULL ORDER BY id LIMIT ?) RETURNING kind", d.Now(), heardMost).Scan(ctx, &kinds)
	if err != nil {
		return nil, fmt.Errorf("mark exceptions as told: %w", err)
	}
	var all []Heard
	for _, kind := range kinds {
		found := false
		for i := range all {
			if all[i].Kind == kind {
				all[i].Count, found = all[i].Count+1, true
			}
		}
		if !found {
			all = append(all, Heard{kind, 1})
		}
	}
	return all, nil
}
