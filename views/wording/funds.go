package wording

import (
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/ui"
)

// FundPart names a part of the funds.
func FundPart(part string) text.Text { return ui.TextFor(fundParts, console.FundPart(part)) }

// SupplierWord is a supplier's status of a refund or payout: what it means, with the supplier's own word.
func SupplierWord(p *ui.Page, word string) string {
	t, ok := supplierWords[word]
	if !ok {
		return word
	}
	return p.T(text.InBrackets, p.T(t), word)
}

// supplierWords are what suppliers answer about refunds and payouts.
var supplierWords = map[string]text.Text{
	"SUCCESS":    {ZH: "渠道已完成", EN: "Done by the supplier"},
	"DEALING":    {ZH: "渠道处理中", EN: "In progress at the supplier"},
	"PROCESSING": {ZH: "渠道处理中", EN: "In progress at the supplier"},
	"WAIT_PAY":   {ZH: "等待渠道付款", EN: "Waiting for the supplier to pay"},
	"FAIL":       {ZH: "渠道处理失败", EN: "Failed at the supplier"},
	"ABNORMAL":   {ZH: "渠道退款异常", EN: "Refund abnormal at the supplier"},
	"CLOSED":     {ZH: "渠道已关闭", EN: "Closed by the supplier"},
	"REFUND":     {ZH: "渠道退票", EN: "Returned by the bank"},

	"PAYER_BALANCE_NOT_ENOUGH": {ZH: "渠道账户余额不足", EN: "Supplier account short of funds"},
	"BALANCE_IS_NOT_ENOUGH":    {ZH: "渠道账户余额不足", EN: "Supplier account short of funds"},
	"INVALID_PARAMETER":        {ZH: "参数有误", EN: "Invalid parameter"},
	"PAYEE_NOT_EXIST":          {ZH: "收款账户不存在", EN: "No such payee"},
	"PAYEE_USER_INFO_ERROR":    {ZH: "收款账户与姓名不符", EN: "Payee and name do not match"},
	"PAYEE_CARD_INFO_ERROR":    {ZH: "收款卡信息有误", EN: "Wrong card of the payee"},
	"CARD_BIN_ERROR":           {ZH: "收款卡号有误", EN: "Wrong card number"},
	"resolved as failed":       {ZH: "人工判定为失败", EN: "Resolved as failed"},
}

var FundIcons = map[console.FundPart]string{console.InTransit: "send", console.Disputed: "shield-alert"}

// FundOrder is the order in which the parts are shown.
var FundOrder = []console.FundPart{console.InTransit, console.Disputed}

var fundParts = map[console.FundPart]text.Text{
	console.InTransit: {ZH: "在途资金（退款、出款）", EN: "In transit"},
	console.Disputed:  {ZH: "争议保留", EN: "Disputed"},
}
