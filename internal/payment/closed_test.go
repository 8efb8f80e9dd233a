package payment_test

import (
	"fmt"
	"testing"

	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/stock"
	"backstop/internal/supplier"
)

func TestTheSupplierClosesAnOrder(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{URL: "http://127.0.0.1:1/n"}, func(t *testing.T, f *paymenttest.Fixture) {
		f.AddSKU(t, "tea", 10)
		o := create(t, f, func(r *payment.CreateRequest) { r.Items = []stock.Line{{SKU: "tea", Quantity: 3}} })
		if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Processor.Cancel(t.Context(), f.M1, o.OrderNo); err != nil {
			t.Fatal(err)
		}
		r := f.Callback(o.OrderNo, "T1", 1) // the amount of what was never paid says nothing
		r.Content.Status = supplier.Closed
		if out := take(t, f, r); out.Name != payment.OrderClosed || out.Result != supplier.Taken {
			t.Fatalf("outcome %+v", out)
		}
		got := reload(t, f, o)
		if got.Status != order.Closed || got.CloseReason != "supplier_closed" || got.ClosedAt == nil || got.Version != 4 {
			t.Errorf("order %+v", got)
		}
		f.Want(t, 10, "SELECT stock FROM skus")
		f.Want(t, 0, "SELECT locked FROM skus")
		f.Want(t, 1, "SELECT count(*) FROM payment_attempts WHERE status = 'closed'")
		f.Want(t, 1, "SELECT count(*) FROM payment_attempts")
		f.Want(t, 1, "SELECT count(*) FROM deliveries WHERE event_type = 'order.closed' AND status = 'queued'")
		f.Want(t, 1, "SELECT count(*) FROM "+order.AllHistory+
			" AS oh WHERE to_status = 'closed' AND cause = 'supplier_closed' AND actor = 'supplier:sp-main' AND source_id <> 0")
		f.Want(t, 0, "SELECT count(*) FROM exceptions")
		if out := take(t, f, f.Callback(o.OrderNo, "T2", 1999)); out.Name != exception.LatePayment {
			t.Errorf("money after it: %+v", out)
		}
	})
}

// An order that is being paid outlives its attempt: the merchant may start another payment.
func TestAClosedAttemptDoesNotCloseAnOrderThatIsBeingPaid(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, nil)
		pay := func() payment.Payment {
			p, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		if p := pay(); p.Reference != o.OrderNo || p.Status != payment.PayNone {
			t.Fatalf("%+v", p)
		}
		for _, ref := range []string{o.OrderNo, o.OrderNo + "_2"} {
			r := f.Callback(ref, "T"+ref, 1999)
			r.Content.Status = supplier.Closed
			if out := take(t, f, r); out.Name != payment.FailedTry {
				t.Errorf("outcome %+v", out)
			}
			if got := reload(t, f, o); got.Status != order.Paying || got.Version != 2 {
				t.Errorf("order %+v", got)
			}
			if ref == o.OrderNo {
				if p := pay(); p.Reference != o.OrderNo+"_2" {
					t.Errorf("a dead reference is used again: %+v", p)
				}
			}
		}
		// Nothing is open: it is closed without a grace period.
		if got, err := f.Processor.Cancel(t.Context(), f.M1, o.OrderNo); err != nil || got.Status != order.Closed {
			t.Errorf("cancel: %+v, %v", got, err)
		}
	})
}

func TestTheSupplierClosesOneAttemptOfTwo(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, nil)
		if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{}); err != nil {
			t.Fatal(err)
		}
		now := f.DB.Now()
		second := &payment.Attempt{
			ID: f.DB.NewID(), OrderID: o.ID, AccountID: f.Supplier.AccountID, SupplierRef: o.OrderNo + "_2", Status: payment.Submitted,
			CreatedAt: now, UpdatedAt: now,
		}
		if _, err := f.DB.NewInsert().Model(second).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, c := range []struct {
			ref     string
			outcome string
			closed  int64
			status  order.Status
		}{{o.OrderNo, payment.FailedTry, 1, order.Paying}, {o.OrderNo + "_2", payment.FailedTry, 2, order.Paying}} {
			r := f.Callback(c.ref, fmt.Sprint("T", i), 1999)
			r.Content.Status = supplier.Closed
			if out := take(t, f, r); out.Name != c.outcome {
				t.Errorf("%s: %+v", c.ref, out)
			}
			f.Want(t, c.closed, "SELECT count(*) FROM payment_attempts WHERE status = 'closed'")
			if got := reload(t, f, o); got.Status != c.status {
				t.Errorf("%s: the order is %s", c.ref, got.Status)
			}
		}
	})
}
