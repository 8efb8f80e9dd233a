package suppliertest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/supplier"
)

// The part for calls is proven in the same way: a supplier of its own, and adapters that
// each leave one check out.

var toyAnswers = supplier.Words{
	"PAID": {Status: supplier.Paid}, "CLOSED": {Status: supplier.Closed}, "WAIT": {Answer: supplier.AnswerPaying},
	"STARTED": {Answer: supplier.AnswerPaying}, "BACK": {Refunded: true}, "NONE": {Answer: supplier.AnswerNotFound},
}

// toyCaller asks POST /{op} with the reference; an answer is signed as a callback is.
type toyCaller struct {
	toy
	out  supplier.Client
	sent atomic.Int64
}

func (a *toyCaller) Abilities() supplier.Abilities {
	return supplier.Abilities{Payer: a, Querier: a, Closer: a, Refunder: a, Payouter: a}
}

func (a *toyCaller) Start(ctx context.Context, p supplier.Payment) (supplier.Started, error) {
	answer := a.call(ctx, "pay", supplier.Ref{Reference: p.Reference}, strconv.FormatInt(p.Amount, 10))
	s := supplier.Started{State: supplier.StartUnknown, Reason: answer.Reason, Exchange: answer.Exchange}
	if answer.Says.RawStatus == "STARTED" {
		s.State, s.Kind, s.Value = supplier.Accepted, supplier.ValueQR, "toy://pay"
	}
	return s, nil
}

func (a *toyCaller) Query(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
	return a.call(ctx, "query", r, ""), nil
}

func (a *toyCaller) Close(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
	return a.call(ctx, "close", r, ""), nil
}

func (a *toyCaller) call(ctx context.Context, op string, r supplier.Ref, amount string) supplier.Answer {
	body := r.Reference + " " + amount
	if a.skip == "the same call on repeat" {
		body += fmt.Sprint(a.sent.Add(1))
	}
	call := supplier.Call{
		Method: http.MethodPost, URL: "https://toy.example/" + op, Body: []byte(body),
		Header: http.Header{"Authorization": {"Toy token-of-this-call"}},
	}
	x, err := a.send(ctx, call)
	switch a.skip {
	case "secrecy of calls":
		x.Request = append(x.Request, a.key...)
	case "secrecy of answers":
		x.Body = append(x.Body, a.key...)
	case "secrecy of the authorization":
		x.Request = append(x.Request, "token-of-this-call"...)
	}
	if err != nil {
		return x.Unknown("", err)
	}
	if err := a.checkAnswer(x); err != nil {
		return x.Unknown(supplier.ClassBadSignature, err)
	}
	if a.skip == "errors are no words" && x.Status == http.StatusNotFound {
		return x.Judge(r, toyAnswers.Of("NONE"), supplier.Callback{OrderRef: r.Reference, RawStatus: "NONE"})
	}
	if x.Status != http.StatusOK && a.skip != "the status" {
		return x.Unknown(supplier.ClassBadAnswer, toyWords.Say("HTTP status"))
	}
	return a.read(x, r)
}

// send is Call.Send, and what goes wrong without it.
func (a *toyCaller) send(ctx context.Context, call supplier.Call) (supplier.Exchange, error) {
	switch a.skip {
	case "the end of the context":
		x, err := call.Send(context.WithoutCancel(ctx), a.out)
		return x, err
	case "the class of the client", "the length":
		body := &whatever{out: a.out, length: a.skip == "the length"}
		return call.Send(ctx, body)
	default:
		return call.Send(ctx, a.out)
	}
}

// whatever hides a failure of the client, or cuts a long answer at its spaces.
type whatever struct {
	out    supplier.Client
	length bool
}

func (w *whatever) Do(r *http.Request) supplier.Exchange {
	x := w.out.Do(r)
	if w.length {
		if len(x.Body) > supplier.MaxAnswer {
			x.Body = bytes.TrimSpace(x.Body)
			x.Header.Set("Toy-Cut", "yes")
		}
		return x
	}
	x.Class = ""
	return x
}

func (a *toyCaller) checkAnswer(x supplier.Exchange) error {
	if a.skip == "the length" && x.Header.Get("Toy-Cut") != "" {
		return nil
	}
	req := &supplier.Request{Header: x.Header, Body: x.Body, ReceivedAt: x.At}
	if len(req.Header.Values("Toy-Sign")) != 1 || len(req.Header.Values("Toy-Time")) != 1 {
		if a.skip == "one header" && len(req.Header.Values("Toy-Sign")) == 2 {
			return nil
		}
		if a.skip != "signature" {
			return toyWords.Say("header")
		}
	}
	if err := a.verify(req, nil); err != nil {
		return err
	}
	at, _ := strconv.ParseInt(req.Header.Get("Toy-Time"), 10, 64)
	return a.window(nil, time.Unix(at, 0), x.At)
}

func (a *toyCaller) read(x supplier.Exchange, r supplier.Ref) supplier.Answer {
	var m struct {
		Order, Trade, State, Shop, Currency string
		Amount                              json.RawMessage
	}
	decode := supplier.DecodeJSON
	if a.skip == "doubled names" {
		decode = json.Unmarshal
	}
	if err := decode(x.Body, &m); err != nil {
		return x.Unknown(supplier.ClassBadAnswer, err)
	}
	amount, err := money.ParseMinor(string(m.Amount))
	if a.skip == "number form" {
		var f float64
		err = json.Unmarshal(m.Amount, &f)
		amount = int64(f)
	}
	word := toyAnswers.Of(m.State)
	switch {
	case a.skip == "unknown words" && word.State() == supplier.AnswerUnknown:
		word = supplier.Meaning{Answer: supplier.AnswerPaying}
	case a.skip == "money that went back":
		word.Refunded = false
		if m.State == "BACK" {
			word.Status = supplier.Paid
		}
	}
	says := supplier.Callback{
		EventKey: m.Trade + ":" + m.State, OrderRef: m.Order, TradeNo: m.Trade, RawStatus: m.State, Amount: amount, Currency: m.Currency,
		Identity: map[string]string{"shop": m.Shop},
	}
	switch a.skip {
	case "another order":
		says.OrderRef = r.Reference
	case "account":
		says.Identity = a.Identity()
	case "the currency":
		says.Currency = "CNY"
	}
	if word.State() == supplier.AnswerPaid && (err != nil || m.Trade == "" && a.skip != "the trade number") {
		return x.Unknown(supplier.ClassBadAnswer, toyWords.Say("paid without its parts"))
	}
	answer := x.Judge(r, word, says)
	if a.skip == "what an unknown answer says" && answer.State == supplier.AnswerUnknown {
		answer.Says = says
	}
	return answer
}

func toyAnswer(op Op, c Change) supplier.Exchange {
	if op == Refund || op == RefundQuery {
		return toyRefundAnswer(c)
	}
	if op == Payout || op == PayoutQuery {
		return toyPayoutAnswer(c)
	}
	word := map[Op]string{Pay: "STARTED", Query: "PAID", Close: "CLOSED"}[op]
	var fields []string
	for _, f := range []struct{ part, text string }{
		{"OrderRef", fmt.Sprintf(`"order":%q`, cmp.Or(c.OrderRef, Reference))},
		{"TradeNo", fmt.Sprintf(`"trade":%q`, cmp.Or(c.TradeNo, "T1"))},
		{"Status", fmt.Sprintf(`"state":%q`, cmp.Or(c.Status, word))},
		{"", fmt.Sprintf(`"shop":%q`, cmp.Or(c.Account, "S1"))},
		{"Amount", `"amount":` + cmp.Or(c.Amount, "1999")},
		{"Currency", `"currency":"CNY"`},
	} {
		if c.Without == "" || c.Without != f.part {
			fields = append(fields, f.text)
		}
	}
	if c.Duplicate {
		fields = append(fields, fmt.Sprintf(`"order":%q`, Reference))
	}
	return toySigned("{"+strings.Join(fields, ",")+"}", c)
}

func toySigned(body string, c Change) supplier.Exchange {
	at := strconv.FormatInt(c.At().Unix(), 10)
	sign := hex.EncodeToString(toySign(toyKey, at, []byte(body)))
	if c.Tamper != nil {
		sign = c.Tamper(sign)
	}
	return supplier.Exchange{Status: http.StatusOK, Body: []byte(body), Header: http.Header{"Toy-Time": {at}, "Toy-Sign": {sign}}}
}

func toyAbilities(skip careless) Abilities {
	says := supplier.Callback{
		EventKey: "T1:PAID", OrderRef: Reference, TradeNo: "T1", Status: supplier.Paid, RawStatus: "PAID",
		Amount: 1999, Currency: "CNY", Identity: map[string]string{"shop": "S1"},
	}
	closed := says
	closed.EventKey, closed.Status, closed.RawStatus = "T1:CLOSED", supplier.Closed, "CLOSED"
	made := func(key string) func(supplier.Client) supplier.Adapter {
		return func(out supplier.Client) supplier.Adapter {
			return &toyCaller{toy: toy{key: key, skip: skip}, out: out}
		}
	}
	word := func(word string, state supplier.AnswerState, total int64) AnswerCase {
		return AnswerCase{
			Name: word, Op: Query, Answer: toyAnswer(Query, Change{Status: word}), State: string(state), RefundTotal: total,
			Class: supplier.ClassOK,
		}
	}
	parts := []string{"OrderRef", "Duplicate", "Status"}
	return Abilities{
		New: made(toyKey), Stranger: made("another key"),
		Payment: supplier.Payment{Amount: 1999, Currency: "CNY"},
		Answer:  toyAnswer,
		Has: map[Op][]string{
			Pay: parts, Query: append([]string{"TradeNo", "Amount", "Currency", "Account"}, parts...), Close: parts,
			Refund: append([]string{"RefundNo", "Amount"}, parts...), RefundQuery: append([]string{"RefundNo", "Amount"}, parts...),
			Payout: {"PayoutNo", "Amount", "Status", "Duplicate"}, PayoutQuery: {"PayoutNo", "Amount", "Status", "Duplicate"},
		},
		Refund: supplier.Refund{Amount: 1000, Total: 1999, Currency: "CNY"},
		Refunded: map[Op]supplier.RefundAnswer{
			Refund:      {State: supplier.RefundSucceeded, SupplierNo: "TR1", Word: "DONE"},
			RefundQuery: {State: supplier.RefundSucceeded, SupplierNo: "TR1", Word: "DONE"},
		},
		Payout: supplier.Payout{Amount: 1000, Currency: "CNY", Payee: supplier.Payee{
			Kind: supplier.PayeeBankCard, Holder: "A",
			Number: toyPayee, Bank: "B",
		}},
		PaidOut: map[Op]supplier.PayoutAnswer{
			Payout:      {State: supplier.PayoutSucceeded, SupplierNo: "TP1", Word: "DONE"},
			PayoutQuery: {State: supplier.PayoutSucceeded, SupplierNo: "TP1", Word: "DONE"},
		},
		Signed:  func(_ Op, body []byte) supplier.Exchange { return toySigned(string(body), Change{}) },
		Started: supplier.Started{State: supplier.Accepted, Kind: supplier.ValueQR, Value: "toy://pay"},
		Says:    says, Closed: closed,
		Cases: append(
			append(toyRefundCases(), toyPayoutCases()...),
			word("WAIT", supplier.AnswerPaying, 0), word("CLOSED", supplier.AnswerClosed, 0),
			word("NONE", supplier.AnswerNotFound, 0), word("BACK", supplier.AnswerPaid, supplier.UnknownTotal),
		),
		SignatureHeaders: []string{"Toy-Time", "Toy-Sign"}, Window: toyWindow, Secrets: []string{toyKey},
	}
}

func TestCarefulCallerPasses(t *testing.T) {
	t.Parallel()
	RunAbilities(t, toyAbilities(""))
}

func TestCarelessCallerIsCaught(t *testing.T) {
	t.Parallel()
	for skip, by := range map[careless]string{
		"signature":                     "AlteredAnswerIsUnknownOrMeansTheSame",
		"signature where none is given": "AnswerWithoutSignatureIsUnknown",
		"half of the signature":         "AlteredAnswerIsUnknownOrMeansTheSame",
		"one header":                    "AlteredAnswerIsUnknownOrMeansTheSame",
		"the future":                    "SignedTimeOfAnAnswerIsHeldOnBothSides",
		"the past":                      "SignedTimeOfAnAnswerIsHeldOnBothSides",
		"the status":                    "EveryOtherStatusIsUnknown",
		"errors are no words":           "EveryStatusWithoutAKnownBodyIsUnknown",
		"another order":                 "AnswerAboutAnotherOrderIsUnknown",
		"account":                       "AnswerOfAnotherAccountIsNotOurs",
		"the end of the context":        "AnswerAfterTheContextEndedIsUnknown",
		"the class of the client":       "CallWithoutAnswerIsUnknownUnderItsClass",
		"the same call on repeat":       "RepeatIsTheSameCall",
		"secrecy of calls":              "GenuineAnswerIsReadExactly",
		"secrecy of answers":            "GenuineAnswerIsReadExactly",
		"secrecy of the authorization":  "AuthorizationIsNotKept",
		"the length":                    "LongAnswerIsUnknown",
		"doubled names":                 "DoubledFieldOfAnAnswerIsUnknownThoughSigned",
		"number form":                   "OddAmountIsNoPaymentInAnAnswer",
		"the currency":                  "PaidWithoutItsPartsIsUnknown",
		"the trade number":              "PaidWithoutItsPartsIsUnknown",
		"unknown words":                 "UnknownWordOfAnAnswerIsUnknown",
		"money that went back":          "EveryWordMeansWhatItShould",
		"the same refund on repeat":     "RepeatIsTheSameCall",
		"the refund's number":           "AnswerAboutAnotherRefundIsUnknown",
		"the refund's sum":              "AnswerAboutAnotherRefundIsUnknown",
		"the same payout on repeat":     "RepeatIsTheSameCall",
		"the payout's number":           "AnswerAboutAnotherPayoutIsUnknown",
		"the payout's sum":              "AnswerAboutAnotherPayoutIsUnknown",
		"the payout's word":             "UnknownWordOfAnAnswerIsUnknown",
		"the payee in requests":         "NumberOfThePayeeIsNotKept",
		"the payee in answers":          "NumberOfThePayeeIsNotKept",
		"the refund's payment":          "AnswerAboutAnotherOrderIsUnknown",
		"the refund's word":             "UnknownWordOfAnAnswerIsUnknown",
		"what an unknown answer says":   "AnswerAboutAnotherOrderIsUnknown",
	} {
		t.Run(string(skip), func(t *testing.T) {
			t.Parallel() // they wait
			claim := slices.IndexFunc(abilityClaims, func(c abilityClaim) bool { return c.name == by })
			watch := &watcher{}
			if abilityClaims[claim].check(&querier{reporter: watch, Abilities: toyAbilities(skip)}); !watch.seen.Load() {
				t.Errorf("a caller without %q passes %s", skip, by)
			}
		})
	}
}
