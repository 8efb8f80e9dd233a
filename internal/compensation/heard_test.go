package compensation

import (
	"context"
	"testing"

	"backstop/internal/db"
	"backstop/internal/db/dbtest"

	"github.com/uptrace/bun"
)

func TestEveryExceptionIsHeardOfOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		open := func(items ...*Item) {
			t.Helper()
			if err := d.Tx(t.Context(), func(ctx context.Context, tx bun.Tx) error {
				w := db.NewWrites(tx)
				Open(tx, w, d, items)
				return w.Exec(ctx)
			}); err != nil {
				t.Fatal(err)
			}
		}
		heard := func() (counts map[string]int64) {
			t.Helper()
			counts = map[string]int64{}
			err := d.Tx(t.Context(), func(ctx context.Context, tx bun.Tx) error {
				all, err := Unheard(ctx, tx, d)
				for _, h := range all {
					counts[h.Kind] = h.Count
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return counts
		}
		open(&Item{Kind: LatePayment, OrderNo: "1"}, &Item{Kind: LatePayment, OrderNo: "2"}, &Item{Kind: Malformed, Subject: "x"})
		if got := heard(); got[LatePayment] != 2 || got[Malformed] != 1 {
			t.Fatalf("heard %v", got)
		}
		open(&Item{Kind: LatePayment, OrderNo: "1"}) // the same fact, reported again
		if got := heard(); len(got) != 0 {
			t.Fatalf("heard again %v", got)
		}
	})
}
