package funds

import (
	"slices"
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/fund/booking"
	"backstop/internal/fund/refund"
	"backstop/internal/ledger/fact"
	"backstop/internal/suppliercall"
	"backstop/views/link"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// RefundTexts are the texts of the list of refunds.
var RefundTexts = ui.ListTexts{
	Title: text.Refunds, Icon: "undo-2", None: tRefundsNone, NoneHow: tRefundsNoneHow,
	Fields: map[string]ui.Field{
		"refund_no": {Label: tRefundNo},
		"order_no":  {Label: text.OrderNo},
		"state":     fundState(ui.RefundStates),
	},
}

type refundRow = console.Refund

// RefundColumns are those of the list of refunds.
var RefundColumns = []ui.Column[refundRow]{
	ui.TimeCol("created", text.Created, func(r refundRow) *int64 { return &r.CreatedAt }),
	ui.IDCol("refund_no", tRefundNo, func(r refundRow) (string, string) { return r.RefundNo, string(link.Refund(r.RefundNo)) }),
	ui.TextCol("out_refund_no", tOutRefundNo, func(r refundRow) string { return r.OutRefundNo }).ExportOnly(),
	ui.IDCol("no", text.OrderNo, func(r refundRow) (string, string) { return r.OrderNo, string(link.Order(r.OrderNo)) }),
	ui.MerchantCol(func(r refundRow) string { return r.Merchant }),
	ui.SupplierCol(func(r refundRow) string { return r.Supplier }).Optional(),
	ui.TextCol("supplier_refund_no", tSupplierRefundNo, func(r refundRow) string { return r.SupplierRefundNo }).ExportOnly(),
	ui.TextCol("currency", text.Currency, func(r refundRow) string { return r.Currency }).ExportOnly(),
	ui.MoneyCol("amount", text.Amount, func(r refundRow) (int64, string) { return r.Amount, r.Currency }),
	ui.MoneyCol("fee_returned", text.FeeReturned, func(r refundRow) (int64, string) { return r.FeeReturned, r.Currency }).ExportOnly(),
	ui.StateCol("status", text.State, func(r refundRow) ui.State { return ui.StateOf(ui.RefundStates, r.Status) }).With(refundState),
	ui.TimeCol("finished", tFinished, func(r refundRow) *int64 { return r.FinishedAt }),
	ui.NoteCol("reason", text.Reason, func(_ *ui.Page, r refundRow) string { return refundReason(r) }).Optional().PageOnly(),
	ui.TextCol("reason", text.Reason, func(r refundRow) string { return r.Reason }).ExportOnly(),
}

// RefundData is what the page of one refund shows.
type RefundData struct {
	*console.RefundDetail
}

// RefundPage is one refund: how it stands, its steps, and everything behind them.
func RefundPage(p *ui.Page, d RefundData) templ.Component {
	says, next := d.sentence(p)
	return ui.DetailPage(p, ui.Detail{
		List: ui.Link{Href: "/refunds", Label: text.Refunds}, No: d.RefundNo,
		State: ui.StateOf(ui.RefundStates, d.Status), Tag: adoptedTag(p, d.Refund),
		About: []ui.Fact{ui.MoneyFact(text.Text{}, d.Amount, d.Currency), ui.TimeFact(text.Text{}, &d.CreatedAt)},
		Says:  says, Next: []string{next}, Until: nextTry(d.Behind), Open: openExceptions(d.Behind),
		Main: []templ.Component{
			fundSteps(p, tRefundSteps, d.steps()), callsPanel(p, d.Calls), entriesPanel(p, d.Entries),
			fundChanges(p, d.History, ui.RefundStates, nil),
		},
		Side: []templ.Component{
			ui.Facts(
				p, "about-title", tRefundAbout,
				ui.IDFact(text.Order, d.OrderNo, string(link.Order(d.OrderNo))),
				ui.MoneyFact(text.Amount, d.Amount, d.Currency),
				ui.MoneyFact(tRefundOfTrade, d.TradeAmount, d.Currency),
				ui.MoneyFact(text.FeeReturned, d.FeeReturned, d.Currency).If(d.FeeReturned != 0),
				ui.MoneyFact(tCostReturned, d.CostReturned, d.Currency).If(d.CostReturned != 0),
				ui.MerchantFact(p, d.Merchant),
				ui.SupplierFact(p, d.Supplier),
				ui.TimeFact(text.Created, &d.CreatedAt),
				ui.TimeFact(tFinished, d.FinishedAt),
				ui.TextFact(text.Reason, "wrap", refundReason(d.Refund)),
			),
			ui.Facts(
				p, "ids", text.IDs,
				ui.IDFact(tOutRefundNo, d.OutRefundNo, ""),
				ui.IDFact(tSupplierRefundNo, d.SupplierRefundNo, ""),
				ui.IDFact(text.TradeNo, d.TradeNo, ""),
				compensationFact(p, d.Item),
				ui.TextFact(text.Status, "", p.T(text.VersionN, d.Version)).Technical(),
			),
		},
	})
}

func refundState(p *ui.Page, r refundRow) templ.Component {
	return templ.Join(ui.Pill(p, ui.StateOf(ui.RefundStates, r.Status)), adoptedTag(p, r))
}

func adoptedTag(p *ui.Page, r refundRow) templ.Component {
	return ui.If(r.Adopted != "", ui.Styled("tag", p.T(tAdopted)))
}

// sent returns the first call that sent the refund; nil = none is known.
func (d RefundData) sent() *console.Call {
	if i := slices.IndexFunc(d.Calls, func(c console.Call) bool { return c.Op == suppliercall.Refund }); i >= 0 {
		return &d.Calls[i]
	}
	return nil
}

// called returns the call that a change came from; nil = it came from none.
func (d RefundData) called(h *booking.Change) *console.Call {
	if h == nil || h.SourceKind != booking.SourceCall {
		return nil
	}
	if i := slices.IndexFunc(d.Calls, func(c console.Call) bool { return c.ID == h.SourceID }); i >= 0 {
		return &d.Calls[i]
	}
	return nil
}

// steps are the steps of the refund, each from its history, its entries and its calls.
func (d RefundData) steps() []fundStep {
	if d.Adopted != "" {
		return append([]fundStep{d.step(text.Text{ZH: "在渠道后台退款", EN: "Made at the supplier"}, "undo-2", done, became(d.History, refund.Succeeded),
			fact.RefundAdopted)}, d.returned(), notifiedStep(d.Behind, d.MerchantID != 0 && d.Status != refund.Cancelled))
	}
	held := d.step(text.Text{ZH: "冻结退款资金", EN: "Money held"}, "lock", done, nil, fact.RefundHeld)
	if len(d.History) > 0 {
		held.at, held.who = d.History[0].CreatedAt, d.History[0].Actor
	}
	return []fundStep{held, d.approval(), d.submission(), d.outcome(), d.returned(), notifiedStep(d.Behind, d.MerchantID != 0 &&
		d.Status != refund.Cancelled)}
}

// step is one step of the refund as a change made it.
func (d RefundData) step(name text.Text, icon string, state ui.State, h *booking.Change, facts ...fact.Name) fundStep {
	s := fundStep{name: name, icon: icon, state: state, refs: entriesOf(d.Behind, facts...), call: d.called(h)}
	if h != nil {
		s.at, s.who, s.note = h.CreatedAt, h.Actor, h.Detail
	}
	return s
}

func (d RefundData) approval() fundStep {
	name := text.Text{ZH: "复核", EN: "Approval"}
	s := d.step(name, "users", done, became(d.History, refund.Approved))
	switch {
	case d.ByRule:
		s.state, s.who = withinLimits, ""
	case d.Status == refund.Requested:
		s.state = ui.StateOf(ui.RefundStates, d.Status)
	case d.Status == refund.Rejected:
		s = d.step(name, "users", ui.StateOf(ui.RefundStates, d.Status), became(d.History, refund.Rejected))
	case d.Status == refund.Cancelled:
		s = d.step(name, "users", ui.StateOf(ui.RefundStates, d.Status), became(d.History, refund.Cancelled))
	}
	s.approval = d.Approval
	return s
}

func (d RefundData) submission() fundStep {
	s := d.step(text.Text{ZH: "提交渠道", EN: "Sent to the supplier"}, "send", done, became(d.History, refund.Submitted))
	s.call = d.sent()
	switch {
	case d.FirstCallAt != nil:
		s.at = *d.FirstCallAt
	case refund.Moves.Of(d.Status).Open:
		s.state = pending
	default:
		s.state = notNeeded
	}
	return s
}

// outcome is what the supplier made of the refund.
func (d RefundData) outcome() fundStep {
	name := text.Text{ZH: "渠道结果", EN: "Supplier's result"}
	switch d.Status {
	case refund.Succeeded, refund.Returned:
		return d.step(name, "circle-check", ui.StateOf(ui.RefundStates, refund.Succeeded), became(d.History, refund.Succeeded),
			fact.RefundDone,
			fact.RefundFee, fact.RefundCost)
	case refund.Failed:
		return d.step(name, "circle-x", ui.StateOf(ui.RefundStates, d.Status), became(d.History, refund.Failed))
	case refund.Unknown, refund.Submitted:
		s := d.step(name, "search", ui.StateOf(ui.RefundStates, d.Status), became(d.History, d.Status))
		if d.Item != nil && d.Item.NextAt != nil {
			s.next = *d.Item.NextAt
		}
		return s
	case refund.Rejected, refund.Cancelled:
		return fundStep{name: name, icon: "circle-check", state: notNeeded}
	}
	return fundStep{name: name, icon: "circle-check", state: pending}
}

// returned is the way back of the money: after a failure, or after the supplier sent it back.
func (d RefundData) returned() fundStep {
	name := text.Text{ZH: "冲正：退回原账户", EN: "Reversal: money back"}
	switch d.Status {
	case refund.Failed, refund.Rejected, refund.Cancelled:
		return d.step(name, "undo-2", done, became(d.History, d.Status), fact.RefundBack)
	case refund.Returned:
		return d.step(name, "undo-2", ui.StateOf(ui.RefundStates, d.Status), became(d.History, d.Status), fact.RefundReturned,
			fact.RefundBack,
			fact.RefundFeeAgain)
	}
	if refund.Moves.Of(d.Status).Open {
		return fundStep{name: name, icon: "undo-2", state: ifItFails}
	}
	return fundStep{name: name, icon: "undo-2", state: notNeeded}
}

// sentence says how the refund stands, and what happens next.
func (d RefundData) sentence(p *ui.Page) (what, then string) {
	w := refundSentences[d.Status]
	if d.Status == refund.Succeeded && d.Adopted != "" {
		w = adoptedSentence
	}
	then = p.T(w[1])
	if d.Item != nil && d.Item.NextAt != nil && (d.Status == refund.Submitted || d.Status == refund.Unknown) {
		then += p.T(tRefundNext, p.Short(*d.Item.NextAt), p.Away(*d.Item.NextAt))
	}
	return p.T(w[0]), then
}

var refundSentences = map[refund.Status][2]text.Text{
	refund.Requested: {
		{ZH: "等待第二个人复核，款项已冻结。", EN: "Waiting for a second person; its money is held."},
		{
			ZH: "通过后提交渠道；驳回或逾期未复核，款项退回原账户。",
			EN: "If approved, it is sent to the supplier. If rejected, or not decided in time, the money goes back.",
		},
	},
	refund.Approved: {
		{ZH: "即将提交渠道，款项已冻结。", EN: "About to be sent to the supplier; its money is held."},
		{ZH: "提交之前商户仍可取消。", EN: "Until then the merchant can still cancel it."},
	},
	refund.Rejected: {
		{ZH: "已驳回，或逾期未复核。", EN: "Rejected, or not approved in time."},
		{ZH: "没有提交渠道，款项已退回原账户。", EN: "Nothing was sent to the supplier, and the money is back where it came from."},
	},
	refund.Cancelled: {
		{ZH: "商户在提交渠道之前取消了退款。", EN: "The merchant cancelled it before it was sent to the supplier."},
		{ZH: "款项已退回原账户。", EN: "The money is back where it came from."},
	},
	refund.Submitted: {
		{ZH: "已提交渠道，等待结果，款项保持冻结。", EN: "Sent to the supplier, no result yet; its money stays held."},
		{ZH: "系统按同一退款单号查询，无需人工处理。", EN: "The supplier is queried under the same number. No action needed."},
	},
	refund.Unknown: {
		{ZH: "渠道结果未知，款项保持冻结。", EN: "The supplier gave no clear answer; its money stays held."},
		{
			ZH: "结果未知时不动账：只按同一退款单号查询，不会退两次。",
			EN: "Money never moves on an unknown result: the supplier is only queried under the same number, and nothing is paid twice.",
		},
	},
	refund.Succeeded: {
		{ZH: "渠道已退款给买家。", EN: "The supplier has paid it to the buyer."},
		{ZH: "已入账。", EN: "It is booked."},
	},
	refund.Failed: {
		{ZH: "渠道退款失败。", EN: "The supplier definitely did not make the refund."},
		{ZH: "款项已退回原账户；如需再退，请用新的退款单号。", EN: "The money is back where it came from. Another try is a new refund."},
	},
	refund.Returned: {
		{ZH: "退款成功后又被退回。", EN: "It succeeded, but the money came back later."},
		{ZH: "款项已退回原账户；请联系商户确认买家的收款方式。", EN: "The money is back where it came from. Ask the merchant how the buyer can be refunded."},
	},
}

var adoptedSentence = [2]text.Text{
	{ZH: "这笔退款在渠道后台操作，不是经本系统发起。", EN: "Made directly at the supplier, not through Backstop."},
	{ZH: "已按渠道消息入账。", EN: "It is booked as the supplier reported it."},
}

// refundReason is why a refund was requested, as it was given.
func refundReason(r console.Refund) string {
	if r.Adopted != "" {
		return ""
	}
	return strings.TrimSpace(r.Reason)
}

// Texts of these pages.
var (
	tRefundNo         = text.Text{ZH: "退款单号", EN: "Refund number"}
	tOutRefundNo      = text.Text{ZH: "商户退款单号", EN: "Merchant's refund number"}
	tSupplierRefundNo = text.Text{ZH: "渠道退款单号", EN: "Supplier's refund number"}
	tCostReturned     = text.Text{ZH: "渠道退还成本", EN: "Cost returned"}
	tFinished         = text.Text{ZH: "结束", EN: "Finished"}
	tRefundsOpen      = text.Text{ZH: "所有未结束", EN: "All open"}
	tRefundsNone      = text.Text{ZH: "还没有退款", EN: "No refunds yet"}
	tRefundsNoneHow   = text.Text{
		ZH: "商户调用 POST /api/v1/orders/{order_no}/refunds，或财务在已支付订单的页面上提出。",
		EN: "Merchants request them with POST /api/v1/orders/{order_no}/refunds; finance proposes them on the page of a paid order.",
	}
	tRefundNext     = text.Text{ZH: "下次查询：%s（%s）。", EN: " Next query: %s (%s)."}
	tRefundSteps    = text.Text{ZH: "资金步骤", EN: "Fund steps"}
	tRefundAbout    = text.Text{ZH: "退款信息", EN: "The refund"}
	tRefundOfTrade  = text.Text{ZH: "原支付金额", EN: "Payment amount"}
	tAdopted        = text.Text{ZH: "渠道后台退款", EN: "made at the supplier"}
	tCalls          = text.Text{ZH: "渠道调用", EN: "Calls to the supplier"}
	tCallsNone      = text.Text{ZH: "还没有调用渠道", EN: "No calls yet"}
	tCallsNoneHow   = text.Text{ZH: "提交和查询渠道的请求会出现在这里。", EN: "Requests to the supplier, and its answers, appear here."}
	tEntriesNone    = text.Text{ZH: "还没有记账", EN: "No entries yet"}
	tEntriesNoneHow = text.Text{ZH: "资金变动后，分录会出现在这里。", EN: "Entries appear here once money has moved."}
	tHistory        = text.Text{ZH: "状态变化", EN: "Changes of state"}
)
