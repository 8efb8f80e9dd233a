package console

import (
	"fmt"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/exception"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
)

// Exceptions that are left out are counted; otherwise evidence would claim to be complete.
func TestAStoryCountsTheExceptionsItLeavesOut(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{ByHand: true})
		o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
			OutTradeNo: f.Out(), Amount: 1999,
			Currency: paymenttest.Currency, Supplier: "sp-main", Subject: "x",
		})
		if err != nil {
			t.Fatal(err)
		}
		r := New(d, f.Settings, breaker.NewCache(d, nil))
		left := int64(0)
		for _, n := range []int{2 * storyEnds, 1, 5} {
			rows := make([]exception.Item, n)
			for i := range rows {
				id := d.NewID()
				rows[i] = exception.Item{
					ID: id, Kind: exception.LatePayment, Subject: fmt.Sprint(id), OrderID: o.ID, OrderNo: o.OrderNo,
					State: exception.Opened, Detail: []byte("{}"), OpenedAt: d.Now(), UpdatedAt: d.Now(),
				}
			}
			if _, err := d.NewInsert().Model(&rows).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			s, err := r.Story(t.Context(), o.OrderNo)
			if n < storyEnds {
				left += int64(n)
			}
			if err != nil || s.Left.Events[ItemException].N != left || len(s.Exceptions) != 2*storyEnds {
				t.Fatalf("with %d more: %+v left out, want %d; %v", n, s.Left, left, err)
			}
			if s.Exceptions[0].ID < s.Exceptions[1].ID {
				t.Error("the exceptions are not newest first")
			}
		}
	})
}
