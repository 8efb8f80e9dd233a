package simulator

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"backstop/internal/base/waittest"
	"backstop/internal/supplier"
)

// paid makes a payment of 1999 and returns a refund of 700 of it.
func (k *kit) paid(can supplier.Abilities, ref, no string) supplier.Refund {
	k.t.Helper()
	p, _ := k.payment(ref)
	if s, err := can.Start(k.t.Context(), p); err != nil || s.State != supplier.Accepted {
		k.t.Fatalf("%v %+v", err, s)
	}
	r := k.set(ref, Script{State: StatePaid})
	return supplier.Refund{No: no, Reference: ref, TradeNo: r.TradeNo, Amount: 700, Total: 1999, Currency: k.a.Currency, Reason: "broken"}
}

func (k *kit) refunds(no string, script RefundScript) {
	k.t.Helper()
	if _, err := k.SetRefund(k.a.Code, no, script); err != nil {
		k.t.Fatal(err)
	}
}

// asks checks the answer as read by the real adapter.
func (k *kit) asks(what string, ask func(context.Context, supplier.Refund) (supplier.RefundAnswer, error), r supplier.Refund,
	want supplier.RefundState,
) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), 3*time.Second)
	defer cancel()
	if got, err := ask(ctx, r); err != nil || got.State != want {
		k.t.Errorf("%s %s: %v, %s (%s, %v), want %s", k.a.Kind, what, err, got.State, got.Word, got.Reason, want)
	}
}

func (k *kit) movedIs(no string, want int) {
	k.t.Helper()
	if got := k.Moved(no); got != want {
		k.t.Errorf("%s: money moved %d times for %s, want %d", k.a.Kind, got, no, want)
	}
}

func TestTheAdaptersRefundAtTheSimulator(t *testing.T) {
	t.Parallel()
	each(t, func(k *kit) {
		can := k.abilities()
		r := k.paid(can, "ORDER_1", "R1")
		k.asks("before", can.RefundQuery, r, supplier.RefundNotFound)
		k.asks("refund", can.Refund, r, supplier.RefundSucceeded)
		k.asks("again", can.Refund, r, supplier.RefundSucceeded)
		k.asks("query", can.RefundQuery, r, supplier.RefundSucceeded)
		k.movedIs("R1", 1)
		more := r
		more.No, more.Amount = "R2", 1300
		k.asks("more than is left", can.Refund, more, supplier.RefundFailed)
		k.movedIs("R2", 0)
		other := r
		other.Amount = 701
		k.asks("other content", can.Refund, other, supplier.RefundUnknown)

		word := map[string]map[State]supplier.RefundState{
			"wechatpay": {
				StateProcessing: supplier.RefundProcessing, StateFailed: supplier.RefundFailed,
				StateAbnormal: supplier.RefundAbnormal, StateShort: supplier.RefundShort,
			},
			"alipay": {StateProcessing: supplier.RefundUnknown, StateFailed: supplier.RefundFailed, StateShort: supplier.RefundShort},
			"stripe": {
				StateProcessing: supplier.RefundProcessing, StateFailed: supplier.RefundFailed,
				StateShort: supplier.RefundShort,
			},
			"sortedparams": {StateProcessing: supplier.RefundProcessing, StateFailed: supplier.RefundFailed},
		}[k.a.Kind]
		word[StateNotFound] = supplier.RefundUnknown // the call is lost
		for state, want := range word {
			no := "R" + string(state[0]) + "9"
			r := k.paid(can, "ORDER_"+no, no)
			k.refunds(no, RefundScript{State: state})
			k.asks(string(state), can.Refund, r, want)
			k.movedIs(no, 0)
			if state == StateNotFound || state == StateShort {
				k.asks(string(state)+", asked", can.RefundQuery, r, supplier.RefundNotFound)
			}
			k.refunds(no, RefundScript{State: StateSuccess})
			if k.asks(string(state)+", then", can.Refund, r, supplier.RefundSucceeded); k.Moved(no) != 1 {
				k.t.Errorf("%s: moved %d times", state, k.Moved(no))
			}
		}
		if k.a.Kind == "stripe" || k.a.Kind == "sortedparams" {
			k.refunds("R1", RefundScript{State: StateReturned})
			want := map[string]supplier.RefundState{"stripe": supplier.RefundFailed, "sortedparams": supplier.RefundReturned}[k.a.Kind]
			k.asks("returned", can.RefundQuery, r, want)
			k.movedIs("R1", 1)
		}
	})
}

func TestAnswersAboutRefundsAreSpoiltAndLost(t *testing.T) {
	t.Parallel()
	each(t, func(k *kit) {
		can := k.abilities()
		for i, answer := range []string{Answer500, AnswerGarbage, AnswerBadSignature, AnswerWrongOrder, AnswerHang, "lost"} {
			if answer == AnswerBadSignature && k.a.Kind == "stripe" {
				continue
			}
			no := fmt.Sprint("R", i)
			r := k.paid(can, "ORDER_"+no, no)
			script := RefundScript{State: StateSuccess, Answer: answer}
			if answer == "lost" {
				script = RefundScript{State: StateSuccess, LoseAnswers: 1}
			}
			k.refunds(no, script)
			k.asks(answer, can.Refund, r, supplier.RefundUnknown)
			k.movedIs(no, 1) // the call acts in every case
			k.refunds(no, RefundScript{State: StateSuccess})
			k.asks(answer+", asked", can.RefundQuery, r, supplier.RefundSucceeded)
			k.movedIs(no, 1)
			for _, c := range k.Calls(no) {
				if c.Op == opRefund && c.Number != no {
					k.t.Errorf("the call counts for %q", c.Number)
				}
			}
		}
		// A supplier that forgets numbers pays twice, which the count must show.
		r := k.paid(can, "ORDER_F", "RF")
		k.refunds("RF", RefundScript{Forgets: true})
		k.asks("first", can.Refund, r, supplier.RefundSucceeded)
		k.asks("second", can.Refund, r, supplier.RefundSucceeded)
		k.movedIs("RF", 2)
	})
}

func TestRefundsAreToldByTheirSuppliers(t *testing.T) {
	t.Parallel()
	each(t, func(k *kit) {
		if k.a.Kind == "sortedparams" {
			return
		}
		b, a, can := newInbox(k.t), adapter(k.t, k.a), k.abilities()
		k.options.Callbacks = b.url + "/callback"
		p, _ := k.payment("ORDER_1")
		p.NotifyURL = b.url + "/callback/" + k.a.Code
		if _, err := can.Start(k.t.Context(), p); err != nil {
			k.t.Fatal(err)
		}
		r := supplier.Refund{
			No: "R1", Reference: "ORDER_1", TradeNo: k.set("ORDER_1", Script{State: StatePaid}).TradeNo, Amount: 700, Total: 1999,
			Currency:  k.a.Currency,
			NotifyURL: p.NotifyURL,
		}
		k.refunds("R1", RefundScript{State: StateSuccess, Callback: CallbackTwice})
		k.asks("refund", can.Refund, r, supplier.RefundSucceeded)
		waittest.Until(k.t, "two callbacks", func() bool { return b.count() == 2 })
		// A refund that the merchant makes directly at the supplier.
		k.refunds("BACK-OFFICE", RefundScript{State: StateSuccess, Order: "ORDER_1", Amount: 300, Callback: CallbackNow})
		waittest.Until(k.t, "a third", func() bool { return b.count() == 3 })
		first, again, third := b.parse(k.t, a, 0), b.parse(k.t, a, 1), b.parse(k.t, a, 2)
		wantNo, wantStatus, wantAmount, wantTotal := "R1", supplier.Refunded, [2]int64{700, 300}, [2]int64{}
		if k.a.Kind == "alipay" { // the payment, with the sum of its refunds
			wantNo, wantStatus, wantAmount, wantTotal = "", supplier.Paid, [2]int64{1999, 1999}, [2]int64{700, 1000}
		}
		if first.Status != wantStatus || first.Amount != wantAmount[0] || first.RefundTotal != wantTotal[0] || first.RefundNo != wantNo || first.OrderRef != "ORDER_1" ||
			again.EventKey != first.EventKey {
			k.t.Errorf("%+v, then %+v", first, again)
		}
		if third.Status != wantStatus || third.Amount != wantAmount[1] || third.RefundNo == "R1" || third.EventKey == first.EventKey ||
			third.RefundTotal != wantTotal[1] {
			k.t.Errorf("%+v", third)
		}
		k.movedIs("R1", 1)
	})
}

func TestScriptsOfRefundsAreChecked(t *testing.T) {
	t.Parallel()
	k := newKit(t, Options{})
	for path, body := range map[string]string{
		"/_sim/sim-wx/refunds/R1":   `{"state":"returned"}`,
		"/_sim/sim-ali/refunds/R1":  `{"state":"abnormal"}`,
		"/_sim/sim-st/refunds/R1":   `{"state":"success","answer":"bad_signature"}`,
		"/_sim/sim-till/refunds/R1": `{"state":"success","callback":"now"}`,
		"/_sim/sim-wx/refunds/R2":   `{"state":"success","amount":3}`,
		"/_sim/sim-wx/refunds/R3":   `{"state":"success","amount":3,"order":"nobody"}`,
		"/_sim/sim-wx/refunds/R4":   `{"state":"paid"}`,
	} {
		if status, answer := ctl(k, http.MethodPut, path, body); status != http.StatusUnprocessableEntity {
			t.Errorf("%s %s: %d %v", path, body, status, answer)
		}
	}
	status, answer := ctl(k, http.MethodPut, "/_sim/sim-wx/refunds/R1", `{"state":"processing"}`)
	if status != http.StatusOK || answer["money_moved"] != 0.0 {
		t.Errorf("%d %v", status, answer)
	}
	if status, _ = ctl(k, http.MethodGet, "/_sim/none/refunds/R1", ""); status != http.StatusNotFound {
		t.Errorf("no such supplier: %d", status)
	}
}

// The script of all numbers is that of each number without its own.
func TestRefundsWithoutAScriptFollowThatOfTheirSupplier(t *testing.T) {
	t.Parallel()
	each(t, func(k *kit) {
		can := k.abilities()
		path := "/_sim/" + k.a.Code + "/refunds/*"
		r := k.paid(can, "ORDER_1", "R1")
		if status, answer := ctl(k, http.MethodPut, path, `{"state":"failed"}`); status != http.StatusOK || answer["no"] != EachNumber {
			t.Errorf("%d %v", status, answer)
		}
		k.asks("of all", can.Refund, r, supplier.RefundFailed)
		k.movedIs("R1", 0)
		k.refunds("R2", RefundScript{})
		r.No = "R2"
		k.asks("its own", can.Refund, r, supplier.RefundSucceeded)
		if status, answer := ctl(k, http.MethodGet, path, ""); status != http.StatusOK || answer["state"] != "failed" {
			t.Errorf("%d %v", status, answer)
		}
		if status, answer := ctl(k, http.MethodPut, path, `{"order":"ORDER_1","amount":1}`); status != http.StatusUnprocessableEntity {
			t.Errorf("a refund without a number: %d %v", status, answer)
		}
	})
}
