package approval

import "backstop/internal/base/text"

// Words are a decision in words.
type Words struct {
	Kind   string    // name of the kind, by the contract
	Name   text.Text // as its button says it
	Effect text.Text // what happens once it is carried out
}

// Decisions are all decisions in words, in the order in which a filter offers them.
var Decisions = []Words{
	{
		"accept_late",
		text.Text{ZH: "确认入账（关单后到账）", EN: "Accept the late payment"},
		text.Text{
			ZH: "订单变为已支付，款项记入订单，重新扣减库存，并通知商户。库存不足的部分标为缺货。",
			EN: "The order becomes paid, its money is booked, its goods are deducted from stock again, and the merchant is notified. Missing goods are marked as short.",
		},
	},
	{
		"accept_amount",
		text.Text{ZH: "按实付金额入账", EN: "Accept the amount paid"},
		text.Text{
			ZH: "订单按实付金额变为已支付，账本记实付金额，通知中同时给出应付和实付。订单已结束的，须另外确认：关单后到账也一并接受，库存重新扣减。",
			EN: "The order becomes paid with the amount that arrived. The ledger has that amount, the notification has both. If the order has ended, you also have to accept that the payment came late; its goods are deducted from stock again.",
		},
	},
	{
		"attach",
		text.Text{ZH: "关联到订单", EN: "Attach to an order"},
		text.Text{
			ZH: "留存的渠道消息按所填订单重新确认：只有单号可以不同，金额、币种、收款账户都必须相符。",
			EN: "The stored message is confirmed for the order you enter. Only its number may differ; amount, currency and account must match.",
		},
	},
	{
		"keep_surplus",
		text.Text{ZH: "归商户", EN: "Keep it for the merchant"},
		text.Text{ZH: "款项从挂账转入商户账户。", EN: "The money moves from suspense to the merchant's account."},
	},
	{
		"owe_back",
		text.Text{ZH: "退还买家", EN: "Refund the buyer"},
		text.Text{
			ZH: "向渠道发起原路退款，退款完成前款项保持冻结；渠道拒绝时款项回到挂账，异常重新打开。",
			EN: "The payment is refunded through its supplier, and the money stays held until the refund ends. If the supplier refuses, the money returns to suspense and the exception reopens.",
		},
	},
	{
		"resolved_elsewhere",
		text.Text{ZH: "已在别处处理", EN: "Resolved elsewhere"},
		text.Text{
			ZH: "异常结束。挂账的款项转出：已退款的记回渠道，已入账的记给商户。之后渠道再发的退款通知视为重复。",
			EN: "The exception ends. Held money leaves suspense: to the supplier if it was refunded, to the merchant if it was kept. A later refund message from the supplier counts as a repeat.",
		},
	},
	{
		"ignore",
		text.Text{ZH: "忽略", EN: "Ignore"},
		text.Text{ZH: "异常结束；再次出现时不重新打开，也不告警。", EN: "The exception ends. If it is reported again, it stays closed and raises no alert."},
	},
	{
		"refund.resolve",
		text.Text{ZH: "人工确定退款结果", EN: "Resolve the refund"},
		text.Text{
			ZH: "退款按所选结果结束：成功的，冻结款项记给渠道；失败的，款项退回原处。通知商户。渠道的查询结果不得与之矛盾。",
			EN: "The refund ends as chosen. If it succeeded, its money goes to the supplier; if it failed, the money returns to where it came from. The merchant is notified. The supplier's answer must not contradict this.",
		},
	},
	{
		"mark_paid",
		text.Text{ZH: "人工置为已支付", EN: "Mark as paid"},
		text.Text{
			ZH: "订单变为已支付，款项记入账本，并通知商户。渠道必须确认已支付，或无法查询。",
			EN: "The order becomes paid, the money is booked and the merchant is notified. The supplier must confirm the payment, or be impossible to query.",
		},
	},
	{
		"force_closed",
		text.Text{ZH: "强制关单", EN: "Force closed"},
		text.Text{
			ZH: "订单变为已关闭，释放库存，并通知商户。渠道查询结果不得为已支付或支付中。",
			EN: "The order becomes closed, its stock is released and the merchant is notified. Not possible if the supplier answers that it is paid or being paid.",
		},
	},
	{
		"force_failed",
		text.Text{ZH: "强制置为失败", EN: "Force failed"},
		text.Text{
			ZH: "订单变为失败，释放库存，并通知商户。渠道查询结果不得为已支付或支付中。",
			EN: "The order becomes failed, its stock is released and the merchant is notified. Not possible if the supplier answers that it is paid or being paid.",
		},
	},
	{
		"refund",
		text.Refund,
		text.Text{
			ZH: "款项立即从商户余额冻结；复核通过后向渠道发起原路退款，驳回或逾期时退回原账户。原因会一并发给渠道和商户。",
			EN: "The money is held from the merchant's balance at once. If approved, the refund is sent to the supplier; if rejected, or not decided in time, the money goes back. The supplier and the merchant get the reason.",
		},
	},
	{
		"payout",
		text.Payout,
		text.Text{
			ZH: "从商户余额扣款，并向渠道发起出款；驳回或逾期时不扣款。",
			EN: "The merchant's account is debited, and the supplier makes the payout. If the proposal is rejected, or not decided in time, nothing is debited.",
		},
	},
	{
		"payout.resolve",
		text.Text{ZH: "裁定出款结果", EN: "Decide the payout's result"},
		text.Text{
			ZH: "按渠道对账单认定：已出款则记为成功，未出款则冲正，款项退回商户。",
			EN: "Decided by the supplier's statement: if it was paid, the payout succeeds; if not, it is reversed and the money returns to the merchant.",
		},
	},
	{
		"adjust",
		text.Text{ZH: "调账", EN: "Adjustment"},
		text.Text{ZH: "在两个账户之间记一笔账，商户账户可能因此为负。", EN: "One entry is booked between the two accounts. It may take a merchant below zero."},
	},
	{
		"freeze",
		text.Text{ZH: "冻结资金", EN: "Freeze money"},
		text.Text{
			ZH: "款项转入冻结账户；商户照常收款和退款，但不能出款。",
			EN: "The money moves to the frozen account. The merchant still receives payments and makes refunds, but its payouts are refused.",
		},
	},
	{
		"unfreeze",
		text.Text{ZH: "解冻资金", EN: "Unfreeze money"},
		text.Text{
			ZH: "款项转回商户账户；全部解冻后商户可以出款。",
			EN: "The money moves back to the merchant's account. Once nothing is frozen, the merchant can request payouts again.",
		},
	},
	{
		"batch",
		text.Text{ZH: "批量操作", EN: "Batch"},
		text.Text{ZH: "按计划在后台执行，逐条重新判断。", EN: "The server carries out the plan and checks each row again."},
	},
	{
		"settings.change",
		text.Text{ZH: "变更配置", EN: "Change a setting"},
		text.Text{ZH: "应用下列变更，只改这一项。", EN: "Exactly this change is applied."},
	},
}

// ParamWords are the parameters of decisions.
var ParamWords = map[string]text.Text{
	"order_no":   text.OrderNo,
	"trade_no":   text.TradeNo,
	"amount":     text.Amount,
	"outcome":    text.End,
	"credit":     {ZH: "对账单显示", EN: "The statement says"},
	"reference":  text.Proof,
	"evidence":   text.Evidence,
	"unverified": {ZH: "未经渠道证实", EN: "Not verified by the supplier"},
	"late":       {ZH: "关单后到账也接受", EN: "Accepted although late"},
	"action":     text.Action,
	"rows":       {ZH: "行数", EN: "Rows"},
	"sums":       {ZH: "金额（行数）", EN: "Money (rows)"},
	"filter":     {ZH: "筛选", EN: "Filter"},
	"object":     text.Object,
	"below":      {ZH: "编号上限", EN: "Highest id"},
	"digest":     {ZH: "新值摘要", EN: "Digest of the new values"},
}

// FlagWords are what the boxes of a form say.
var FlagWords = map[string]text.Text{
	"unverified": {
		ZH: "渠道无法查询或结果不明时仍然提出（只有财务主管可以复核）",
		EN: "Propose although the supplier cannot be queried or its answer is unclear (only a finance lead may approve)",
	},
	"late": {ZH: "订单已结束：关单后到账也一并接受", EN: "The order has ended: also accept that the payment came late"},
}

// ChoiceWords are the choices of parameters.
var ChoiceWords = map[string]map[string]text.Text{
	"outcome": { // of a matter that ended elsewhere, and of a refund
		"refunded":  {ZH: "已退款给买家", EN: "Refunded to the buyer"},
		"kept":      {ZH: "已给商户", EN: "Kept by the merchant"},
		"succeeded": {ZH: "退款已成功", EN: "The refund succeeded"},
		"failed":    {ZH: "退款未成功", EN: "The refund was not made"},
	},
	"credit": { // what a supplier's statement says of a payout
		"success": {ZH: "已出款", EN: "It was paid"},
		"failed":  {ZH: "未出款", EN: "It was not paid"},
	},
}
