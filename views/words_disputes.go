package views

// Disputes.
var (
	tWhyDispute    = word{"买家拒付 %s（%s），状态：%s", "The buyer disputes %s (%s). Status: %s"}
	tDisputeNo     = word{"争议编号", "Dispute number"}
	tWhyDisputeDue = word{"请在 %s 前向渠道提交证据，逾期按败诉处理。订单的状态不会因此改变。", "Give the supplier evidence before %s, or the dispute is lost. The order does not change because of it."}
)

// disputeReasons are why buyers dispute a payment, in Stripe's words
// (docs.stripe.com/api/disputes/object).
var disputeReasons = map[string]word{
	"bank_cannot_process":       {"银行无法处理", "bank cannot process it"},
	"check_returned":            {"支票退回", "check returned"},
	"credit_not_processed":      {"承诺的退款未到账", "credit not processed"},
	"customer_initiated":        {"客户发起", "customer initiated"},
	"debit_not_authorized":      {"扣款未经授权", "debit not authorized"},
	"duplicate":                 {"重复扣款", "duplicate"},
	"fraudulent":                {"欺诈交易（持卡人否认）", "fraudulent"},
	"general":                   {"其他原因", "general"},
	"incorrect_account_details": {"账户信息有误", "incorrect account details"},
	"insufficient_funds":        {"余额不足", "insufficient funds"},
	"noncompliant":              {"不符合卡组织规则", "noncompliant"},
	"product_not_received":      {"未收到商品", "product not received"},
	"product_unacceptable":      {"商品与描述不符", "product unacceptable"},
	"subscription_canceled":     {"订阅已取消", "subscription canceled"},
	"unrecognized":              {"持卡人不认得该交易", "unrecognized"},
}

// disputeStates are where a dispute stands, in Stripe's words. A warning is an
// inquiry: no money was taken yet.
var disputeStates = map[string]word{
	"needs_response":         {"待举证", "needs response"},
	"under_review":           {"银行审理中", "under review"},
	"won":                    {"胜诉", "won"},
	"lost":                   {"败诉", "lost"},
	"warning_needs_response": {"调单待回复", "inquiry, needs response"},
	"warning_under_review":   {"调单审理中", "inquiry, under review"},
	"warning_closed":         {"调单已结束", "inquiry closed"},
	"prevented":              {"已拦截", "prevented"},
}
