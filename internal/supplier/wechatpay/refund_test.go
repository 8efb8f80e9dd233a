package wechatpay

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	"backstop/internal/supplier"
	"backstop/internal/supplier/suppliertest"
)

// refunded returns a refund as in an answer of 查询单笔退款.
func refunded(c suppliertest.Change) string {
	var parts []string
	for _, f := range []struct{ part, text string }{
		{"", `"refund_id":"50000000382019052709732678859"`},
		{"RefundNo", `"out_refund_no":"` + cmp.Or(c.RefundNo, suppliertest.RefundNo) + `"`},
		{"", `"transaction_id":"4200000000202603010000000001"`},
		{"OrderRef", `"out_trade_no":"` + cmp.Or(c.OrderRef, suppliertest.Reference) + `"`},
		{"", `"channel":"ORIGINAL","user_received_account":"支付用户零钱","create_time":"2026-03-01T16:00:00+08:00"`},
		{"Status", `"status":"` + cmp.Or(c.Status, "SUCCESS") + `"`},
		{"Amount", `"amount":{"total":1999,"refund":` + cmp.Or(c.Amount, "500") +
			`,"payer_total":1999,"payer_refund":500,"currency":"CNY"}`},
	} {
		if f.part == "" || f.part != c.Without {
			parts = append(parts, f.text)
		}
	}
	if c.Duplicate {
		parts = append(parts, `"out_refund_no":"R20260301000002"`)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (p platform) refundCases() (cases []suppliertest.AnswerCase) {
	add := func(op suppliertest.Op, status int, body, state string, class supplier.Class) {
		cases = append(cases, suppliertest.AnswerCase{
			Name: body, Op: op, Answer: p.answer(status, body, suppliertest.Change{}),
			State: state, Class: class,
		})
	}
	for _, op := range []suppliertest.Op{suppliertest.Refund, suppliertest.RefundQuery} {
		for word, state := range map[string]supplier.RefundState{"PROCESSING": "processing", "ABNORMAL": "abnormal"} {
			add(op, 200, refunded(suppliertest.Change{Status: word}), string(state), supplier.ClassOK)
		}
		add(op, 200, refunded(suppliertest.Change{Status: "CLOSED"}), "failed", supplier.ClassRefused)
		// The word of an error is not a status.
		add(op, 200, refunded(suppliertest.Change{Status: "403 NOT_ENOUGH"}), "unknown", supplier.ClassUnknown)
		add(op, 500, refusal("SYSTEM_ERROR"), "unknown", supplier.ClassUnknown)
		add(op, 429, refusal("FREQUENCY_LIMITED"), "unknown", supplier.ClassUnknown)
		add(op, 401, refusal("SIGN_ERROR"), "unknown", supplier.ClassRefused)
		add(op, 400, refusal("INVALID_REQUEST"), "unknown", supplier.ClassRefused)
	}
	add(suppliertest.Refund, 403, refusal("NOT_ENOUGH"), "short_of_funds", supplier.ClassRefused)
	add(suppliertest.Refund, 400, refusal("PARAM_ERROR"), "failed", supplier.ClassRefused)
	add(suppliertest.Refund, 403, refusal("USER_ACCOUNT_ABNORMAL"), "failed", supplier.ClassRefused)
	add(suppliertest.Refund, 404, refusal("RESOURCE_NOT_EXISTS"), "unknown", supplier.ClassRefused)
	add(suppliertest.Refund, 500, refusal("NOT_ENOUGH"), "unknown", supplier.ClassUnknown)
	add(suppliertest.RefundQuery, 404, refusal("RESOURCE_NOT_EXISTS"), "not_found", supplier.ClassOK)
	add(suppliertest.RefundQuery, 404, refusal("ORDER_NOT_EXIST"), "unknown", supplier.ClassRefused)
	add(suppliertest.RefundQuery, 400, refusal("PARAM_ERROR"), "unknown", supplier.ClassRefused)
	return cases
}

func TestRefundsThatCannotBeExpressedAreNotSent(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]func(*supplier.Refund){
		"order_no":  func(r *supplier.Refund) { r.Reference = "a/b" },
		"refund_no": func(r *supplier.Refund) { r.No = "R/../1" },
		"currency":  func(r *supplier.Refund) { r.Currency = "USD" },
		"amount":    func(r *supplier.Refund) { r.Amount = r.Total + 1 },
	} {
		line := &suppliertest.Line{Reply: func(*http.Request, []byte) supplier.Exchange { return supplier.Exchange{} }}
		a := supplier.AbilitiesOf(calling(t, line, nil))
		r := supplier.Refund{No: suppliertest.RefundNo, Reference: suppliertest.Reference, Amount: 1, Total: 1999, Currency: "CNY"}
		change(&r)
		_, err := a.Refund(t.Context(), r)
		if f := supplier.AsField(err); f == nil || f.Field != field || len(line.Sent()) > 0 {
			t.Errorf("%s: %v", field, err)
		}
	}
}
