package main

import (
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
)

// Old rows are only for clean-up: past any retention, over, and removed afterwards.
func TestOldRowsComeAndGo(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://127.0.0.1:1/n"})
		o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
			OutTradeNo: f.Out(), Amount: 5, Currency: "CNY",
			Supplier: "sp-main",
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Processor.Submit(t.Context(), f.Callback(o.OrderNo, "T"+o.OrderNo, 5)); err != nil {
			t.Fatal(err)
		}
		old := &oldTables{DB: d.DB.DB, postgres: d.IsPostgres()}
		for _, want := range []int{20, 40} {
			if err := old.add(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
			if n, err := old.count(t.Context()); err != nil || n != want {
				t.Fatalf("%d old rows, %v; want %d", n, err, want)
			}
		}
		f.Want(t, 11+10, "SELECT count(DISTINCT id) FROM callbacks WHERE id <= 20 OR order_no = ?", o.OrderNo)
		if err := old.remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, table := range cleaned {
			f.Want(t, 1, "SELECT count(*) FROM "+table)
		}
	})
}
