package work

import (
	"slices"
	"strconv"
	"time"

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

// actions are those of the proposals that are shown to the viewer.
func (d ApprovalsData) actions() (all []string) {
	for _, a := range d.ForYou {
		all = append(all, a.Action)
	}
	slices.Sort(all)
	return slices.Compact(all)
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

// ApprovalData is what the page of one proposal shows.
type ApprovalData struct {
	*console.Approval
	Answer *console.Call // the supplier's newest one; nil = it was not asked
	Key    string        // of the one form that is sent
	Saved  bool
	May    approval.Verdicts // of the reader
	// Refused says why a verdict, sent just now, was not accepted; zero = none was refused.
	Refused text.Text
	// History is where the changes of the settings are that it is about; "" = it is about something else, or the
	// viewer may not see them.
	History templ.SafeURL
	// Plan is the batch that is approved, as its own page shows it; nil = it is about something else.
	Plan *BatchData
}

// ApprovalPage is one proposal: exactly what is decided, by whom, and what came of it.
func ApprovalPage(p *ui.Page, a ApprovalData) templ.Component {
	path := string(link.Approval(a.ID))
	return ui.DetailPage(p, ui.Detail{
		List: ui.Link{Href: "/approvals", Label: text.Approvals}, Saved: a.Saved,
		Notices: []templ.Component{ui.If(a.Refused != (text.Text{}), ui.Notice(p, "bad", p.T(a.Refused)))},
		Title:   p.T(wording.Action(a.Action)), State: ui.StateOf(ui.ApprovalStates, a.State), Tag: ui.If(a.SinglePerson, singlePerson(p)),
		About: []ui.Fact{ui.IDFact(text.Text{}, a.No(), "").Whole(), ui.TimeFact(text.Text{}, &a.MadeAt)},
		Says:  approvalSentence(p, a.Approval), Next: a.next(p), Until: &a.ExpiresAt,
		Main: slices.Concat(
			[]templ.Component{approvalContent(p, a)}, a.plan(p),
			[]templ.Component{
				ui.If(a.May.Asks || a.LiveAt != nil, answerPanel(p, a.Answer, a.LiveAnswer != "", answerMeans(p, a))),
				ui.If(a.StartedAt != nil, approvalResult(p, a)),
			},
		),
		Side: []templ.Component{
			approvalPeople(p, a.Approval),
			ui.If(a.May.Approve, panel.ReasonPanel(p, "approve", path+"/approve", a.Key, tApprove, tApproveHow, verdictFields(p, a),
				panel.Code(p, "approve-code"))),
			ui.If(a.May.Reject, panel.ReasonPanel(p, "reject", path+"/reject", a.Key, tReject, tRejectHow)),
			ui.If(a.May.Withdraw, panel.ReasonPanel(p, "withdraw", path+"/withdraw", a.Key, tWithdraw, tWithdrawHow)),
			ui.If(a.May.Retry, panel.ReasonPanel(p, "again", path+"/again", a.Key, tRepeatRun, tRepeatHow, verdictFields(p, a))),
		},
	})
}

// next says what went wrong, and who may decide.
func (a ApprovalData) next(p *ui.Page) (next []string) {
	if a.Error != "" {
		next = append(next, a.Error)
	}
	if a.SinglePerson {
		next = append(next, p.T(tAloneHow))
	}
	switch {
	case a.State != approval.Waiting || a.May.Approve:
	case a.MakerName == p.User:
		next = append(next, p.T(tOwnProposal, p.RoleNames(a.May.Roles)))
	default:
		next = append(next, p.T(tWhoApproves, p.RoleNames(a.May.Roles)))
	}
	return next
}

// content is exactly what is decided.
func (a ApprovalData) content(p *ui.Page) []ui.Fact {
	return slices.Concat(
		[]ui.Fact{
			ui.BodyFact(text.Object, about(p, a.Approval)),
			ui.LinkFact(tHistoryOf, a.ObjectID, a.History).If(a.History != ""),
			ui.TextFact(tAprVersion, "mono", strconv.FormatInt(a.Version, 10)).Technical(),
		},
		a.decided(p),
		[]ui.Fact{
			ui.TextFact(text.Reason, "wrap", a.Reason),
			ui.TextFact(text.Evidence, "wrap", a.Evidence).If(a.Evidence != wording.ProposalEvidence(a.Params)),
			ui.TextFact(text.ContentHash, "mono small wrap", a.Hash).Technical(),
		},
	)
}

// decided is the money and the parameters; of a batch, its plan.
func (a ApprovalData) decided(p *ui.Page) []ui.Fact {
	if a.Plan == nil {
		return append([]ui.Fact{ui.MoneyFact(text.Amount, a.Amount, a.Currency)}, wording.ProposalFacts(p, a.ObjectID, a.Params, a.Currency)...)
	}
	b := a.Plan.Progress.Batch
	return []ui.Fact{
		ui.TextFact(text.Action, "", actionTitle(p, b)),
		ui.BodyFact(text.Amount, sums(p, b.Planned.Acts())),
	}
}

// plan is what the page of the batch shows of it.
func (a ApprovalData) plan(p *ui.Page) []templ.Component {
	if a.Plan == nil {
		return nil
	}
	return []templ.Component{batchPlan(p, *a.Plan), batchLater(p, *a.Plan)}
}

// answerFacts are what a supplier said last.
func answerFacts(p *ui.Page, c *console.Call) []ui.Fact {
	facts := []ui.Fact{
		ui.TextFact(text.Outcome, "strong", p.T(wording.CallResult(c))),
		ui.BodyFact(text.Time, answeredAt(p, c.StartedAt)),
		ui.SupplierFact(p, c.Supplier),
	}
	if c.TookUS != nil {
		facts = append(facts, ui.TextFact(text.Took, "", p.Took(time.Duration(*c.TookUS)*time.Microsecond)))
	}
	return facts
}

// Why a verdict was refused, as the page then shows it.
var (
	RefusedByAnswer = text.Text{
		ZH: "没有生效：见下方的渠道查询结果。",
		EN: "Nothing took effect: see what the supplier says, below.",
	}
	RefusedAsLate = text.Text{
		ZH: "您的操作没有生效：这份提议此前已经结束，结果如下。",
		EN: "Your decision had no effect: the proposal had already ended, as shown here.",
	}
)

// aboutLink leads to what a proposal is about; "" = it has no page.
func aboutLink(object, id string) templ.SafeURL {
	switch object {
	case "exception":
		return templ.URL("/exceptions/" + id)
	case "order":
		return link.Order(id)
	case "compensation":
		return templ.URL("/compensations/" + id)
	case "batch":
		return templ.URL("/batches/" + id)
	case "refund":
		return link.Refund(id)
	case "payout":
		return link.Payout(id)
	}
	return ""
}

// approvalSentence says where a proposal stands.
func approvalSentence(p *ui.Page, a *console.Approval) string {
	switch a.State {
	case approval.Waiting:
		return p.T(tAprWaits, p.Full(a.ExpiresAt), p.Away(a.ExpiresAt))
	case approval.Approved, approval.Executing:
		return p.T(tAprRuns)
	case approval.Done:
		return p.T(tAprDone)
	case approval.Failed:
		return p.T(tAprFailed, a.Tries, wording.MaxRuns)
	case approval.Rejected:
		return p.T(tAprRejected)
	case approval.Withdrawn:
		return p.T(tAprWithdrawn)
	}
	return p.T(tAprExpired)
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
	tWhoApproves = text.Text{ZH: "可以复核的角色：%s。", EN: "Roles that may approve: %s."}
)

var tExportMaker = text.Text{ZH: "提交人", EN: "Proposed by"}

var tExportChecker = text.Text{ZH: "复核人", EN: "Decided by"}

var tExportDecided = text.Text{ZH: "复核时间", EN: "Decided at"}
