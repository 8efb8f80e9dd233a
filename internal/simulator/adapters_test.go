package simulator

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"backstop/internal/supplier"
	alipayadapter "backstop/internal/supplier/alipay"
	"backstop/internal/supplier/sortedparams"
	stripeadapter "backstop/internal/supplier/stripe"
	"backstop/internal/supplier/wechatpay"
)

// plainClient sends without the rules of egress.
type plainClient struct{ http *http.Client }

func (p plainClient) Do(r *http.Request) supplier.Exchange {
	answer, err := p.http.Do(r)
	if errors.Is(err, context.DeadlineExceeded) {
		return supplier.Exchange{Class: supplier.ClassTimeout}
	}
	if err != nil {
		return supplier.Exchange{Class: supplier.ClassConnect}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return supplier.Exchange{Class: supplier.ClassBadAnswer}
	}
	return supplier.Exchange{Status: answer.StatusCode, Header: answer.Header, Body: body, At: time.Now()}
}

// abilities are those of the real adapter, with the settings that the simulator declares.
func (k *kit) abilities() (can supplier.Abilities) {
	k.t.Helper()
	raw, err := json.Marshal(k.a.Settings(k.base)["config"])
	if err != nil {
		k.t.Fatal(err)
	}
	for _, kind := range []supplier.Kind{wechatpay.Kind, alipayadapter.Kind, stripeadapter.Kind, sortedparams.Kind} {
		if kind.Name == k.a.Kind {
			made, err := kind.New(k.a.Code, raw, plainClient{k.http})
			if err != nil {
				k.t.Fatal(err)
			}
			can = supplier.AbilitiesOf(made)
		}
	}
	if can.Payer == nil || can.Querier == nil || can.Closer == nil {
		k.t.Fatalf("abilities: %+v", can)
	}
	return can
}

func (k *kit) payment(ref string) (supplier.Payment, supplier.Ref) {
	return supplier.Payment{
		Reference: ref, OrderNo: ref, Subject: "tea", Amount: 1999, Currency: k.a.Currency, NotifyURL: "http://127.0.0.1:1/callback/x",
		CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour),
	}, supplier.Ref{Reference: ref, Amount: 1999, Currency: k.a.Currency, StartedAt: time.Now().Add(-time.Hour)}
}

// TestTheAdaptersSpeakWithTheSimulator: what `simulate` declares makes every ability of every
// kind, and each word is read as what it is.
func TestTheAdaptersSpeakWithTheSimulator(t *testing.T) {
	t.Parallel()
	each(t, func(k *kit) {
		can := k.abilities()
		p, ref := k.payment("ORDER_1")
		started, err := can.Start(k.t.Context(), p)
		if err != nil || started.State != supplier.Accepted || started.Value == "" {
			k.t.Fatalf("start: %v %+v\n%s\n%s", err, started, started.Exchange.Request, started.Exchange.Body)
		}
		ref.ExternalID = started.ExternalID
		again, err := can.Start(k.t.Context(), p)
		if err != nil || again.State != supplier.Accepted || again.Value != started.Value {
			k.t.Errorf("start again: %v %+v", err, again)
		}
		for _, c := range []struct {
			script Script
			want   supplier.AnswerState
		}{
			{Script{State: StateUnpaid}, supplier.AnswerPaying},
			{Script{State: StatePaying}, supplier.AnswerPaying},
			{Script{State: StatePaid}, supplier.AnswerPaid},
			{Script{State: StateClosed}, supplier.AnswerClosed},
			{Script{State: StatePaid, Answer: Answer500}, supplier.AnswerUnknown},
			{Script{State: StatePaid, Answer: AnswerGarbage}, supplier.AnswerUnknown},
			{Script{State: StatePaid, Answer: AnswerBadSignature}, supplier.AnswerUnknown},
			{Script{State: StatePaid, Answer: AnswerWrongOrder}, supplier.AnswerUnknown},
			{Script{State: StatePaid, LoseAnswers: 1}, supplier.AnswerUnknown},
			{Script{State: StateRefunded}, supplier.AnswerPaid},
			{Script{State: StateNotFound}, supplier.AnswerNotFound},
		} {
			switch {
			case k.a.Kind == "stripe" && c.script.Answer == AnswerBadSignature, k.a.Kind == "sortedparams" &&
				c.script.State == StateRefunded:
				continue // it signs no answers; it has no word for that
			case k.a.Kind == "stripe" && c.script.State == StateNotFound:
				c.want = supplier.AnswerUnknown // it gave us this id: rather the key is wrong
			}
			k.set("ORDER_1", c.script)
			got, err := can.Query(k.t.Context(), ref)
			if err != nil || got.State != c.want || got.Refunded() != (c.script.State == StateRefunded) {
				k.t.Errorf("%+v: %v %s (%s) %v\n%s", c.script, err, got.State, got.Exchange.Class, got.Reason, got.Exchange.Body)
			}
			if c.want == supplier.AnswerPaid && (got.Says.Amount != 1999 || got.Says.Currency != k.a.Currency || got.Says.TradeNo == "" ||
				got.Says.OrderRef != "ORDER_1") {
				k.t.Errorf("paid returned %+v", got.Says)
			}
		}
		k.set("ORDER_1", Script{State: StatePaying, Close: CloseRefused})
		if got, err := can.Close(k.t.Context(), ref); err != nil || got.State == supplier.AnswerClosed {
			k.t.Errorf("close refused: %v %+v", err, got)
		}
		k.set("ORDER_1", Script{State: StatePaying})
		if got, err := can.Close(k.t.Context(), ref); err != nil || got.State != supplier.AnswerClosed {
			k.t.Errorf("close: %v %s %v %s", err, got.State, got.Reason, got.Exchange.Body)
		}
		k.set("ORDER_2", Script{State: StateFailed})
		p.Reference, p.OrderNo = "ORDER_2", "ORDER_2"
		if got, err := can.Start(k.t.Context(), p); err != nil || got.State != supplier.StartRefused {
			k.t.Errorf("refused start: %v %+v", err, got)
		}
	})
}

// TestAStartWhoseAnswerIsLostIsRepeated: the payment was begun, and stays one.
func TestAStartWhoseAnswerIsLostIsRepeated(t *testing.T) {
	t.Parallel()
	each(t, func(k *kit) {
		can := k.abilities()
		p, ref := k.payment("ORDER_1")
		k.set("ORDER_1", Script{State: StateUnpaid, LoseAnswers: 1})
		lost, err := can.Start(k.t.Context(), p)
		if err != nil || lost.State != supplier.StartUnknown || lost.Value != "" || lost.ExternalID != "" || lost.Exchange.Class.Healthy() {
			k.t.Fatalf("a lost answer: %v %+v", err, lost)
		}
		again, err := can.Start(k.t.Context(), p)
		if err != nil || again.State != supplier.Accepted || again.Value == "" {
			k.t.Fatalf("the repeat: %v %+v", err, again)
		}
		if report := k.set("ORDER_1", Script{State: StatePaid, Amount: 1}); report.MoneyMoved != 1 {
			k.t.Errorf("money moved %d times", report.MoneyMoved)
		}
		// Without the id that the lost answer had: Stripe is searched.
		got, err := can.Query(k.t.Context(), ref)
		if err != nil || got.State != supplier.AnswerPaid || got.ExternalID != again.ExternalID {
			k.t.Errorf("query: %v %s (%v), id %q of %q", err, got.State, got.Reason, got.ExternalID, again.ExternalID)
		}
		// Another amount is not for the adapter to judge.
		if got.Says.Amount != 1 || got.Says.OrderRef != "ORDER_1" {
			k.t.Errorf("the answer names another amount: %+v", got.Says)
		}
	})
}

// TestSpoiltAnswersAreUnknown: no call of a payment believes one.
func TestSpoiltAnswersAreUnknown(t *testing.T) {
	t.Parallel()
	each(t, func(k *kit) {
		can := k.abilities()
		for _, answer := range []string{Answer500, AnswerGarbage, AnswerBadSignature, AnswerWrongOrder, AnswerHang} {
			if k.a.Kind == "stripe" && answer == AnswerBadSignature {
				continue // it signs no answers
			}
			p, ref := k.payment("ORDER_" + answer)
			started, err := can.Start(k.t.Context(), p)
			if err != nil || started.State != supplier.Accepted {
				k.t.Fatalf("start: %v %+v", err, started)
			}
			ref.ExternalID = started.ExternalID
			k.set(ref.Reference, Script{State: StateUnpaid, Answer: answer})
			ctx, cancel := k.t.Context(), context.CancelFunc(func() {})
			calls := map[string]func() (string, supplier.Exchange, error){
				"start": func() (string, supplier.Exchange, error) {
					s, err := can.Start(ctx, p)
					return string(s.State), s.Exchange, err
				},
				"query": func() (string, supplier.Exchange, error) {
					a, err := can.Query(ctx, ref)
					return string(a.State), a.Exchange, err
				},
				"close": func() (string, supplier.Exchange, error) {
					a, err := can.Close(ctx, ref)
					return string(a.State), a.Exchange, err
				},
			}
			for name, call := range calls {
				if k.a.Kind == "wechatpay" && answer == AnswerWrongOrder && name != "query" {
					continue // these answers name no order
				}
				if answer == AnswerHang {
					ctx, cancel = context.WithTimeout(k.t.Context(), 200*time.Millisecond)
				}
				state, x, err := call()
				cancel()
				if err != nil || state != string(supplier.AnswerUnknown) || x.Class.Healthy() || answer == AnswerHang &&
					x.Class != supplier.ClassTimeout {
					k.t.Errorf("%s, %s: %v %s (%s)\n%s", name, answer, err, state, x.Class, x.Body)
				}
			}
		}
	})
}
