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
		Title:   p.T(wording.Action(a.Action)), State: ui.StateOf(ui.ApprovalStates, a.State), Tag: ui.If(a.SinglePerson, ui.Styled("tag", p.T(text.SinglePerson))),
		About: []ui.Fact{ui.IDFact(text.Text{}, a.No(), "").Whole(), ui.TimeFact(text.Text{}, &a.MadeAt)},
		Says:  approvalSentence(p, a.Approval), Next: a.next(p), Until: &a.ExpiresAt,
		Main: slices.Concat(
			[]templ.Component{approvalContent(p, a)}, a.plan(p),
			[]templ.Component{
				approvalAnswer(p, a),
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

// approvalContent is exactly what is decided.
func approvalContent(p *ui.Page, a ApprovalData) templ.Component {
	return panel.Body(
		p, "what-title", tAprWhat,
		ui.Say(p.T(wording.Decisions[a.Action].Effect)), ui.FactList(p, a.content(p)...), panel.Small(p.T(tAprHashHow)),
	)
}

func approvalResult(p *ui.Page, a ApprovalData) templ.Component {
	return panel.Body(
		p, "result-title", tAprResult,
		ui.FactList(
			p, ui.TimeFact(tAprStarted, a.StartedAt), ui.TimeFact(tEnded, a.DoneAt),
			ui.TextFact(tAprTries, "", strconv.FormatInt(a.Tries, 10)), ui.TextFact(tAprError, "wrap", a.Error),
		),
		ui.If(a.Result != "" && a.Plan == nil, ui.Code(a.Result)),
	)
}

func approvalPeople(p *ui.Page, a *console.Approval) templ.Component {
	return panel.Body(
		p, "people", tAprPeople,
		ui.FactList(
			p, ui.TextFact(tMaker, "strong", wording.Maker(p, a)),
			ui.TimeFact(text.Time, &a.MadeAt),
			ui.TextFact(tChecker, "strong", a.CheckerName),
			ui.TextFact(tChecker, "muted", p.T(tAprNobody)).If(a.CheckerName == "" && !a.SinglePerson),
			ui.TimeFact(text.Time, a.DecidedAt),
			ui.TextFact(text.Reason, "wrap", a.CheckerReason),
		),
		ui.If(a.Unverified, ui.Say(p.T(tAprTaken))),
	)
}

// verdictFields are what a verdict says besides its reason.
func verdictFields(p *ui.Page, a ApprovalData) templ.Component {
	return templ.Join(ui.Hidden("hash", a.Hash), ui.If(a.May.Unverified, panel.Check("unverified", p.T(tAprTakes))))
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

// approvalAnswer is what the supplier says last of what is proposed, what that means, and how to ask again.
func approvalAnswer(p *ui.Page, a ApprovalData) templ.Component {
	if !a.May.Asks && a.LiveAt == nil {
		return templ.NopComponent
	}
	var means []templ.Component
	unverified := wording.IsUnverified(a.Params)
	if unverified {
		means = append(means, ui.Notice(p, "warn", p.T(tAprUnproved)))
	}
	if a.LiveContrary {
		said := p.T(ui.TextFor(ui.SaidTexts, a.LiveAnswer))
		means = append(means, ui.Notice(p, "bad", p.T(tAprContrary, p.Full(*a.LiveAt), said)))
	} else if a.Unclear() && !unverified {
		means = append(means, ui.Notice(p, "warn", p.T(tAprUnclear, p.Full(*a.LiveAt))))
	}
	means = append(
		means, ui.If(a.State == approval.Waiting, panel.Small(p.T(tAprAnswerNew))),
		ui.If(a.May.Query, panel.QueryForm(p, link.Approval(a.ID)+"/query", a.Key, tAskAgain, tAskAgainHow)),
	)
	return answerPanel(p, a.Answer, a.LiveAnswer != "", means...)
}

// answerPanel is what a supplier said last, with its time, and what that means; said = that tells what it
// said.
func answerPanel(p *ui.Page, c *console.Call, said bool, means ...templ.Component) templ.Component {
	var parts []templ.Component
	if c == nil && !said {
		parts = append(parts, panel.Paragraph("muted", p.T(tAprNotAsked)))
	}
	if c != nil {
		parts = append(parts, ui.FactList(p, answerFacts(p, c)...))
		if c.Request != "" || c.Answer != "" {
			raw := ui.Code(c.Request + "\n\n" + c.Answer)
			parts = append(parts, panel.Fold(p, "call-"+strconv.FormatInt(c.ID, 36), p.T(text.ReqRes), raw))
		}
	}
	return panel.Body(p, "answer-title", tAprAnswer, append(parts, means...)...)
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
