package refund

import (
	"fmt"
	"testing"

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
	out, err := k.Processor.Take(k.t.Context(), m)
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
		r := k.asked(o, 700)
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

// A refund is made in the supplier's back office.
func TestARefundMadeElsewhereIsAdoptedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		o := k.paid()
		for range 2 { // by two messages about one refund
			k.says(o, "e-"+k.Out(), 300, func(c *supplier.Callback) { c.RefundID = "SR-9" })
			k.notices()
		}
		k.balances("adopted", 1699, 0, -1699)
		k.Want(t, 1, "SELECT count(*) FROM refunds WHERE order_id = ? AND status = 'succeeded' AND amount = 300 AND adopted = 'SR-9'", o.ID)
		k.Want(t, 300, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'unknown_refund'")
		k.Want(t, 1, "SELECT count(*) FROM deliveries WHERE event_type = 'refund.succeeded'")
		// More than is left of the payment: operators decide.
		k.says(o, "e-more", 1999, func(c *supplier.Callback) { c.RefundID = "SR-10" })
		k.notices()
		k.balances("more than is left", 1699, 0, -1699)
		k.Want(t, 2, "SELECT count(*) FROM exceptions WHERE kind = 'unknown_refund'")

		// The rest can still be refunded, but no more.
		if r := k.asked(o, 1699); k.run(r).Class != compensation.OK {
			t.Error("the rest cannot be refunded")
		}
		k.balances("all of it", 0, 0, 0)
		k.Want(t, 1, "SELECT count(*) FROM orders WHERE id = ? AND refund_status = 'full' AND refunded_amount = paid_amount", o.ID)
	})
}

// Messages that only contain the total of a payment's refunds.
func TestSumsAreMatched(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		sum := func(o *order.Order, amount int64) payment.Outcome {
			return k.says(o, fmt.Sprint("sum-", amount), amount, func(c *supplier.Callback) { c.RefundSum = true })
		}
		o := k.paid()
		first := k.asked(o, 500)
		k.run(first)
		if out := sum(o, 500); out.Name != payment.Repeat {
			t.Errorf("the sum that is known: %+v", out)
		}
		second := k.asked(o, 400)
		k.fake.SetRefund(second.RefundNo, supplier.RefundProcessing)
		k.run(second)
		k.exec("UPDATE compensations SET next_at = ? WHERE subject_id = ?", k.DB.Now()+3_600_000_000, second.ID)
		if out := sum(o, 900); out.Name != payment.Ignored {
			t.Errorf("by exactly the open one: %+v", out)
		}
		k.Want(t, 1, dueNow, second.ID, k.DB.Now())
		k.Want(t, 0, "SELECT count(*) FROM compensations WHERE subject_kind = 'refund_notice'")
		k.fake.SetRefund(second.RefundNo, supplier.RefundSucceeded)
		k.run(second)
		// A higher total with no open refund: it was made elsewhere.
		sum(o, 1200)
		k.notices()
		k.balances("sums", 799, 0, -799)
		k.Want(t, 1, "SELECT count(*) FROM refunds WHERE adopted <> '' AND amount = 300")
		k.Want(t, 1200, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)

		// More than the open refund: which one it was is known once that has ended.
		third := k.asked(o, 200)
		k.fake.SetRefund(third.RefundNo, supplier.RefundProcessing)
		k.run(third)
		sum(o, 1500)
		k.notices()
		k.Want(t, 1, "SELECT count(*) FROM compensations WHERE subject_kind = 'refund_notice' AND state = 'waiting'")
		k.fake.SetRefund(third.RefundNo, supplier.RefundSucceeded)
		k.run(third)
		k.notices()
		k.Want(t, 1500, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		k.balances("and then", 499, 0, -499)
	})
}

// Money without an order is refunded at the supplier: it leaves suspense.
func TestHeldMoneyThatWentBackLeavesTheSuspense(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		m := k.Callback("nobody-1", "T-lost", 1999)
		m.Supplier = k.Entry(t, "f1")
		if _, err := k.Processor.Take(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE held_ref <> ''")
		back := k.Callback("nobody-1", "T-lost", 1999)
		back.Supplier = m.Supplier
		back.Content.Status, back.Content.EventKey, back.Content.RefundID = supplier.Refunded, "back", "SR-1"
		for range 2 {
			if _, err := k.Processor.Take(t.Context(), back); err != nil {
				t.Fatal(err)
			}
			k.notices()
		}
		k.Want(t, 0, "SELECT count(*) FROM exceptions WHERE held_ref <> ''")
		k.Want(t, 1,
			"SELECT count(*) FROM transfers AS t JOIN accounts AS d ON d.id = t.debit_account JOIN accounts AS c ON c.id = t.credit_account"+
				" WHERE d.code = 'suspense:f1' AND c.code = 'supplier:f1' AND t.amount = 1999 AND t.ref LIKE 'refund:%:A'")
		k.Want(t, 0, "SELECT count(*) FROM deliveries")
	})
}

// Stripe's charge.refunded says only how much of a payment went back: its refunds are listed, and
// each is matched by its own number.
func TestRefundsThatASupplierListsAreMatchedByTheirNumbers(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		o := k.paid()
		ours, open := k.asked(o, 500), k.asked(o, 50)
		k.run(ours)
		on := func(no, id string, amount int64, state supplier.RefundState) supplier.RefundSaid {
			return supplier.RefundSaid{No: no, SupplierNo: id, Amount: amount, Currency: "CNY", State: state, Word: string(state)}
		}
		asked, list := 0, paymenttest.NotListed()
		k.fake.OnList(func(r supplier.Refund) supplier.RefundList {
			asked++
			if r.TradeNo != "T-"+o.OrderNo || r.Currency != "CNY" {
				t.Errorf("asked for %+v", r)
			}
			return list
		})
		waiting := func(want int64) {
			t.Helper()
			k.Want(t, want, "SELECT count(*) FROM compensations WHERE subject_kind = 'refund_notice' AND state = 'waiting'")
		}
		sum := func(amount int64) { // the charge's event
			k.says(o, fmt.Sprint("charge-", amount), amount, func(c *supplier.Callback) {
				c.RefundSum, c.RawStatus = true,
					"charge.refunded"
			})
		}
		sum(850)
		k.notices()
		if asked != 1 {
			t.Fatalf("listed %d times, want once", asked)
		}
		waiting(1) // without a list nothing is booked
		k.Want(t, 0, "SELECT count(*) FROM refunds WHERE adopted <> ''")

		// One of ours has succeeded, another is open; three are not ours.
		all := []supplier.RefundSaid{
			on(ours.RefundNo, "re_1", 500, supplier.RefundSucceeded), on(open.RefundNo, "re_2", 50, supplier.RefundSucceeded),
			on("", "re_3", 300, supplier.RefundSucceeded), on("", "re_4", 100, supplier.RefundFailed),
			on("", "re_5", 200, supplier.RefundProcessing),
		}
		list = paymenttest.Listed(all...)
		k.notices()
		waiting(1) // for the one that is not over
		k.Want(t, 1, "SELECT count(*) FROM refunds WHERE adopted <> ''")
		k.Want(t, 1,
			"SELECT count(*) FROM refunds WHERE adopted = 're_3' AND supplier_refund_no = 're_3' AND amount = 300 AND status = 'succeeded'")
		k.Want(t, 800, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
		k.balances("listed", 1999-800-50, 50, 800-1999)
		k.is("ours", ours, Succeeded, 1, "refund.succeeded")
		if got := k.reload(open); got.Status != Approved {
			t.Errorf("the open one is %s, but its own compensation queries it", got.Status)
		}
		all[4].State = supplier.RefundSucceeded
		k.notices()
		waiting(0)
		k.Want(t, 1000, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)

		// The same list again, by another event: all of it is known.
		all = append(all, on("", "re_6", 5000, supplier.RefundSucceeded))
		list = paymenttest.Listed(all...)
		sum(6000)
		k.notices()
		waiting(0)
		k.Want(t, 2, "SELECT count(*) FROM refunds WHERE adopted <> ''")
		k.Want(t, 1,
			"SELECT count(*) FROM exceptions WHERE kind = 'unknown_refund' AND subject = 're_6'") // more than is left: people decide
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'unknown_refund' AND subject = 're_3'")
		k.Want(t, 0, "SELECT count(*) FROM exceptions WHERE subject IN ('re_1', 're_2')")
		k.run(open)
		k.is("open", open, Succeeded, 1, "refund.succeeded")
		k.balances("at the end", 1999-1050, 0, 1050-1999)
	})
}
