package payment_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"backstop/internal/base/text"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/stock"
	"backstop/internal/supplier"
)

// answer is what a callback would say, as the answer to a question of ours.
func answer(f *paymenttest.Fixture, orderNo, tradeNo string, amount int64) *payment.Message {
	m := f.Callback(orderNo, tradeNo, amount)
	m.Source = payment.Source{Cause: "query", Actor: "operator:li", ID: 77}
	return m
}

// approved is an answer with a waiver that two people decided on.
func approved(f *paymenttest.Fixture, orderNo, tradeNo string, amount int64, w payment.Waiver) *payment.Message {
	m := answer(f, orderNo, tradeNo, amount)
	m.Source = payment.ByDecision("operator:li", 77, w)
	return m
}

func cancelled(t *testing.T, f *paymenttest.Fixture, o *order.Order) *order.Order {
	t.Helper()
	if _, err := f.Processor.Cancel(t.Context(), f.M1, o.OrderNo); err != nil {
		t.Fatal(err)
	}
	return o
}

func wantPaid(t *testing.T, f *paymenttest.Fixture, o *order.Order, tradeNo string, amount int64) {
	t.Helper()
	got := reload(t, f, o)
	if got.Status != order.Paid || got.SupplierTradeNo != tradeNo || got.PaidAmount != amount || got.PaidAt == nil || got.ClosedAt != nil ||
		got.CloseReason != "" {
		t.Errorf("order %+v", got)
	}
	f.Want(t, 1, "SELECT count(*) FROM transfers WHERE ref = ? AND amount = ?", fmt.Sprint("paid:", o.ID), amount)
	f.Want(t, 1,
		"SELECT count(*) FROM payment_attempts WHERE order_id = ? AND status = 'succeeded' AND supplier_trade_no = ? AND amount = ?", o.ID,
		tradeNo, amount)
	f.Want(t, 1, "SELECT count(*) FROM deliveries WHERE subject_id = ? AND event_type = 'order.paid'", o.ID)
}

func TestASourceWithoutARecordConfirmsWithoutCallbackAndKey(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{URL: "http://127.0.0.1:1/n"}, func(t *testing.T, f *paymenttest.Fixture) {
		f.AddSKU(t, "tea", 10)
		o := create(t, f, func(r *payment.CreateRequest) { r.Items = []stock.Line{{SKU: "tea", Quantity: 3}} })
		for _, want := range []string{payment.Paid, payment.Repeat, payment.Repeat} {
			if out := take(t, f, answer(f, o.OrderNo, "T1", 1999)); out.Name != want || out.OrderNo != o.OrderNo || out.CallbackID != 0 {
				t.Errorf("outcome %+v, want %s", out, want)
			}
		}
		wantPaid(t, f, o, "T1", 1999)
		f.Want(t, 1, "SELECT count(*) FROM "+order.AllHistory+
			" AS oh WHERE to_status = 'paid' AND cause = 'query' AND actor = 'operator:li' AND source_id = 77")
		f.Want(t, 7, "SELECT stock FROM skus")
		f.Want(t, 0, "SELECT locked FROM skus")
		for _, table := range []string{"callbacks", "callback_keys", "callback_repeats", "exceptions"} {
			f.Want(t, 0, "SELECT count(*) FROM "+table)
		}
		// The callback that comes after it is kept, and is no second payment.
		if out := take(t, f, f.Callback(o.OrderNo, "T1", 1999)); out.Name != payment.Repeat || out.CallbackID == 0 {
			t.Errorf("the callback: %+v", out)
		}
		f.Want(t, 1, "SELECT count(*) FROM callbacks WHERE outcome = 'repeat'")
		f.Want(t, 0, "SELECT count(*) FROM exceptions")

		shut := create(t, f, nil)
		for _, want := range []string{payment.OrderClosed, payment.Ignored} {
			m := answer(f, shut.OrderNo, "T2", 1999)
			m.Content.Status = supplier.Closed
			if out := take(t, f, m); out.Name != want {
				t.Errorf("outcome %+v, want %s", out, want)
			}
		}
		f.Want(t, 1, "SELECT count(*) FROM "+order.AllHistory+
			" AS oh WHERE order_id = ? AND to_status = 'closed' AND cause = 'query' AND source_id = 77", shut.ID)
		if got := reload(t, f, shut); got.CloseReason != "supplier_closed" {
			t.Errorf("closed because of %q", got.CloseReason)
		}
	})
}

func TestACallbackAndAnAnswerOfOnePaymentPayOnce(t *testing.T) {
	t.Parallel()
	const n = 300
	each(t, paymenttest.Options{URL: "http://127.0.0.1:1/n"}, func(t *testing.T, f *paymenttest.Fixture) {
		other := paymenttest.New(t, f.DB, paymenttest.Options{Shared: true}).Processor // another node's
		f.AddSKU(t, "tea", n)
		orders := createMany(t, f, n)
		parallel(32, n, func(i int) {
			tradeNo := fmt.Sprint("T", i)
			nodes := []*payment.Processor{f.Processor, other}
			messages := []*payment.Message{f.Callback(orders[i].OrderNo, tradeNo, 1999), answer(f, orders[i].OrderNo, tradeNo, 1999)}
			var outs [2]payment.Outcome
			var wg sync.WaitGroup
			for k := range messages {
				wg.Go(func() {
					var err error
					if outs[k], err = paymenttest.Send(context.Background(), nodes[(i+k)%2], messages[k]); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if a, b := outs[0].Name, outs[1].Name; a == b || min(a, b) != payment.Paid || max(a, b) != payment.Repeat {
				t.Errorf("the callback is %q, the answer %q", a, b)
			}
		})
		f.Want(t, n, "SELECT count(*) FROM orders WHERE status = 'paid' AND version = 2")
		f.Want(t, n, "SELECT count(*) FROM transfers")
		f.Want(t, n, "SELECT count(*) FROM deliveries")
		f.Want(t, n, "SELECT count(*) FROM callbacks")
		f.Want(t, n, "SELECT sold FROM skus")
		f.Want(t, 0, "SELECT count(*) FROM exceptions")
	})
}

// What no key makes a repeat is one by what is stored: an operator who has settled an
// exception is not called again by the next answer.
func TestAnAnswerAboutKnownMoneyIsARepeat(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		a, b := create(t, f, nil), create(t, f, nil)
		take(t, f, answer(f, a.OrderNo, "T1", 1999))
		take(t, f, f.Callback(a.OrderNo, "T2", 1999)) // a second payment
		late := cancelled(t, f, create(t, f, nil))
		take(t, f, answer(f, late.OrderNo, "T3", 1999))
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'late_payment'")
		if _, err := f.DB.ExecContext(t.Context(), "UPDATE exceptions SET state = 'resolved'"); err != nil {
			t.Fatal(err)
		}
		for no, tradeNo := range map[string]string{a.OrderNo: "T2", late.OrderNo: "T3"} {
			if out := take(t, f, answer(f, no, tradeNo, 1999)); out.Name != payment.Repeat {
				t.Errorf("%s again: %+v", tradeNo, out)
			}
		}
		f.Want(t, 2, "SELECT count(*) FROM exceptions WHERE state = 'resolved' AND seen = 1")

		// The number of a payment settles one order only, whatever the source.
		if out := take(t, f, answer(f, b.OrderNo, "T1", 1999)); out.Name != exception.DuplicatePayment {
			t.Errorf("the trade number of another order: %+v", out)
		}
		if got := reload(t, f, b); got.Status != order.Pending {
			t.Errorf("the other order is %s", got.Status)
		}
		f.Want(t, 1, "SELECT count(*) FROM transfers WHERE ref LIKE 'paid:%'")
		f.Want(t, 3, "SELECT count(*) FROM transfers") // T2 and T3 are held, T1 is not a second time
		f.Want(t, 1, "SELECT count(*) FROM callbacks") // the one callback
	})
}

func TestAnAnswerThatCannotBeReadIsOneException(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, nil)
		for range 2 {
			m := answer(f, o.OrderNo, "", 0)
			m.Content = supplier.Callback{OrderRef: o.OrderNo}
			m.Unreadable = &supplier.Unreadable{Kind: exception.Malformed, Reason: new(text.Codes).New("test.odd",
				text.Text{ZH: "异常", EN: "odd"}).Say()}
			if out := take(t, f, m); out.Name != exception.Malformed {
				t.Errorf("%+v", out)
			}
		}
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE order_id = ? AND seen = 2", o.ID)
	})
}

// Each waiver accepts what it is for and nothing else; the empty one accepts nothing.
func TestAWaiverAcceptsOnlyWhatItIsFor(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{URL: "http://127.0.0.1:1/n"}, func(t *testing.T, f *paymenttest.Fixture) {
		waivers := []func(o *order.Order) payment.Waiver{
			func(*order.Order) payment.Waiver { return payment.Waiver{Late: true} },
			func(*order.Order) payment.Waiver { return payment.Waiver{Amount: true} },
			func(o *order.Order) payment.Waiver { return payment.Waiver{OrderNo: o.OrderNo} },
			func(*order.Order) payment.Waiver { return payment.Waiver{} },
		}
		for i, kind := range []string{exception.LatePayment, exception.AmountMismatch, exception.UnknownOrder} {
			for k, waiver := range waivers {
				o, ref, tradeNo, amount := create(t, f, nil), "", fmt.Sprint("T", i, k), int64(1999)
				ref = o.OrderNo
				switch kind {
				case exception.LatePayment:
					cancelled(t, f, o)
				case exception.AmountMismatch:
					amount = 2100
					if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{}); err != nil {
						t.Fatal(err)
					}
				case exception.UnknownOrder:
					ref = "no-such-order"
				}
				if out := take(t, f, f.Callback(ref, tradeNo, amount)); out.Name != kind {
					t.Fatalf("the callback: %+v, want %s", out, kind)
				}
				before := reload(t, f, o).Status
				m := approved(f, ref, tradeNo, amount, waiver(o))
				if i != k {
					if out := take(t, f, m); out.Name == payment.Paid || reload(t, f, o).Status != before {
						t.Errorf("%s with %+v: %+v", kind, m.Source.Waive, out)
					}
					continue
				}
				for _, want := range []string{payment.Paid, payment.Repeat} {
					if out := take(t, f, m); out.Name != want {
						t.Errorf("%s with %+v: %+v, want %s", kind, m.Source.Waive, out, want)
					}
				}
				wantPaid(t, f, o, tradeNo, amount)
				f.Want(t, 1, "SELECT count(*) FROM "+order.AllHistory+
					" AS oh WHERE order_id = ? AND to_status = 'paid' AND cause = 'decided' AND source_kind = 'approval' AND source_id = 77", o.ID)
				f.Want(t, 1,
					"SELECT count(*) FROM transfers AS t JOIN accounts AS a ON a.id = t.debit_account WHERE t.ref = ? AND a.code = 'suspense:sp-main'", fmt.Sprint("paid:", o.ID))
			}
		}
		// Each payment was held once, and three of them are not any more.
		f.Want(t, 12, "SELECT count(*) FROM transfers WHERE ref LIKE 'held:%'")
		f.Want(t, 3, "SELECT count(*) FROM transfers WHERE ref NOT LIKE 'held:%'")
		f.Want(t, 9, "SELECT count(DISTINCT held_ref) FROM exceptions WHERE held_ref <> ''")
	})
}

func TestMoneyIsBookedForAnotherOrderThanTheMessageNames(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{URL: "http://127.0.0.1:1/n"}, func(t *testing.T, f *paymenttest.Fixture) {
		named, meant := create(t, f, nil), create(t, f, func(r *payment.CreateRequest) { r.Amount = 500 })
		if _, err := f.Processor.Pay(t.Context(), f.M1, named.OrderNo, payment.PayRequest{}); err != nil {
			t.Fatal(err)
		}
		take(t, f, approved(f, named.OrderNo, "T1", 500, payment.Waiver{OrderNo: meant.OrderNo}))
		wantPaid(t, f, meant, "T1", 500)
		if got := reload(t, f, named); got.Status != order.Paying {
			t.Errorf("the order that was named is %s", got.Status)
		}
		f.Want(t, 1, "SELECT count(*) FROM payment_attempts WHERE order_id = ? AND status = 'submitted' AND supplier_trade_no = ''",
			named.ID)
		take(t, f, f.Callback(named.OrderNo, "T2", 1999))
		wantPaid(t, f, named, "T2", 1999)
	})
}

// What a closed order had reserved is free for others: late money sells it again as far as
// it is left; the rest is an exception.
func TestLateMoneySellsOnlyWhatIsLeft(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{URL: "http://127.0.0.1:1/n"}, func(t *testing.T, f *paymenttest.Fixture) {
		f.AddSKU(t, "tea", 5)
		three := func(r *payment.CreateRequest) { r.Items = []stock.Line{{SKU: "tea", Quantity: 3}} }
		lost := cancelled(t, f, create(t, f, three))
		won := cancelled(t, f, create(t, f, three))
		holds := create(t, f, three)
		late := payment.Waiver{Late: true}
		take(t, f, approved(f, lost.OrderNo, "T1", 1999, late))
		wantPaid(t, f, lost, "T1", 1999)
		wantStock := func(stock, locked, sold int64) {
			t.Helper()
			f.Want(t, stock, "SELECT stock FROM skus")
			f.Want(t, locked, "SELECT locked FROM skus")
			f.Want(t, sold, "SELECT sold FROM skus")
		}
		wantStock(3, 3, 2) // what another order holds is not sold
		f.Want(t, 1, "SELECT short FROM order_items WHERE order_id = ?", lost.ID)
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'stock_short' AND order_id = ? AND subject = 'tea' AND state = 'open'",
			lost.ID)
		cancelled(t, f, holds)
		take(t, f, approved(f, won.OrderNo, "T2", 1999, late))
		wantPaid(t, f, won, "T2", 1999)
		wantStock(0, 0, 5)
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'stock_short'")
		none := cancelled(t, f, create(t, f, nil))
		take(t, f, approved(f, none.OrderNo, "T3", 1999, late))
		wantPaid(t, f, none, "T3", 1999)
	})
}
