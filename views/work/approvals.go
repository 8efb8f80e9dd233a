package work

import (
	"slices"

	"backstop/internal/approval"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// ApprovalTexts is what the list of proposals says.
var ApprovalTexts = ui.ListTexts{
	Title: text.Approvals, Icon: "circle-check", None: tAprNone, NoneHow: tAprNoneHow,
	Fields: map[string]ui.Field{
		"state":  ui.States(ui.ApprovalStates),
		"maker":  {Label: tMaker},
		"action": {Label: text.Act, Value: wording.Action},
	},
}

type approvalRow = console.Approval

// ApprovalColumns are those of the list of proposals.
var ApprovalColumns = []ui.Column[approvalRow]{
	ui.NumberCol("id", text.NumberWord, func(a approvalRow) (string, templ.SafeURL) { return a.No(), link.Approval(a.ID) }),
	ui.WordCol("action", text.Act, func(p *ui.Page, a approvalRow) string { return p.T(wording.Action(a.Action)) }).InFiles(text.Action).
		As("strong"),
	ui.TextCol("object", text.Object, func(a approvalRow) string { return a.Object + ":" + a.ObjectID }).InFiles(text.BatchRow).As("").
		With(func(p *ui.Page, a approvalRow) templ.Component { return about(p, &a) }),
	ui.TextCol("no", text.Order, func(a approvalRow) string { return a.OrderNo }).ExportOnly(),
	ui.TextCol("currency", text.Currency, func(a approvalRow) string { return a.Currency }).ExportOnly(),
	ui.MoneyCol("amount", text.Amount, func(a approvalRow) (int64, string) { return a.Amount, a.Currency }),
	approvalState.ExportOnly(), // the page has it behind the time
	ui.Col("maker", tMaker, ui.TextKind, func(p *ui.Page, a approvalRow) ui.Cell {
		return ui.Cell{Text: a.MakerName, Show: wording.Maker(p, &a)}
	}).InFiles(tExportMaker),
	ui.TimeCol("made", tAge, func(a approvalRow) *int64 { return &a.MadeAt }).InFiles(text.Created),
	approvalState.PageOnly(),
	ui.TextCol("checker", tChecker, func(a approvalRow) string { return a.CheckerName }).InFiles(tExportChecker).
		With(func(p *ui.Page, a approvalRow) templ.Component { return ui.OrNone(p, a.CheckerName) }),
	ui.TimeCol("decided", tExportDecided, func(a approvalRow) *int64 { return a.DecidedAt }).ExportOnly(),
	ui.TimeCol("done", tEnded, func(a approvalRow) *int64 { return a.DoneAt }).ExportOnly(),
	ui.TextCol("reason", text.Reason, func(a approvalRow) string { return a.Reason }).ExportOnly(),
	ui.TimeCol("expires", tAprExpires, func(a approvalRow) *int64 {
		if a.State != approval.Waiting {
			return nil
		}
		return &a.ExpiresAt
	}),
	ui.TextCol("hash", text.ContentHash, func(a approvalRow) string { return a.Hash }).ExportOnly(),
}

var approvalState = ui.StateCol("state", text.State, func(a approvalRow) ui.State { return ui.StateOf(ui.ApprovalStates, a.State) })

// cells are the rows, with what the reader may decide.
func (d ApprovalsData) cells(p *ui.Page, rows []approvalRow) [][]ui.Cell {
	return ui.Cells(p, ui.Replace(ApprovalColumns, approvalState.PageOnly().With(d.state)), rows)
}

// rest are the rows of the list that do not stand above it.
func (d ApprovalsData) rest(rows []approvalRow) []approvalRow {
	above := map[int64]bool{}
	for _, a := range slices.Concat(d.ForYou, d.ForOthers) {
		above[a.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(rows), func(a approvalRow) bool { return above[a.ID] })
}

// picked reports whether the row has a box: the viewer may approve it.
func (d ApprovalsData) picked(a approvalRow) bool { return a.State == approval.Waiting && d.Mine(&a) }

func (d ApprovalsData) picks(rows []approvalRow) []panel.Pick {
	all := make([]panel.Pick, len(rows))
	for i, a := range rows {
		if d.picked(a) {
			all[i] = panel.Pick{Value: a.No(), Name: a.No(), Currency: a.Currency}
		}
	}
	return all
}

// pickForm is a form to approve those of its rows that are picked or, of all that wait for the viewer, every
// one; 0 = those are elsewhere.
func (d ApprovalsData) pickForm(p *ui.Page, l ui.List, label text.Text, rows []approvalRow, all int64) templ.Component {
	return panel.PickForm(
		p, l, label, "get", "/approvals/many", d.picks(rows),
		panel.DryRun(p, p.T(tManyPicked), templ.Attributes{"id": "approve-picked"}),
		ui.If(all > 0, panel.DryRun(p, p.T(tManyAll, ui.Count(all)), templ.Attributes{"name": "pick", "value": "all"})),
	)
}

// others are the rows of the list that do not stand above it.
func (d ApprovalsData) others(p *ui.Page, l ui.List, rows []approvalRow) templ.Component {
	l.Cells = d.cells(p, rows)
	if slices.ContainsFunc(rows, d.picked) {
		return d.pickForm(p, l, text.Approvals, rows, 0)
	}
	return ui.Rows(p, l, text.Approvals)
}

// approvalRule asks for a rule by which proposals are approved together.
func approvalRule(p *ui.Page, d ApprovalsData) templ.Component {
	field := func(name string, label text.Text, mode, most string) templ.Component {
		return panel.FilterInput(p, panel.Input{Name: name, Label: label, More: templ.Attributes{
			"class": "input", "type": "text", "inputmode": mode, "maxlength": most,
		}})
	}
	currencies := []panel.Choice{{Label: p.T(text.Any)}}
	for _, s := range d.Yours.Sums {
		currencies = append(currencies, panel.Choice{Value: s.Currency, Label: s.Currency})
	}
	return panel.FilterForm(
		"/approvals/many", p.T(tManyRule),
		panel.FilterSelect(p, panel.Input{Name: "action", Label: text.Act}, d.actions(p)...),
		field("merchant", text.Merchant, "text", "100"), field("up_to", tManyUpTo, "decimal", "30"),
		panel.FilterSelect(p, panel.Input{Name: "currency", Label: text.Currency}, currencies...),
		ui.Button(p, ui.Act{
			Icon: "flask-conical", Label: tManyCheck, Class: "primary", Writes: true, More: templ.Attributes{"name": "pick", "value": "rule"},
		}),
	)
}

// actions are those of the proposals that are shown to the viewer.
func (d ApprovalsData) actions(p *ui.Page) []panel.Choice {
	var names []string
	for _, a := range d.ForYou {
		names = append(names, a.Action)
	}
	slices.Sort(names)
	all := []panel.Choice{{Label: p.T(text.Any)}}
	for _, action := range slices.Compact(names) {
		all = append(all, panel.Choice{Value: action, Label: p.T(wording.Action(action))})
	}
	return all
}

// state is that of a row, and what it is to the viewer.
func (d ApprovalsData) state(p *ui.Page, a approvalRow) templ.Component {
	var tag text.Text
	switch {
	case a.SinglePerson:
		tag = text.SinglePerson
	case a.State == approval.Waiting && d.Mine(&a):
		tag = tAprYours
	case a.State == approval.Waiting && a.MakerName == p.User:
		tag = tAprOwn
	}
	return templ.Join(ui.Pill(p, ui.StateOf(ui.ApprovalStates, a.State)), ui.If(tag != (text.Text{}), ui.Styled("tag", p.T(tag))))
}

// ApprovalsData is what the list shows around its rows.
type ApprovalsData struct {
	// ForYou are the first of those that wait for the reader, ForOthers of those that wait for
	// somebody else: the one that expires first first. Yours counts all that wait for the reader.
	ForYou, ForOthers []console.Approval
	Yours             console.Todo
	// Mine reports whether the reader may decide a proposal now.
	Mine func(*console.Approval) bool
}

// Texts of these pages.
var (
	tMaker      = text.Text{ZH: "经办", EN: "Proposed by"}
	tChecker    = text.Text{ZH: "复核", EN: "Decided by"}
	tHistoryOf  = text.Text{ZH: "配置变更记录", EN: "Its changes so far"}
	tAge        = text.Text{ZH: "提出", EN: "Proposed"}
	tAprExpires = text.Text{ZH: "截止", EN: "Expires"}
	tAprNone    = text.Text{ZH: "还没有提议", EN: "No proposals yet"}
	tAprNoneHow = text.Text{
		ZH: "在异常或订单的页面上提出；由另一个人复核后生效。",
		EN: "Decisions are proposed on the page of an exception or an order, and take effect when another person approves them.",
	}
	tAprForYou  = text.Text{ZH: "待您复核", EN: "Waiting for you"}
	tAprOthers  = text.Text{ZH: "等待他人复核", EN: "Waiting for somebody else"}
	tAprRest    = text.Text{ZH: "其他", EN: "All others"}
	tAprYours   = text.Text{ZH: "待您复核", EN: "for you"}
	tAprOwn     = text.Text{ZH: "您提出的", EN: "yours"}
	tAloneHow   = text.Text{ZH: "本机构声明为单人操作：没有第二人复核。", EN: "This installation is set up for one person: nobody else checked this."}
	tAprWhat    = text.Text{ZH: "提议内容", EN: "What is proposed"}
	tAprVersion = text.Text{ZH: "对象版本", EN: "Version of the object"}
	tAprHashHow = text.Text{
		ZH: "复核的是这一份内容：对象、版本、金额和参数任何一项改变，复核都不成立。",
		EN: "The approval is for exactly this content. If the object, its version, the amount or a parameter changes, it is not valid.",
	}
	tAprPeople    = text.Text{ZH: "经办与复核", EN: "Who decides"}
	tAprNobody    = text.Text{ZH: "尚无人复核", EN: "nobody yet"}
	tAprAnswer    = text.Text{ZH: "渠道查询结果", EN: "What the supplier says"}
	tAprAnswerNew = text.Text{
		ZH: "复核时会重新查单；结果与提议相反时不能生效。",
		EN: "The supplier is queried again when you approve. A decision that contradicts its answer does not take effect.",
	}
	tAprNotAsked = text.Text{ZH: "渠道没有查询结果。", EN: "No answer from the supplier."}
	tAprUnproved = text.Text{
		ZH: "渠道无法查询或结果不明：这份提议未经渠道证实，只有财务主管可以复核。",
		EN: "The supplier cannot be queried, or its answer is unclear: the proposal is unverified, and only a lead may approve it.",
	}
	tAprUnclear = text.Text{
		ZH: "%s 查单时，渠道无法查询或没有给出明确结果。可以再次查单；仍不明时，财务主管可以复核并负责。",
		EN: "When it was last queried (%s), the supplier could not be reached or gave no clear answer. Ask again; if it stays unclear, a lead may approve and take responsibility.",
	}
	tAprContrary = text.Text{
		ZH: "%s 查单时，渠道结果为“%s”，与这份提议相反：不能复核通过，财务主管也不能。请驳回或撤回；结果可能已变时，可以再次查单。",
		EN: "When it was last queried (%s), the supplier said: %s. This contradicts the proposal, so nobody can approve it, not even a lead. Reject or withdraw it; if the answer may have changed, ask again.",
	}
	tAskAgain    = text.Text{ZH: "再次查单", EN: "Ask again"}
	tAskAgainHow = text.Text{
		ZH: "立刻再向渠道查询一次，结果显示在这里。不作复核。",
		EN: "Queries the supplier once more, at once, and shows the answer here. Nothing is approved.",
	}
	tAprTakes = text.Text{
		ZH: "渠道结果仍不明时也生效，由我负责（记入审计）",
		EN: "Also if the supplier's answer is still unclear: I take responsibility, and the audit records it",
	}
	tAprTaken = text.Text{
		ZH: "复核时渠道结果不明，由复核人负责。",
		EN: "The supplier's answer was unknown when this was approved; the checker took responsibility.",
	}
	tAprResult    = text.Text{ZH: "执行结果", EN: "Result"}
	tAprStarted   = text.Text{ZH: "开始执行", EN: "Started"}
	tAprTries     = text.Text{ZH: "执行次数", EN: "Runs"}
	tAprError     = text.Text{ZH: "错误", EN: "Error"}
	tAprWaits     = text.Text{ZH: "等待第二个人复核，%s 截止（%s）。", EN: "Waiting for a second person until %s (%s)."}
	tAprRuns      = text.Text{ZH: "已复核，正在执行。", EN: "Approved, and being carried out."}
	tAprDone      = text.Text{ZH: "已生效。", EN: "It took effect."}
	tAprFailed    = text.Text{ZH: "执行失败，没有生效（第 %d 次，最多 %d 次）。", EN: "It failed and had no effect (run %d of at most %d)."}
	tAprRejected  = text.Text{ZH: "已驳回，没有生效。", EN: "Rejected, without effect."}
	tAprWithdrawn = text.Text{ZH: "经办已撤回，没有生效。", EN: "Withdrawn by its maker, without effect."}
	tAprExpired   = text.Text{ZH: "超过期限无人复核，没有生效。", EN: "Nobody decided in time. It had no effect."}
	tApprove      = text.Text{ZH: "复核通过", EN: "Approve"}
	tReject       = text.Text{ZH: "驳回", EN: "Reject"}
	tWithdraw     = text.Text{ZH: "撤回", EN: "Withdraw"}
	tRepeatRun    = text.Text{ZH: "再次执行", EN: "Run it again"}
	tApproveHow   = text.Text{
		ZH: "您确认已核对左侧内容。复核后立即执行。",
		EN: "You confirm that you have checked what is proposed. It is carried out at once.",
	}
	tRejectHow   = text.Text{ZH: "提议结束，不生效；对象恢复为可处理。", EN: "The proposal ends without effect, and its object can be acted on again."}
	tWithdrawHow = text.Text{ZH: "收回您自己的提议。", EN: "Withdraws your own proposal."}
	tRepeatHow   = text.Text{ZH: "同一份复核再执行一次。", EN: "Carries out the same approval once more."}
	tOwnProposal = text.Text{
		ZH: "这是您自己的提议：需要另一个人复核。可以复核的角色：%s。",
		EN: "This is your own proposal: another person must approve it. Roles that may: %s.",
	}
	tWhoApproves   = text.Text{ZH: "可以复核的角色：%s。", EN: "Roles that may approve: %s."}
	tExportMaker   = text.Text{ZH: "提交人", EN: "Proposed by"}
	tExportChecker = text.Text{ZH: "复核人", EN: "Decided by"}
	tExportDecided = text.Text{ZH: "复核时间", EN: "Decided at"}
)
