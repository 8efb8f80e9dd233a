package simulator

import (
	"net/http"
	"net/url"
	"strconv"

	"backstop/internal/base/money"
)

// sorted is a supplier that signs sorted parameters with HMAC-SHA256, as smaller suppliers do:
// forms in both directions, answers in JSON.
type sorted struct {
	seed
	key string
}

const sortedAccount = "90001"

func newSorted(s seed) *sorted { return &sorted{seed: s, key: s.hex(32, "sorted")} }

func (s *sorted) config() map[string]any {
	return map[string]any{
		"format": "form", "algorithm": "hmac-sha256", "key": s.key, "sign_case": "lower",
		"order_field": "order_no", "trade_field": "trade_no", "amount_field": "amount", "amount_unit": "minor",
		"currency": "CNY", "currency_field": "currency", "status_field": "status", "account_field": "mch", "account": sortedAccount,
		"paid_values": []string{"PAID"}, "failed_values": []string{"FAILED"}, "paying_values": []string{"WAIT", "PAYING"},
		"closed_values": []string{"CLOSED"}, "not_found_values": []string{"NONE"},
	}
}

func (s *sorted) calls(base string) map[string]any {
	return map[string]any{
		"query_url": base + "/till/query", "close_url": base + "/till/close", "pay_url": base + "/till/pay",
		"pay_kind": "qr", "pay_value_field": "pay_url", "answer_format": "json",
		"refund_url": base + "/till/refund", "refund_query_url": base + "/till/refund_query", "refund_no_field": "refund_no",
		"refund_amount_field": "refund_amount",
		"result_field":        "result", "success_values": []string{"OK"}, "failure_values": []string{"REFUSED"},
		"processing_values": []string{"DOING"},
		"returned_values":   []string{"RETURNED"},
		"payout_url":        base + "/till/payout", "payout_query_url": base + "/till/payout_query", "payout_no_field": "payout_no",
		"payee_field": "payee",
	}
}

func (s *sorted) routes() map[string]operation {
	return map[string]operation{
		"POST /till/pay": opPay, "POST /till/query": opQuery, "POST /till/close": opClose,
		"POST /till/refund": opRefund, "POST /till/refund_query": opRefundQuery, "POST /till/payout": opPayout,
		"POST /till/payout_query": opPayoutQuery,
	}
}

func (s *sorted) tradeNo(ref string, _ int) string { return "T" + s.digits(18, "sorted", ref) }

func textReply(status int, text string) reply {
	return reply{status, http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, []byte(text)}
}

func (s *sorted) failed() reply { return textReply(http.StatusInternalServerError, "fail") }

var sortedWords = map[State]string{
	StateUnpaid: "WAIT", StatePaying: "PAYING", StatePaid: "PAID", StateFailed: "FAILED", StateClosed: "CLOSED", StateNotFound: "NONE",
}

func (s *sorted) read(op operation, r *http.Request, body []byte) (call, *reply) {
	c := call{op: op}
	refuse := func(status int, why string) (call, *reply) {
		answer := textReply(status, "fail: "+why)
		return c, &answer
	}
	values, err := url.ParseQuery(string(body))
	if err != nil || r.URL.RawQuery != "" {
		return refuse(http.StatusBadRequest, "send the parameters in the body, as a form")
	}
	fields, err := flatten(values)
	if err != nil {
		return refuse(http.StatusBadRequest, err.Error())
	}
	if fields["sign"] != hmacHex(s.key, sortedPairs(fields, "sign")) {
		return refuse(http.StatusUnauthorized, "the signature is not valid")
	}
	if _, err := strconv.ParseInt(fields["time"], 10, 64); err != nil || len(fields["time"]) != 10 {
		return refuse(http.StatusBadRequest, "time is in seconds")
	}
	for _, f := range []struct {
		name string
		ok   bool
	}{
		{"mch", fields["mch"] == sortedAccount},
		{"nonce", len(fields["nonce"]) == 16},
		{"order_no", fields["order_no"] != "" && len(fields["order_no"]) <= 64},
		{"subject", op != opPay || fields["subject"] != ""},
		{"expires_at", op != opPay || len(fields["expires_at"]) == 10},
	} {
		if !f.ok {
			return refuse(http.StatusBadRequest, f.name+" is invalid")
		}
	}
	c.ref = fields["order_no"]
	c.content = sortedPairs(fields, "sign", "time", "nonce")
	if c.refund = fields["refund_no"]; c.refund == "" && (op == opRefund || op == opRefundQuery) {
		return refuse(http.StatusBadRequest, "refund_no is wrong")
	}
	if op == opPayout || op == opPayoutQuery {
		if problem := s.readPayout(&c, fields); problem != "" {
			return refuse(http.StatusBadRequest, problem+" is wrong")
		}
	}
	if op == opRefund {
		if c.amount, err = money.ParseMinor(fields["refund_amount"]); err != nil || c.amount == 0 || fields["currency"] == "" {
			return refuse(http.StatusBadRequest, "refund_amount or currency is wrong")
		}
	}
	if op == opPay {
		c.currency, c.notifyURL = fields["currency"], fields["notify_url"]
		if _, err := money.Exponent(c.currency); err != nil {
			return refuse(http.StatusBadRequest, "currency is wrong")
		}
		if c.amount, err = money.ParseMinor(fields["amount"]); err != nil || c.amount == 0 {
			return refuse(http.StatusBadRequest, "amount is wrong")
		}
	}
	return c, nil
}

// answer always contains a state: the protocol has no other way to refuse.
func (s *sorted) answer(c call, v view) (reply, error) {
	state := v.State
	switch v.outcome {
	case inconsistent:
		return textReply(http.StatusConflict, "fail: order_no was used with other parameters"), nil
	case refused:
		if c.op == opPay {
			state = StateFailed
			break
		}
		state = StatePaying
	case unknownRef:
		state = StateNotFound
	}
	fields := s.fields(v.Fact, state)
	if c.op == opPay && v.outcome == done {
		fields["pay_url"] = "https://till.example/p/" + s.hex(20, "pay_url", v.Ref)
	}
	if v.forged {
		fields["status"] += "0"
		fields["sign"] = hmacHex(s.key, sortedPairs(fields, "sign"))
		fields["status"] = sortedWords[state]
	} else {
		fields["sign"] = hmacHex(s.key, sortedPairs(fields, "sign"))
	}
	return jsonReply(http.StatusOK, fields), nil
}

// fields returns the contents of answers and callbacks.
func (s *sorted) fields(f Fact, state State) map[string]string {
	fields := map[string]string{"mch": sortedAccount, "order_no": f.Ref, "status": sortedWords[state]}
	if state != StateNotFound {
		fields["trade_no"], fields["amount"], fields["currency"] = f.TradeNo, strconv.FormatInt(f.Amount, 10), f.Currency
	}
	return fields
}

// Callback returns a form with the same fields.
func (s *sorted) Callback(f Fact) (Message, error) {
	if f.State == "" {
		f.State = StatePaid
	}
	fields := s.fields(f, f.State)
	fields["sign"] = hmacHex(s.key, sortedPairs(fields))
	return formMessage(fields), nil
}
