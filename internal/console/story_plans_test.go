package console

import (
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/list"
)

// TestAMerchantsOrdersAreReadByTime reads one merchant's orders within their range of ids. The
// index of its numbers leads to all its orders, which would be read and sorted for one page.
func TestAMerchantsOrdersAreReadByTime(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		putOrders(t, d, 300)
		b := newBreakers(t, d)
		seen := new(dbtest.Statements)
		unhook := dbtest.HookReads(d, seen)
		page, err := b.Orders(t.Context(), ask(OrderList, "merchant", "m1"), list.Slice{Rows: 20})
		unhook()
		var all int64 // about a third: who an order is for goes by its id
		if err := d.NewRaw("SELECT count(*) FROM orders WHERE merchant_id = 1").Scan(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		if err != nil || len(page.Rows) != 20 || page.Count != all {
			t.Fatalf("%d rows of %d, want 20 of %d; %v", len(page.Rows), page.Count, all, err)
		}
		lists := 0
		for _, q := range seen.Texts {
			if !strings.Contains(q, "merchant_id = ") || !strings.Contains(q, "BETWEEN") {
				continue
			}
			lists++
			if text := strings.Join(dbtest.Plan(t, d, q), "\n"); strings.Contains(text, "B-TREE") || strings.Contains(text, "Sort") {
				t.Errorf("%s\n%s", q, text)
			}
		}
		if lists != 2 { // the page and its count
			t.Errorf("%d queries for the list", lists)
		}
	})
}
