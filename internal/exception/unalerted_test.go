package exception

import (
	"context"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

func TestEveryExceptionAlertsOnce(t *testing.T) {
	t.Parallel()
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
		alerted := func() (counts map[string]int64) {
			t.Helper()
			counts = map[string]int64{}
			err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				all, err := TakeUnalerted(ctx, tx, d)
				for _, u := range all {
					counts[u.Kind], sums[u.Kind] = u.Count, strings.Join(u.Sums.List(), ", ")
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return counts
		}
		open(&Item{Kind: LatePayment, OrderNo: "1", Amount: 1999, Currency: "CNY"}, &Item{
			Kind: LatePayment, OrderNo: "2", Amount: 3998,
			Currency: "CNY",
		},
			&Item{Kind: LatePayment, OrderNo: "3", Amount: 7, Currency: "JPY"}, &Item{Kind: Malformed, Subject: "x"})
		if got := alerted(); got[LatePayment] != 3 || got[Malformed] != 1 || sums[LatePayment] != "CNY 59.97, JPY 7" ||
			sums[Malformed] != "" {
			t.Fatalf("alerted %v with %v", got, sums)
		}
		open(&Item{Kind: LatePayment, OrderNo: "1"}) // the same fact, reported again
		if got := alerted(); len(got) != 0 {
			t.Fatalf("alerted again %v", got)
		}
	})
}
