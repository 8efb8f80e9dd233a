package stripe

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"backstop/internal/supplier"
	"backstop/internal/supplier/suppliertest"
)

var theRefund = supplier.Refund{
	No: suppliertest.RefundNo, Reference: suppliertest.Reference, TradeNo: testIntent, Amount: 500, Total: 1999, Currency: "USD",
	Reason: "broken",
}

// refundText returns a refund as in the API's answer, shortened.
func refundText(c suppliertest.Change) string {
	var parts []string
	for _, f := range []struct{ part, text string }{
		{"", fmt.Sprintf(`"id":%q,"object":"refund"`, cmp.Or(c.TradeNo, "re_3TestRefund0001"))},
		{"Amount", `"amount":` + cmp.Or(c.Amount, "500")},
		{"", `"charge":"ch_3TestCharge0001","currency":"usd","reason":null`},
		{"", fmt.Sprintf(`"payment_intent":%q`, testIntent)},
		{"RefundNo", fmt.Sprintf(`"metadata":{"refund_no":%q}`, cmp.Or(c.RefundNo, suppliertest.RefundNo))},
		{"Status", fmt.Sprintf(`"status":%q`, cmp.Or(c.Status, "succeeded"))},
	} {
		if f.part == "" || f.part != c.Without {
			parts = append(parts, f.text)
		}
	}
	if c.Duplicate {
		parts = append(parts, `"metadata":{"refund_no":"R20260301000002"}`)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func refundCases() (cases []suppliertest.AnswerCase) {
	add := func(name string, op suppliertest.Op, x supplier.Exchange, state supplier.RefundState, class supplier.Class) {
		cases = append(cases, suppliertest.AnswerCase{Name: name, Op: op, Answer: x, State: string(state), Class: class})
	}
	for _, op := range []suppliertest.Op{suppliertest.Refund, suppliertest.RefundQuery} {
		for word, state := range refundStates {
			class := supplier.ClassOK
			if state == supplier.RefundFailed {
				class = supplier.ClassRefused
			}
			add(word, op, answerOf(op, suppliertest.Change{Status: word}), state, class)
		}
		add("broken", op, failure(500, "api_error", ""), supplier.RefundUnknown, supplier.ClassUnknown)
		add("too many", op, failure(429, "invalid_request_error", "rate_limit"), supplier.RefundUnknown, supplier.ClassUnknown)
		other := answerOf(op, suppliertest.Change{})
		other.Body = []byte(strings.Replace(string(other.Body), testIntent, "pi_3TestIntent0002", 1))
		add("of another payment", op, other, supplier.RefundUnknown, supplier.ClassBadAnswer)
	}
	const refund, query = suppliertest.Refund, suppliertest.RefundQuery
	add("refunded already", refund, failure(400, "invalid_request_error", "charge_already_refunded"), supplier.RefundFailed,
		supplier.ClassRefused)
	add("short", refund, failure(400, "invalid_request_error", "balance_insufficient"), supplier.RefundShort, supplier.ClassRefused)
	add("key with other content", refund, failure(400, "idempotency_error", "charge_already_refunded"), supplier.RefundUnknown,
		supplier.ClassUnknown)
	add("key in use", refund, failure(409, "invalid_request_error", "charge_already_refunded"), supplier.RefundUnknown,
		supplier.ClassUnknown)
	add("bad key", refund, failure(401, "invalid_request_error", ""), supplier.RefundUnknown, supplier.ClassRefused)
	add("none", query, reply(200, `{"object":"list","has_more":false,"data":[]}`), supplier.RefundNotFound, supplier.ClassOK)
	add("is there more", query, reply(200, `{"object":"list","data":[]}`), supplier.RefundUnknown, supplier.ClassBadAnswer)
	add("no data", query, reply(200, `{"object":"list","has_more":false}`), supplier.RefundUnknown, supplier.ClassBadAnswer)
	add("a search", query, reply(200, `{"object":"search_result","has_more":false,"data":[]}`), supplier.RefundUnknown,
		supplier.ClassBadAnswer)
	return cases
}

// A refund on a later page is found; a list that does not end proves nothing.
func TestRefundsAreListedToTheEnd(t *testing.T) {
	t.Parallel()
	pages := 0
	line := &suppliertest.Line{Reply: func(r *http.Request, _ []byte) supplier.Exchange {
		pages++
		one := refundText(suppliertest.Change{TradeNo: fmt.Sprint("re_", pages), RefundNo: fmt.Sprint("R", pages)})
		if r.URL.Query().Get("payment_intent") == "pi_endless" {
			one = strings.Replace(one, testIntent, "pi_endless", 1)
			return reply(200, `{"object":"list","has_more":true,"data":[`+one+`]}`)
		}
		return reply(200, fmt.Sprintf(`{"object":"list","has_more":%v,"data":[%s]}`, pages < 3, one))
	}}
	a := supplier.AbilitiesOf(calling(t, line))
	r := theRefund
	r.No = "R3"
	got, err := a.RefundQuery(t.Context(), r)
	if err != nil || got.State != supplier.RefundSucceeded || got.SupplierNo != "re_3" || pages != 3 {
		t.Errorf("%v %+v after %d pages", err, got, pages)
	}
	if after := line.Sent()[2].Request.URL.Query().Get("starting_after"); after != "re_2" {
		t.Errorf("the third page begins after %q", after)
	}
	r.No, r.TradeNo, pages = "R99", "pi_endless", 0
	if got, err = a.RefundQuery(t.Context(), r); err != nil || got.State != supplier.RefundUnknown || pages != refundPages {
		t.Errorf("%v %+v after %d pages", err, got, pages)
	}
	r.TradeNo = ""
	if _, err = a.Refund(t.Context(), r); supplier.AsField(err) == nil {
		t.Errorf("without a payment: %v", err)
	}
}
