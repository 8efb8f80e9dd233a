package wording

import (
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/suppliercall"
	"backstop/views/ui"
)

// CallOp is what a call to a supplier asks for.
func CallOp(op suppliercall.Op) text.Text {
	if t, ok := opTexts[op]; ok {
		return t
	}
	return text.Text{ZH: string(op), EN: string(op)}
}

var opTexts = map[suppliercall.Op]text.Text{
	suppliercall.Pay:         {ZH: "发起支付", EN: "start a payment"},
	suppliercall.Query:       {ZH: "查单", EN: "query"},
	suppliercall.Close:       {ZH: "关单", EN: "close"},
	suppliercall.Refund:      {ZH: "退款", EN: "refund"},
	suppliercall.RefundQuery: {ZH: "退款查询", EN: "refund query"},
	suppliercall.Payout:      {ZH: "出款", EN: "payout"},
	suppliercall.PayoutQuery: {ZH: "出款查询", EN: "payout query"},
}

// CallResult is the result of a call.
func CallResult(c *console.Call) text.Text {
	if c.TookUS == nil {
		return tCallOpen
	}
	said, ok := ui.SaidTexts[c.Status]
	if !ok {
		said = text.Text{ZH: c.Status, EN: c.Status}
	}
	if c.Class.Healthy() || c.Class == "" {
		return said
	}
	class := string(c.Class)
	return text.Text{ZH: said.ZH + "（" + class + "）", EN: said.EN + " (" + class + ")"}
}

var tCallOpen = text.Text{ZH: "结果未知：可能已发出", EN: "no result is recorded: it may have been made"}
