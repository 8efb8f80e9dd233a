package wording

import (
	"encoding/json"
	"time"

	"backstop/internal/base/text"
	"backstop/internal/exception"
	"backstop/views/ui"
)

// disputeFacts are what a dispute's detail says, as it is stored.
type disputeFacts struct {
	Reason string `json:"reason"`
	Status string `json:"status"`
	DueBy  string `json:"due_by"`
}

// due is when the time for evidence ends (Unix µs), 0 where none is wanted.
func (f disputeFacts) due() int64 {
	at, err := time.Parse(time.RFC3339, f.DueBy)
	if err != nil {
		return 0
	}
	return at.UnixMicro()
}

// wantsEvidence says whether the supplier waits for us.
func (f disputeFacts) wantsEvidence() bool {
	return f.due() != 0 && (f.Status == "needs_response" || f.Status == "warning_needs_response")
}

// DisputeText says what a buyer demands, and until when it can be answered.
func DisputeText(p *ui.Page, x *exception.Item) (what, then string) {
	var f disputeFacts
	_ = json.Unmarshal(x.Detail, &f) // what cannot be read has no words
	demanded := p.T(text.None)
	if x.Amount != 0 {
		demanded = ui.MoneyText(x.Amount, x.Currency)
	}
	what = p.T(tWhyDispute, demanded, p.T(ui.TextFor(DisputeReasons, f.Reason)), p.T(ui.TextFor(disputeStates, f.Status)))
	if f.wantsEvidence() {
		return what, p.T(tWhyDisputeDue, p.Full(f.due()))
	}
	return what, p.T(text.WhyExceptionHow)
}

// disputeFact is one fact of a dispute in the person's language.
func disputeFact(p *ui.Page, name, value string) (text string, ok bool) {
	switch name {
	case "reason":
		return p.T(ui.TextFor(DisputeReasons, value)), true
	case "status":
		return p.T(ui.TextFor(disputeStates, value)), true
	case "due_by":
		if at := (disputeFacts{DueBy: value}).due(); at != 0 {
			return p.Full(at), true
		}
	}
	return "", false
}

// Texts of this page.
var (
	tWhyDispute    = text.Text{ZH: "买家拒付 %s（%s），状态：%s", EN: "The buyer disputes %s (%s). Status: %s"}
	tWhyDisputeDue = text.Text{
		ZH: "请在 %s 前向渠道提交证据，逾期按败诉处理。订单的状态不会因此改变。",
		EN: "Send evidence to the supplier before %s, or the dispute is lost. The order does not change.",
	}
)

// DisputeReasons are why buyers dispute a payment, in Stripe's words
// (docs.stripe.com/api/disputes/object).
var DisputeReasons = map[string]text.Text{
	"bank_cannot_process":       {ZH: "银行无法处理", EN: "bank cannot process it"},
	"check_returned":            {ZH: "支票退回", EN: "check returned"},
	"credit_not_processed":      {ZH: "承诺的退款未到账", EN: "credit not processed"},
	"customer_initiated":        {ZH: "客户发起", EN: "customer initiated"},
	"debit_not_authorized":      {ZH: "扣款未经授权", EN: "debit not authorized"},
	"duplicate":                 {ZH: "重复扣款", EN: "duplicate"},
	"fraudulent":                {ZH: "欺诈交易（持卡人否认）", EN: "fraudulent"},
	"general":                   {ZH: "其他原因", EN: "general"},
	"incorrect_account_details": {ZH: "账户信息有误", EN: "incorrect account details"},
	"insufficient_funds":        {ZH: "余额不足", EN: "insufficient funds"},
	"noncompliant":              {ZH: "不符合卡组织规则", EN: "noncompliant"},
	"product_not_received":      {ZH: "未收到商品", EN: "product not received"},
	"product_unacceptable":      {ZH: "商品与描述不符", EN: "product unacceptable"},
	"subscription_canceled":     {ZH: "订阅已取消", EN: "subscription canceled"},
	"unrecognized":              {ZH: "持卡人不认得该交易", EN: "unrecognized"},
}

// disputeStates are the states of a dispute, in Stripe's words. A warning is an
// inquiry: no money was taken yet.
var disputeStates = map[string]text.Text{
	"needs_response":         {ZH: "待举证", EN: "needs response"},
	"under_review":           {ZH: "银行审理中", EN: "under review"},
	"won":                    {ZH: "胜诉", EN: "won"},
	"lost":                   {ZH: "败诉", EN: "lost"},
	"warning_needs_response": {ZH: "调单待回复", EN: "inquiry, needs response"},
	"warning_under_review":   {ZH: "调单审理中", EN: "inquiry, under review"},
	"warning_closed":         {ZH: "调单已结束", EN: "inquiry closed"},
	"prevented":              {ZH: "已拦截", EN: "prevented"},
}
