package wording

import (
	"encoding/json"
	"testing"

	"backstop/internal/base/text"
	"backstop/internal/exception"
	"backstop/internal/payment"
	"backstop/internal/supplier"
	"backstop/views/ui"
)

func TestStepsAreSaidInThePersonsLanguage(t *testing.T) {
	t.Parallel()
	known := text.Join(&supplier.Texts, &payment.Texts)
	for _, c := range []struct{ row, zh, en string }{
		{`{"name":"amount","ok":true,"code":"payment.amount"}`, "与订单一致", "as ordered"},
		{
			`{"name":"amount","ok":false,"code":"payment.not","args":["208.77","417.52 CNY"]}`, "208.77，应为 417.52 CNY",
			"208.77, not 417.52 CNY",
		},
		{`{"name":"state","ok":false,"code":"payment.late","args":["closed"]}`, "“已关闭”：关单后到账", "closed: the payment arrived late"},
		{
			`{"name":"form","ok":false,"code":"message.json_flaw_at","args":["@message.has_nul","\"a\""]}`, "JSON 在 \"a\" 处有 NUL",
			`the JSON has a NUL at "a"`,
		},
		{`{"name":"form","ok":false,"code":"newer.code","args":["x"]}`, "newer.code x", "newer.code x"},
		// A row of before there were codes.
		{
			`{"name":"state","ok":false,"detail":"closed: the money came late"}`, "closed: the money came late",
			"closed: the money came late",
		},
	} {
		var step supplier.Step
		if err := json.Unmarshal([]byte(c.row), &step); err != nil {
			t.Fatal(err)
		}
		zh, en := StepText(&ui.Page{Language: "zh", Texts: known}, step), StepText(&ui.Page{Language: "en", Texts: known}, step)
		if zh != c.zh || en != c.en || step.Text(known) != c.en {
			t.Errorf("%s is read as %q and %q, want %q and %q", c.row, zh, en, c.zh, c.en)
		}
	}
}

func TestTheReasonOfAnExceptionIsSaidByItsCode(t *testing.T) {
	t.Parallel()
	x := exception.Item{Detail: json.RawMessage(`{"reason":"the JSON is empty","said":{"code":"message.has_nul"},"supplier":"wx"}`)}
	for language, want := range map[string]string{"zh": "原因：有 NUL · 渠道：wx", "en": "Reason: has a NUL · Supplier: wx"} {
		if got := ExceptionDetail(&ui.Page{Language: language, Texts: text.Join(&supplier.Texts)}, x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestEveryCheckHasItsName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"supplier", "address", "adapter", "content", "signature", "unsigned", "time window", "form", "parameters", "decrypt",
		"repeat", "status", "order", "account", "refund", "currency", "amount", "trade number", "state", "dispute",
	} {
		if StepName(&ui.Page{Language: "zh"}, name) == name {
			t.Errorf("the check %q has no Chinese name", name)
		}
	}
}
