package pages

import "backstop/internal/base/text"

// Texts of exports.
var (
	tCurrency      = text.Text{ZH: "币种", EN: "Currency"}
	tAction        = text.Text{ZH: "操作", EN: "Action"}
	tExportTries   = text.Text{ZH: "尝试次数", EN: "Attempts"}
	tExportTook    = text.Text{ZH: "耗时（毫秒）", EN: "Took (ms)"}
	tExportHour    = text.Text{ZH: "通知次数（近 1 小时）", EN: "Attempts (last hour)"}
	tExportNext    = text.Text{ZH: "下次执行", EN: "Next"}
	tExportMaker   = text.Text{ZH: "提交人", EN: "Proposed by"}
	tExportChecker = text.Text{ZH: "复核人", EN: "Decided by"}
	tExportDecided = text.Text{ZH: "复核时间", EN: "Decided at"}
	tExportAbout   = text.Text{ZH: "对象", EN: "About"}
	tExportLevel   = text.Text{ZH: "数值", EN: "Level"}
	tExportOver    = text.Text{ZH: "恢复时间", EN: "Resolved at"}
	tRefundStatus  = text.Text{ZH: "退款状态", EN: "Refund status"}
	tPaidAt        = text.Text{ZH: "支付时间", EN: "Paid at"}
)
