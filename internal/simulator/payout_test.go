package simulator

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/waittest"
	"backstop/internal/supplier"
)

// eachPayer runs a test for every kind that has payouts.
func eachPayer(t *testing.T, test func(k *kit)) {
	n := 0
	each(t, func(k *kit) {
		if k.a.Payouts() {
			n++
			test(k)
		}
	})
	if n != 2 {
		t.Errorf("%d kinds have payouts", n)
	}
}

func (k *kit) payouts(no string, script PayoutScript) PayoutReport {
	k.t.Helper()
	r, err := k.SetPayout(k.a.Code, no, script)
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

func (k *kit) payout(no string) supplier.Payout {
	return supplier.Payout{
		No: no, Amount: 700, Currency: k.a.Currency,
		Payee: supplier.Payee{Kind: supplier.PayeeBankCard, Holder: "A & B", Number: "6222021234564711", Bank: "ICBC"},
	}
}

// asksPayout checks the answer as read by the real adapter.
func (k *kit) asksPayout(what string, ask func(context.Context, supplier.Payout) (supplier.PayoutAnswer, error), p supplier.Payout,
	want supplier.PayoutState,
) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), 3*time.Second)
	defer cancel()
	got, err := ask(ctx, p)
	if err != nil || got.State != want {
		k.t.Errorf("%s %s: %v, %s (%s, %v), want %s", k.a.Kind, what, err, got.State, got.Word, got.Reason, want)
	}
	if strings.Contains(string(got.Exchange.Request)+string(got.Exchange.Body)+got.Reason.Error(), p.Payee.Number) {
		k.t.Errorf("%s %s: the payee's number is kept", k.a.Kind, what)
	}
}

func TestTheAdaptersPayOutAtTheSimulator(t *testing.T) {
	t.Parallel()
	eachPayer(t, func(k *kit) {
		can := k.abilities()
		p := k.payout("P1")
		k.asksPayout("before", can.PayoutQuery, p, supplier.PayoutNotFound)
		k.asksPayout("payout", can.Payout, p, supplier.PayoutSucceeded)
		k.asksPayout("again", can.Payout, p, supplier.PayoutSucceeded)
		k.asksPayout("query", can.PayoutQuery, p, supplier.PayoutSucceeded)
		k.movedIs("P1", 1)
		other := p
		other.Amount = 701
		k.asksPayout("other content", can.Payout, other, supplier.PayoutUnknown)
		k.movedIs("P1", 1)

		for state, want := range map[State]struct{ called, asked supplier.PayoutState }{
			StateProcessing: {supplier.PayoutProcessing, supplier.PayoutProcessing},
			StateFailed:     {supplier.PayoutFailed, supplier.PayoutFailed},
			StateReturned:   {supplier.PayoutReturned, supplier.PayoutReturned},
			StateShort:      {supplier.PayoutShort, supplier.PayoutNotFound},
			StateNotFound:   {supplier.PayoutUnknown, supplier.PayoutNotFound}, // the call is lost
		} {
			if state == StateShort && k.a.Kind == "sortedparams" {
				continue
			}
			p := k.payout("P9" + fmt.Sprint(len(state)) + string(state[0]))
			k.payouts(p.No, PayoutScript{State: state})
			k.asksPayout(string(state), can.Payout, p, want.called)
			k.asksPayout(string(state)+", asked", can.PayoutQuery, p, want.asked)
			moved := 0
			if state == StateReturned {
				moved = 1
			}
			k.movedIs(p.No, moved)
			k.payouts(p.No, PayoutScript{State: StateSuccess})
			k.asksPayout(string(state)+", then", can.Payout, p, supplier.PayoutSucceeded)
			k.movedIs(p.No, 1)
		}
		k.payouts("P1", PayoutScript{State: StateReturned})
		k.asksPayout("returned", can.PayoutQuery, p, supplier.PayoutReturned)
		k.movedIs("P1", 1)
	})
}

func TestAnswersAboutPayoutsAreSpoiltAndLost(t *testing.T) {
	t.Parallel()
	eachPayer(t, func(k *kit) {
		can := k.abilities()
		for i, answer := range []string{Answer500, AnswerGarbage, AnswerBadSignature, AnswerWrongOrder, AnswerHang, "lost"} {
			p := k.payout(fmt.Sprint("P", i))
			script := PayoutScript{State: StateSuccess, Answer: answer}
			if answer == "lost" {
				script = PayoutScript{State: StateSuccess, LoseAnswers: 1}
			}
			k.payouts(p.No, script)
			k.asksPayout(answer, can.Payout, p, supplier.PayoutUnknown)
			k.movedIs(p.No, 1) // the call acts in every case
			if answer != "lost" {
				k.asksPayout(answer+", asked", can.PayoutQuery, p, supplier.PayoutUnknown)
			}
			k.payouts(p.No, PayoutScript{State: StateSuccess})
			k.asksPayout(answer+", asked again", can.PayoutQuery, p, supplier.PayoutSucceeded)
			k.movedIs(p.No, 1)
			calls := k.Calls(p.No)
			if len(calls) < 2 || calls[0].Op != opPayout || calls[0].Number != p.No || calls[0].MoneyMoved != 1 || calls[0].Spoilt == "" ||
				calls[0].Repeated {
				k.t.Errorf("%+v", calls)
			}
		}
		p := k.payout("PD")
		k.payouts("PD", PayoutScript{State: StateSuccess, DelayMS: 300})
		began := time.Now()
		k.asksPayout("slow", can.Payout, p, supplier.PayoutSucceeded)
		if took := time.Since(began); took < 300*time.Millisecond {
			k.t.Errorf("answered after %s", took)
		}
		// The negative control of money_moved: a supplier that forgets numbers pays twice.
		k.payouts("PF", PayoutScript{Forgets: true})
		k.asksPayout("first", can.Payout, k.payout("PF"), supplier.PayoutSucceeded)
		k.asksPayout("second", can.Payout, k.payout("PF"), supplier.PayoutSucceeded)
		k.movedIs("PF", 2)
	})
}

func TestPayoutsAreToldByTheirSuppliers(t *testing.T) {
	t.Parallel()
	eachPayer(t, func(k *kit) {
		b, can := newInbox(k.t), k.abilities()
		a := can.Payouter.(supplier.Adapter)
		p := k.payout("P1")
		p.NotifyURL = b.url + "/callback/" + k.a.Code
		k.payouts("P1", PayoutScript{State: StateProcessing, Callback: CallbackTwice})
		k.asksPayout("payout", can.Payout, p, supplier.PayoutProcessing)
		if b.count() != 0 {
			k.t.Error("processing is notified")
		}
		k.payouts("P1", PayoutScript{State: StateSuccess, Callback: CallbackTwice})
		waittest.Until(k.t, "two callbacks", func() bool { return b.count() == 2 })
		k.payouts("P1", PayoutScript{State: StateReturned, Callback: "late_50"})
		waittest.Until(k.t, "a third", func() bool { return b.count() == 3 })
		first, again, third := b.parse(k.t, a, 0), b.parse(k.t, a, 1), b.parse(k.t, a, 2)
		if first.OrderRef != "P1" || first.Status != supplier.Other || first.Amount != 0 || again.EventKey != first.EventKey ||
			third.EventKey == first.EventKey || third.OrderRef != "P1" {
			k.t.Errorf("%+v, %+v, %+v", first, again, third)
		}
		// One that arrives before the answer of the call that made it.
		p = k.payout("P2")
		p.NotifyURL = b.url + "/callback/" + k.a.Code
		k.payouts("P2", PayoutScript{State: StateSuccess, Callback: CallbackBeforeAnswer})
		k.asksPayout("payout", can.Payout, p, supplier.PayoutSucceeded)
		if b.count() != 4 || b.parse(k.t, a, 3).OrderRef != "P2" {
			k.t.Errorf("%d callbacks", b.count())
		}
		// Without an address of its own, a payout is told to that of the options.
		k.options.Callbacks = b.url + "/callback"
		k.payouts("P3", PayoutScript{State: StateFailed, Callback: CallbackNow})
		k.asksPayout("payout", can.Payout, k.payout("P3"), supplier.PayoutFailed)
		waittest.Until(k.t, "a fifth", func() bool { return b.count() == 5 })
		waittest.Until(k.t, "the report", func() bool { return len(k.Payout(k.a.Code, "P3").Callbacks) == 1 })
	})
}

func TestScriptsOfPayoutsAreChecked(t *testing.T) {
	t.Parallel()
	k := newKit(t, Options{})
	for path, body := range map[string]string{
		"/_sim/sim-till/payouts/P1": `{"state":"short_of_funds"}`,
		"/_sim/sim-ali/payouts/P1":  `{"state":"abnormal"}`,
		"/_sim/sim-ali/payouts/P2":  `{"state":"success","callback":"soon"}`,
		"/_sim/sim-ali/payouts/P3":  `{"state":"success","answer":"perhaps"}`,
		"/_sim/sim-ali/payouts/P4":  `{"state":"success","delay_ms":-1}`,
		"/_sim/sim-ali/payouts/P5":  `{"state":"success","lose_answers":-1}`,
	} {
		if status, answer := ctl(k, http.MethodPut, path, body); status != http.StatusUnprocessableEntity {
			t.Errorf("%s %s: %d %v", path, body, status, answer)
		}
	}
	if status, _ := ctl(k, http.MethodPut, "/_sim/sim-st/payouts/P1", `{"state":"success"}`); status != http.StatusNotImplemented {
		t.Errorf("a kind without payouts: %d", status)
	}
	if _, err := k.SetPayout("sim-st", "P1", PayoutScript{}); err == nil {
		t.Error("a kind without payouts has one")
	}
	status, answer := ctl(k, http.MethodPut, "/_sim/sim-ali/payouts/P1", `{"state":"processing","callback":"late_ms","late_ms":20}`)
	if status != http.StatusOK || answer["money_moved"] != 0.0 || answer["state"] != "not_found" || answer["started"] != false {
		t.Errorf("%d %v", status, answer)
	}
	if status, answer = ctl(k, http.MethodGet, "/_sim/sim-till/payouts/P1", ""); status != http.StatusOK || answer["state"] != "not_found" {
		t.Errorf("%d %v", status, answer)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		if status, _ = ctl(k, method, "/_sim/none/payouts/P1", `{"state":"success"}`); status != http.StatusNotFound {
			t.Errorf("no such supplier: %d", status)
		}
	}
}

// The script of all numbers is that of each number without its own.
func TestPayoutsWithoutAScriptFollowThatOfTheirSupplier(t *testing.T) {
	t.Parallel()
	eachPayer(t, func(k *kit) {
		can := k.abilities()
		early := k.payout("P0")
		k.asksPayout("before it is set", can.Payout, early, supplier.PayoutSucceeded)
		if status, answer := ctl(k, http.MethodPut, "/_sim/"+k.a.Code+"/payouts/*", `{"lose_answers":1}`); status != http.StatusOK ||
			answer["no"] != EachNumber || answer["lose_answers"] != 1.0 {
			t.Errorf("%d %v", status, answer)
		}
		k.payouts("P3", PayoutScript{State: StateProcessing})
		for _, no := range []string{"P1", "P2"} {
			k.asksPayout("of all", can.Payout, k.payout(no), supplier.PayoutUnknown)
			k.asksPayout("of all, asked", can.PayoutQuery, k.payout(no), supplier.PayoutSucceeded)
			k.movedIs(no, 1)
		}
		k.asksPayout("its own", can.Payout, k.payout("P3"), supplier.PayoutProcessing)
		k.asksPayout("an earlier one", can.PayoutQuery, early, supplier.PayoutSucceeded)
		if status, answer := ctl(k, http.MethodGet, "/_sim/"+k.a.Code+"/payouts/*", ""); status != http.StatusOK ||
			answer["lose_answers"] != 1.0 || answer["state"] != "success" {
			t.Errorf("%d %v", status, answer)
		}
		if all := len(k.Payouts()); all != 4 {
			t.Errorf("%d payouts", all)
		}
	})
}
