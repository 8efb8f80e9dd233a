package decision_test

import (
	"errors"
	"fmt"
	"testing"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/decision"
	"backstop/internal/exception"
	"backstop/internal/ledger"
	"backstop/internal/order"
)

// offered returns the parameters that an action needs for an exception; nil = it is not offered.
func (k *office) offered(x *exception.Item, action string) map[string]string {
	k.t.Helper()
	_, offers, err := k.desk.OffersOf(k.t.Context(), k.person(access.Finance), decision.OfException, fmt.Sprint(x.ID))
	if err != nil {
		k.t.Fatal(err)
	}
	for _, o := range offers {
		if o.Action == action {
			return o.Params
		}
	}
	return nil
}

// Accepting a different amount for an order that has ended waives two checks; one approval names
// both.
func TestAnotherAmountThatCameLateIsAcceptedByName(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 30)
		mismatch := func(o *order.Order) (*exception.Item, func(params string) approval.Proposal) {
			k.take(k.callback(o.OrderNo, "T-"+o.OrderNo, 2100, "f1"))
			x := k.newest(exception.AmountMismatch)
			return x, func(params string) approval.Proposal {
				p := wish(decision.AcceptAmount, x.ID, params)
				p.Amount = "21.00"
				return p
			}
		}
		refused := func(what string, p approval.Proposal) {
			t.Helper()
			var field *act.FieldError
			if _, err := k.propose(access.Finance, p); !errors.As(err, &field) || field.Field != "params.late" {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, status := range []order.Status{order.Closed, order.Failed} {
			o := k.order(status, "f1")
			x, of := mismatch(o)
			if queries := k.offered(x, decision.AcceptAmount); queries["late"] != "boolean" {
				t.Errorf("of one that is %s it asks %v", status, queries)
			}
			refused("not said to be late", of(`{"amount":2100}`))
			a := k.decided(of(`{"amount":2100,"late":true}`))
			if got := string(a.Params); got != `{"amount":2100,"late":true}` {
				t.Errorf("two people looked at %s", got)
			}
			k.wantPaid(o, a, "T-"+o.OrderNo, 2100)
			k.wantEnded(x, a, exception.Resolved, exception.Accepted)
		}
		k.Want(t, 24, "SELECT stock FROM skus")
		k.Want(t, 6, "SELECT sold FROM skus")
		open := k.order(order.Paying, "f1")
		x, of := mismatch(open)
		if queries := k.offered(x, decision.AcceptAmount); queries == nil || queries["late"] != "" {
			t.Errorf("of an open one it asks %v", queries)
		}
		refused("not late", of(`{"amount":2100,"late":true}`))

		// The order ends while the proposal waits: what was proposed was not late money.
		a, err := k.propose(access.Finance, of(`{"amount":2100}`))
		if err != nil {
			t.Fatal(err)
		}
		k.decided(wish(decision.ForceClosed, open.OrderNo, `{"evidence":"the shop is gone"}`))
		before := k.Count(t, "SELECT count(*) FROM transfers")
		if _, err := k.approve(access.Lead, a); !errors.Is(err, act.ErrChanged) {
			t.Errorf("err = %v", err)
		}
		k.Want(t, before, "SELECT count(*) FROM transfers")
		if got := k.reload(open); got.Status != order.Closed {
			t.Errorf("the order is %s", got.Status)
		}
		if _, err := k.desk.Reject(t.Context(), approval.Verdict{
			ID: a.ID, Reason: "it is late by now",
			By: k.person(access.Lead),
		}); err != nil {
			t.Fatal(err)
		}
		a = k.decided(of(`{"amount":2100,"late":true}`))
		k.wantPaid(open, a, "T-"+open.OrderNo, 2100)
		k.books()
	})
}

// Rows of earlier versions have no message. If an order was found, the row itself is confirmed;
// a payment without an order cannot be attached to one.
func TestWhatHasNoMessageIsAcceptedByItsRow(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 100)
		// money creates an exception about late money or a different amount; without a trade number
		// its subject is the message's key.
		money := func(kind, tradeNo string) (*order.Order, *exception.Item) {
			o, amount := k.order(order.Closed, "f1"), int64(1999)
			if kind == exception.AmountMismatch {
				o, amount = k.order(order.Paying, "f1"), 2100
			}
			m := k.callback(o.OrderNo, tradeNo, amount, "f1")
			m.Content.EventKey = "event of " + o.OrderNo
			k.take(m)
			x := k.newest(kind)
			k.exec("UPDATE exceptions SET payload = '', callback_id = 0 WHERE id = ?", x.ID)
			return o, x
		}
		for i, c := range []struct{ kind, action, params, amount, tradeNo string }{
			{exception.LatePayment, decision.AcceptLate, `{}`, "19.99", "T-1"},
			{exception.LatePayment, decision.AcceptLate, `{"unverified":true}`, "19.99", ""},
			{exception.AmountMismatch, decision.AcceptAmount, `{"amount":2100}`, "21.00", "T-3"},
			{exception.AmountMismatch, decision.AcceptAmount, `{"amount":2100}`, "21.00", ""},
		} {
			o, x := money(c.kind, c.tradeNo)
			p := wish(c.action, x.ID, c.params)
			p.Amount = c.amount
			a := k.decided(p)
			got := k.reload(o)
			if got.Status != order.Paid || got.SupplierTradeNo != c.tradeNo || got.PaidAmount != x.Amount {
				t.Errorf("%d: %+v", i, got)
			}
			k.wantEnded(x, a, exception.Resolved, exception.Accepted)
			// The held money paid it: nothing is booked from the supplier twice.
			k.Want(t, 1, "SELECT count(*) FROM transfers AS t JOIN accounts AS b ON b.id = t.debit_account WHERE t.ref = ? AND b.code = ?",
				fmt.Sprint("paid:", o.ID), ledger.SuspenseAccount("f1"))
		}
		k.books()
		k.take(k.callback("nobody-1", "T-lost", 1999, "f1"))
		x := k.newest(exception.UnknownOrder)
		if k.offered(x, decision.Attach) == nil {
			t.Error("with its message it cannot be attached")
		}
		k.exec("UPDATE exceptions SET payload = '' WHERE id = ?", x.ID)
		if k.offered(x, decision.Attach) != nil || k.offered(x, decision.OweBack) == nil {
			t.Error("without its message it can be attached, or nothing is offered")
		}
	})
}
