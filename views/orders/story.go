package orders

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/internal/suppliercall"
	"backstop/views/panel"
	"backstop/views/ui"
)

// StoryData is what the page of one order shows.
type StoryData struct {
	*console.Story
	Phase console.Phase // of the events that are shown; "" = all
	// What the person may do; the keys mark this showing of the forms, Did what the
	// form did that led here.
	CanResend, CanControl, CanAsk, CanNote, CanExport bool
	ResendKey, AskKey, NoteKey                        string
	Did                                               *audit.Row
	Colleagues                                        []string           // whom a note can reach
	Proposals                                         []console.Approval // what was proposed so far; of the whole page alone
	// Approvers returns the roles that may approve a proposal.
	Approvers func(*approval.Approval) []string
	Unmask    panel.Unmask
	Print     bool // for paper: everything is open
	timeline       // set by fitted
}

func (s StoryData) asks() bool { return s.Asking != nil && s.CanAsk }

func (s StoryData) resends() bool { return s.Resend != nil && s.CanResend }

// actions are the buttons beside the number of an order.
func (s StoryData) actions(p *ui.Page) parts {
	return parts{
		panel.UnmaskButton(p, s.Unmask),
		ui.If(s.CanNote, panel.Opener(p, "", "note", "user", text.Note)),
		ui.If(s.asks(), panel.Opener(p, "", "ask", "search", text.QueryNow)),
		ui.If(slices.Contains(p.Decides, "refund"), ui.ButtonLink(p, "#refund-amount", ui.Act{Icon: "undo-2", Label: text.Refund})),
		ui.If(s.resends(), panel.Opener(p, "primary", "resend", "send", text.Resend)),
	}
}

// line is the CSS class of an item: its mood and its phase.
func line(i console.Item) string {
	kind := "idle"
	switch {
	case i.Callback != nil:
		kind = ui.OutcomeState(i.Callback.Outcome).Kind
	case i.Move != nil && i.Move.From != "":
		kind = ui.StateOf(ui.OrderStates, string(i.Move.To)).Kind
	case i.Attempt != nil && i.Attempt.Class == notify.OK:
		kind = "ok"
	case i.Attempt != nil, i.Exception != nil:
		kind = "bad"
	case i.Call != nil && i.Call.TookUS != nil && !i.Call.Class.Healthy() && i.Call.Status != suppliercall.NotMade:
		kind = "warn"
	case i.Breaker != nil:
		kind = ui.StateOf(ui.BreakerStates, string(i.Breaker.To)).Kind
	case i.Settled != nil:
		kind = ui.StateOf(ui.ExceptionStates, i.Settled.State).Kind
	case i.Ran != nil && i.Ran.State == approval.Failed:
		kind = "bad"
	case i.Refund != nil:
		kind = ui.StateOf(ui.RefundStates, i.Refund.To).Kind
	case i.Dispute != nil:
		kind = ui.StateOf(ui.DisputeStates, i.Dispute.To).Kind
	case i.Act != nil, i.Proposal != nil, i.Verdict != nil, i.Ran != nil:
		kind = "info"
	case i.Plan != nil:
		kind = "next"
	}
	return kind + " ph-" + string(i.Phase)
}

// icons are those of events; a clock stands for the others.
var icons = map[console.ItemKind]string{
	console.ItemCallback: "webhook", console.ItemStatus: "arrow-right-left", console.ItemNotification: "bell-ring",
	console.ItemAttempt: "send", console.ItemException: "triangle-alert", console.ItemSettled: "wrench", console.ItemBreaker: "zap-off",
	console.ItemCall: "search", console.ItemAct: "user", console.ItemProposal: "user", console.ItemVerdict: "user",
	console.ItemRefund: "undo-2", console.ItemDispute: "scale",
}

func dotIcon(i console.Item) string {
	if i.Move != nil && i.Move.From == "" {
		return "receipt-text"
	}
	return cmp.Or(icons[i.Kind()], "clock")
}

func planText(p *ui.Page, plan *console.Plan) string {
	switch plan.Kind {
	case console.PlanAttempt:
		return p.T(tPlanAttempt, plan.Number, plan.Of)
	case console.PlanProbe:
		return p.T(tPlanProbe)
	case console.PlanLast:
		return p.T(tPlanLast, plan.Number)
	case console.PlanReclaim:
		return p.T(tPlanReclaim, plan.Number)
	case console.PlanAsk:
		return p.T(tPlanAsk)
	case console.PlanClose:
		return p.T(tPlanClose)
	}
	return p.T(tPlanExpire)
}

// itemTook is how long an event took.
func itemTook(p *ui.Page, i console.Item) string {
	switch {
	case i.Attempt != nil:
		return p.Fine(i.Attempt.TookUS)
	case i.Callback != nil:
		var took int64
		for _, step := range i.Callback.Steps {
			took += step.TookUS
		}
		if took > 0 {
			return p.Fine(took)
		}
	}
	return ""
}

func requestAndAnswer(a *notify.Attempt) string {
	parts := []string{"POST " + a.URL + "\n" + strings.TrimSpace(a.RequestHeader)}
	if a.ResponseHeader != "" || len(a.ResponseBody) > 0 {
		parts = append(parts, strings.TrimSpace(a.ResponseHeader)+"\n\n"+string(a.ResponseBody))
	}
	return strings.Join(parts, "\n\n")
}

// maxRaw is how much of one raw text the story shows, in bytes.
const maxRaw = 8 << 10

// mostShown is the number of lines up to which a difference is expanded.
const mostShown = 12

// pretty writes JSON a field a line, and anything else as it came.
func pretty(text string) string { return strings.Join(bodyLines([]byte(text)), "\n") }

// expectation is what the merchant's rule for success wanted of an attempt that
// was answered, and what it got; "" where the rule is not why it failed.
func expectation(p *ui.Page, s StoryData, a *notify.Attempt) (want, got string) {
	subscriber := slices.ContainsFunc(s.Deliveries, func(d notify.Delivery) bool { return d.ID == a.DeliveryID && d.ToSubscriber })
	if subscriber || a.Class != notify.BadStatus && a.Class != notify.Gone && a.Class != notify.BadText {
		return "", ""
	}
	if s.AckText == "" {
		return p.T(tExpectStatus), p.T(tGotStatus, a.HTTPStatus)
	}
	const most = 120 // of an answer in a line
	body := textlimit.Clip(string(a.ResponseBody), most)
	return p.T(tExpectText, strconv.Quote(s.AckText)), p.T(tGotText, a.HTTPStatus, strconv.Quote(body))
}

// repeatOf is the first callback of the order, for one that is not it.
func repeatOf(s *console.Story, c *console.Callback) *console.Callback {
	for _, i := range s.Items {
		if i.Callback != nil {
			if i.Callback == c {
				return nil
			}
			return i.Callback
		}
	}
	return nil
}

// moneyState compares what was paid with what was asked for, and with what the
// supplier holds besides.
func moneyState(s *console.Story) ui.State {
	o := s.Order
	switch {
	case len(s.Received().Unbooked) > 0:
		return ui.State{Kind: "bad", Icon: "scale", Label: tHeldMore}
	case len(s.Received().Held) > 0:
		return ui.State{Kind: "warn", Icon: "scale", Label: tInSuspense}
	case len(takenBack(s)) > 0:
		return ui.State{Kind: "warn", Icon: "scale", Label: tTakenMore}
	case o.PaidAmount == 0:
		return ui.State{Kind: "idle", Icon: "clock", Label: tUnpaid}
	case o.PaidAmount == o.Amount:
		return ui.State{Kind: "ok", Icon: "check", Label: tMatch}
	}
	return ui.State{Kind: "bad", Icon: "scale", Label: tDiffers}
}

// phases are the filters above a story.
var phases = []struct {
	phase console.Phase
	label text.Text
}{
	{console.PaymentPhase, text.Text{ZH: "收款", EN: "Payment"}},
	{console.DeliveryPhase, text.Text{ZH: "通知", EN: "Delivery"}},
	{console.RefundPhase, text.Refunds},
	{console.DisputePhase, text.Disputes},
	{console.ExceptionPhase, text.Exceptions},
	{console.PeoplePhase, text.Text{ZH: "人工", EN: "People"}},
	{console.PlanPhase, text.Text{ZH: "计划", EN: "Planned"}},
}

func inPhase(s *console.Story, phase console.Phase) (n int64) {
	for _, i := range s.Items {
		if i.Phase == phase {
			n++
		}
	}
	return n
}

// Texts of this page.
var (
	tExpectText   = text.Text{ZH: "2xx，且正文为 %s", EN: "2xx and the body %s"}
	tExpectStatus = text.Text{ZH: "2xx", EN: "2xx"}
	tGotText      = text.Text{ZH: "HTTP %d，正文 %s", EN: "HTTP %d, body %s"}
	tGotStatus    = text.Text{ZH: "HTTP %d", EN: "HTTP %d"}
	tStep         = text.Text{ZH: "第 %d 步", EN: "Step %d"}
	tPlanLast     = text.Text{
		ZH: "若都失败：第 %d 次为最后一次，之后转为异常，需人工处理",
		EN: "If all fail: attempt %d is the last one; after that a person is needed",
	}
	tPlanAttempt = text.Text{ZH: "计划：通知第 %d 次（共 %d 次）", EN: "Planned: attempt %d of %d"}
	tPlanExpire  = text.Text{ZH: "计划：付款时限到", EN: "Planned: the order expires"}
	tPlanAsk     = text.Text{ZH: "计划：再次查单", EN: "Planned: the supplier is queried again"}
	tPlanClose   = text.Text{ZH: "计划：关单确认结束", EN: "Planned: closing ends"}
	tPlanReclaim = text.Text{ZH: "若第 %d 次没有结果，届时重发", EN: "If attempt %d has no result, it is repeated"}
	tMatch       = text.Text{ZH: "相符", EN: "Match"}
	tDiffers     = text.Text{ZH: "不符", EN: "Differs"}
	tUnpaid      = text.Text{ZH: "未付", EN: "Unpaid"}
	tHeldMore    = text.Text{ZH: "渠道有未入账款", EN: "Not all is booked"}
	tInSuspense  = text.Text{ZH: "有款项挂账", EN: "Held in suspense"}
	tTakenMore   = text.Text{ZH: "有退款或争议", EN: "Refund or dispute"}
	tCalled      = text.Text{ZH: "调用渠道", EN: "Called the supplier"}
	tEvidenceGet = text.Text{ZH: "导出证据", EN: "Export evidence"}
	tPlanProbe   = text.Text{ZH: "计划：放行一笔探测", EN: "Planned: one notification is sent as a probe"}
)
