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

// Exceptions that are left out are said to be: evidence would call itself complete.
func TestAStoryThatLeavesExceptionsOutSaysSo(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{ByHand: true})
		o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{OutTradeNo: f.Out(), Amount: 1999, Currency: paymenttest.Currency, Supplier: "sp-main", Subject: "x"})
		if err != nil {
			t.Fatal(err)
		}
		r := New(d, f.Settings, breaker.NewCache(d, nil))
		for _, n := range []int{storyRows - 1, 1} {
			rows := make([]exception.Item, n)
			for i := range rows {
				id := d.NewID()
				rows[i] = exception.Item{ID: id, Kind: exception.LatePayment, Subject: fmt.Sprint(id), OrderID: o.ID, OrderNo: o.OrderNo, State: exception.Opened, Detail: []byte("{}"), OpenedAt: d.Now(), UpdatedAt: d.Now()}
			}
			if _, err := d.NewInsert().Model(&rows).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			s, err := r.Story(t.Context(), o.OrderNo)
			if err != nil || s.Cut != (n == 1) {
				t.Fatalf("with %d more: cut %v, %v", n, s != nil && s.Cut, err)
			}
		}
	})
}
