package alipay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/smartwalle/alipay/v3"

	"backstop/internal/supplier"
	"backstop/internal/supplier/suppliertest"
)

// pair is one member of a node, in its order: what is signed is text.
type pair struct{ name, value string }

// members writes a node as Alipay does: values are text.
func members(pairs ...pair) string {
	var parts []string
	for _, p := range pairs {
		value, _ := json.Marshal(p.value)
		parts = append(parts, fmt.Sprintf("%q:%s", p.name, value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

var methods = map[suppliertest.Op]string{
	suppliertest.Pay: "alipay.trade.precreate", suppliertest.Query: "alipay.trade.query", suppliertest.Close: "alipay.trade.close",
	suppliertest.Payout: "alipay.fund.trans.uni.transfer", suppliertest.PayoutQuery: "alipay.fund.trans.common.query",
	suppliertest.Refund: "alipay.trade.refund", suppliertest.RefundQuery: "alipay.trade.fastpay.refund.query",
}

func nodeName(op suppliertest.Op) string {
	return strings.ReplaceAll(methods[op], ".", "_") + "_response"
}

// signedAnswer puts a node into an answer and signs it with Alipay's key.
func signedAnswer(tb testing.TB, op suppliertest.Op, status int, node string, tamper func(string) string) supplier.Exchange {
	tb.Helper()
	known, ok := signatures.Load(node)
	if !ok {
		made, err := signText(alipaysKey(), node)
		if err != nil {
			tb.Fatal(err)
		}
		known = made
		signatures.Store(node, made)
	}
	sign := known.(string)
	if tamper != nil {
		sign = tamper(sign)
	}
	body := fmt.Sprintf(`{%q:%s,"sign":%q}`, nodeName(op), node, sign)
	return supplier.Exchange{Status: status, Header: http.Header{"Content-Type": {"text/html;charset=utf-8"}}, Body: []byte(body)}
}

// signatures are Alipay's, by their nodes: the suite asks for one of them thousands of times.
var signatures sync.Map

var alipaysKey = sync.OnceValue(func() *rsa.PrivateKey {
	text, err := os.ReadFile("testdata/test-only-alipay.pem")
	if err != nil {
		panic(err)
	}
	key, err := supplier.ParsePrivateKey(string(text))
	if err != nil {
		panic(err)
	}
	return key
})

const testTrade = "2026030122001400000000000001"

// answerOf is Alipay's answer, with the change: a code, a paid trade, a closed one.
func answerOf(tb testing.TB, op suppliertest.Op, c suppliertest.Change) supplier.Exchange {
	tb.Helper()
	if op == suppliertest.Payout || op == suppliertest.PayoutQuery {
		return transferAnswer(tb, op, c)
	}
	ref := pair{"out_trade_no", cmp.Or(c.OrderRef, suppliertest.Reference)}
	pairs := []pair{{"code", "10000"}, {"msg", "Success"}}
	switch op {
	case suppliertest.Pay:
		pairs = append(pairs, ref, pair{"qr_code", "https://qr.alipay.com/bavh4wjlxf12tper3a"})
	case suppliertest.Query:
		pairs = append(pairs, pair{"buyer_logon_id", "159****5620"}, pair{"buyer_pay_amount", "18.99"}, ref,
			pair{"send_pay_date", "2026-03-01 15:59:58"},
			pair{"total_amount", cmp.Or(c.Amount, "19.99")}, pair{"trade_no", cmp.Or(c.TradeNo, testTrade)},
			pair{"trade_status", cmp.Or(c.Status, "TRADE_SUCCESS")})
	case suppliertest.Close:
		pairs = append(pairs, ref, pair{"trade_no", testTrade})
	case suppliertest.Refund:
		pairs = append(pairs, ref, pair{"trade_no", testTrade}, pair{"fund_change", cmp.Or(c.Status, "Y")}, pair{"refund_fee", "7.00"})
	case suppliertest.RefundQuery:
		pairs = append(pairs, ref, pair{"trade_no", testTrade}, pair{"out_request_no", cmp.Or(c.RefundNo, suppliertest.RefundNo)},
			pair{"refund_amount", cmp.Or(c.Amount, "5.00")}, pair{"refund_status", cmp.Or(c.Status, "REFUND_SUCCESS")},
			pair{"total_amount", "19.99"})
	}
	if op == suppliertest.RefundQuery && c.Without != "" && c.Without != "OrderRef" {
		pairs = slices.DeleteFunc(pairs, func(p pair) bool {
			return p.name == map[string]string{
				"RefundNo": "out_request_no", "Amount": "refund_amount",
				"Status": "refund_status",
			}[c.Without]
		})
		return signedAnswer(tb, op, http.StatusOK, members(pairs...), c.Tamper)
	}
	if op == suppliertest.Refund && c.Without == "Status" {
		c.Without = "fund_change"
	}
	name := map[string]string{
		"fund_change": "fund_change", "OrderRef": "out_trade_no", "TradeNo": "trade_no", "Amount": "total_amount",
		"Status": "trade_status",
	}[c.Without]
	pairs = slices.DeleteFunc(pairs, func(p pair) bool { return p.name == name })
	if c.Duplicate {
		pairs = append(pairs, pair{"out_trade_no", "SO20260301000002"})
	}
	return signedAnswer(tb, op, http.StatusOK, members(pairs...), c.Tamper)
}

// callable is an adapter that can call; key is what it takes for Alipay's.
func callable(tb testing.TB, key string) func(supplier.Client) supplier.Adapter {
	raw, _ := json.Marshal(config{
		AppID: testAppID, SellerID: testSellerID, AlipayPublicKey: publicText(tb, loadKey(tb, key)),
		AppPrivateKey: privateText(tb, loadKey(tb, "test-only-app.pem")),
	})
	return func(out supplier.Client) supplier.Adapter {
		a, err := Kind.New("ali-main", raw, out)
		if err != nil {
			tb.Fatal(err)
		}
		return a
	}
}

// quick makes adapters that sign nothing.
func quick(made func(supplier.Client) supplier.Adapter) func(supplier.Client) supplier.Adapter {
	return func(out supplier.Client) supplier.Adapter {
		a := made(out).(*calls)
		a.own = suppliertest.NoSigner{}
		return a
	}
}

var ours = map[string]string{"app_id": testAppID, "seller_id": testSellerID}

func TestCallsKeepTheirPromises(t *testing.T) {
	t.Parallel()
	refused := func(op suppliertest.Op, code, sub string, more ...pair) supplier.Exchange {
		return signedAnswer(t, op, http.StatusOK,
			members(append([]pair{{"code", code}, {"msg", "Business Failed"}, {"sub_code", sub}, {"sub_msg", "…"}}, more...)...), nil)
	}
	trade := func(status string, more ...pair) supplier.Exchange {
		return signedAnswer(t, suppliertest.Query, http.StatusOK, members(append([]pair{
			{"code", "10000"},
			{"msg", "Success"},
			{"out_trade_no", suppliertest.Reference},
			{"total_amount", "19.99"},
			{"trade_no", testTrade},
			{"trade_status", status},
		}, more...)...), nil)
	}
	paidAt, ref, other := pair{"send_pay_date", "2026-03-01 15:59:58"}, pair{"out_trade_no", suppliertest.Reference},
		pair{"out_trade_no", "SO20260301000002"}
	const pay, query, closing = suppliertest.Pay, suppliertest.Query, suppliertest.Close
	suppliertest.RunAbilities(t, suppliertest.Abilities{
		New: quick(callable(t, "test-only-alipay.pem")), Stranger: quick(callable(t, "test-only-stranger.pem")),
		Payment: supplier.Payment{
			Subject: "测试商品 1 + 1", Amount: 1999, Currency: "CNY",
			NotifyURL: "https://pay.example.com/callback/ali-main",
		},
		Answer: func(op suppliertest.Op, c suppliertest.Change) supplier.Exchange { return answerOf(t, op, c) },
		Has: map[suppliertest.Op][]string{
			pay: {"OrderRef", "Duplicate"}, query: {"OrderRef", "TradeNo", "Amount", "Status", "Duplicate"},
			closing:             {"OrderRef", "Duplicate"},
			suppliertest.Payout: {"PayoutNo", "Amount", "Status", "Duplicate"}, suppliertest.PayoutQuery: {
				"PayoutNo", "Amount", "Status",
				"Duplicate",
			},
			suppliertest.Refund: {"OrderRef", "Status", "Duplicate"}, suppliertest.RefundQuery: {
				"OrderRef", "RefundNo", "Amount", "Status",
				"Duplicate",
			},
		},
		Refund: supplier.Refund{TradeNo: testTrade, Amount: 500, Total: 1999, Currency: "CNY", Reason: "测试"},
		Refunded: map[suppliertest.Op]supplier.RefundAnswer{
			suppliertest.Refund:      {State: supplier.RefundSucceeded, Word: "10000"},
			suppliertest.RefundQuery: {State: supplier.RefundSucceeded, Word: "REFUND_SUCCESS"},
		},
		Payout: payout,
		PaidOut: map[suppliertest.Op]supplier.PayoutAnswer{
			suppliertest.Payout:      {State: supplier.PayoutSucceeded, SupplierNo: transferID, Word: "SUCCESS"},
			suppliertest.PayoutQuery: {State: supplier.PayoutSucceeded, SupplierNo: transferID, Word: "SUCCESS"},
		},
		Signed: func(op suppliertest.Op, body []byte) supplier.Exchange {
			return signedAnswer(t, op, http.StatusOK, string(body), nil)
		},
		Started: supplier.Started{
			State: supplier.Accepted, Kind: supplier.ValueQR, Value: "https://qr.alipay.com/bavh4wjlxf12tper3a",
			Word: "10000",
		},
		Says: supplier.Callback{
			EventKey: testTrade + ":TRADE_SUCCESS", OrderRef: suppliertest.Reference, TradeNo: testTrade, Status: supplier.Paid,
			RawStatus: "TRADE_SUCCESS",
			Amount:    1999, Currency: "CNY", Identity: ours, OccurredAt: suppliertest.Now.Add(-2 * time.Second),
		},
		Closed: supplier.Callback{
			EventKey: testTrade + ":10000", OrderRef: suppliertest.Reference, TradeNo: testTrade, Status: supplier.Closed,
			RawStatus: "10000", Currency: "CNY", Identity: ours,
		},
		Cases: append(payoutCases(t), []suppliertest.AnswerCase{
			{Name: "TRADE_FINISHED", Op: query, Answer: trade("TRADE_FINISHED", paidAt), State: "paid", Class: supplier.ClassOK},
			{Name: "WAIT_BUYER_PAY", Op: query, Answer: trade("WAIT_BUYER_PAY"), State: "paying", Class: supplier.ClassOK},
			{Name: "TRADE_CLOSED unpaid", Op: query, Answer: trade("TRADE_CLOSED"), State: "closed", Class: supplier.ClassOK},
			{
				Name: "TRADE_CLOSED with an empty pay date", Op: query, Answer: trade("TRADE_CLOSED", pair{"send_pay_date", ""}),
				State: "closed", Class: supplier.ClassOK,
			},
			{
				Name: "TRADE_CLOSED with a pay date", Op: query, Answer: trade("TRADE_CLOSED", paidAt), State: "paid", RefundTotal: 1999,
				Class: supplier.ClassOK,
			},
			{
				Name: "TRADE_SUCCESS with refunds", Op: query, Answer: trade("TRADE_SUCCESS", paidAt, pair{"refund_fee", "5.00"}),
				State: "paid", RefundTotal: 500, Class: supplier.ClassOK,
			},
			{
				Name: "TRADE_FINISHED without refunds", Op: query, Answer: trade("TRADE_FINISHED", paidAt, pair{"refund_fee", "0.00"}),
				State: "paid", Class: supplier.ClassOK,
			},
			{
				Name: "TRADE_CLOSED with an odd pay date", Op: query, Answer: trade("TRADE_CLOSED", pair{"send_pay_date", "yesterday"}),
				State: "paid", RefundTotal: 1999, Class: supplier.ClassOK,
			},
			{
				Name: "trade_status in another case", Op: query, Answer: trade("trade_success", paidAt), State: "unknown",
				Class: supplier.ClassUnknown,
			},
			{
				Name: "paid in another currency", Op: query, Answer: trade("TRADE_SUCCESS", pair{"trans_currency", "USD"}), State: "paid",
				Class: supplier.ClassOK,
			},
			{
				Name: "paid in an unknown currency", Op: query, Answer: trade("TRADE_SUCCESS", pair{"trans_currency", "RMB"}),
				State: "unknown", Class: supplier.ClassBadAnswer,
			},
			{
				Name: "an amount that is a number", Op: query, Answer: signedAnswer(t, query, 200, `{"code":"10000","out_trade_no":"`+
					suppliertest.Reference+`","trade_no":"T","trade_status":"TRADE_SUCCESS","total_amount":19.99}`, nil), State: "unknown",
				Class: supplier.ClassBadAnswer,
			},
			{
				Name: "no such trade", Op: query, Answer: refused(query, "40004", "ACQ.TRADE_NOT_EXIST", ref), State: "not_found",
				Class: supplier.ClassOK,
			},
			{
				Name: "no such trade, unnamed", Op: query, Answer: refused(query, "40004", "ACQ.TRADE_NOT_EXIST"), State: "not_found",
				Class: supplier.ClassOK,
			},
			{
				Name: "no such trade, another's", Op: query, Answer: refused(query, "40004", "ACQ.TRADE_NOT_EXIST", other), State: "unknown",
				Class: supplier.ClassBadAnswer,
			},
			{
				Name: "not exist under another code", Op: query, Answer: refused(query, "20000", "ACQ.TRADE_NOT_EXIST", ref), State: "unknown",
				Class: supplier.ClassUnknown,
			},
			{
				Name: "system error", Op: query, Answer: refused(query, "40004", "ACQ.SYSTEM_ERROR", ref), State: "unknown",
				Class: supplier.ClassUnknown,
			},
			{
				Name: "invalid parameter", Op: query, Answer: refused(query, "40004", "ACQ.INVALID_PARAMETER"), State: "unknown",
				Class: supplier.ClassUnknown,
			},
			{
				Name: "gateway out of service", Op: query, Answer: refused(query, "20000", "isp.unknow-error"), State: "unknown",
				Class: supplier.ClassUnknown,
			},
			{
				Name: "gateway refuses without a signature", Op: query,
				Answer: bare(`{"alipay_trade_query_response":{"code":"40002","sub_code":"isv.invalid-app-id"}}`), State: "unknown",
				Class: supplier.ClassBadSignature,
			},
			{
				Name: "no such trade without a signature", Op: query,
				Answer: bare(`{"alipay_trade_query_response":{"code":"40004","sub_code":"ACQ.TRADE_NOT_EXIST"}}`), State: "unknown",
				Class: supplier.ClassBadSignature,
			},
			{
				Name: "error_response", Op: query, Answer: bare(`{"error_response":{"code":"40004"},"sign":"x"}`), State: "unknown",
				Class: supplier.ClassBadAnswer,
			},
			{Name: "the answer to a close", Op: query, Answer: renamed(t, closing, query), State: "unknown", Class: supplier.ClassUnknown},

			{
				Name: "no such trade", Op: closing, Answer: refused(closing, "40004", "ACQ.TRADE_NOT_EXIST"), State: "closed",
				Class: supplier.ClassOK,
			},
			{
				Name: "no such trade, another's", Op: closing, Answer: refused(closing, "40004", "ACQ.TRADE_NOT_EXIST", other),
				State: "unknown", Class: supplier.ClassBadAnswer,
			},
			{
				Name: "status error", Op: closing, Answer: refused(closing, "40004", "ACQ.TRADE_STATUS_ERROR", ref), State: "unknown",
				Class: supplier.ClassRefused,
			},
			{
				Name: "status invalid", Op: closing, Answer: refused(closing, "40004", "ACQ.REASON_TRADE_STATUS_INVALID"), State: "unknown",
				Class: supplier.ClassRefused,
			},
			{
				Name: "illegal status", Op: closing, Answer: refused(closing, "40004", "ACQ.REASON_ILLEGAL_STATUS"), State: "unknown",
				Class: supplier.ClassRefused,
			},
			{
				Name: "system error", Op: closing, Answer: refused(closing, "40004", "ACQ.SYSTEM_ERROR"), State: "unknown",
				Class: supplier.ClassUnknown,
			},
			{Name: "closed, but of which trade", Op: closing, Answer: signedAnswer(t, closing, 200, `{"code":"10000","msg":"Success"}`,
				nil), State: "unknown", Class: supplier.ClassUnknown},
			{
				Name: "the answer to a query", Op: closing, Answer: renamed(t, query, closing), State: "unknown",
				Class: supplier.ClassUnknown,
			},
			{Name: "the answer to a start", Op: closing, Answer: renamed(t, pay, closing), State: "unknown", Class: supplier.ClassUnknown},

			{Name: "taken, no money moved", Op: suppliertest.Refund, Answer: answerOf(t, suppliertest.Refund,
				suppliertest.Change{Status: "N"}), State: "unknown", Class: supplier.ClassOK},
			{Name: "no fund_change", Op: suppliertest.Refund, Answer: signedAnswer(t, suppliertest.Refund, 200,
				members(pair{"code", "10000"}, ref), nil), State: "unknown", Class: supplier.ClassUnknown},
			{
				Name: "short", Op: suppliertest.Refund, Answer: refused(suppliertest.Refund, "40004", "ACQ.SELLER_BALANCE_NOT_ENOUGH"),
				State: "short_of_funds", Class: supplier.ClassRefused,
			},
			{Name: "sum is wrong", Op: suppliertest.Refund, Answer: refused(suppliertest.Refund, "40004",
				"ACQ.REASON_TRADE_REFUND_FEE_ERR"), State: "failed", Class: supplier.ClassRefused},
			{Name: "refused, another's", Op: suppliertest.Refund, Answer: refused(suppliertest.Refund, "40004",
				"ACQ.TRADE_NOT_ALLOW_REFUND", other), State: "unknown", Class: supplier.ClassBadAnswer},
			{
				Name: "system error", Op: suppliertest.Refund, Answer: refused(suppliertest.Refund, "40004", "ACQ.SYSTEM_ERROR"),
				State: "unknown", Class: supplier.ClassUnknown,
			},
			{
				Name: "trade is over", Op: suppliertest.Refund, Answer: refused(suppliertest.Refund, "40004", "ACQ.TRADE_HAS_FINISHED"),
				State: "unknown", Class: supplier.ClassUnknown,
			},
			{
				Name: "service", Op: suppliertest.Refund, Answer: refused(suppliertest.Refund, "20000", "ACQ.TRADE_NOT_ALLOW_REFUND"),
				State: "unknown", Class: supplier.ClassUnknown,
			},
			{Name: "no status", Op: suppliertest.RefundQuery, Answer: signedAnswer(t, suppliertest.RefundQuery, 200,
				members(pair{"code", "10000"}, pair{"msg", "Success"}), nil), State: "not_found", Class: supplier.ClassOK},
			{
				Name: "no such trade", Op: suppliertest.RefundQuery, Answer: refused(suppliertest.RefundQuery, "40004", "ACQ.TRADE_NOT_EXIST"),
				State: "not_found", Class: supplier.ClassOK,
			},
			{
				Name: "system error", Op: suppliertest.RefundQuery, Answer: refused(suppliertest.RefundQuery, "40004", "ACQ.SYSTEM_ERROR"),
				State: "unknown", Class: supplier.ClassUnknown,
			},
			{
				Name: "the answer to a query", Op: suppliertest.RefundQuery, Answer: renamed(t, query, suppliertest.RefundQuery),
				State: "unknown", Class: supplier.ClassBadAnswer,
			},
			{Name: "the answer to a refund", Op: suppliertest.RefundQuery, Answer: renamed(t, suppliertest.Refund,
				suppliertest.RefundQuery), State: "unknown", Class: supplier.ClassBadAnswer},

			{
				Name: "invalid parameter", Op: pay, Answer: refused(pay, "40004", "ACQ.INVALID_PARAMETER"), State: "refused",
				Class: supplier.ClassRefused,
			},
			{
				Name: "no contract", Op: pay, Answer: refused(pay, "40004", "ACQ.ACCESS_FORBIDDEN", ref), State: "refused",
				Class: supplier.ClassRefused,
			},
			{
				Name: "refused, another's", Op: pay, Answer: refused(pay, "40004", "ACQ.ACCESS_FORBIDDEN", other), State: "unknown",
				Class: supplier.ClassBadAnswer,
			},
			{
				Name: "already paid", Op: pay, Answer: refused(pay, "40004", "ACQ.TRADE_HAS_SUCCESS"), State: "unknown",
				Class: supplier.ClassUnknown,
			},
			{
				Name: "already closed", Op: pay, Answer: refused(pay, "40004", "ACQ.TRADE_HAS_CLOSE"), State: "unknown",
				Class: supplier.ClassUnknown,
			},
			{
				Name: "other content", Op: pay, Answer: refused(pay, "40004", "ACQ.CONTEXT_INCONSISTENT"), State: "unknown",
				Class: supplier.ClassUnknown,
			},
			{
				Name: "system error", Op: pay, Answer: refused(pay, "40004", "ACQ.SYSTEM_ERROR"), State: "unknown",
				Class: supplier.ClassUnknown,
			},
			{
				Name: "a refusal of the gateway", Op: pay, Answer: refused(pay, "20000", "ACQ.ACCESS_FORBIDDEN"), State: "unknown",
				Class: supplier.ClassUnknown,
			},
			{Name: "no code", Op: pay, Answer: renamed(t, closing, pay), State: "unknown", Class: supplier.ClassBadAnswer},
		}...),
		Secrets: []string{privateText(t, loadKey(t, "test-only-app.pem"))},
		Key: func(r *http.Request, body []byte) string {
			form, err := url.ParseQuery(string(body))
			if err != nil {
				t.Error(err)
			}
			form.Del("timestamp")
			form.Del("sign")
			return r.Method + " " + r.URL.String() + "\n" + form.Encode()
		},
	})
}

func bare(body string) supplier.Exchange {
	return supplier.Exchange{Status: http.StatusOK, Header: http.Header{}, Body: []byte(body)}
}

// renamed is the genuine answer to one call, replayed as that to another: the name of the
// node is not signed.
func renamed(t *testing.T, from, to suppliertest.Op) supplier.Exchange {
	x := answerOf(t, from, suppliertest.Change{})
	x.Body = bytes.Replace(x.Body, []byte(nodeName(from)), []byte(nodeName(to)), 1)
	return x
}

// The node is verified as the text that it has: spaces, escapes and the order of its
// members are the supplier's.
func TestNodeIsVerifiedAsItsText(t *testing.T) {
	t.Parallel()
	node := `{ "trade_status" : "TRADE_SUCCESS",` + "\n\t" + `"code":"10000","out_trade_no":"` + suppliertest.Reference +
		`","trade_no":"T\u002d1","total_amount":"0.01","subject":"a\/b } \" 云" }`
	key := loadKey(t, "test-only-alipay.pem")
	sign, err := signText(key, node)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		body string
		paid bool
	}{
		"plain":              {`{"alipay_trade_query_response":` + node + `,"sign":"` + sign + `"}`, true},
		"sign first, spaces": {` { "sign" : "` + sign + `" , "alipay_trade_query_response" : ` + node + " }\n", true},
		"with a certificate": {`{"alipay_trade_query_response":` + node + `,"alipay_cert_sn":"5f","sign":"` + sign + `"}`, true},
		"written anew":       {`{"alipay_trade_query_response":` + strings.Replace(node, " :", ":", 1) + `,"sign":"` + sign + `"}`, false},
		"two nodes": {`{"alipay_trade_query_response":` + node + `,"alipay_trade_query_response":` + node + `,"sign":"` + sign +
			`"}`, false},
		"two in another case": {
			`{"alipay_trade_query_response":` + node + `,"Alipay_trade_query_response":{},"sign":"` + sign + `"}`,
			false,
		},
		"two signatures":    {`{"alipay_trade_query_response":` + node + `,"sign":"` + sign + `","sign":"x"}`, false},
		"text behind":       {`{"alipay_trade_query_response":` + node + `,"sign":"` + sign + `"}{}`, false},
		"hidden in a value": {`{"x":{"alipay_trade_query_response":` + node + `},"sign":"` + sign + `"}`, false},
		"a line break":      {`{"alipay_trade_query_response":` + node + `,"sign":"` + sign[:64] + `\n` + sign[64:] + `"}`, false},
		"signature no text": {`{"alipay_trade_query_response":` + node + `,"sign":1}`, false},
		"null":              {`{"alipay_trade_query_response":null,"sign":"` + sign + `"}`, false},
	} {
		line := &suppliertest.Line{Reply: func(*http.Request, []byte) supplier.Exchange { return bare(c.body) }}
		got, err := supplier.AbilitiesOf(callable(t, "test-only-alipay.pem")(line)).Query(t.Context(),
			supplier.Ref{Reference: suppliertest.Reference})
		if err != nil || (got.State == supplier.AnswerPaid) != c.paid || !c.paid && got.State != supplier.AnswerUnknown {
			t.Errorf("%s: %v, %s (%s)", name, err, got.State, got.Reason.Error())
		}
		if c.paid && (got.Says.TradeNo != "T-1" || got.Says.Amount != 1) {
			t.Errorf("%s: %+v", name, got.Says)
		}
	}
}

// What Alipay gets is what a library that merchants use with it sends, signed the same
// way, and holds exactly the payment.
func TestRequestsAreThoseOfAKnownLibrary(t *testing.T) {
	t.Parallel()
	app := loadKey(t, "test-only-app.pem")
	client, err := sdk.New(testAppID, privateText(t, app), true)
	if err != nil {
		t.Fatal(err)
	}
	expires := time.Date(2026, 3, 1, 9, 0, 0, 999, time.UTC)
	p := supplier.Payment{
		Reference: "SO1_2", OrderNo: "SO1", Subject: "A & B = C/D", Amount: 10, Currency: "CNY", Method: supplier.MethodQR,
		NotifyURL: "https://pay.example.com/callback/ali-main", ExpiresAt: expires,
	}
	line := &suppliertest.Line{Reply: func(*http.Request,
		[]byte,
	) supplier.Exchange {
		return supplier.Exchange{Class: supplier.ClassTimeout}
	}}
	can := supplier.AbilitiesOf(callable(t, "test-only-alipay.pem")(line))
	if s, err := can.Start(t.Context(), p); err != nil || s.State != supplier.StartUnknown || s.Exchange.Class != supplier.ClassTimeout {
		t.Fatalf("%v %+v", err, s)
	}
	if _, err := can.Query(t.Context(), supplier.Ref{Reference: "SO1_2"}); err != nil {
		t.Fatal(err)
	}
	if _, err := can.Close(t.Context(), supplier.Ref{Reference: "SO1_2"}); err != nil {
		t.Fatal(err)
	}
	refund := supplier.Refund{No: "R1", Reference: "SO1_2", Amount: 10, Total: 30, Currency: "CNY", Reason: "back"}
	if _, err := can.Refund(t.Context(), refund); err != nil {
		t.Fatal(err)
	}
	if _, err := can.RefundQuery(t.Context(), refund); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ method, content, notify string }{
		{
			"alipay.trade.precreate",
			`{"out_trade_no":"SO1_2","total_amount":"0.10","subject":"A   B   C D","seller_id":"2088000000000001","time_expire":"2026-03-01 17:00:00"}`, p.NotifyURL,
		},
		{"alipay.trade.query", `{"out_trade_no":"SO1_2"}`, ""},
		{"alipay.trade.close", `{"out_trade_no":"SO1_2"}`, ""},
		{"alipay.trade.refund", `{"out_trade_no":"SO1_2","refund_amount":"0.10","out_request_no":"R1","refund_reason":"back"}`, ""},
		{"alipay.trade.fastpay.refund.query", `{"out_trade_no":"SO1_2","out_request_no":"R1"}`, ""},
	} {
		sent := line.Sent()[i]
		form, err := url.ParseQuery(string(sent.Body))
		if err != nil {
			t.Fatal(err)
		}
		if r := sent.Request; r.Method != http.MethodPost || r.URL.String() != defaultGateway ||
			!strings.Contains(r.Header.Get("Content-Type"), "utf-8") {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		if form.Get("method") != want.method || form.Get("biz_content") != want.content || form.Get("notify_url") != want.notify ||
			form.Has("notify_url") != (want.notify != "") {
			t.Errorf("%v, want %+v", form, want)
		}
		theirs, err := client.URLValues(sdk.TradeQuery{OutTradeNo: "SO1_2"})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"app_id", "format", "charset", "sign_type", "version"} {
			if form.Get(name) != theirs.Get(name) {
				t.Errorf("%s is %q, the library sends %q", name, form.Get(name), theirs.Get(name))
			}
		}
		signature := form.Get("sign")
		form.Del("sign")
		raw, err := client.SignValues(form)
		if err != nil || signature == "" || !holds(&app.PublicKey, []byte(requestText(single(form))), signature) {
			t.Fatalf("the signature does not contain: %v", err)
		}
		if again, _ := signText(app, requestText(single(form))); again != signature || !bytes.Equal(raw, decoded(t, signature)) {
			t.Errorf("%s: the library signs it as %x", want.method, raw)
		}
	}
}

func single(f url.Values) map[string]string {
	fields := map[string]string{}
	for name := range f {
		fields[name] = f.Get(name)
	}
	return fields
}

func decoded(t *testing.T, sign string) []byte {
	t.Helper()
	var raw []byte
	if err := json.Unmarshal([]byte(`"`+sign+`"`), &raw); err != nil {
		t.Fatal(err)
	}
	return raw
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The library must take what the tests sign, or they would prove nothing.
func TestKnownLibraryAcceptsOurAnswers(t *testing.T) {
	t.Parallel()
	client, err := sdk.New(testAppID, privateText(t, loadKey(t, "test-only-app.pem")), true,
		sdk.WithHTTPClient(&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			x := answerOf(t, suppliertest.Query, suppliertest.Change{})
			return &http.Response{StatusCode: x.Status, Header: x.Header, Body: io.NopCloser(bytes.NewReader(x.Body)), Request: r}, nil
		})}))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.LoadAliPayPublicKey(publicText(t, loadKey(t, "test-only-alipay.pem"))); err != nil {
		t.Fatal(err)
	}
	got, err := client.TradeQuery(t.Context(), sdk.TradeQuery{OutTradeNo: suppliertest.Reference})
	if err != nil || got.TradeStatus != sdk.TradeStatusSuccess || got.OutTradeNo != suppliertest.Reference {
		t.Errorf("%v %+v", err, got)
	}
}

func TestPaymentsThatAlipayCannotTakeAreNotSent(t *testing.T) {
	t.Parallel()
	good := supplier.Payment{Reference: "SO1", Amount: 1, Currency: "CNY"}
	line := &suppliertest.Line{}
	can := supplier.AbilitiesOf(callable(t, "test-only-alipay.pem")(line))
	for field, change := range map[string]func(*supplier.Payment){
		"method":   func(p *supplier.Payment) { p.Method = supplier.MethodApp },
		"currency": func(p *supplier.Payment) { p.Currency = "USD" },
		"amount":   func(p *supplier.Payment) { p.Amount = maxAmount + 1 },
		"order_no": func(p *supplier.Payment) { p.Reference = "SO-1" },
	} {
		p := good
		change(&p)
		_, err := can.Start(t.Context(), p)
		if f := supplier.AsField(err); f == nil || f.Field != field {
			t.Errorf("%v, want the field %s", err, field)
		}
	}
	for _, ref := range []string{"", "SO 1", "单1", strings.Repeat("1", 65), "a\n"} {
		for _, call := range []func(context.Context, supplier.Ref) (supplier.Answer, error){can.Query, can.Close} {
			if _, err := call(t.Context(), supplier.Ref{Reference: ref}); supplier.AsField(err) == nil {
				t.Errorf("%q: %v", ref, err)
			}
		}
	}
	if len(line.Sent()) != 0 {
		t.Errorf("%d requests were sent", len(line.Sent()))
	}
}

func TestSubjectsAreAsAlipayTakesThem(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                          "SO1",
		"会员 1 年":                    "会员 1 年",
		"x&total_amount=100.00&zz=": "x total_amount 100.00 zz",
		"/&=":                       "SO1_2",
		strings.Repeat("云", 100):    strings.Repeat("云", 85),
	} {
		if got := subject(supplier.Payment{Subject: given, OrderNo: "SO1", Reference: "SO1_2"}); got != want {
			t.Errorf("%q is sent as %q, want %q", given, got, want)
		}
	}
}

func TestWithoutThePrivateKeyNothingCanBeAsked(t *testing.T) {
	t.Parallel()
	line := &suppliertest.Line{}
	raw, _ := json.Marshal(config{AppID: testAppID, AlipayPublicKey: publicText(t, loadKey(t, "test-only-alipay.pem"))})
	a, err := Kind.New("ali-main", raw, line)
	if err != nil || !reflect.DeepEqual(supplier.AbilitiesOf(a), supplier.Abilities{}) {
		t.Errorf("%v %+v", err, supplier.AbilitiesOf(a))
	}
	can := supplier.AbilitiesOf(callable(t, "test-only-alipay.pem")(line))
	if can.Payer == nil || can.Querier == nil || can.Closer == nil {
		t.Errorf("%+v", can)
	}
	c := config{
		AppID: testAppID, AlipayPublicKey: publicText(t, loadKey(t, "test-only-alipay.pem")),
		GatewayURL: "https://openapi.alipay.com/gateway.do",
	}
	half, _ := json.Marshal(c)
	if _, err := Kind.New("ali-main", half, line); supplier.AsField(err) == nil || supplier.AsField(err).Field != "app_private_key" {
		t.Errorf("an address without the key: %v", err)
	}
	c.AppPrivateKey = privateText(t, loadKey(t, "test-only-app.pem"))
	whole, _ := json.Marshal(c)
	if a, err := Kind.New("ali-main", whole, nil); err != nil || !reflect.DeepEqual(supplier.AbilitiesOf(a), supplier.Abilities{}) {
		t.Errorf("nothing could send the calls: %v %+v", err, a)
	}
}

func TestSettingsKeepTheirPromises(t *testing.T) {
	t.Parallel()
	own, theirs := privateText(t, loadKey(t, "test-only-app.pem")), publicText(t, loadKey(t, "test-only-alipay.pem"))
	const gateway = "https://gw.example/gateway.do"
	suppliertest.RunSettings(t, suppliertest.Settings{
		Kind: Kind, Bare: map[string]any{"app_id": testAppID, "seller_id": testSellerID, "alipay_public_key": theirs},
		Calls: map[string]any{"app_private_key": own, "gateway_url": gateway},
		WrongCalls: map[string][]map[string]any{
			"app_private_key": {
				{"gateway_url": gateway},
				{"app_private_key": "canary"},
				{"app_private_key": theirs, "gateway_url": gateway},
			},
			"gateway_url": {{"gateway_url": "gw.example"}, {"gateway_url": "gw.example", "app_private_key": own}},
		},
		Wrong: []map[string]any{
			{"app_id": ""},
			{"alipay_public_key": "x"},
			{"key": "x"},
			{"alipay_public_key": publicText(t, loadKey(t, "test-only-app.pem")), "app_private_key": own, "gateway_url": gateway},
		},
		Message: messageBuilder(t)(suppliertest.Change{}), Want: paid,
	})
}

// FuzzAnswer gives any body as the answer to a query: only what Alipay signs may be believed.
func FuzzAnswer(f *testing.F) {
	genuine := answerOf(f, suppliertest.Query, suppliertest.Change{})
	f.Add(genuine.Body)
	f.Add(bare(`{"alipay_trade_query_response":{"code":"40004","sub_code":"ACQ.TRADE_NOT_EXIST"}}`).Body)
	var answer []byte
	a := quick(callable(f,
		"test-only-alipay.pem"))(suppliertest.Client(func(*http.Request) supplier.Exchange { return bare(string(answer)) }))
	call := func(tb testing.TB, body []byte) supplier.Answer {
		answer = body
		got, err := supplier.AbilitiesOf(a).Query(context.Background(), supplier.Ref{Reference: suppliertest.Reference})
		if err != nil {
			tb.Fatal(err)
		}
		return got
	}
	want := call(f, genuine.Body)
	f.Fuzz(func(t *testing.T, body []byte) {
		if got := call(t, body); got.State != supplier.AnswerUnknown && !reflect.DeepEqual(got.Says, want.Says) {
			t.Errorf("believed: %+v", got)
		}
	})
}
