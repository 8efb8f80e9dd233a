package orderquery

import (
	"context"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/waittest"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/supplier"
)

// If the answer and the callback of one payment race, it is booked once and its merchant is
// notified once. The worker finds the orders by itself.
func TestAnAnswerAndACallbackOfOnePaymentAreOne(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		n := 200
		if f.DB.IsPostgres() {
			n = 60
		}
		f.Fakes["f1"].Says(supplier.AnswerPaid)
		f.Processor.QueryBy(f.a.Offer)
		all := make([]*order.Order, n)
		for i := range all {
			all[i] = f.order("f1", order.Paying)
		}
		f.due(all...)
		var callbacks sync.WaitGroup
		for i, o := range all {
			if i%2 == 0 {
				callbacks.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond / 2) // callbacks come at their own times
					f.take(f.callback(o, "f1"))
				})
			}
		}
		waittest.Until(t, "all are paid", func() bool {
			if _, err := f.Processor.Expire(context.Background()); err != nil {
				t.Fatal(err)
			}
			if err := f.a.Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
			return f.Count(t, "SELECT count(*) FROM orders WHERE status = 'paid'") == int64(n)
		})
		callbacks.Wait()
		f.Eventually(t, 0, "SELECT count(*) FROM supplier_calls WHERE state = 'begun'")
		for query, want := range map[string]int64{
			"SELECT count(*) FROM orders WHERE status = 'paid'":                           int64(n),
			"SELECT count(*) FROM transfers":                                              int64(n),
			"SELECT count(*) FROM deliveries WHERE event_type = 'order.paid'":             int64(n),
			"SELECT count(*) FROM payment_attempts WHERE status = 'succeeded'":            int64(n),
			"SELECT count(*) FROM payment_attempts":                                       int64(n),
			"SELECT count(*) FROM exceptions":                                             0,
			"SELECT count(*) FROM orders WHERE version <> 3":                              0,
			"SELECT count(*) FROM supplier_calls WHERE op = 'query' AND status <> 'paid'": 0,
		} {
			f.Want(t, want, query)
		}
		queried := 0
		for _, o := range all {
			if _, n, _ := f.Fakes["f1"].Count(o.OrderNo); n > 1 {
				t.Errorf("%s was queried %d times", o.OrderNo, n)
			} else {
				queried += n
			}
		}
		if queried < n/2 {
			t.Errorf("only %d were queried: nothing raced", queried)
		}
	})
}

// The callback of a payment arrives before the supplier answers its start.
func TestACallbackMayComeBeforeTheAnswerToTheStart(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		o := f.order("f1", order.Pending)
		f.Fakes["f1"].OnStart(func(_ context.Context, p supplier.Payment) (supplier.Started, error) {
			f.take(f.callback(o, "f1"))
			return supplier.Started{State: supplier.StartUnknown, Exchange: supplier.Exchange{Class: supplier.ClassTimeout}}, nil
		})
		p, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{})
		if err != nil || p.Order.Status != order.Paid {
			t.Errorf("%+v, %v", p, err)
		}
		f.Want(t, 1, "SELECT count(*) FROM payment_attempts WHERE status = 'succeeded'")
		f.Want(t, 1, "SELECT count(*) FROM transfers")
		f.Want(t, 1, "SELECT count(*) FROM supplier_calls WHERE state = 'ended' AND class = 'timeout' AND op = 'pay'")
	})
}
