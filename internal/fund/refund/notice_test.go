package refund

import (
	"fmt"
	"testing"
	"time"

	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// says sends a callback from f1 about a refund of an order, as modified by change.
func (k *till) says(o *order.Order, event string, amount int64, change func(*supplier.Callback)) payment.Outcome {
	k.t.Helper()
	m := k.Callback(o.OrderNo, "T-"+o.OrderNo, amount)
	m.Supplier = k.Entry(k.t, "f1")
	m.Content.Status, m.Content.RawStatus, m.Content.EventKey = supplier.Refunded, "REFUNDED", event
	if change != nil {
		change(&m.Content)
	}
	out, err := k.Processor.Submit(k.t.Context(), m)
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

// notices processes the noted messages.
func (k *till) notices() {
	k.t.Helper()
	var items []compensation.Item
	if err := k.DB.NewRaw("SELECT * FROM compensations WHERE subject_kind = 'refund_notice' AND state = 'waiting' ORDER BY id").Scan(
		k.t.Context(), &items); err != nil {
		k.t.Fatal(err)
	}
	for _, x := range items {
		x.Attempts++
		if replaycall.Kind(replaycall.Subjects{NoticeOp: k.m.Notices()}).Run(k.t.Context(), x).IsDone() {
			k.exec("UPDATE compensations SET state = 'done', next_at = NULL WHERE id = ?", x.ID)
		}
	}
}

const dueNow = "SELECT count(*) FROM compensations WHERE subject_id = ? AND state = 'waiting' AND next_at <= ?"

func TestACallbackAboutOurRefundHasItAskedAboutNow(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		o := k.paid()
		r := k.mustCreate(o, 700)
		k.fake.OnRefund(nil)
		k.fake.SetRefund(r.RefundNo, supplier.RefundProcessing)
		k.run(r)
		k.exec("UPDATE compensations SET next_at = ? WHERE subject_id = ?", k.DB.Now()+3_600_000_000, r.ID)
		k.fake.SetRefund(r.RefundNo, supplier.RefundSucceeded)
		out := k.says(o, "e1", 700, func(c *supplier.Callback) { c.RefundNo = r.RefundNo })
		if out.Name != payment.Ignored {
			t.Errorf("%+v", out)
		}
		k.Want(t, 1, dueNow, r.ID, k.DB.Now())
		k.run(r)
		k.is("asked", r, Succeeded, 1, "refund.succeeded")
		k.Want(t, 0, "SELECT count(*) FROM exceptions")
		if out := k.says(o, "e2", 700, func(c *supplier.Callback) { c.RefundNo = r.RefundNo }); out.Name != payment.Repeat {
			t.Errorf("after it: %+v", out)
		}
		// It fails after it had succeeded: the money is back.
		k.fake.SetRefund(r.RefundNo, supplier.RefundFailed)
		k.says(o, "e3", 700, func(c *supplier.Callback) {
			c.Status, c.RawStatus, c.RefundNo = supplier.Unknown, "refund.failed", r.RefundNo
		})
		k.Want(t, 0, "SELECT count(*) FROM exceptions")
		k.run(r)
		k.is("returned", r, Returned, 1, "both")
		k.balances("returned", 1999, 0, -1999)
		k.Want(t, 0, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
	})
}

// openNow counts the exceptions about refunds that are open.
const openNow = "SELECT count(*) FROM exceptions WHERE kind = 'unknown_refund' AND state <> 'resolved'"

// total sends a message with the total of a payment's refunds.
func (k *till) total(o *order.Order, amount int64) payment.Outcome {
	k.t.Helper()
	return k.says(o, fmt.Sprint("total ", amount, " ", k.Out()), amount, func(c *supplier.Callback) { c.RefundTotal = amount })
}

// number sends a message about one refund of the supplier's own.
func (k *till) number(o *order.Order, no string, amount int64, said supplier.RefundState) payment.Outcome {
	k.t.Helper()
	return k.says(o, no+" "+string(said)+" "+k.Out(), amount, func(c *supplier.Callback) {
		c.RefundID, c.Refund, c.OrderRef = no, said, "" // such a message need not name the order
		if said != supplier.RefundSucceeded {
			c.Status = supplier.Other
		}
	})
}

// A refund is made in the supplier's back office.
func TestARefundMadeElsewhereIsAdoptedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		o := k.paid()
		for i, want := range []string{"unknown_refund", payment.Repeat} { // two messages about one refund
			if out := k.number(o, "SR-9", 300, supplier.RefundSucceeded); out.Name != want || out.OrderNo != o.OrderNo {
				t.Errorf("message %d: %+v", i, out)
			}
		}
		k.balances("adopted", 1699, 0, -1699)
		k.Want(t, 1, "SELECT count(*) FROM refunds WHERE order_id = ? AND status = 'succeeded' AND amount = 300 AND supplier_refund_no = 'SR-9'", o.ID)
		k.Want(t, 300, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'unknown_refund' AND state = 'resolved' AND outcome = 'booked' AND amount = 300 AND order_id = ?", o.ID)
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE alerted_at IS NULL")
		k.Want(t, 1, "SELECT count(*) FROM deliveries WHERE event_type = 'refund.succeeded'")

		// More than is left of the payment: what is there is booked, people decide about the rest.
		k.number(o, "SR-10", 1999, supplier.RefundSucceeded)
		k.balances("more than is left", 0, 0, 0)
		k.Want(t, 1, openNow+" AND amount = 300 AND order_id = ? AND subject = ?", o.ID, "T-"+o.OrderNo)
		k.Want(t, 1, "SELECT count(*) FROM orders WHERE id = ? AND refund_status = 'full' AND refunded_amount = paid_amount", o.ID)
		k.number(o, "SR-10", 1999, supplier.RefundFailed) // all of it came back
		k.balances("it failed", 1699, 0, -1699)
		k.Want(t, 0, openNow)
		k.Want(t, 1, "SELECT count(*) FROM refunds WHERE supplier_refund_no = 'SR-10' AND status = 'returned'")
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'refund_failed' AND state = 'resolved' AND outcome = 'booked' AND amount = 1699 AND order_id = ?", o.ID)
		k.Want(t, 1, "SELECT count(*) FROM deliveries WHERE event_type = 'refund.failed'")

		// The rest can still be refunded, but no more.
		if r := k.mustCreate(o, 1699); k.run(r).Class != compensation.OK {
			t.Error("the rest cannot be refunded")
		}
		k.balances("all of it", 0, 0, 0)
		k.Want(t, 1, "SELECT count(*) FROM orders WHERE id = ? AND refund_status = 'full' AND refunded_amount = paid_amount", o.ID)
	})
}

// Messages that only contain the total of a payment's refunds.
func TestTotalsAreMatched(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		o := k.paid()
		first := k.mustCreate(o, 500)
		k.run(first)
		if out := k.total(o, 500); out.Name != payment.Repeat {
			t.Errorf("the total that is known: %+v", out)
		}
		second := k.mustCreate(o, 400)
		k.fake.SetRefund(second.RefundNo, supplier.RefundProcessing)
		k.run(second)
		k.exec("UPDATE compensations SET next_at = ? WHERE subject_id = ?", k.DB.Now()+3_600_000_000, second.ID)
		if out := k.total(o, 900); out.Name != payment.Ignored {
			t.Errorf("by exactly the open one: %+v", out)
		}
		k.Want(t, 1, dueNow, second.ID, k.DB.Now())
		k.fake.SetRefund(second.RefundNo, supplier.RefundSucceeded)
		k.run(second)
		k.total(o, 1200) // a higher total: made elsewhere
		k.balances("totals", 799, 0, -799)
		k.Want(t, 1, "SELECT count(*) FROM refunds WHERE adopted <> '' AND amount = 300")

		// More than the open refund: the rest is booked at once.
		third := k.mustCreate(o, 200)
		k.fake.SetRefund(third.RefundNo, supplier.RefundProcessing)
		k.run(third)
		k.total(o, 1500)
		k.Want(t, 1300, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		k.balances("while it is open", 499, 200, -699)
		k.fake.SetRefund(third.RefundNo, supplier.RefundSucceeded)
		k.run(third)
		k.Want(t, 1500, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		k.balances("and then", 499, 0, -499)
		k.Want(t, 2, "SELECT count(*) FROM exceptions WHERE kind = 'unknown_refund'")
		k.Want(t, 400, "SELECT sum(amount) FROM exceptions WHERE kind = 'unknown_refund'") // the increases, not the totals
		k.Want(t, 0, openNow)
		k.Want(t, 0, "SELECT count(*) FROM compensations WHERE subject_kind = 'refund_notice'")
	})
}

// A refund of ours that is refused, or accepted and failed later, while a total is known.
func TestATotalIsBookedOnceOursIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		for _, c := range []struct {
			fault  paymenttest.RefundFault
			booked int64
		}{{paymenttest.RefundDeaf, 500}, {paymenttest.RefundLazy, 0}} {
			o := k.paid()
			r := k.mustCreate(o, 500)
			k.fake.OnRefund(func(supplier.Refund) paymenttest.RefundFault { return c.fault })
			k.run(r)
			k.fake.OnRefund(nil)
			k.total(o, 500)
			k.Want(t, 0, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
			k.fake.SetRefund(r.RefundNo, supplier.RefundFailed)
			k.run(r)
			if got := k.reload(r); got.Status != Failed || (got.AcceptedAt != nil) != (c.fault == paymenttest.RefundLazy) {
				t.Errorf("%s: %+v", c.fault, got)
			}
			k.Want(t, c.booked, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		}
		k.Want(t, 0, openNow)
	})
}

// A refund of ours that was only requested does not fit any more: it ends, and the merchant is
// notified.
func TestAnUnsentRefundMakesRoom(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		o := k.paid()
		k.limit.Auto = 0
		small, r := k.mustCreate(o, 400), k.mustCreate(o, 1500)
		k.total(o, 1000)
		k.balances("made room", 599, 400, -999)
		if got := k.reload(r); got.Status != Rejected {
			t.Errorf("it is %s", got.Status)
		}
		if got := k.reload(small); got.Status != Requested {
			t.Errorf("the one that fits is %s", got.Status)
		}
		k.Want(t, 1, "SELECT count(*) FROM deliveries WHERE event_type = 'refund.failed' AND subject_id = ?", r.ID)
		k.Want(t, 1000, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
	})
}

// A number that fails takes its row with it: one split off a total, which moves no money.
func TestANumberThatFailsIsTakenBack(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		o := k.paid()
		k.total(o, 1200)
		k.number(o, "re_1", 500, supplier.RefundSucceeded)
		k.balances("split", 799, 0, -799)
		k.Want(t, 2, "SELECT count(*) FROM refunds WHERE status = 'succeeded'")
		k.Want(t, 1, "SELECT count(*) FROM deliveries WHERE event_type = 'refund.succeeded'")
		k.number(o, "re_1", 500, supplier.RefundFailed)
		k.balances("back", 1299, 0, -1299)
		k.Want(t, 700, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		k.Want(t, 1, "SELECT count(*) FROM refunds WHERE supplier_refund_no = 're_1' AND status = 'returned' AND amount = 500 AND split_from <> 0")
		k.Want(t, 0, "SELECT count(*) FROM exceptions WHERE state <> 'resolved'")
		k.number(o, "re_2", 700, supplier.RefundSucceeded) // the rest gets a name
		k.balances("named", 1299, 0, -1299)
		k.Want(t, 1, "SELECT count(*) FROM refunds WHERE supplier_refund_no = 're_2' AND status = 'succeeded' AND split_from = 0")
	})
}

// What comes before the payment is booked with it.
func TestARefundBeforeItsPaymentIsBookedWithIt(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		o, _, err := k.Processor.Create(t.Context(), k.M1, payment.CreateRequest{OutTradeNo: k.Out(), Amount: 1999, Currency: "CNY", Supplier: "f1"})
		if err != nil {
			t.Fatal(err)
		}
		if out := k.total(o, 500); out.Name != payment.Ignored {
			t.Errorf("%+v", out)
		}
		k.notices()
		k.Want(t, 0, "SELECT count(*) FROM exceptions")
		k.pays(o, "T-"+o.OrderNo)
		k.balances("with the payment", 1499, 0, -1499)
		k.Want(t, 500, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		k.Want(t, 0, openNow)

		// Without it, people are asked after ten minutes; the payment ends that.
		o, _, err = k.Processor.Create(t.Context(), k.M1, payment.CreateRequest{OutTradeNo: k.Out(), Amount: 1999, Currency: "CNY", Supplier: "f1"})
		if err != nil {
			t.Fatal(err)
		}
		k.total(o, 300)
		k.notices()
		k.Want(t, 0, openNow)
		k.exec("UPDATE compensations SET payload = replace(payload, '\"since\":' || (SELECT CAST(max(received_at) AS TEXT) FROM refund_reports), '\"since\":1')" +
			" WHERE subject_kind = 'refund_notice'")
		k.notices()
		k.Want(t, 1, openNow+" AND amount = 300 AND order_no = ?", o.OrderNo)
		k.pays(o, "T-"+o.OrderNo)
		k.Want(t, 300, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		k.Want(t, 0, openNow)
	})
}

// pays sends the payment of an order.
func (k *till) pays(o *order.Order, trade string) payment.Outcome {
	k.t.Helper()
	m := k.Callback(o.OrderNo, trade, o.Amount)
	m.Supplier = k.Entry(k.t, "f1")
	out, err := k.Processor.Submit(k.t.Context(), m)
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

const suspenseLeft = "SELECT coalesce(sum(CASE WHEN c.code = 'suspense:f1' THEN t.amount ELSE -t.amount END), 0) FROM transfers AS t JOIN accounts AS d ON d.id = t.debit_account" +
	" JOIN accounts AS c ON c.id = t.credit_account WHERE 'suspense:f1' IN (c.code, d.code)"

// Money without an order is refunded at the supplier, in parts: it leaves suspense, and the
// exception ends with the last part.
func TestHeldMoneyThatWentBackLeavesTheSuspense(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		o := &order.Order{OrderNo: "nobody-1", Amount: 1999}
		if out := k.pays(o, "T-nobody-1"); out.Name != "unknown_order" {
			t.Fatalf("%+v", out)
		}
		k.Want(t, 1999, suspenseLeft)
		k.total(o, 500)
		k.Want(t, 1499, suspenseLeft)
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'unknown_order' AND state = 'open' AND held_ref <> ''")
		k.number(o, "re_1", 500, supplier.RefundSucceeded)
		k.Want(t, 1499, suspenseLeft)
		k.total(o, 1999)
		k.Want(t, 0, suspenseLeft)
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'unknown_order' AND state = 'resolved' AND outcome = 'refunded_elsewhere' AND held_ref = ''")
		k.number(o, "re_1", 500, supplier.RefundFailed) // and some of it comes back
		k.Want(t, 500, suspenseLeft)
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'unknown_order' AND state = 'open' AND held_ref <> ''")
		k.Want(t, 0, openNow)
		k.Want(t, 0, "SELECT count(*) FROM deliveries")
	})
}

// A second payment of an order is refunded as it is, not as the first.
func TestASecondPaymentHasItsOwnRefunds(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		o := k.paid()
		k.pays(o, "T2-"+o.OrderNo)
		k.total(o, 1999)
		if out := k.says(o, "second", 1999, func(c *supplier.Callback) { c.TradeNo, c.RefundTotal = "T2-"+o.OrderNo, 1999 }); out.Name == payment.Repeat {
			t.Errorf("%+v", out)
		}
		k.Want(t, 0, suspenseLeft)
		k.Want(t, 1999, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'duplicate_payment' AND outcome = 'refunded_elsewhere'")
		k.balances("both", 0, 0, 0)
	})
}

// A total after a failure may be with or without what failed: the supplier's list decides, else
// people.
func TestDoubtIsSettledByTheList(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		day := func(n int) func(*supplier.Callback) {
			return func(c *supplier.Callback) {
				c.OccurredAt = time.UnixMicro(k.DB.Now()).Add(time.Duration(n-10) * 24 * time.Hour)
			}
		}
		doubt := func() *order.Order {
			o := k.paid()
			for n := range 3 {
				k.says(o, fmt.Sprint("day ", n, " ", o.OrderNo), 800, func(c *supplier.Callback) {
					day(n)(c)
					if c.RefundTotal = 800; n == 1 {
						c.RefundTotal, c.RefundID, c.Status, c.Refund = 0, "re_1", supplier.Other, supplier.RefundFailed
					}
				})
			}
			k.Want(t, 0, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
			return o
		}
		o := doubt()
		k.Want(t, 1, openNow+" AND order_id = ? AND amount = 800", o.ID)
		k.number(o, "re_2", 800, supplier.RefundSucceeded)
		k.Want(t, 0, openNow)
		k.Want(t, 800, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)

		list := paymenttest.NotListed()
		k.fake.OnList(func(supplier.Refund) supplier.RefundList { return list })
		on := func(id string, amount int64, state supplier.RefundState) supplier.RefundReport {
			return supplier.RefundReport{SupplierNo: id, Amount: amount, Currency: "CNY", State: state, Word: string(state)}
		}
		o = doubt()
		k.notices() // without a list nothing is booked
		waiting := "SELECT count(*) FROM compensations WHERE subject_kind = 'refund_notice' AND state = 'waiting'"
		k.Want(t, 1, waiting)
		list = paymenttest.Listed(on("re_1", 800, supplier.RefundFailed), on("re_3", 300, supplier.RefundSucceeded), on("re_4", 500, supplier.RefundProcessing))
		k.notices()
		k.Want(t, 1, waiting) // one of them is not finished
		k.Want(t, 300, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		list.All[2].State = supplier.RefundSucceeded
		k.notices()
		k.Want(t, 0, waiting)
		k.Want(t, 800, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		k.Want(t, 0, openNow)
	})
}
