package exception

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

func TestPagesHoldEveryExceptionOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		items := make([]*Item, 12)
		for i := range items {
			items[i] = &Item{Kind: []string{LatePayment, UnknownOrder}[i%2], OrderNo: fmt.Sprintf("O%d", i%3), Subject: fmt.Sprint(i)}
		}
		err := d.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			Open(tx, w, d, items)
			return w.Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.NewRaw("UPDATE exceptions SET state = 'ignored' WHERE subject = '4'").Exec(ctx); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			q    Query
			want func(i int) bool
		}{
			{Query{}, func(int) bool { return true }},
			{Query{OrderNo: "O1"}, func(i int) bool { return i%3 == 1 }},
			{Query{Kind: LatePayment}, func(i int) bool { return i%2 == 0 }},
			{Query{Kind: LatePayment, State: Opened}, func(i int) bool { return i%2 == 0 && i != 4 }},
			{Query{State: "ignored"}, func(i int) bool { return i == 4 }},
			{Query{OrderNo: "O1", Kind: UnknownOrder, State: Opened}, func(i int) bool { return i%3 == 1 && i%2 == 1 }},
		} {
			var want []string
			for i := len(items) - 1; i >= 0; i-- {
				if c.want(i) {
					want = append(want, items[i].Subject)
				}
			}
			for _, c.q.Limit = range []int{1, 5, 12, 13} {
				var got []string
				for c.q.Before = 0; ; {
					rows, next, err := List(ctx, d.Read, c.q)
					if err != nil {
						t.Fatal(err)
					}
					for _, r := range rows {
						got = append(got, r.Subject)
					}
					if c.q.Before = next; next == 0 || len(got) > len(items) {
						break
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%+v: %v, want %v", c.q, got, want)
				}
			}
		}
	})
}
