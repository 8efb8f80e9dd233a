package ui

import (
	"backstop/internal/base/text"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
)

// SaidTexts are the statuses of calls to suppliers.
var SaidTexts = map[string]text.Text{
	string(supplier.AnswerPaid):       {ZH: "已支付", EN: "paid"},
	string(supplier.AnswerFailed):     {ZH: "已失败", EN: "failed"},
	string(supplier.AnswerClosed):     {ZH: "已关闭", EN: "closed"},
	string(supplier.AnswerPaying):     {ZH: "未支付", EN: "not paid yet"},
	string(supplier.AnswerNotFound):   {ZH: "渠道无此单", EN: "no such payment"},
	string(supplier.AnswerUnknown):    {ZH: "结果不明", EN: "unclear"},
	string(supplier.Accepted):         {ZH: "已受理", EN: "accepted"},
	string(supplier.StartRefused):     {ZH: "被拒绝", EN: "refused"},
	suppliercall.Refunded:             {ZH: "已退款", EN: "refunded"},
	string(supplier.RefundSucceeded):  {ZH: "成功", EN: "succeeded"},
	string(supplier.RefundProcessing): {ZH: "处理中", EN: "in progress"},
	string(supplier.RefundReturned):   {ZH: "被退回", EN: "returned"},
	string(supplier.RefundAbnormal):   {ZH: "退款异常", EN: "stuck at the supplier"},
	string(supplier.RefundShort):      {ZH: "渠道账户余额不足", EN: "short of funds"},
	"listed":                          {ZH: "已列出退款", EN: "refunds listed"},
	suppliercall.NotMade:              {ZH: "没有发出", EN: "not made"},
}
