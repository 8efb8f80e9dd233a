package suppliertest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/supplier"
)

// The toy's payouts.

var toyPayoutWords = map[string]supplier.PayoutState{
	"DONE": supplier.PayoutSucceeded, "REFUSED": supplier.PayoutFailed, "DOING": supplier.PayoutProcessing, "BACK": supplier.PayoutReturned,
	"SHORT": supplier.PayoutShort, "NONE": supplier.PayoutNotFound,
}

const toyPayee = "6222021234564711"

func (*toyCaller) Payable(int64, string) error { return nil }

func (a *toyCaller) Payout(ctx context.Context, p supplier.Payout) (supplier.PayoutAnswer, error) {
	return a.queryPayout(ctx, "payout", p), nil
}

func (a *toyCaller) PayoutQuery(ctx context.Context, p supplier.Payout) (supplier.PayoutAnswer, error) {
	return a.queryPayout(ctx, "payout_query", p), nil
}

func (a *toyCaller) queryPayout(ctx context.Context, op string, p supplier.Payout) supplier.PayoutAnswer {
	body := fmt.Sprint(p.No, " ", p.Amount, " ", p.Payee.Number)
	if a.skip == "the same payout on repeat" {
		body += fmt.Sprint(a.sent.Add(1))
	}
	x, err := a.send(ctx, supplier.Call{Method: http.MethodPost, URL: "https://toy.example/" + op, Body: []byte(body)})
	answer := a.payoutSaid(x, err, p)
	switch a.skip {
	case "the payee in requests":
		answer.Exchange.Body = bytes.ReplaceAll(answer.Exchange.Body, []byte(toyPayee), nil)
	case "the payee in answers":
		answer.Exchange.Request = bytes.ReplaceAll(answer.Exchange.Request, []byte(toyPayee), nil)
	default:
		answer = answer.Masked(p.Payee)
	}
	return answer
}

func (a *toyCaller) payoutSaid(x supplier.Exchange, err error, p supplier.Payout) supplier.PayoutAnswer {
	if err != nil {
		return x.PayoutUnknown("", err)
	}
	if err := a.checkAnswer(x); err != nil {
		return x.PayoutUnknown(supplier.ClassBadSignature, err)
	}
	if x.Status != http.StatusOK && a.skip != "the status" {
		return x.PayoutUnknown(supplier.ClassBadAnswer, toyWords.Say("HTTP status"))
	}
	var m struct {
		Payout, Result string
		Amount         json.RawMessage
	}
	if err := supplier.DecodeJSON(x.Body, &m); err != nil {
		return x.PayoutUnknown(supplier.ClassBadAnswer, err)
	}
	amount := p.Amount
	if len(m.Amount) > 0 {
		if amount, err = money.ParseMinor(string(m.Amount)); err != nil {
			return x.PayoutUnknown(supplier.ClassBadAnswer, toyWords.Say("amount"))
		}
	}
	said := supplier.PayoutSaid{
		No: m.Payout, SupplierNo: "TP1", Amount: amount, Currency: p.Currency, State: toyPayoutWords[m.Result],
		Word: m.Result,
	}
	switch a.skip {
	case "the payout's number":
		said.No = p.No
	case "the payout's sum":
		said.Amount = p.Amount
	case "the payout's word":
		said.State = cmp.Or(said.State, supplier.PayoutFailed)
	}
	return x.JudgePayout(p, said)
}

func toyPayoutAnswer(c Change) supplier.Exchange {
	var fields []string
	for _, f := range []struct{ part, text string }{
		{"PayoutNo", fmt.Sprintf(`"payout":%q`, cmp.Or(c.PayoutNo, PayoutNo))},
		{"Status", fmt.Sprintf(`"result":%q`, cmp.Or(c.Status, "DONE"))},
		{"Amount", `"amount":` + cmp.Or(c.Amount, "1000")},
	} {
		if c.Without == "" || c.Without != f.part {
			fields = append(fields, f.text)
		}
	}
	if c.Duplicate {
		fields = append(fields, fmt.Sprintf(`"payout":%q`, PayoutNo))
	}
	return toySigned("{"+strings.Join(fields, ",")+"}", c)
}

// toyPayoutCases are the words of toyPayoutWords.
func toyPayoutCases() (cases []AnswerCase) {
	for word, state := range toyPayoutWords {
		class := supplier.ClassOK
		if state == supplier.PayoutFailed || state == supplier.PayoutShort {
			class = supplier.ClassRefused
		}
		for _, op := range []Op{Payout, PayoutQuery} {
			cases = append(cases, AnswerCase{
				Name: word, Op: op, Answer: toyPayoutAnswer(Change{Status: word}), State: string(state),
				Class: class,
			})
		}
	}
	return cases
}
