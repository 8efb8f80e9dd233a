package decision_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
	"backstop/internal/decision"
	"backstop/internal/exception"
	"backstop/internal/fund/refund"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// wantPaid checks an order paid by a decision: ledger, stock, history and notification.
func (k *office) wantPaid(o *order.Order, a *approval.Approval, tradeNo string, amount int64) {
	k.t.Helper()
	got := k.reload(o)
	if got.Status != order.Paid || got.SupplierTradeNo != tradeNo || got.PaidAmount != amount || got.CloseReason != "" {
		k.t.Errorf("after %s: %+v", a.Action, got)
	}
	k.Want(k.t, 1,
		"SELECT count(*) FROM transfers AS t JOIN accounts AS c ON c.id = t.credit_account WHERE t.ref = ? AND t.amount = ? AND c.code = 'merchant:m1'", fmt.Sprint("paid:", o.ID), amount)
	k.Want(k.t, 1,
		"SELECT count(*) FROM order_history WHERE order_id = ? AND to_status = 'paid' AND cause = 'decided' AND source_id = ? AND source_kind = 'approval' AND actor = 'operator:lead'", o.ID, a.ID)
	k.Want(k.t, 1, "SELECT count(*) FROM deliveries WHERE subject_id = ? AND event_type = 'order.paid'", o.ID)
	k.Want(k.t, 1, "SELECT count(*) FROM payment_attempts WHERE order_id = ? AND status = 'succeeded' AND amount = ?", o.ID, amount)
}

func (k *office) wantEnded(x *exception.Item, a *approval.Approval, state exception.State, outcome exception.Outcome) {
	k.t.Helper()
	got, err := exception.Find(k.t.Context(), k.DB, x.ID)
	if err != nil {
		k.t.Fatal(err)
	}
	if got.State != state || got.Outcome != outcome || got.DecidedBy != a.ID || got.ResolvedAt == nil {
		k.t.Errorf("after %s: %+v", a.Action, got)
	}
}

func TestLateMoneyIsAcceptedWithItsGoodsAndItsNotification(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 10)
		o, x := k.late()
		a := k.decided(wish(decision.AcceptLate, x.ID, `{}`))
		k.wantPaid(o, a, "T-"+o.OrderNo, 1999)
		k.wantEnded(x, a, exception.Resolved, exception.Accepted)
		k.Want(t, 7, "SELECT stock FROM skus")
		k.Want(t, 3, "SELECT sold FROM skus")
		k.Want(t, 0, "SELECT locked FROM skus")
		// The supplier reports it once more, and nothing else happens.
		k.take(k.callback(o.OrderNo, "T-"+o.OrderNo, 1999, "f1"))
		k.wantEnded(x, a, exception.Resolved, exception.Accepted)
		k.books()

		// Stock that another order has bought meanwhile is not sold twice.
		o, x = k.late()
		k.exec("UPDATE skus SET stock = 2, applied = 5")
		a = k.decided(wish(decision.AcceptLate, x.ID, `{}`))
		k.wantPaid(o, a, "T-"+o.OrderNo, 1999)
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'stock_short' AND state = 'open'")
		k.books()
	})
}

func TestAnotherAmountIsAcceptedAsItCame(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 10)
		for _, amount := range []int64{1950, 2100} {
			o := k.order(order.Paying, "f1")
			k.take(k.callback(o.OrderNo, "T-"+o.OrderNo, amount, "f1"))
			x := k.newest(exception.AmountMismatch)
			p := wish(decision.AcceptAmount, x.ID, `{"amount":1999}`)
			p.Amount = fmt.Sprintf("%d.%02d", amount/100, amount%100)
			var field *act.FieldError
			if _, err := k.propose(access.Finance, p); !errors.As(err, &field) || field.Field != "params.amount" {
				t.Errorf("the order's amount: %v", err)
			}
			p.Params = []byte(fmt.Sprintf(`{"amount":%d}`, amount))
			a := k.decided(p)
			k.wantPaid(o, a, "T-"+o.OrderNo, amount)
			k.wantEnded(x, a, exception.Resolved, exception.Accepted)
			k.Want(t, 1, "SELECT count(*) FROM "+notify.AllEvents+" AS e WHERE body LIKE ? AND body LIKE ? AND body LIKE ?",
				"%"+o.OrderNo+"%", `%"amount":1999%`, fmt.Sprintf(`%%"paid_amount":%d%%`, amount))
		}
		k.books()
	})
}

func TestMoneyOfNoOrderIsAttachedToOne(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 10)
		k.take(k.callback("nobody-1", "T-lost", 1999, "f1"))
		x := k.newest(exception.UnknownOrder)
		dear := k.order(order.Paying, "f1")
		k.exec("UPDATE orders SET amount = 2000 WHERE id = ?", dear.ID)
		for no, what := range map[string]string{"none": "of no order", dear.OrderNo: "of an order of another amount"} {
			var field *act.FieldError
			if _, err := k.propose(access.Finance, wish(decision.Attach, x.ID, `{"order_no":"`+no+`"}`)); !errors.As(err, &field) ||
				field.Field != "params.order_no" {
				t.Errorf("%s: %v", what, err)
			}
		}
		k.exec("UPDATE orders SET amount = 1999 WHERE id = ?", dear.ID)
		o := k.order(order.Paying, "f1")
		a := k.decided(wish(decision.Attach, x.ID, `{"order_no":"`+o.OrderNo+`"}`))
		k.wantPaid(o, a, "T-lost", 1999)
		k.wantEnded(x, a, exception.Resolved, exception.Accepted)
		k.books()

		// Without a message nothing can be attached.
		k.take(k.callback("nobody-2", "T-lost-2", 1999, "f1"))
		x = k.newest(exception.UnknownOrder)
		k.exec("UPDATE exceptions SET payload = '' WHERE id = ?", x.ID)
		if _, err := k.propose(access.Finance, wish(decision.Attach, x.ID, `{"order_no":"`+dear.OrderNo+`"}`)); err == nil {
			t.Error("a message that is not stored is attached")
		}
	})
}

func TestSurplusThatIsKeptIsTheMerchants(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 10)
		o := k.order(order.Paid, "f1")
		k.take(k.callback(o.OrderNo, "again", 1999, "f1"))
		x := k.newest(exception.DuplicatePayment)
		a := k.decided(wish(decision.KeepSurplus, x.ID, `{"evidence":"the buyer's letter","unverified":true}`)) // no supplier is queried
		k.wantEnded(x, a, exception.Resolved, exception.KeepSurplus)
		k.Want(t, 1,
			"SELECT count(*) FROM transfers AS t JOIN accounts AS d ON d.id = t.debit_account JOIN accounts AS c ON c.id = t.credit_account"+
				" WHERE t.ref = ? AND d.code = 'suspense:f1' AND c.code = 'merchant:m1' AND t.amount = 1999",
			fmt.Sprint("elsewhere:", a.ID))
		k.Want(t, 0, "SELECT count(*) FROM exceptions WHERE held_ref <> ''")
		k.books()
	})
}

// Money owed back is refunded at its supplier, against the payment that it came with. If the
// refund fails, the money is held again and an operator must decide again.
func TestHeldMoneyIsGivenBackByARefund(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 10)
		o := k.order(order.Paid, "f1")
		owe := func() (*exception.Item, *refund.Refund) {
			x := k.newest(exception.DuplicatePayment)
			a := k.decided(wish(decision.OweBack, x.ID, `{"evidence":"the buyer's letter","unverified":true}`)) // no supplier is queried
			k.wantEnded(x, a, exception.Resolved, exception.OweBack)
			k.Want(t, 0, "SELECT count(*) FROM exceptions WHERE held_ref <> ''")
			k.books()
			var no string
			if err := k.DB.NewRaw("SELECT refund_no FROM refunds WHERE approval_id = ?", a.ID).Scan(t.Context(), &no); err != nil {
				t.Fatal(err)
			}
			r, err := refund.ByNo(t.Context(), k.DB, no)
			if err != nil || r.Status != refund.Approved || r.TradeNo != "again" || r.SupplierRef != o.OrderNo || r.Amount != 1999 ||
				r.OrderID != 0 || r.MerchantID != 0 {
				t.Fatalf("%v %+v", err, r)
			}
			return x, r
		}
		run := func(r *refund.Refund) {
			var item compensation.Item
			if err := k.DB.NewRaw("SELECT * FROM compensations WHERE subject_id = ? AND state = 'waiting'", r.ID).Scan(t.Context(),
				&item); err != nil {
				t.Fatal(err)
			}
			item.Attempts++
			replaycall.Kind(replaycall.Subjects{refund.Op: k.refunds.Subject()}).Run(t.Context(), item)
			k.exec("UPDATE compensations SET state = 'done', next_at = NULL WHERE id = ?", item.ID)
		}
		k.take(k.callback(o.OrderNo, "again", 1999, "f1"))
		k.Fakes["f1"].OnRefund(func(supplier.Refund) paymenttest.RefundFault { return paymenttest.RefundNo })
		x, r := owe()
		run(r)
		if got, err := exception.Find(t.Context(), k.DB, x.ID); err != nil || got.State != exception.Opened || got.HeldRef == "" ||
			got.DecidedBy != 0 {
			t.Errorf("after the refusal: %v %+v", err, got)
		}
		k.books()
		k.Fakes["f1"].OnRefund(nil)
		_, r = owe()
		run(r)
		if got := k.Fakes["f1"].RefundOf(r.RefundNo); got.Moved != 1 {
			t.Errorf("%+v", got)
		}
		k.Want(t, 1, "SELECT count(*) FROM transfers WHERE ref = ?", fmt.Sprintf("refund:%d:C", r.ID))
		k.Want(t, 0, "SELECT count(*) FROM deliveries WHERE subject_id = ?", r.ID)
		k.books()
	})
}

func TestMoneyThatWasDealtWithElsewhereLeavesTheSuspense(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 10)
		for outcome, account := range map[string]string{decision.Refunded: "supplier:f1", decision.Kept: "merchant:m1"} {
			o := k.order(order.Paid, "f1")
			k.take(k.callback(o.OrderNo, "again-"+outcome, 1999, "f1"))
			x := k.newest(exception.DuplicatePayment)
			a := k.decided(wish(decision.ResolvedElsewhere, x.ID, `{"outcome":"`+outcome+
				`","reference":"RF-1","evidence":"the bank's letter"}`))
			want := exception.RefundedElsewhere
			if outcome == decision.Kept {
				want = exception.AcceptedElsewhere
			}
			k.wantEnded(x, a, exception.Resolved, want)
			k.Want(t, 1,
				"SELECT count(*) FROM transfers AS t JOIN accounts AS d ON d.id = t.debit_account JOIN accounts AS c ON c.id = t.credit_account"+
					" WHERE t.ref = ? AND d.code = 'suspense:f1' AND c.code = ? AND t.amount = 1999", fmt.Sprint("elsewhere:", a.ID),
				account)
			k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE id = ? AND reference = 'RF-1'", x.ID)
		}
		k.books()
		k.take(k.callback("nobody-1", "T-lost", 1999, "f1"))
		x := k.newest(exception.UnknownOrder)
		for field, params := range map[string]string{
			"params.outcome":   `{"outcome":"kept","reference":"RF-1","evidence":"e"}`, // there is no merchant to keep it
			"params.reference": `{"outcome":"refunded","reference":" ","evidence":"e"}`,
			"params.evidence":  `{"outcome":"refunded","reference":"RF-1"}`,
			"params.how":       `{"outcome":"refunded","reference":"RF-1","evidence":"e","how":1}`,
		} {
			var wrong *act.FieldError
			if _, err := k.propose(access.Finance, wish(decision.ResolvedElsewhere, x.ID, params)); !errors.As(err, &wrong) ||
				wrong.Field != field {
				t.Errorf("%s: %v, want the field %s", params, err, field)
			}
		}
	})
}

func TestWhatNamesNoAmountIsIgnoredByOnePersonAlone(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.exec("INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, seen, opened_at, updated_at)" +
			" VALUES (1, 'malformed', 'open', 0, 0, 0, '', 'a', 0, '', '{}', 1, 1, 1), (2, 'malformed', 'open', 0, 0, 0, '', 'b', 1999, 'CNY', '{}', 1, 1, 1)")
		p := wish(decision.Ignore, 1, `{}`)
		p.Amount = ""
		a, err := k.propose(access.Ops, p)
		if err != nil || a.State != approval.Done || a.SinglePerson || a.Checker != nil {
			t.Fatalf("ignored: %+v, %v", a, err)
		}
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE id = 1 AND state = 'ignored' AND decided_by = ?", a.ID)
		var denied *act.Denied
		if _, err := k.propose(access.Ops, wish(decision.Ignore, 2, `{}`)); !errors.As(err, &denied) ||
			denied.Permission != access.ProposeMoney {
			t.Errorf("an amount: %v", err)
		}
		if a, err = k.propose(access.Finance, wish(decision.Ignore, 2, `{}`)); err != nil || a.State != approval.Waiting {
			t.Fatalf("an amount: %+v, %v", a, err)
		}
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE id = 2 AND state = 'proposed'")
		if a, err = k.approve(access.Lead, a); err != nil || a.State != approval.Done {
			t.Fatal(a, err)
		}
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE id = 2 AND state = 'ignored'")
	})
}

func TestAnOrderIsMarkedPaidByEvidence(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 100)
		for _, status := range []order.Status{order.Pending, order.Paying, order.Closing} {
			o := k.order(status, "sp-main") // which cannot be queried
			k.exec("UPDATE operators SET role = 'finance' WHERE name = 'auditor'")
			params := fmt.Sprintf(`{"trade_no":"M-%s","amount":1999,"evidence":"statement of the 23rd, line 7"`, o.OrderNo)
			var field *act.FieldError
			if _, err := k.propose(access.Lead, wish(decision.MarkPaid, o.OrderNo, params+`}`)); !errors.As(err, &field) ||
				field.Field != "params.unverified" {
				t.Errorf("%s, which cannot be queried: %v", status, err)
			}
			p := wish(decision.MarkPaid, o.OrderNo, params+`,"unverified":true}`)
			p.Params = []byte(strings.Replace(string(p.Params), "1999", "1998", 1))
			if _, err := k.propose(access.Finance, p); !errors.As(err, &field) || field.Field != "params.amount" {
				t.Errorf("%s, another amount: %v", status, err)
			}
			a := k.decided(wish(decision.MarkPaid, o.OrderNo, params+`,"unverified":true}`))
			k.wantPaid(o, a, "M-"+o.OrderNo, 1999)
		}
		k.Want(t, 9, "SELECT sold FROM skus")
		k.books()
	})
}

func TestAnOrderIsGivenUpWithItsAttemptsItsGoodsAndItsNotification(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 100)
		for action, to := range map[string]order.Status{decision.ForceClosed: order.Closed, decision.ForceFailed: order.Failed} {
			for _, status := range []order.Status{order.Pending, order.Paying, order.Closing} {
				o := k.order(status, "f1")
				k.Fakes["f1"].Says(supplier.AnswerNotFound)
				a := k.decided(wish(action, o.OrderNo, `{"evidence":"the supplier went out of business"}`))
				got := k.reload(o)
				if got.Status != to || (to == order.Closed) != (got.ClosedAt != nil) {
					t.Errorf("%s of one that is %s: %+v", action, status, got)
				}
				k.Want(t, 0, "SELECT count(*) FROM payment_attempts WHERE order_id = ? AND status NOT IN ('closed', 'failed')", o.ID)
				k.Want(t, 1, "SELECT count(*) FROM deliveries WHERE subject_id = ? AND event_type = ?", o.ID, "order."+string(to))
				k.Want(t, 1,
					"SELECT count(*) FROM order_history WHERE order_id = ? AND to_status = ? AND cause = 'decided' AND source_id = ? AND source_kind = 'approval'", o.ID, to, a.ID)
				k.Want(t, 0, "SELECT locked FROM skus")
				// A payment that arrives anyway is noticed.
				if out := k.take(k.callback(o.OrderNo, "late-"+o.OrderNo, 1999, "f1")); out.Name != exception.LatePayment {
					t.Errorf("money for it: %+v", out)
				}
			}
		}
		k.books()
	})
}

// The supplier's current answer outweighs what two people decide.
func TestNothingIsDecidedAgainstTheSupplier(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 1000)
		refunded := func() {
			k.Fakes["f1"].OnQuery(func(_ context.Context, r supplier.Ref) (supplier.Answer, error) { return wentBack(r), nil })
		}
		says := func(state supplier.AnswerState) func() { return func() { k.Fakes["f1"].Says(state) } }
		paid := `{"trade_no":"M-1","amount":1999,"evidence":"a letter"}`
		for _, c := range []struct {
			action, params, want string
			says                 func()
		}{
			{decision.MarkPaid, paid, "paying", says(supplier.AnswerPaying)},
			{decision.MarkPaid, paid, "not_found", says(supplier.AnswerNotFound)},
			{decision.MarkPaid, paid, "refunded", refunded},
			{decision.ForceClosed, `{"evidence":"e"}`, "paying", says(supplier.AnswerPaying)},
			{decision.ForceClosed, `{"evidence":"e"}`, "paid", says(supplier.AnswerPaid)},
			{decision.ForceFailed, `{"evidence":"e"}`, "paying", says(supplier.AnswerPaying)},
			{decision.ForceFailed, `{"evidence":"e"}`, "paid", says(supplier.AnswerPaid)},
			{decision.AcceptLate, `{}`, "refunded", refunded},
		} {
			var id string
			if c.action == decision.AcceptLate {
				_, x := k.late()
				id = fmt.Sprint(x.ID)
			} else {
				id = k.order(order.Paying, "f1").OrderNo
			}
			c.says()
			var live *approval.LiveError
			if a, err := k.propose(access.Finance, wish(c.action, id, c.params)); !errors.As(err, &live) || live.Answer != c.want {
				t.Errorf("%s, expected %s: %+v, %v", c.action, c.want, a, err)
			}
			k.Want(t, 0, "SELECT count(*) FROM approvals")
			k.Fakes["f1"].Says(supplier.AnswerNotFound)
		}
		// It is queried again when the second person approves.
		o := k.order(order.Paying, "f1")
		k.Fakes["f1"].Says(supplier.AnswerNotFound)
		a, err := k.propose(access.Finance, wish(decision.ForceClosed, o.OrderNo, `{"evidence":"e"}`))
		if err != nil {
			t.Fatal(err)
		}
		k.Fakes["f1"].Says(supplier.AnswerPaying)
		var live *approval.LiveError
		if _, err := k.approve(access.Lead, a); !errors.As(err, &live) {
			t.Errorf("approved against the supplier: %v", err)
		}
		if got := k.reload(o); got.Status != order.Paying {
			t.Errorf("the order is %s", got.Status)
		}
	})
}

// TestMoneyThatWasDecidedPaysNothingMore: a first callback about a payment that a query had found,
// and that was decided since, opens nothing again. What an approval has moved would pay the order
// a second time.
func TestMoneyThatWasDecidedPaysNothingMore(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 1000)
		for _, c := range []struct {
			action, params string
			outcome        exception.Outcome
		}{
			{decision.ResolvedElsewhere, `{"outcome":"refunded","reference":"RF-1","evidence":"a letter"}`, exception.RefundedElsewhere},
			{decision.ResolvedElsewhere, `{"outcome":"kept","reference":"RF-1","evidence":"a letter"}`, exception.AcceptedElsewhere},
			{decision.KeepSurplus, `{"evidence":"a letter"}`, exception.KeepSurplus},
			{decision.OweBack, `{"evidence":"a letter"}`, exception.OweBack},
		} {
			o := k.order(order.Closed, "f1")
			found := k.callback(o.OrderNo, "T-"+o.OrderNo, 1999, "f1")
			found.Source.Record = nil // as the answer of a query
			k.take(found)
			x := k.newest(exception.LatePayment)
			a := k.decided(wish(c.action, x.ID, c.params))
			for range 2 {
				if out := k.take(k.callback(o.OrderNo, "T-"+o.OrderNo, 1999, "f1")); out.Name != payment.Repeat {
					t.Errorf("after %s the callback is %+v", a.Action, out)
				}
				k.wantEnded(x, a, exception.Resolved, c.outcome)
				if _, err := k.propose(access.Finance, wish(decision.AcceptLate, x.ID, `{}`)); err == nil {
					t.Errorf("after %s the money is offered to the order", a.Action)
				}
			}
			// Another amount of the same trade is news for the desk, but pays nothing either.
			k.take(k.callback(o.OrderNo, "T-"+o.OrderNo, 2100, "f1"))
			again := k.newest(exception.AmountMismatch)
			if p, err := k.propose(access.Finance, wish(decision.AcceptAmount, again.ID, `{"amount":2100,"late":true}`)); err == nil {
				if _, err := k.approve(access.Lead, p); !errors.Is(err, act.ErrChanged) {
					t.Errorf("after %s the order was paid by another amount of the trade: %v", a.Action, err)
				}
			}
			k.Want(t, 0, "SELECT count(*) FROM transfers WHERE ref = ?", "paid:"+fmt.Sprint(o.ID))
			k.books()
		}
	})
}

// wentBack is an answer that says that the money arrived and was returned.
func wentBack(r supplier.Ref) supplier.Answer {
	a := paymenttest.FakeAnswer(r, supplier.AnswerPaid)
	a.Says.RefundTotal = a.Says.Amount
	return a
}

// A maker who was demoted may still end exceptions without an amount, but no others.
func TestADemotedMakerDecidesNoMoney(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 10)
		o := k.order(order.Paid, "f1")
		k.take(k.callback(o.OrderNo, "again-"+o.OrderNo, 1999, "f1"))
		x := k.newest(exception.DuplicatePayment)
		a, err := k.propose(access.Finance,
			wish(decision.ResolvedElsewhere, x.ID, `{"outcome":"refunded","reference":"RF-1","evidence":"a letter"}`))
		if err != nil {
			t.Fatal(err)
		}
		k.exec("UPDATE operators SET role = ? WHERE name = ?", access.Ops, access.Finance)
		var role *approval.RoleError
		if got, err := k.approve(access.Lead, a); !errors.As(err, &role) || !role.OfMaker || role.Permission != access.ProposeMoney {
			t.Errorf("approved: %+v, %v", got, err)
		}
		k.Want(t, 0, "SELECT count(*) FROM transfers WHERE ref LIKE 'elsewhere:%'")
		k.exec("UPDATE operators SET role = ? WHERE name = ?", access.Finance, access.Finance)
		if got, err := k.approve(access.Lead, a); err != nil || got.State != approval.Done { // the control
			t.Errorf("approved: %+v, %v", got, err)
		}
		k.books()
	})
}
