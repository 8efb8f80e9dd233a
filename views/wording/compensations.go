package wording

import (
	"backstop/internal/base/text"
	"backstop/internal/compensation"
	"backstop/views/ui"
)

func CompensationClass(class string) text.Text { return ui.TextFor(CompensationClasses, class) }

// CompensationClasses are causes, and how tries ended.
var CompensationClasses = map[string]text.Text{
	string(compensation.OK):                  {ZH: "成功", EN: "Succeeded"},
	string(compensation.Over):                {ZH: "已有结果，无需处理", EN: "Already settled"},
	string(compensation.SupplierUnknown):     {ZH: "渠道结果未知", EN: "Unknown answer"},
	string(compensation.SupplierRefused):     {ZH: "渠道拒绝", EN: "Refused by the supplier"},
	string(compensation.SupplierTimeout):     {ZH: "渠道超时", EN: "No answer in time"},
	string(compensation.SupplierSignature):   {ZH: "渠道应答验签失败", EN: "Bad signature"},
	string(compensation.MerchantUnreachable): {ZH: "无法通知商户", EN: "Merchant unreachable"},
	string(compensation.Database):            {ZH: "数据库写入失败", EN: "Database write failed"},
	string(compensation.Payload):             {ZH: "任务内容无法读取", EN: "Unreadable payload"},
	string(compensation.Poison):              {ZH: "执行时程序崩溃", EN: "The program crashed"},
	string(compensation.NotQueryable):        {ZH: "渠道不支持查单", EN: "The supplier cannot be queried"},
}

func CompensationKind(kind string) text.Text { return ui.TextFor(compensationKinds, kind) }

var compensationKinds = map[string]text.Text{
	compensation.Resend:     {ZH: "补发通知", EN: "Resend"},
	compensation.ReplayCall: {ZH: "重试渠道请求", EN: "Repeat call"},
	compensation.Rerun:      {ZH: "重新查单", EN: "Rerun"},
}
