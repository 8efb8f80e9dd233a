package suppliertest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/supplier"
)

// The toy's refunds.

var toyRefundWords = map[string]supplier.RefundState{
	"DONE": supplier.RefundSucceeded, "REFUSED": supplier.RefundFailed, "DOING": supplier.RefundProcessing, "NONE": supplier.RefundNotFound,
}

func (a *toyCaller) Refund(ctx context.Context, r supplier.Refund) (supplier.RefundAnswer, error) {
	return a.queryRefund(ctx, "refund", r), nil
}

func (a *toyCaller) RefundQuery(ctx context.Context, r supplier.Refund) (supplier.RefundAnswer, error) {
	return a.queryRefund(ctx, "refund_query", r), nil
}

func (a *toyCaller) queryRefund(ctx context.Context, op string, r supplier.Refund) supplier.RefundAnswer {
	body := fmt.Sprint(r.No, " ", r.Reference, " ", r.Amount)
	if a.skip == "the same refund on repeat" {
		body += fmt.Sprint(a.sent.Add(1))
	}
	x, err := a.send(ctx, supplier.Call{Method: http.MethodPost, URL: "https://toy.example/" + op, Body: []byte(body)})
	if err != nil {
		return x.RefundUnknown("", err)
	}
	if err := a.checkAnswer(x); err != nil {
		return x.RefundUnknown(supplier.ClassBadSignature, err)
	}
	if x.Status != http.StatusOK && a.skip != "the status" {
		return x.RefundUnknown(supplier.ClassBadAnswer, toyWords.Say("HTTP status"))
	}
	var m struct {
		Order, Refund, Result string
		Amount                json.RawMessage
	}
	if err := supplier.DecodeJSON(x.Body, &m); err != nil {
		return x.RefundUnknown(supplier.ClassBadAnswer, err)
	}
	amount, err := money.ParseMinor(string(m.Amount))
	if err != nil {
		return x.RefundUnknown(supplier.ClassBadAnswer, toyWords.Say("amount"))
	}
	said := supplier.RefundReport{
		No: m.Refund, SupplierNo: "TR1", Reference: m.Order, Amount: amount, Currency: r.Currency,
		State: toyRefundWords[m.Result], Word: m.Result,
	}
	switch a.skip {
	case "the refund's number":
		said.No = r.No
	case "the refund's sum":
		said.Amount = r.Amount
	case "the refund's payment":
		said.Reference = r.Reference
	case "the refund's word":
		said.State = cmp.Or(said.State, supplier.RefundFailed)
	}
	return x.EvaluateRefund(r, said)
}

func toyRefundAnswer(c Change) supplier.Exchange {
	var fields []string
	for _, f := range []struct{ part, text string }{
		{"OrderRef", fmt.Sprintf(`"order":%q`, cmp.Or(c.OrderRef, Reference))},
		{"RefundNo", fmt.Sprintf(`"refund":%q`, cmp.Or(c.RefundNo, RefundNo))},
		{"Status", fmt.Sprintf(`"result":%q`, cmp.Or(c.Status, "DONE"))},
		{"Amount", `"amount":` + cmp.Or(c.Amount, "1000")},
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

// toyRefundCases are the words of toyRefundWords.
func toyRefundCases() (cases []AnswerCase) {
	for word, state := range toyRefundWords {
		class := supplier.ClassOK
		if state == supplier.RefundFailed {
			class = supplier.ClassRefused
		}
		for _, op := range []Op{Refund, RefundQuery} {
			cases = append(cases, AnswerCase{
				Name: word, Op: op, Answer: toyRefundAnswer(Change{Status: word}), State: string(state),
				Class: class,
			})
		}
	}
	return cases
}
