package verify

import "backstop/internal/base/text"

// Titles say what each invariant demands, by its id.
var Titles = map[string]text.Text{
	"I1": {ZH: "已接收的回调都有其结果", EN: "callbacks that were taken have their outcome"},
	"I2": {ZH: "已支付的订单已通知、将通知或有异常", EN: "paid orders are notified, or will be, or have an exception"},
	"I3": {ZH: "订单最多支付一次，并连同手续费入账", EN: "orders are paid at most once, and booked with their fees"},
	"I4": {ZH: "账目平衡", EN: "the ledger adds up"},
	"I5": {ZH: "库存相符", EN: "stock adds up"},
	"I6": {ZH: "状态只按规则变化", EN: "statuses changed by legal moves only"},
	"I7": {ZH: "通知只有一个成功标记", EN: "notifications have one success mark"},
	"I8": {ZH: "通知的内容都已提交", EN: "notifications are about what is committed"},
	"I12": {
		ZH: "已执行的决定有经办和复核，只执行一次，并在审计中",
		EN: "decisions that ran had their people, ran once, and are in the audit",
	},
	"I13": {ZH: "每个账户的明细之和等于余额", EN: "the lines of each account add up to its balance"},
	"I14": {
		ZH: "渠道付出的款只入账一次，挂账等于异常款",
		EN: "what suppliers were paid is booked once, and suspense is what exceptions hold",
	},
	"I15": {ZH: "资金由复核决定", EN: "money is decided by an approval"},
	"I16": {ZH: "退款、出款和争议的每一步入账一次", EN: "each step of a refund, payout or dispute is booked once"},
	"I17": {
		ZH: "退款和争议不超过其支付，出款的扣款等于入款",
		EN: "refunds and disputes never exceed their payment, and payouts are debited for what was credited",
	},
	"audit": {ZH: "审计链完整", EN: "the chain of the audit is unbroken"},
}
