package wording

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"backstop/internal/approval"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/fund/payout"
	"backstop/views/ui"
)

// decisionText is an action in words.
type decisionText struct {
	name   text.Text // as its button says it
	Effect text.Text // what happens once it is carried out
}

// Decisions are all actions that people propose, by the names of the contract.
var Decisions = map[string]decisionText{
	"accept_late": {
		text.Text{ZH: "确认入账（关单后到账）", EN: "Accept the late payment"},
		text.Text{
			ZH: "订单变为已支付，款项记入订单，重新扣减库存，并通知商户。库存不足的部分标为缺货。",
			EN: "The order becomes paid, its money is booked, its goods are deducted from stock again, and the merchant is notified. Missing goods are marked as short.",
		},
	},
	"accept_amount": {
		text.Text{ZH: "按实付金额入账", EN: "Accept the amount paid"},
		text.Text{
			ZH: "订单按实付金额变为已支付，账本记实付金额，通知中同时给出应付和实付。订单已结束的，须另外确认：关单后到账也一并接受，库存重新扣减。",
			EN: "The order becomes paid with the amount that arrived. The ledger has that amount, the notification has both. If the order has ended, you also have to accept that the payment came late; its goods are deducted from stock again.",
		},
	},
	"attach": {
		text.Text{ZH: "关联到订单", EN: "Attach to an order"},
		text.Text{
			ZH: "留存的渠道消息按所填订单重新确认：只有单号可以不同，金额、币种、收款账户都必须相符。",
			EN: "The stored message is confirmed for the order you enter. Only its number may differ; amount, currency and account must match.",
		},
	},
	"keep_surplus": {
		text.Text{ZH: "归商户", EN: "Keep it for the merchant"},
		text.Text{ZH: "款项从挂账转入商户账户。", EN: "The money moves from suspense to the merchant's account."},
	},
	"owe_back": {
		text.Text{ZH: "退还买家", EN: "Refund the buyer"},
		text.Text{
			ZH: "向渠道发起原路退款，退款完成前款项保持冻结；渠道拒绝时款项回到挂账，异常重新打开。",
			EN: "The payment is refunded through its supplier, and the money stays held until the refund ends. If the supplier refuses, the money returns to suspense and the exception reopens.",
		},
	},
	"resolved_elsewhere": {
		text.Text{ZH: "已在别处处理", EN: "Resolved elsewhere"},
		text.Text{
			ZH: "异常结束。挂账的款项转出：已退款的记回渠道，已入账的记给商户。之后渠道再发的退款通知视为重复。",
			EN: "The exception ends. Held money leaves suspense: to the supplier if it was refunded, to the merchant if it was kept. A later refund message from the supplier counts as a repeat.",
		},
	},
	"refund.resolve": {
		text.Text{ZH: "人工确定退款结果", EN: "Resolve the refund"},
		text.Text{
			ZH: "退款按所选结果结束：成功的，冻结款项记给渠道；失败的，款项退回原处。通知商户。渠道的查询结果不得与之矛盾。",
			EN: "The refund ends as chosen. If it succeeded, its money goes to the supplier; if it failed, the money returns to where it came from. The merchant is notified. The supplier's answer must not contradict this.",
		},
	},
	"ignore": {
		text.Text{ZH: "忽略", EN: "Ignore"},
		text.Text{ZH: "异常结束；再次出现时不重新打开，也不告警。", EN: "The exception ends. If it is reported again, it stays closed and raises no alert."},
	},
	"mark_paid": {
		text.Text{ZH: "人工置为已支付", EN: "Mark as paid"},
		text.Text{
			ZH: "订单变为已支付，款项记入账本，并通知商户。渠道必须确认已支付，或无法查询。",
			EN: "The order becomes paid, the money is booked and the merchant is notified. The supplier must confirm the payment, or be impossible to query.",
		},
	},
	"force_closed": {
		text.Text{ZH: "强制关单", EN: "Force closed"},
		text.Text{
			ZH: "订单变为已关闭，释放库存，并通知商户。渠道查询结果不得为已支付或支付中。",
			EN: "The order becomes closed, its stock is released and the merchant is notified. Not possible if the supplier answers that it is paid or being paid.",
		},
	},
	"force_failed": {
		text.Text{ZH: "强制置为失败", EN: "Force failed"},
		text.Text{
			ZH: "订单变为失败，释放库存，并通知商户。渠道查询结果不得为已支付或支付中。",
			EN: "The order becomes failed, its stock is released and the merchant is notified. Not possible if the supplier answers that it is paid or being paid.",
		},
	},
	"refund": {
		text.Refund,
		text.Text{
			ZH: "款项立即从商户余额冻结；复核通过后向渠道发起原路退款，驳回或逾期时退回原账户。原因会一并发给渠道和商户。",
			EN: "The money is held from the merchant's balance at once. If approved, the refund is sent to the supplier; if rejected, or not decided in time, the money goes back. The supplier and the merchant get the reason.",
		},
	},
	"payout": {
		text.Payout,
		text.Text{
			ZH: "从商户余额扣款，并向渠道发起出款；驳回或逾期时不扣款。",
			EN: "The merchant's account is debited, and the supplier makes the payout. If the proposal is rejected, or not decided in time, nothing is debited.",
		},
	},
	"payout.resolve": {
		text.Text{ZH: "裁定出款结果", EN: "Decide the payout's result"},
		text.Text{
			ZH: "按渠道对账单认定：已出款则记为成功，未出款则冲正，款项退回商户。",
			EN: "Decided by the supplier's statement: if it was paid, the payout succeeds; if not, it is reversed and the money returns to the merchant.",
		},
	},
	"adjust": {
		text.Text{ZH: "调账", EN: "Adjustment"},
		text.Text{ZH: "在两个账户之间记一笔账，商户账户可能因此为负。", EN: "One entry is booked between the two accounts. It may take a merchant below zero."},
	},
	"freeze": {
		text.Text{ZH: "冻结资金", EN: "Freeze money"},
		text.Text{
			ZH: "款项转入冻结账户；商户照常收款和退款，但不能出款。",
			EN: "The money moves to the frozen account. The merchant still receives payments and makes refunds, but its payouts are refused.",
		},
	},
	"unfreeze": {
		text.Text{ZH: "解冻资金", EN: "Unfreeze money"},
		text.Text{
			ZH: "款项转回商户账户；全部解冻后商户可以出款。",
			EN: "The money moves back to the merchant's account. Once nothing is frozen, the merchant can request payouts again.",
		},
	},
	"batch": {
		text.Text{ZH: "批量操作", EN: "Batch"},
		text.Text{ZH: "按计划在后台执行，逐条重新判断。", EN: "The server carries out the plan and checks each row again."},
	},
	"settings.change": {
		text.Text{ZH: "变更配置", EN: "Change a setting"},
		text.Text{ZH: "应用下列变更，只改这一项。", EN: "Exactly this change is applied."},
	},
}

// Action names an action.
func Action(action string) text.Text {
	if d, ok := Decisions[action]; ok {
		return d.name
	}
	return text.Text{ZH: action, EN: action}
}

// ProposalFacts are the parameters of a proposal in words, those that the page has a word
// for first.
func ProposalFacts(p *ui.Page, raw json.RawMessage, currency string) (all []ui.Fact) {
	var values map[string]any
	read := json.NewDecoder(strings.NewReader(string(raw)))
	read.UseNumber() // amounts are exact
	if read.Decode(&values) != nil {
		return nil
	}
	add := func(name string) {
		if changes, ok := values[name].([]any); ok && name == "changes" {
			all = append(all, changeFacts(changes)...)
			delete(values, name)
			return
		}
		if value, ok := values[name]; ok && value != nil && value != "" {
			all = append(all, ui.TextFact(ui.TextFor(ParamWords, name), "wrap", paramText(p, name, value, currency)))
		}
		delete(values, name)
	}
	for _, name := range paramOrder {
		add(name)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		add(name)
	}
	return all
}

// paramText is one value of a parameter.
func paramText(p *ui.Page, name string, value any, currency string) string {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil && name == "amount" {
			return ui.MoneyText(n, currency)
		} else if err == nil && name == "rows" {
			return ui.Count(n)
		}
		return v.String()
	case bool:
		if v {
			return p.T(text.Yes)
		}
		return p.T(text.No)
	case string:
		if w, ok := ChoiceWords[name][v]; ok {
			return p.T(w)
		}
		if w, ok := BatchActions[v]; ok && name == "action" {
			return p.T(w[0])
		}
		return v
	case []any:
		if name == "sums" {
			return sumsText(v)
		}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(raw)
}

// sumsText is the money of a batch by currency, each with its rows.
func sumsText(sums []any) string {
	var all []string
	for _, x := range sums {
		one, _ := x.(map[string]any)
		amount, _ := one["amount"].(json.Number)
		currency, _ := one["currency"].(string)
		if minor, err := amount.Int64(); err == nil {
			all = append(all, fmt.Sprintf("%s (%v)", ui.MoneyText(minor, currency), one["rows"]))
		}
	}
	return strings.Join(all, " · ")
}

// changeFacts are the fields that a change of settings is about.
func changeFacts(changes []any) (all []ui.Fact) {
	for _, x := range changes {
		c, _ := x.(map[string]any)
		field := fmt.Sprint(c["field"])
		all = append(all, ui.TextFact(text.Text{ZH: field, EN: field}, "wrap", fmt.Sprintf("%v → %v", c["old"], c["new"])))
	}
	return all
}

// ProposalEvidence is the evidence among the parameters of a proposal; "" = there is none.
func ProposalEvidence(raw json.RawMessage) string {
	var params struct {
		Evidence string `json:"evidence"`
	}
	_ = json.Unmarshal(raw, &params) // what cannot be read has none
	return params.Evidence
}

// IsUnverified reports whether a proposal is made without the supplier's word.
func IsUnverified(raw json.RawMessage) bool {
	var params struct {
		Unverified bool `json:"unverified"`
	}
	return json.Unmarshal(raw, &params) == nil && params.Unverified
}

var paramOrder = []string{
	"action", "credit", "rows", "sums", "filter", "changes", "order_no", "trade_no", "amount", "late", "outcome",
	"reference", "evidence", "unverified",
}

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
	"unverified": tUnverifiedHow,
	"late":       {ZH: "订单已结束：关单后到账也一并接受", EN: "The order has ended: also accept that the payment came late"},
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
		string(payout.Success): {ZH: "已出款", EN: "It was paid"},
		string(payout.Failure): {ZH: "未出款", EN: "It was not paid"},
	},
}

// MakerAndChecker are who proposed and who decided, in one line.
func MakerAndChecker(p *ui.Page, a *console.Approval) string {
	maker := Maker(p, a)
	switch {
	case a.SinglePerson:
		return maker + " · " + p.T(text.SinglePerson)
	case a.CheckerName != "":
		return maker + " → " + a.CheckerName
	}
	return maker
}

// Maker is who proposed: an operator by name alone, a merchant by its kind too.
func Maker(p *ui.Page, a *console.Approval) string {
	switch {
	case a.MakerName == approval.ByCommand:
		return p.T(text.ByCommand)
	case strings.Contains(a.MakerName, ":"): // no operator has one in his name
		return Actor(p, a.MakerName)
	}
	return a.MakerName
}

// Texts of decisions.
var (
	tUnverifiedHow = text.Text{
		ZH: "渠道无法查询或结果不明时仍然提出（只有财务主管可以复核）",
		EN: "Propose although the supplier cannot be queried or its answer is unclear (only a finance lead may approve)",
	}
)

// BatchActions are the actions in words: as a title, and on the button that starts so many.
var BatchActions = map[string][2]text.Text{
	"resend":  {{ZH: "批量补单", EN: "Send notifications again"}, {ZH: "补发 %s 条", EN: "Send %s again"}},
	"query":   {{ZH: "批量查单", EN: "Query orders"}, {ZH: "查询 %s 笔", EN: "Query %s"}},
	"rerun":   {{ZH: "批量重新查单", EN: "Rerun orders"}, {ZH: "重新查单 %s 笔", EN: "Rerun %s"}},
	"redrive": {{ZH: "批量重新执行", EN: "Run again"}, {ZH: "重新执行 %s 条", EN: "Run %s again"}},
	"close":   {{ZH: "批量关单", EN: "Close orders"}, {ZH: "关闭 %s 笔", EN: "Close %s"}},
}

// MaxRuns is how often one approval may run.
const MaxRuns = 3
