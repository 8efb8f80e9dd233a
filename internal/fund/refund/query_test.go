package refund

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"backstop/internal/order"
	"backstop/internal/orderquery"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// queries has the supplier queried about an order; total is what it says about refunds.
func (k *till) queries(o *order.Order, total int64) {
	k.t.Helper()
	k.fake.OnQuery(func(_ context.Context, r supplier.Ref) (supplier.Answer, error) {
		a := paymenttest.FakeAnswer(r, supplier.AnswerPaid)
		a.Says.RefundTotal, a.Says.TotalAt = total, time.UnixMicro(k.DB.Now())
		return a, nil
	})
	w := orderquery.New(orderquery.Options{
		DB: k.DB, Settings: k.Settings, Payments: k.Processor, Calls: k.Calls, Log: slog.New(slog.DiscardHandler), QueryOnly: true,
	})
	if got, err := w.Query(k.t.Context(), o.OrderNo); err != nil || got.Order.Status != order.Paid {
		k.t.Fatalf("%v %+v", err, got.Order)
	}
}

// A query that names a total of refunds pays the order, and books the refunds, once.
func TestAnAnswerPaysAndRefunds(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		o := k.created()
		k.queries(o, 500)
		k.balances("paid and refunded", 1499, 0, -1499)
		k.queries(o, 500)
		k.number(o, "re_1", 500, supplier.RefundSucceeded)
		k.balances("again, and by its number", 1499, 0, -1499)
		k.queries(o, 1999)
		k.balances("all of it", 0, 0, 0)
		k.Want(t, 1, "SELECT count(*) FROM orders WHERE id = ? AND refund_status = 'full' AND refunded_amount = 1999", o.ID)

		// Refunds of ours are in the total.
		o = k.paid()
		r := k.mustCreate(o, 700)
		k.run(r)
		k.queries(o, 700)
		k.Want(t, 700, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)

		// So is one that was reported before the payment.
		o = k.created()
		k.total(o, 300)
		k.queries(o, 300)
		k.Want(t, 300, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		k.Want(t, 0, "SELECT count(*) FROM exceptions WHERE state <> 'resolved'")
	})
}

// A total of a payment that becomes an exception is booked from what is held.
func TestAnAnswerAboutHeldMoneyRefundsIt(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		o := k.paid()
		m := k.Callback(o.OrderNo, "second "+o.OrderNo, 1999)
		m.Supplier, m.Content.RefundTotal = k.Entry(t, "f1"), 600
		m.Source = payment.ByCall(m.Supplier, 1)
		if out, err := k.Processor.Submit(t.Context(), m); err != nil || out.Name != "duplicate_payment" {
			t.Fatalf("%v %+v", err, out)
		}
		k.Want(t, 1399, suspenseLeft)
		k.Want(t, 0, openNow)
	})
}

// An answer's total is of its time: it makes no doubt about totals before it.
func TestAnAnswerHasADate(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		o := k.paid()
		day := func(n int) func(*supplier.Callback) {
			return func(c *supplier.Callback) {
				c.OccurredAt = time.UnixMicro(k.DB.Now()).Add(time.Duration(n-10) * 24 * time.Hour)
				switch n {
				case 1:
					c.RefundTotal = 500
				case 2:
					c.RefundID, c.Status, c.Refund = "re_1", supplier.Other, supplier.RefundFailed
				case 3:
					c.RefundTotal = 800
				}
			}
		}
		for n := range 3 {
			k.says(o, o.OrderNo+string(rune('1'+n)), 500, day(n+1))
		}
		k.Want(t, 300, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		k.queries(o, 900)
		k.Want(t, 400, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		k.Want(t, 0, openNow)
	})
}

// A query that does not say how much was refunded says nothing new about a refund that is known.
// Otherwise the supplier's list decides, else an exception about all that may be gone, which ends
// once the refund is known.
func TestAnAnswerWithoutAnAmount(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		o := k.created()
		for range 2 {
			k.queries(o, supplier.UnknownTotal)
			k.balances("paid", 1999, 0, -1999)
			k.Want(t, 1, openNow+" AND order_id = ? AND amount = 1999", o.ID)
		}
		k.number(o, "re_1", 500, supplier.RefundSucceeded)
		k.balances("the refund is known", 1499, 0, -1499)
		k.Want(t, 0, openNow)
		k.queries(o, supplier.UnknownTotal)
		k.Want(t, 0, openNow)

		o = k.paid()
		r := k.mustCreate(o, 700)
		k.run(r)
		k.queries(o, supplier.UnknownTotal)
		k.Want(t, 0, openNow)
		o = k.paid()
		k.total(o, 200)
		k.queries(o, supplier.UnknownTotal)
		k.Want(t, 0, openNow)
		o = k.paid() // a refund that is sent later does not explain it
		k.queries(o, supplier.UnknownTotal)
		r = k.mustCreate(o, 700)
		k.run(r)
		k.Want(t, 1, openNow+" AND order_id = ? AND amount = 1299", o.ID)
		k.total(o, 900)
		k.Want(t, 0, openNow)
		k.Want(t, 900, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)

		k.fake.OnList(func(supplier.Refund) supplier.RefundList {
			return paymenttest.Listed(supplier.RefundReport{SupplierNo: "re_2", Amount: 300, Currency: "CNY", State: supplier.RefundSucceeded, Word: "ok"})
		})
		o = k.created()
		k.queries(o, supplier.UnknownTotal)
		k.Want(t, 0, openNow)
		k.notices()
		k.Want(t, 300, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		k.queries(o, supplier.UnknownTotal)
		k.Want(t, 0, openNow)
		k.Want(t, 0, "SELECT count(*) FROM compensations WHERE subject_kind = 'refund_notice' AND state = 'waiting'")
	})
}
