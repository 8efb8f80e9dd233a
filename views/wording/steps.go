package wording

import (
	"backstop/internal/base/text"
	"backstop/internal/supplier"
	"backstop/views/ui"
)

// stepNames are the checks that a callback passes.
var stepNames = map[string]text.Text{
	"account":      {ZH: "收款账户", EN: "account"},
	"adapter":      {ZH: "适配器", EN: "adapter"},
	"address":      {ZH: "来源地址", EN: "address"},
	"amount":       {ZH: "金额", EN: "amount"},
	"content":      {ZH: "内容", EN: "content"},
	"currency":     {ZH: "币种", EN: "currency"},
	"decrypt":      {ZH: "解密", EN: "decrypt"},
	"dispute":      {ZH: "争议", EN: "dispute"},
	"form":         {ZH: "表单", EN: "form"},
	"order":        {ZH: "订单", EN: "order"},
	"parameters":   {ZH: "参数", EN: "parameters"},
	"refund":       {ZH: "退款", EN: "refund"},
	"repeat":       {ZH: "重复", EN: "repeat"},
	"signature":    {ZH: "签名", EN: "signature"},
	"state":        {ZH: "订单状态", EN: "state"},
	"status":       {ZH: "状态", EN: "status"},
	"supplier":     {ZH: "渠道", EN: "supplier"},
	"time window":  {ZH: "时间窗口", EN: "time window"},
	"unsigned":     {ZH: "未签名内容", EN: "unsigned bytes"},
	"trade number": {ZH: "渠道流水号", EN: "trade number"},
}

// StepName names a check.
func StepName(p *ui.Page, name string) string {
	if w, ok := stepNames[name]; ok {
		return p.T(w)
	}
	return name
}

// Refusal is the failed check for which a callback was rejected.
func Refusal(p *ui.Page, steps []supplier.Step) string {
	for _, s := range steps {
		if !s.OK {
			return StepName(p, s.Name) + p.T(text.Colon) + StepText(p, s)
		}
	}
	return ""
}

// StepText is what a check found, in the person's language. Rows of before there were
// codes have a sentence, which is shown as it is.
func StepText(p *ui.Page, s supplier.Step) string {
	if s.Code == "" {
		return s.Detail
	}
	return Message(p, s.Message)
}

// said is what a row keeps by a code; an order's status among its arguments is named.
func Message(p *ui.Page, s text.Message) string {
	return p.Texts.Say(s, p.Language, func(arg string) string {
		if state, ok := ui.OrderStates[arg]; ok && p.Language != "en" {
			return p.T(state.Label)
		}
		return arg
	})
}
