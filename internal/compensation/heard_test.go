package compensation

import (
	"context"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

func TestEveryExceptionIsHeardOfOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		open := func(items ...*Item) {
			t.Helper()
			if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				w := tx.Writes()
				Open(tx, w, d, items)
				return w.Exec(ctx)
			}); err != nil {
				t.Fatal(err)
			}
		}
		sums := map[string]string{}
		heard := func() (counts map[string]int64) {
			t.Helper()
			counts = map[string]int64{}
			err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				all, err := Unheard(ctx, tx, d)
				for _, h := range all {
					counts[h.Kind], sums[h.Kind] = h.Count, strings.Join(h.Sums.List(), ", ")
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return counts
		}
		open(&Item{Kind: LatePayment, OrderNo: "1", Amount: 1999, Currency: "CNY"}, &Item{Kind: LatePayment, OrderNo: "2", Amount: 3998, Currency: "CNY"},
			&Item{Kind: LatePayment, OrderNo: "3", Amount: 7, Currency: "JPY"}, &Item{Kind: Malformed, Subject: "x"})
		if got := heard(); got[LatePayment] != 3 || got[Malformed] != 1 || sums[LatePayment] != "CNY 59.97, JPY 7" || sums[Malformed] != "" {
			t.Fatalf("heard %v with %v", got, sums)
		}
		open(&Item{Kind: LatePayment, OrderNo: "1"}) // the same fact, reported again
		if got := heard(); len(got) != 0 {
			t.Fatalf("heard again %v", got)
		}
	})
}
