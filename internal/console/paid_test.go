package console

import (
	"fmt"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/fund"
	"backstop/internal/list"
	"backstop/internal/order"
)

// The orders that a merchant with few of them was paid this month are on one page, however many
// orders of others are newer.
func TestTheOrdersOfAMonthAreFoundAmongTheirMerchants(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBreakers(t, d)
		now := d.NowTime().UTC()
		month := Days(fund.MonthLayout, now)
		at := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC).UnixMicro()
		put := func(n int, merchant, paidAt int64) (sum int64) {
			t.Helper()
			for i := range n {
				id := d.NewID()
				sum += int64(i + 1)
				o := &order.Order{
					ID: id, OrderNo: fmt.Sprint(id), MerchantID: merchant, OutTradeNo: fmt.Sprint("T", id), SupplierID: 1,
					Amount: int64(i + 1), PaidAmount: int64(i + 1), Currency: "CNY",
					Exponent: 2, Status: order.Paid, Version: 1, CreatedAt: paidAt, ExpiresAt: paidAt, PaidAt: &paidAt,
				}
				if _, err := d.NewInsert().Model(o).Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			return sum
		}
		put(1, 2, at-1)
		want := put(3, 2, at)
		put(60, 1, at) // newer, of another merchant
		short := *OrderList
		short.ScanRows = 20
		q := ask(&short, "paid", month, "merchant", "m2")
		page, err := b.Orders(t.Context(), q, list.Slice{})
		if err != nil || len(page.Rows) != 3 || page.Reached != 0 || page.Count != 3 || page.More {
			t.Fatalf("%d orders of %d (more: %t), searched until %d, %v", len(page.Rows), page.Count, page.More, page.Reached, err)
		}
		page, err = b.Orders(t.Context(), q, list.Slice{Totals: true})
		if all := page.Totals; err != nil || all.More || len(all.Sums) != 1 || all.Sums[0].Minor != want {
			t.Errorf("totals %+v, %v, want %d", all, err, want)
		}
		// Of all merchants the newest are searched, up to the limit.
		if page, err := b.Orders(t.Context(), ask(&short, "paid", month), list.Slice{}); err != nil || len(page.Rows) != 20 {
			t.Errorf("%d orders of all merchants, %v", len(page.Rows), err)
		}
		if page, err := b.Orders(t.Context(), ask(&short, "paid", month, "merchant", "nobody"), list.Slice{}); err != nil ||
			len(page.Rows) != 0 {
			t.Errorf("%d orders of no merchant, %v", len(page.Rows), err)
		}
	})
}
