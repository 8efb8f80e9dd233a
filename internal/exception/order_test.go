package exception

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// Rows that several transactions share are locked in one order, whatever the order
// in which they are reported: else two of them wait for each other in a circle.
func TestSharedRowsAreLockedInOneOrder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const rounds, types, reporters = 30, 12, 2
		report := func(backwards bool) error {
			items := make([]*Item, types)
			for i := range items {
				items[i] = &Item{Kind: UnknownEvent, SupplierID: 1, Subject: fmt.Sprintf("type.%02d", i)}
			}
			if backwards {
				slices.Reverse(items)
			}
			return d.Tx(context.Background(), func(ctx context.Context, tx db.Tx) error {
				w := tx.Writes()
				Open(tx, w, d, items)
				return w.Exec(ctx)
			})
		}
		var all sync.WaitGroup
		for n := range reporters {
			all.Go(func() {
				for range rounds {
					if err := report(n%2 == 1); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		var seen int64
		if err := d.Read.NewRaw("SELECT CAST(sum(seen) AS BIGINT) FROM exceptions").Scan(t.Context(), &seen); err != nil ||
			seen != rounds*types*reporters {
			t.Errorf("%d reports are counted, want %d, %v", seen, rounds*types*reporters, err)
		}
	})
}
