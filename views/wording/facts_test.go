package wording

import (
	"encoding/json"
	"testing"
	"time"

	"backstop/internal/base/text"
	"backstop/internal/exception"
	"backstop/internal/sweep"
	"backstop/views/ui"
)

func inChinese() *ui.Page { return &ui.Page{Language: "zh"} }

func TestFactsOfAnExceptionAreForPeople(t *testing.T) {
	t.Parallel()
	x := exception.Item{
		Kind: exception.AmountMismatch, Currency: "CNY",
		Detail: json.RawMessage(`{"difference":-5784,"got":5786,"want":11570,"supplier":"ali","trade_no":"","later":true}`),
	}
	if got, want := ExceptionDetail(inChinese(), x), "应为：¥115.70 CNY · 收到：¥57.86 CNY · 差额：−¥57.84 CNY · 渠道：ali · later：true"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	x.Detail = json.RawMessage(
		`{"status":"closed","close_reason":"timeout","last_class":"timeout","reason":"sign is missing","attempts":12}`)
	if got, want := ExceptionDetail(inChinese(), x), "原因：sign is missing · 状态：已关闭 · 关闭原因：超时 · 尝试次数：12 · 最后结果：超时无应答"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	x = exception.Item{
		Kind: exception.DisputeOpened,
		Detail: json.RawMessage(
			`{"reason":"product_not_received","status":"needs_response","due_by":"2026-03-08T23:59:59Z","dispute_no":"du_1","type":"charge.dispute.created","supplier":"st","trade_no":"pi_1"}`),
	}
	for language, want := range map[string]string{
		"zh": "原因：未收到商品 · 状态：待举证 · 举证截止：2026-03-08 23:59:59.000 UTC · 争议编号：du_1 · 事件：charge.dispute.created · 渠道：st · 渠道流水号：pi_1",
		"en": "Reason: product not received · Status: needs response · Evidence due by: 2026-03-08 23:59:59.000 UTC · Dispute number: du_1 · Event: charge.dispute.created · Supplier: st · Trade number: pi_1",
	} {
		if got := ExceptionDetail(&ui.Page{Language: language, Zone: time.UTC}, x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	x.Detail = json.RawMessage(`{"reason":"a_new_word","status":"won","due_by":"soon"}`)
	if got, want := ExceptionDetail(inChinese(), x), "原因：a_new_word · 状态：胜诉 · 举证截止：soon"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	x = exception.Item{
		Kind:   exception.PayoutReturned,
		Detail: json.RawMessage(`{"payout_no":"P1","status":"returned","word":"REFUND","supplier":"ali"}`),
	}
	for language, want := range map[string]string{
		"zh": "状态：已退汇 · 出款单号：P1 · 渠道状态：渠道退票（REFUND） · 渠道：ali",
		"en": "Status: Returned · Payout number: P1 · Supplier status: Returned by the bank (REFUND) · Supplier: ali",
	} {
		if got := ExceptionDetail(&ui.Page{Language: language}, x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	x = exception.Item{
		Kind:   exception.BooksDiffer,
		Detail: json.RawMessage(`{"what":"I13","detail":"x","rows":[],"said":[{"code":"sweep.violations","args":["2"]}]}`),
	}
	p := inChinese()
	p.Texts = text.Join(&sweep.Texts)
	if got, want := ExceptionDetail(p, x), "统计或规则：每个账户的明细之和等于余额 · 差异：2 处不符"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	x.Detail = json.RawMessage(`"odd"`)
	if got := ExceptionDetail(inChinese(), x); got != `"odd"` {
		t.Errorf("%q", got)
	}
}

// What a detail says of money is money, with its dot where the currency has it.
func TestTheDetailOfAMismatchIsMoney(t *testing.T) {
	t.Parallel()
	for currency, want := range map[string]string{
		"CNY": "Expected: ¥86.41 CNY · Received: ¥43.21 CNY · Difference: −¥43.20 CNY",
		"JPY": "Expected: ¥8,641 JPY · Received: ¥4,321 JPY · Difference: −¥4,320 JPY",
	} {
		x := exception.Item{Currency: currency, Detail: []byte(`{"got":4321,"want":8641,"difference":-4320}`)}
		if got := ExceptionDetail(&ui.Page{Language: "en"}, x); got != want {
			t.Errorf("%s: %q, want %q", currency, got, want)
		}
	}
}

// What channels note of attempts is in the person's language; what a system wrote is not
// touched.
func TestTheErrorOfAnAttemptIsInThePersonsLanguage(t *testing.T) {
	t.Parallel()
	for noted, zh := range map[string]string{
		"answered 500": "应答 500", "answered 302; redirects are not followed": "应答 302；不跟随重定向", "no complete answer in time": "未在时限内完整应答",
		"answered 200, but %d":                     "answered 200, but %d",
		"dial tcp 10.0.0.1:80: connection refused": "dial tcp 10.0.0.1:80: connection refused", "": "",
	} {
		if got := AttemptError(inChinese(), noted); got != zh {
			t.Errorf("%q is %q, want %q", noted, got, zh)
		}
		if got := AttemptError(&ui.Page{Language: "en"}, noted); got != noted {
			t.Errorf("%q is %q in English", noted, got)
		}
	}
}
