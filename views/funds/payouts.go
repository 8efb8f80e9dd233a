package funds

import (
	"slices"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/fund/payout"
	"backstop/internal/ledger/fact"
	"backstop/internal/suppliercall"
	"backstop/views/link"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// PayoutTexts are the texts of the list of payouts.
var PayoutTexts = ui.ListTexts{
	Title: text.Payouts, Icon: "arrow-up-right", None: tPayoutsNone, NoneHow: tPayoutsNoneHow,
	Fields: map[string]ui.Field{
		"payout_no": {Label: tPayoutNo},
		"state":     fundState(ui.PayoutStates),
	},
}

type payoutRow = console.Payout

// PayoutColumns are those of the list of payouts.
var PayoutColumns = []ui.Column[payoutRow]{
	ui.TimeCol("created", text.Created, func(r payoutRow) *int64 { return &r.CreatedAt }),
	ui.IDCol("payout_no", tPayoutNo, func(r payoutRow) (string, string) { return r.PayoutNo, string(link.Payout(r.PayoutNo)) }),
	ui.TextCol("out_payout_no", tOutPayoutNo, func(r payoutRow) string { return r.OutPayoutNo }).ExportOnly(),
	ui.MerchantCol(func(r payoutRow) string { return r.Merchant }),
	ui.SupplierCol(func(r payoutRow) string { return r.Supplier }).Optional(),
	ui.TextCol("payee", tPayee, func(r payoutRow) string { return r.Account.Number }).As("nowrap mono small").Optional(),
	ui.TextCol("supplier_payout_no", tSupplierPayoutNo, func(r payoutRow) string { return r.SupplierPayoutNo }).ExportOnly(),
	ui.TextCol("currency", text.Currency, func(r payoutRow) string { return r.Currency }).ExportOnly(),
	ui.MoneyCol("amount", text.Amount, func(r payoutRow) (int64, string) { return r.Amount, r.Currency }),
	ui.MoneyCol("fee_amount", text.Fee, func(r payoutRow) (int64, string) { return r.FeeAmount, r.Currency }),
	ui.StateCol("state", text.State, func(r payoutRow) ui.State { return ui.StateOf(ui.PayoutStates, r.Status) }),
	ui.TimeCol("finished", tFinished, func(r payoutRow) *int64 { return r.FinishedAt }),
	ui.TextCol("failure", tFailure, func(r payoutRow) string { return r.Failure }).ExportOnly(),
}

// PayoutData is what the page of one payout shows.
type PayoutData struct {
	*console.PayoutDetail
}

// PayoutPage is one payout: how it stands, its steps, and everything behind them.
func PayoutPage(p *ui.Page, d PayoutData) templ.Component {
	says, next := d.sentence(p)
	detail := ui.Detail{
		List: ui.Link{Href: "/payouts", Label: text.Payouts}, No: d.PayoutNo, State: ui.StateOf(ui.PayoutStates, d.Status),
		About: []ui.Fact{ui.MoneyFact(text.Text{}, d.Amount, d.Currency), ui.TimeFact(text.Text{}, &d.CreatedAt)},
		Says:  says, Next: []string{next}, Until: nextTry(d.Behind), Open: openExceptions(d.Behind),
		Main: []templ.Component{
			fundSteps(p, tRefundSteps, d.steps()), callsPanel(p, d.Calls), entriesPanel(p, d.Entries),
			fundChanges(p, d.History, ui.PayoutStates, nil),
		},
	}
	detail.Side = append(
		detail.Side,
		ui.Facts(
			p, "about-title", tPayoutAbout,
			ui.MoneyFact(text.Amount, d.Amount, d.Currency),
			ui.MoneyFact(text.Fee, d.FeeAmount, d.Currency),
			ui.MerchantFact(p, d.Merchant),
			ui.SupplierFact(p, d.Supplier),
			ui.TimeFact(text.Created, &d.CreatedAt),
			ui.TimeFact(tFinished, d.FinishedAt),
			ui.TextFact(tFailure, "wrap", wording.SupplierWord(p, d.Failure)),
		),
		ui.Facts(
			p, "payee-title", tPayee,
			ui.TextFact(text.Kind, "mono small", d.Account.Kind),
			ui.TextFact(tPayeeHolder, "", d.Account.Holder),
			ui.TextFact(tPayeeNumber, "mono", d.Account.Number),
			ui.TextFact(tPayeeBank, "", d.Account.Bank),
		),
		ui.Facts(
			p, "ids", text.IDs,
			ui.IDFact(tOutPayoutNo, d.OutPayoutNo, ""),
			ui.IDFact(tSupplierPayoutNo, d.SupplierPayoutNo, ""),
			compensationFact(p, d.Item),
			ui.TextFact(text.Status, "", p.T(text.VersionN, d.Version)).Technical(),
		),
	)
	return ui.DetailPage(p, detail)
}

// steps are the steps of the payout, each with its entries and its call.
func (d PayoutData) steps() []fundStep {
	return []fundStep{
		d.approval(),
		d.step(payout.Debit, text.Text{ZH: "出款：从商户余额扣款", EN: "Debit: merchant's balance"}, "lock", d.Debit, fact.PayoutDebit,
			fact.PayoutFee),
		d.credit(),
		d.step(payout.Reversal, text.Text{ZH: "冲正：退回商户余额", EN: "Reversal: money back"}, "undo-2", d.Reversal, fact.PayoutReversal,
			fact.PayoutFeeBack),
		notifiedStep(d.Behind, d.Status != payout.Cancelled),
	}
}

func (d PayoutData) approval() fundStep {
	s := fundStep{name: text.Text{ZH: "复核", EN: "Approval"}, icon: "users", state: done, approval: d.Approval}
	if h := became(d.History, payout.Approved); h != nil {
		s.at, s.who = h.CreatedAt, h.Actor
	}
	switch {
	case d.ByRule:
		s.state, s.who = withinLimits, ""
	case d.Status == payout.Created:
		s.state = ui.StateOf(ui.PayoutStates, d.Status)
	case d.Status == payout.Rejected || d.Status == payout.Cancelled:
		h := became(d.History, d.Status)
		s.state = ui.StateOf(ui.PayoutStates, d.Status)
		if h != nil {
			s.at, s.who, s.note = h.CreatedAt, h.Actor, h.Detail
		}
	}
	return s
}

// step is one step as it is stored.
func (d PayoutData) step(name string, label text.Text, icon string, state payout.StepState, facts ...fact.Name) fundStep {
	s := fundStep{name: label, icon: icon, state: ui.StateOf(ui.StepStates, state), refs: entriesOf(d.Behind, facts...)}
	i := slices.IndexFunc(d.Steps, func(s payout.Step) bool { return s.Step == name })
	switch {
	case i >= 0:
		if state != payout.Init {
			s.at = d.Steps[i].UpdatedAt
		}
	case !payout.Moves.Of(d.Status).Open || name == payout.Reversal && d.Status == payout.Succeeded:
		s.state = notNeeded
	case name == payout.Reversal:
		s.state = ifItFails
	default:
		s.state = pending
	}
	return s
}

// credit is the supplier's part: the only one that calls out.
func (d PayoutData) credit() fundStep {
	s := d.step(payout.Credit, text.Text{ZH: "入款：渠道付给收款账户", EN: "Credit: supplier to the payee"}, "send", d.Credit, fact.PayoutCredit,
		fact.PayoutReturned, fact.PayoutLate)
	for i, c := range d.Calls {
		if c.Op == suppliercall.Payout || s.call == nil {
			s.call = &d.Calls[i]
		}
	}
	s.note = d.Failure
	if d.Item != nil && d.Item.NextAt != nil && payout.Moves.Of(d.Status).Open {
		s.next = *d.Item.NextAt
	}
	return s
}

// sentence says how the payout stands, and what happens next.
func (d PayoutData) sentence(p *ui.Page) (what, then string) {
	w := payoutSentences[d.Status]
	then = p.T(w[1])
	if d.Item != nil && d.Item.NextAt != nil && payout.Moves.Of(d.Status).Open {
		then += p.T(tRefundNext, p.Short(*d.Item.NextAt), p.Away(*d.Item.NextAt))
	}
	return p.T(w[0]), then
}

var payoutSentences = map[payout.Status][2]text.Text{
	payout.Created: {
		{ZH: "等待第二个人复核，尚未扣款。", EN: "Waiting for a second person; nothing has been debited yet."},
		{
			ZH: "通过后扣款并提交渠道；驳回或逾期未复核，什么都不发生。",
			EN: "If approved, it is debited and sent to the supplier. If rejected, or not decided in time, nothing happens.",
		},
	},
	payout.Approved: {
		{ZH: "已批准，即将扣款。", EN: "Approved, and about to be debited."},
		{ZH: "扣款之前商户仍可取消。", EN: "Until then the merchant can still cancel it."},
	},
	payout.Rejected: {
		{ZH: "已驳回，或逾期未复核。", EN: "Rejected, or not approved in time."},
		{ZH: "没有扣款。", EN: "Nothing was debited."},
	},
	payout.Cancelled: {
		{ZH: "商户在扣款之前取消。", EN: "The merchant cancelled it before it was debited."},
		{ZH: "没有扣款。", EN: "Nothing was debited."},
	},
	payout.Debiting: {
		{ZH: "正在从商户余额扣款。", EN: "The merchant's account is being debited."},
		{ZH: "扣款后提交渠道。", EN: "Then it is sent to the supplier."},
	},
	payout.Crediting: {
		{ZH: "已扣款，渠道正在出款。", EN: "Debited; the supplier is making the payout."},
		{ZH: "系统按同一出款单号查询，无需人工处理。", EN: "The supplier is queried under the same number. No action needed."},
	},
	payout.Unknown: {
		{ZH: "渠道结果未知，款项保持在途。", EN: "The supplier gave no clear answer; the money stays in transit."},
		{
			ZH: "结果未知时不动账：只按同一出款单号查询，不会付两次。",
			EN: "Money never moves on an unknown result: the supplier is only queried under the same number, and nothing is paid twice.",
		},
	},
	payout.Succeeded: {
		{ZH: "渠道已付给收款账户。", EN: "The supplier has paid it to the payee."},
		{ZH: "已入账。", EN: "It is booked."},
	},
	payout.Failed: {
		{ZH: "扣款失败。", EN: "The account could not be debited."},
		{ZH: "没有扣款，也没有提交渠道。", EN: "Nothing was booked, and nothing was sent to the supplier."},
	},
	payout.Reversing: {
		{ZH: "确定失败或被退回，正在冲正。", EN: "It definitely failed or was returned; the money is being booked back."},
		{ZH: "款项将退回商户余额。", EN: "It goes back to the merchant's balance."},
	},
	payout.Reversed: {
		{ZH: "出款没有完成，已冲正。", EN: "Not paid, and reversed."},
		{
			ZH: "款项已退回商户余额；如渠道之后又付出，会再次扣款并告警。",
			EN: "The money is back on the merchant's balance. If the supplier pays it all the same, the merchant is debited again and an alert is raised.",
		},
	},
	payout.Stuck: {
		{ZH: "多次查询没有明确结果，或冲正失败。", EN: "No query got a clear answer, or the money could not be booked back."},
		{ZH: "需要两个人按渠道对账单裁定；在此之前款项保持在途。", EN: "Two people decide by the supplier's statement; until then the money stays in transit."},
	},
}

// Texts of these pages.
var (
	tPayoutNo         = text.Text{ZH: "出款单号", EN: "Payout number"}
	tOutPayoutNo      = text.Text{ZH: "商户出款单号", EN: "Merchant's payout number"}
	tSupplierPayoutNo = text.Text{ZH: "渠道出款单号", EN: "Supplier's payout number"}
	tPayee            = text.Text{ZH: "收款账户", EN: "Payee"}
	tPayeeHolder      = text.Text{ZH: "户名", EN: "Holder"}
	tPayeeNumber      = text.Text{ZH: "账号", EN: "Number"}
	tPayeeBank        = text.Text{ZH: "开户行", EN: "Bank"}
	tFailure          = text.Text{ZH: "失败原因", EN: "Failure"}
	tPayoutAbout      = text.Text{ZH: "出款信息", EN: "The payout"}
	tPayoutsNone      = text.Text{ZH: "还没有出款", EN: "No payouts yet"}
	tPayoutsNoneHow   = text.Text{
		ZH: "商户用 payout_key 调用 POST /api/v1/payouts。",
		EN: "Merchants request them with POST /api/v1/payouts and their payout_key.",
	}
)
