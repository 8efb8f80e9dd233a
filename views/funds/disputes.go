package funds

import (
	"maps"
	"slices"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/fund/booking"
	"backstop/internal/fund/dispute"
	"backstop/internal/ledger/fact"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// DisputeTexts are the texts of the list of disputes.
var DisputeTexts = ui.ListTexts{
	Title: text.Disputes, Icon: "scale", None: tDisputesNone, NoneHow: tDisputesNoneHow,
	Fields: map[string]ui.Field{
		"dispute_no": {Label: text.DisputeNo},
		"order_no":   {Label: text.OrderNo},
		"state":      fundState(ui.DisputeStates),
		"due":        {Label: tDisputeDue, Value: func(due string) text.Text { return ui.TextFor(dues, due) }},
	},
}

var dues = map[string]text.Text{
	console.DueAny:  {ZH: "有截止时间", EN: "With a deadline"},
	console.DueOver: {ZH: "已逾期", EN: "Overdue"},
	"1d":            {ZH: "24 小时内", EN: "Within 24 hours"},
	"3d":            {ZH: "3 天内", EN: "Within 3 days"},
	"7d":            {ZH: "7 天内", EN: "Within 7 days"},
}

type disputeRow = console.Dispute

// DisputeColumns are those of the list of disputes.
var DisputeColumns = []ui.Column[disputeRow]{
	ui.TimeCol("opened", tDisputeOpened, func(r disputeRow) *int64 { return &r.OpenedAt }),
	ui.IDCol("dispute_no", text.DisputeNo, func(r disputeRow) (string, string) { return r.DisputeNo, string(link.Dispute(r.DisputeNo)) }),
	ui.TextCol("supplier_dispute_no", tSupplierDisputeNo, func(r disputeRow) string { return r.SupplierDisputeNo }).ExportOnly(),
	ui.IDCol("no", text.OrderNo, func(r disputeRow) (string, string) { return r.OrderNo, string(link.Order(r.OrderNo)) }),
	ui.MerchantCol(func(r disputeRow) string { return r.Merchant }),
	ui.SupplierCol(func(r disputeRow) string { return r.Supplier }).Optional(),
	ui.TextCol("currency", text.Currency, func(r disputeRow) string { return r.Currency }).ExportOnly(),
	ui.MoneyCol("amount", text.Amount, func(r disputeRow) (int64, string) { return r.Amount, r.Currency }),
	ui.MoneyCol("fee", text.DisputeFee, func(r disputeRow) (int64, string) { return r.Fee, r.Currency }).ExportOnly(),
	ui.MoneyCol("fee_returned", text.FeeReturned, func(r disputeRow) (int64, string) { return r.FeeBack, r.Currency }).ExportOnly(),
	ui.NoteCol("reason", text.Reason, func(p *ui.Page, r disputeRow) string { return p.T(ui.TextFor(wording.DisputeReasons, r.Reason)) }).
		Optional(),
	disputeStatus.PageOnly(), // files have it behind the time
	ui.TimeCol("due_by", tDisputeDue, func(r disputeRow) *int64 { return r.DueBy }).With(disputeDue),
	disputeStatus.ExportOnly(),
	ui.TimeCol("closed", tFinished, func(r disputeRow) *int64 { return r.ClosedAt }),
}

var disputeStatus = ui.StateCol("status", text.State, func(r disputeRow) ui.State { return ui.StateOf(ui.DisputeStates, r.Status) })

// Disputes is the list of disputes, those with a deadline sorted by it.
func Disputes(p *ui.Page, l ui.List) templ.Component {
	if l.Values.Get("due") != "" {
		l.Order = tByDeadline
	} else if at := slices.IndexFunc(l.Columns, func(h ui.Heading) bool { return h.Name == "due_by" }); at >= 0 {
		sorted := maps.Clone(l.Values)
		sorted.Set("due", console.DueAny)
		l.Columns[at].Head = panel.Linked(templ.URL("/disputes?"+sorted.Encode()), templ.Attributes{"title": p.T(tByDeadline)},
			panel.Text(p.T(tDisputeDue)+" ↑"))
	}
	return ui.PlainList(p, l.As(DisputeTexts))
}

// evidenceDue is until when evidence can be given; nil = there is no such time, or it does not matter
// any more.
func evidenceDue(d dispute.Dispute) *int64 {
	if d.Status != dispute.Opened {
		return nil
	}
	return d.DueBy
}

// dueLeft is how long evidence can still be given; "" = the time does not matter any more.
func dueLeft(p *ui.Page, d dispute.Dispute) string {
	switch {
	case evidenceDue(d) == nil:
		return ""
	case *d.DueBy < p.Now.UnixMicro():
		return p.T(tDisputeOverdue)
	}
	return p.Away(*d.DueBy)
}

func disputeDue(p *ui.Page, r disputeRow) templ.Component {
	left := dueLeft(p, r.Dispute)
	return templ.Join(ui.WhenOr(p, evidenceDue(r.Dispute)), ui.If(left != "", panel.Box("muted", panel.Text(left))))
}

// DisputeData is what the page of one dispute shows.
type DisputeData struct {
	*console.DisputeDetail
	CanRecord bool // evidence
	Saved     bool // what the person has just sent was kept
	Key       string
}

// DisputePage is one dispute: how it stands, its steps, its evidence, and everything behind them.
func DisputePage(p *ui.Page, d DisputeData) templ.Component {
	says, next := d.sentence(p)
	detail := ui.Detail{
		List: ui.Link{Href: "/disputes", Label: text.Disputes}, No: d.DisputeNo, Saved: d.Saved, State: ui.StateOf(ui.DisputeStates, d.Status),
		About: []ui.Fact{ui.MoneyFact(text.Text{}, d.Amount, d.Currency), ui.TimeFact(text.Text{}, &d.OpenedAt)},
		Says:  says, Next: []string{next}, Until: d.DueBy, Open: openExceptions(d.Behind),
		Main: []templ.Component{
			fundSteps(p, tRefundSteps, d.steps(p)), d.evidence(p), entriesPanel(p, d.Entries),
			fundChanges(p, d.History, ui.DisputeStates, d.Messages),
		},
	}
	if d.CanRecord && dispute.Moves.Of(d.Status).Open {
		detail.Side = append(detail.Side, evidenceForm(p, d))
	}
	detail.Side = append(
		detail.Side,
		ui.Facts(
			p, "about-title", tDisputeAbout,
			ui.IDFact(text.Order, d.OrderNo, string(link.Order(d.OrderNo))),
			ui.MoneyFact(text.Amount, d.Amount, d.Currency),
			ui.MoneyFact(tDisputeExceeds, d.Exceeds, d.Currency).If(d.Exceeds != 0),
			ui.MoneyFact(text.DisputeFee, d.Fee, d.Currency).If(d.Fee != 0),
			ui.MoneyFact(tDisputeGiven, d.Reinstated, d.Currency).If(d.Reinstated != 0),
			ui.MoneyFact(text.FeeReturned, d.FeeBack, d.Currency).If(d.FeeBack != 0),
			ui.TextFact(text.Reason, "wrap", p.T(ui.TextFor(wording.DisputeReasons, d.Reason))),
			ui.MerchantFact(p, d.Merchant),
			ui.SupplierFact(p, d.Supplier),
			ui.TimeFact(tDisputeOpened, &d.OpenedAt),
			ui.TimeFact(tDisputeDue, evidenceDue(d.Dispute.Dispute)),
			ui.TextFact(tDisputeLeft, "strong", dueLeft(p, d.Dispute.Dispute)),
			ui.TimeFact(tFinished, d.ClosedAt),
		),
		ui.Facts(
			p, "ids", text.IDs,
			ui.IDFact(tSupplierDisputeNo, d.SupplierDisputeNo, ""),
			ui.IDFact(text.TradeNo, d.TradeNo, ""),
			ui.TextFact(text.Status, "", p.T(text.VersionN, d.Version)).Technical(),
		),
	)
	return ui.DetailPage(p, detail)
}

// evidence lists what operators recorded.
func (d DisputeData) evidence(p *ui.Page) templ.Component {
	open := dispute.Moves.Of(d.Status).Open
	switch {
	case len(d.Evidence) == 0 && !open:
		return panel.Of(p, "evidence-title", tProofList, ui.Empty(p, "scroll-text", p.T(tProofNever), p.T(tProofNeverHow)))
	case len(d.Evidence) == 0:
		return panel.Of(p, "evidence-title", tProofList, ui.Empty(p, "scroll-text", p.T(tProofNone), p.T(tProofNoneHow)))
	}
	all := make([]panel.Saying, len(d.Evidence))
	for i, e := range d.Evidence {
		all[i] = panel.Saying{At: e.CreatedAt, Who: wording.Actor(p, e.Actor), More: []templ.Component{panel.Line("wrap", panel.Text(e.Text))}}
		if e.URL != "" {
			to := templ.Attributes{"rel": "noopener noreferrer", "title": e.URL}
			all[i].More = append(all[i].More, panel.Line("small wrap",
				panel.Linked(templ.URL(e.URL), to, panel.Text(p.T(tProofLink))), ui.Styled("mono muted", e.URL)))
		}
	}
	return panel.Of(p, "evidence-title", tProofList, panel.Sayings(p, all))
}

// evidenceForm records evidence.
func evidenceForm(p *ui.Page, d DisputeData) templ.Component {
	return panel.Of(p, "record-title", tProofRecord, panel.Box("body", panel.GuardedForm(link.Dispute(d.DisputeNo)+"/evidence", d.Key,
		panel.Small(p.T(tProofHow)),
		panel.TextField(p, panel.Input{
			ID: "evidence-text", Name: "text", Label: tProofText, Hint: p.T(tProofRule),
			More: templ.Attributes{"required": true, "minlength": "8", "maxlength": "4000"},
		}),
		panel.FreshField(p, panel.Input{
			ID: "evidence-url", Name: "url", Label: tProofURL,
			More: templ.Attributes{"type": "url", "maxlength": "2048", "placeholder": "https://"},
		}),
		panel.Submit(p, "", tProofRecord))))
}

// step is one step of the dispute as a change of its status made it, or else its entries.
func (d DisputeData) step(name text.Text, icon string, state ui.State, h *booking.Change, facts ...fact.Name) fundStep {
	s := fundStep{name: name, icon: icon, state: state, refs: entriesOf(d.Behind, facts...)}
	for _, e := range d.Entries {
		if slices.Contains(s.refs, e.Ref) {
			s.at = e.CreatedAt
		}
	}
	if h != nil {
		s.at, s.who, s.note = h.CreatedAt, h.Actor, h.Detail
		s.callback = d.Messages[h.SourceID]
	}
	return s
}

// steps are the steps of the dispute, each from its history and its entries.
func (d DisputeData) steps(p *ui.Page) []fundStep {
	return []fundStep{d.opened(), d.answered(p), d.withdrawn(), d.outcome(), notifiedStep(d.Behind, d.OrderID != 0)}
}

func (d DisputeData) opened() fundStep {
	s := d.step(text.Text{ZH: "发起：保留商户资金", EN: "Opened: money reserved"}, "lock", done, became(d.History, dispute.Opened), fact.DisputeHeld)
	if d.OrderID == 0 {
		s.state = nothingReserved
	}
	return s
}

func (d DisputeData) answered(p *ui.Page) fundStep {
	h := became(d.History, dispute.Answered)
	s := d.step(text.Text{ZH: "举证", EN: "Evidence"}, "scroll-text", done, h)
	switch {
	case h != nil:
	case d.Status == dispute.Opened:
		s.state = ui.StateOf(ui.DisputeStates, d.Status)
		if d.DueBy != nil {
			s.note = p.T(tDisputeDue) + p.T(text.Colon) + p.Full(*d.DueBy) + " · " + dueLeft(p, d.Dispute.Dispute)
		}
	default:
		s.state = notRecorded
	}
	return s
}

// withdrawn is what the supplier took: the money and its fee.
func (d DisputeData) withdrawn() fundStep {
	s := d.step(text.Text{ZH: "渠道扣款", EN: "Money taken by the supplier"}, "arrow-right-left", taken, nil, fact.DisputeWithdrawn,
		fact.DisputeFee)
	switch {
	case d.Withdrawn:
	case d.Status == dispute.Won:
		s.state = notNeeded
	default:
		s.state = pending
	}
	return s
}

// outcome is how the dispute ended, and what came back with it.
func (d DisputeData) outcome() fundStep {
	name := text.Text{ZH: "结果", EN: "Outcome"}
	if dispute.Moves.Of(d.Status).Open {
		return d.step(name, "scale", pending, nil, fact.DisputeReinstated, fact.DisputeFeeBack)
	}
	return d.step(name, "scale", ui.StateOf(ui.DisputeStates, d.Status), became(d.History, d.Status), fact.DisputeReinstated,
		fact.DisputeReleased,
		fact.DisputeFeeBack)
}

// sentence says how the dispute stands, and what happens next.
func (d DisputeData) sentence(p *ui.Page) (what, then string) {
	switch d.Status {
	case dispute.Opened:
		what = p.T(tDisputeReserved)
		if d.OrderID == 0 {
			what = p.T(tDisputeUnmatched)
		}
		switch {
		case d.DueBy == nil:
			return what, p.T(tDisputeHow)
		case *d.DueBy < p.Now.UnixMicro():
			return what, p.T(tDisputePast, p.Full(*d.DueBy))
		}
		return what, p.T(tDisputeUntil, p.Full(*d.DueBy), p.Away(*d.DueBy))
	case dispute.Answered:
		return p.T(tDisputeAnswered), p.T(tDisputeWaits)
	case dispute.Won:
		what = p.T(tDisputeWon)
		switch {
		case d.Reinstated > 0:
			return what, p.T(tDisputeBack, ui.MoneyText(d.Reinstated, d.Currency))
		case d.Withdrawn:
			return what, p.T(tDisputeNotBack)
		}
		return what, p.T(tDisputeReleased)
	}
	if d.Withdrawn {
		return p.T(tDisputeLost), p.T(tDisputeTaken)
	}
	return p.T(tDisputeLost), p.T(tDisputeNotTaken)
}

// Looks of steps that only disputes have.
var (
	taken           = ui.State{Kind: "warn", Icon: "check", Label: text.Text{ZH: "已扣款", EN: "Taken"}}
	nothingReserved = ui.State{Kind: "idle", Icon: "ban", Label: text.Text{ZH: "未保留", EN: "Nothing reserved"}}
	notRecorded     = ui.State{Kind: "idle", Icon: "ban", Label: text.Text{ZH: "未登记", EN: "None recorded"}}
)

// Texts of these pages.
var (
	tSupplierDisputeNo = text.Text{ZH: "渠道争议编号", EN: "Supplier's dispute number"}
	tDisputeOpened     = text.Text{ZH: "发起", EN: "Opened"}
	tDisputeDue        = text.Text{ZH: "举证截止", EN: "Evidence due by"}
	tByDeadline        = text.Text{ZH: "截止时间近的在前", EN: "the next deadline first"}
	tDisputeLeft       = text.Text{ZH: "剩余时间", EN: "Time left"}
	tDisputeOverdue    = text.Text{ZH: "已逾期", EN: "overdue"}
	tDisputeExceeds    = text.Text{ZH: "超出支付余额的部分", EN: "Above what was left of the payment"}
	tDisputeGiven      = text.Text{ZH: "已退回", EN: "Given back"}
	tDisputeAbout      = text.Text{ZH: "争议信息", EN: "The dispute"}
	tDisputeReserved   = text.Text{
		ZH: "买家的银行要求退回这笔款项，商户的资金已保留。",
		EN: "The buyer's bank demands the money back; the merchant's money is reserved.",
	}
	tDisputeUnmatched = text.Text{
		ZH: "买家的银行要求退回一笔没有对应订单的款项，未保留资金。",
		EN: "The buyer's bank demands a payment back that belongs to no known order; nothing is reserved.",
	}
	tDisputeUntil = text.Text{
		ZH: "举证截止 %s（%s）：请在渠道的页面提交材料，并在本页登记；逾期按败诉处理。",
		EN: "Evidence is due by %s (%s): submit it on the supplier's pages and record it here. Without evidence the dispute is lost.",
	}
	tDisputePast = text.Text{ZH: "举证已于 %s 截止，等待渠道的裁定。", EN: "Evidence was due by %s. The supplier's decision is awaited."}
	tDisputeHow  = text.Text{
		ZH: "渠道没有给出截止时间：请在渠道的页面提交材料，并在本页登记。",
		EN: "The supplier gave no deadline: submit the evidence on its pages and record it here.",
	}
	tDisputeAnswered = text.Text{ZH: "已举证，等待裁定。", EN: "Evidence was given; the decision is pending."}
	tDisputeWaits    = text.Text{
		ZH: "无需人工处理：结果由渠道的消息带回，届时自动入账。",
		EN: "No action needed: the supplier will report the outcome, which is then booked.",
	}
	tDisputeWon      = text.Text{ZH: "胜诉，款项归商户。", EN: "Won: the merchant keeps the payment."}
	tDisputeReleased = text.Text{ZH: "渠道没有扣款，保留的资金已释放。", EN: "The supplier never took the money, and the reserve is released."}
	tDisputeBack     = text.Text{ZH: "渠道已退回 %s，已入账。", EN: "The supplier has given %s back, and it is booked."}
	tDisputeNotBack  = text.Text{ZH: "渠道扣走的款项尚未退回。", EN: "The supplier has not given the money back yet."}
	tDisputeLost     = text.Text{ZH: "败诉，款项归买家。", EN: "Lost: the buyer keeps the money."}
	tDisputeTaken    = text.Text{ZH: "渠道已扣款，已入账。", EN: "The supplier has taken it, and it is booked."}
	tDisputeNotTaken = text.Text{ZH: "渠道尚未扣款，在此之前资金保持保留。", EN: "The supplier has not taken it yet; until then it stays reserved."}
	tProofList       = text.Text{ZH: "举证材料", EN: "Evidence"}
	tProofNone       = text.Text{ZH: "还没有登记材料", EN: "No evidence recorded yet"}
	tProofNever      = text.Text{ZH: "没有登记材料", EN: "No evidence was recorded"}
	tProofNeverHow   = text.Text{ZH: "争议已结束。", EN: "The dispute has ended."}
	tProofNoneHow    = text.Text{
		ZH: "登记第一条后，争议变为“已举证”，截止前不再提醒。",
		EN: "The first record answers the dispute and stops the alert about its deadline.",
	}
	tProofRecord = text.Text{ZH: "登记举证材料", EN: "Record evidence"}
	tProofHow    = text.Text{
		ZH: "只在这里留存并写入审计，不会发送给渠道：材料须由您在渠道的页面提交。",
		EN: "Stored here and recorded in the audit. Nothing is sent to the supplier: submit the evidence on the supplier's pages yourself.",
	}
	tProofText       = text.Text{ZH: "材料内容（对同事可见）", EN: "Evidence (visible to colleagues)"}
	tProofRule       = text.Text{ZH: "8 到 4000 个字符", EN: "8 to 4000 characters"}
	tProofURL        = text.Text{ZH: "材料链接（可不填）", EN: "Link (optional)"}
	tProofLink       = text.Text{ZH: "打开链接", EN: "Open the link"}
	tDisputesNone    = text.Text{ZH: "还没有争议", EN: "No disputes yet"}
	tDisputesNoneHow = text.Text{
		ZH: "渠道报告买家拒付时，争议会出现在这里，商户的资金同时保留。",
		EN: "A dispute appears here when a supplier reports one, and the merchant's money is reserved.",
	}
)
