package overview

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	"backstop/internal/alert"
	"backstop/internal/audit"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/report"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// AttentionData is the list of what needs an operator.
type AttentionData struct {
	console.AttentionParts
	Filter console.AttentionFilter
	More   bool
	Alerts bool // the viewer may read alerts
}

// NewAttention is what the viewer sees of what was read.
func NewAttention(p *ui.Page, a console.Attention, v console.Viewer, f console.AttentionFilter) AttentionData {
	title := func(t console.Todo) string { return attentionLook(p, t).title }
	return AttentionData{AttentionParts: a.Parts(v, f, title), Filter: f, More: a.More, Alerts: v.Alerts}
}

// nowRows is where the lines are that need an operator now.
func (d AttentionData) nowRows() string {
	return strings.TrimSuffix("/?"+d.Filter.Values().Encode(), "?") + "#now-title"
}

// empty reports whether no line is shown.
func (d AttentionData) empty() bool {
	return len(d.Now)+len(d.InHand)+len(d.Snoozed)+len(d.Ended) == 0
}

// maxLines bounds the lines of the page; the filter and the export have all of them.
const maxLines = 100

// chips are the filters that are set.
func (d AttentionData) chips(p *ui.Page) (all []ui.Chip) {
	values := map[string]string{"text": d.Filter.Text, "matter": p.T(matterWords[d.Filter.Matter]), "who": p.T(text.Unassigned)}
	if d.Filter.Who == console.Mine {
		values["who"] = p.T(tAssignedMe)
	}
	for _, f := range []struct {
		name  string
		label text.Text
	}{{"text", tContains}, {"matter", text.Kind}, {"who", text.Assignee}} {
		v := d.Filter.Values()
		if !v.Has(f.name) {
			continue
		}
		v.Del(f.name)
		all = append(all, ui.Chip{
			Name: f.name, Label: p.T(f.label), Value: values[f.name], Without: strings.TrimSuffix("/?"+v.Encode(), "?"),
		})
	}
	return all
}

// AttentionRow is a line of the exported list: one for each of its currencies.
type AttentionRow struct {
	line console.Todo
	sum  report.Sum
}

// Rows returns the rows of the exported list, in the order of the page.
func (d AttentionData) Rows() (rows []AttentionRow) {
	for _, part := range d.All() {
		for _, t := range part {
			if len(t.Sums) == 0 {
				rows = append(rows, AttentionRow{line: t})
			}
			for _, m := range t.Sums {
				rows = append(rows, AttentionRow{t, m})
			}
		}
	}
	return rows
}

// AttentionColumns are those of the exported list.
var AttentionColumns = []ui.Column[AttentionRow]{
	ui.TimeCol("since", tOpenSince, func(r AttentionRow) *int64 { return ui.MomentOr(r.line.Oldest) }),
	ui.WordCol("matter", text.Kind, func(p *ui.Page, r AttentionRow) string {
		return p.T(ui.TextFor(matterWords, string(r.line.Matter)))
	}),
	ui.WordCol("title", tWhatIs, func(p *ui.Page, r AttentionRow) string { return attentionLook(p, r.line).title }),
	ui.StateCol("state", text.State, func(r AttentionRow) ui.State {
		if r.line.Incident == nil {
			return ui.State{}
		}
		return ui.StateOf(ui.IncidentStates, r.line.Incident.State)
	}),
	ui.TextCol("assignee", text.Assignee, func(r AttentionRow) string { return r.line.Assignee() }),
	ui.TextCol("currency", text.Currency, func(r AttentionRow) string { return r.sum.Currency }),
	ui.MoneyCol("amount", text.Amount, func(r AttentionRow) (int64, string) { return r.sum.Minor, r.sum.Currency }),
}

// matterWords are what lines are about.
var matterWords = map[string]text.Text{
	string(console.MatterIncident):   {ZH: "告警事件", EN: "Incident"},
	string(console.MatterExceptions): {ZH: "异常款", EN: "Exceptions"},
	string(console.MatterApprovals):  {ZH: "待复核", EN: "Proposals"},
	string(console.MatterBreaker):    {ZH: "熔断", EN: "Breaker"},
	string(console.MatterUnreached):  {ZH: "渠道熔断", EN: "Supplier's breaker"},
}

// attentionLine is how a line of the list looks.
type attentionLine struct {
	todoLine
	tone string
}

func attentionLook(p *ui.Page, t console.Todo) attentionLine {
	i := t.Incident
	if i == nil {
		return attentionLine{lineOf(p, t), "t-bad"}
	}
	l := todoLine{
		icon: incidentIcon(i.Rule), title: p.T(tIncidentLine, titleOf(p, i.Rule), cmp.Or(t.Name, wording.AlertSubject(p, i.Subject))),
		href: incidentLink(i.ID),
	}
	switch {
	case !i.Runs(): // its sums are of its last alert
	case i.Rule == alert.BreakerOpened:
		l.rows = link.Unnotified(t.Code)
	case i.Rule == alert.SupplierUnreachable:
		l.rows = link.Awaited(t.Code)
	}
	if i.Firings > 1 {
		l.note = p.T(tFiredTimes, ui.Count(i.Firings))
	}
	if i.Runs() && i.ClearedAt != nil {
		l.note = p.T(tCalmSince, p.Short(*i.ClearedAt))
	}
	if t.Waits > 0 {
		l.note = strings.TrimPrefix(l.note+" · "+p.T(tTodoParked, ui.Count(t.Waits)), " · ")
	}
	tone := "t-bad"
	if i.State != alert.Open {
		tone = "muted"
	}
	return attentionLine{l, tone}
}

// titleOf is a rule's title as a heading; within messages it follows a colon.
func titleOf(p *ui.Page, rule string) string {
	title := alert.Title(rule, p.Language)
	if p.Language != "en" {
		return title
	}
	return strings.ToUpper(title[:1]) + title[1:]
}

func incidentIcon(rule string) string {
	switch rule {
	case alert.BreakerOpened, alert.SupplierUnreachable:
		return "zap-off"
	case alert.SupplierSilent:
		return "webhook"
	case alert.QueueLength, alert.QueueForecast:
		return "layers"
	case alert.BooksDiffer, alert.CountersDiffer, alert.MerchantNegative:
		return "scale"
	case alert.PayoutRefused, alert.WrongKey, alert.BreakGlass:
		return "shield-alert"
	}
	return "triangle-alert"
}

func incidentLink(id int64) templ.SafeURL {
	return templ.SafeURL("/attention/" + strconv.FormatInt(id, 10))
}

// IncidentData is the page of one incident.
type IncidentData struct {
	*console.IncidentDetail
	People    []string // to whom it may be assigned
	CanHandle bool
	Key       string
	Did       *audit.Row // what the viewer has just done
}

// IncidentPage is one incident: what it holds up, what happened and what may be done.
func IncidentPage(p *ui.Page, x IncidentData) templ.Component {
	d := ui.Detail{
		List: ui.Link{Href: "/", Label: tNeedsYou}, Notices: []templ.Component{panel.Did(p, x.Did)},
		Title: titleOf(p, x.Incident.Rule), State: ui.StateOf(ui.IncidentStates, x.State),
		About: []ui.Fact{
			ui.TextFact(text.Text{}, "", wording.AlertSubject(p, x.Subject)), ui.TimeFact(text.Text{}, &x.OpenedAt),
			ui.TextFact(text.Text{}, "", p.Away(x.OpenedAt)),
		},
		Says: x.now(p), Next: []string{x.messages(p)},
		Main: []templ.Component{incidentTimeline(p, x)},
		Side: []templ.Component{incidentFacts(p, x), incidentAdvice(p, x.Incident.Rule)},
	}
	if x.CanHandle && x.Runs() {
		d.Actions, d.Foot = []templ.Component{incidentActs(p, x)}, []templ.Component{incidentDialogs(p, x)}
	}
	return ui.DetailPage(p, d)
}

// facts are what the incident affects.
func (x IncidentData) facts(p *ui.Page) []ui.Fact {
	facts := []ui.Fact{
		ui.TextFact(text.SubjectWord, "strong", wording.AlertSubject(p, x.Subject)),
		ui.TextFact(text.Worst, "", alert.Level(x.Incident.Rule, x.Value)).If(x.Rule.Watches()),
		ui.TextFact(text.FiresAt, "", wording.AlertLimit(p, x.Rule)).If(x.Rule.Watches()),
		ui.TextFact(text.Times, "", ui.Count(x.Firings)),
	}
	for _, m := range x.Line.Sums {
		facts = append(facts, ui.MoneyFact(text.Amount, m.Minor, m.Currency))
	}
	return append(facts, ui.TimeFact(tLastFired, &x.FiredAt), ui.TextFact(text.Assignee, "", x.assignee(p)))
}

func (x IncidentData) action(name string) templ.SafeURL {
	return templ.SafeURL(string(incidentLink(x.ID)) + "/" + name)
}

func (x IncidentData) assignee(p *ui.Page) string {
	if x.Assignee == "" {
		return p.T(text.Unassigned)
	}
	return x.Assignee
}

// now says whether the problem lasts.
func (x IncidentData) now(p *ui.Page) string {
	switch {
	case x.OverAt != nil:
		return p.T(tIsOver, p.Short(*x.OverAt))
	case x.ClearedAt != nil:
		return p.T(tIsCalm, p.Short(*x.ClearedAt), p.Short(x.EndsAt(x.Rule.QuietS)))
	case x.ByHand():
		return p.T(tIsEvent)
	}
	return p.T(tIsFiring, p.Short(x.OpenedAt))
}

// messages says which messages are sent about it.
func (x IncidentData) messages(p *ui.Page) string {
	switch x.State {
	case alert.Acknowledged:
		return p.T(tAckMessages, x.assignee(p))
	case alert.Snoozed:
		return p.T(tSnoozeMessages, p.Short(*x.SnoozedUntil))
	case alert.Over:
		return p.T(tOverMessages)
	}
	return p.T(tOpenMessages)
}

// event says what happened.
func (x IncidentData) event(p *ui.Page, e alert.IncidentEvent) string {
	return p.T(ui.TextFor(eventWords, e.Kind))
}

// eventMore says how much, to whom or until when, and who did it.
func (x IncidentData) eventMore(p *ui.Page, e alert.IncidentEvent) string {
	more := ""
	switch e.Kind {
	case alert.EventFired:
		if e.Alert.State != alert.Happened {
			more = wording.AlertLevel(p, *e.Alert)
		} else if e.Alert.Count > 1 {
			more = p.T(tFiredTimes, ui.Count(e.Alert.Count))
		}
	case alert.EventNotified:
		more = e.Detail
	case alert.EventSilent:
		more = p.T(ui.StateOf(ui.IncidentStates, e.Detail).Label)
	case alert.EventAssigned:
		if more = e.Detail; more == "" {
			more = p.T(text.Unassigned)
		}
	case alert.EventSnoozed:
		more = p.T(tSnoozedTo) + " " + p.Short(e.Until().UnixMicro())
	}
	if e.Actor != "" {
		if more != "" {
			more += " · "
		}
		more += e.Actor
	}
	return more
}

// rowsOf returns the page with exactly the rows behind an incident, and what to call it.
func rowsOf(t console.Todo) (templ.SafeURL, text.Text) {
	code := link.Query(t.Code)
	switch t.Kind {
	case alert.BreakerOpened:
		return link.Unnotified(t.Code), tRowsWaitingFor
	case alert.SlowMerchant:
		return templ.URL("/notifications?merchant=" + code), text.Notifications
	case alert.SupplierUnreachable:
		return link.Awaited(t.Code), tRowsAwaiting
	case alert.SupplierSilent:
		return templ.URL("/callbacks?supplier=" + code), text.Callbacks
	case alert.StuckOrders:
		return "/orders?no_result=yes", tRowsAwaiting
	case alert.OurFault:
		return templ.URL("/notifications?cause=" + code), text.Notifications
	case alert.ErrorRate:
		return "/notifications?status=exhausted", text.Notifications
	case alert.SuccessRate, alert.AnswerTime, alert.TargetDisabled:
		return "/notifications", text.Notifications
	case alert.MerchantNegative:
		return templ.URL("/accounts/" + url.PathEscape("merchant:"+t.Code)), text.Accounts
	case alert.PayoutRefused:
		merchant, _, _ := strings.Cut(t.Code, " ")
		return link.Merchant(merchant), text.Merchant
	case alert.BreakGlass:
		return templ.URL("/audit?actor=" + url.QueryEscape(t.Code)), text.Audit
	case alert.BatchStopped:
		return "/batches", text.Batches
	case alert.CountersDiffer, alert.BooksDiffer:
		return "/sweeps", text.Sweeps
	case alert.QueuePaused:
		return link.Queue(t.Code), text.Queues
	case alert.QueueLength:
		return "/queues", text.Queues
	case alert.QueueForecast, alert.RateForecast:
		return "/analytics", text.Analytics
	}
	return "/", text.Today
}

// advice is what to do about incidents of a rule, and the chapter of the runbook.
type advice struct {
	text    text.Text
	chapter string
}

func adviceFor(rule string) advice {
	if a, ok := advices[rule]; ok {
		return a
	}
	return advice{tAdviceAny, "alerts"}
}

// RunbookPath is the path of what to do about incidents of a rule.
func RunbookPath(rule string) string { return "/runbook#" + adviceFor(rule).chapter }

func runbookLink(rule string) templ.SafeURL { return templ.URL(RunbookPath(rule)) }

const (
	stuckChapter    = "what-is-stuck-and-what-happens-by-itself"
	backlogChapter  = "a-backlog"
	failuresChapter = "a-low-success-rate"
)

// advices are short forms of the runbook, for whoever stands at the phone.
var advices = map[string]advice{
	alert.BreakerOpened: {text.Text{
		ZH: "请商户检查通知地址。恢复后在商户页探测或解除熔断，挂起的通知会自动发出。",
		EN: "Ask the merchant to check its endpoint. Once it works, probe or close the breaker on the merchant's page; waiting notifications are then sent automatically.",
	}, "merchants-that-cannot-be-notified"},
	alert.SlowMerchant: {
		text.Text{
			ZH: "商户响应慢，会占用它自己的通道，不影响其他商户。请商户检查通知地址。",
			EN: "The merchant answers slowly. It uses up its own slots and delays no other merchant. Ask it to check its endpoint.",
		},
		"merchants-that-cannot-be-notified",
	},
	alert.SupplierUnreachable: {text.Text{
		ZH: "查看渠道公告、调用密钥和出口网络。查单和关单会等到探测成功，回调照常处理。",
		EN: "Check the supplier's status page, the keys for calls and the outbound network. Queries and closes wait for the probe; callbacks are processed as usual.",
	}, stuckChapter},
	alert.SupplierSilent: {
		text.Text{
			ZH: "检查渠道后台的回调地址和来源地址白名单。已发起支付的订单会自动查单。",
			EN: "Check the callback address at the supplier and the allowlist. Orders with a started payment are queried automatically.",
		},
		stuckChapter,
	},
	alert.QueueLength: {text.Text{
		ZH: "找出积压最多的商户或渠道；没有集中的，就增加 worker 节点。",
		EN: "Find the merchant or supplier to which most rows belong. If none stands out, add nodes with the role worker.",
	}, backlogChapter},
	alert.QueuePaused: {text.Text{
		ZH: "操作员暂停了这个队列，原因见队列页面。问题解决后请恢复，等待的任务会自动继续。",
		EN: "An operator paused this queue; its page says who and why. Resume it once the problem is solved; waiting tasks then continue automatically.",
	}, "pausing-a-queue"},
	alert.QueueForecast: {text.Text{
		ZH: "积压还没有到上限。查看预测的依据，并提前找出增长最快的商户或渠道。",
		EN: "The backlog has not reached its limit yet. Check what the forecast is based on, and find the merchant or supplier that grows fastest.",
	}, backlogChapter},
	alert.SuccessRate: {text.Text{
		ZH: "按失败原因查看通知；集中在某个商户时，它会自动熔断。",
		EN: "Look at the notifications by cause. If one merchant stands out, its breaker opens automatically.",
	}, failuresChapter},
	alert.ErrorRate: {text.Text{
		ZH: "按失败原因查看通知失败的订单，原因消除后批量补发。",
		EN: "Look at the exhausted notifications by cause. Once the cause is removed, send them again as a batch.",
	}, failuresChapter},
	alert.StuckOrders: {text.Text{
		ZH: "到渠道侧核实这些订单；系统会继续查单。",
		EN: "Check these orders with the supplier; Backstop keeps querying them.",
	}, stuckChapter},
	alert.OurFault: {text.Text{
		ZH: "这些通知在等我方：检查主密钥、程序版本和 BACKSTOP_NOTIFY_ALLOW_CIDRS。等待不计入重试次数。",
		EN: "These notifications wait because of a fault on our side: check the master key, the version and BACKSTOP_NOTIFY_ALLOW_CIDRS. No attempt is counted meanwhile.",
	}, "notifications-that-wait-for-us"},
	alert.RedisDown: {text.Text{
		ZH: "重新启动 Redis，无需恢复数据；期间由数据库推进，会慢一些。",
		EN: "Start Redis again; nothing has to be restored. The database drives the work meanwhile, a little slower.",
	}, stuckChapter},
	alert.TestModeDown: {text.Text{
		ZH: "节点日志（mode=test）写明原因；真实收款不受影响，每 30 秒自动重试。",
		EN: "The log of the node says why (mode=test). Live payments are not affected, and it is tried again every 30 s.",
	}, "alerts"},
	alert.WrongKey: {text.Text{ZH: "把当前使用的主密钥交给该节点并重启它。", EN: "Give the node the master key in use and restart it."}, "keys"},
	alert.BooksDiffer: {text.Text{
		ZH: "运行 backstop verify 查看涉及的行；处理完成后关闭本事件。",
		EN: "Run backstop verify and look at the rows that it names. Close the incident once they are dealt with.",
	}, "checking-the-books"},
	alert.CountersDiffer: {text.Text{
		ZH: "统计已按明细更正。核对涉及的数字后关闭本事件。",
		EN: "The figures were corrected from their rows. Check those that are named, then close the incident.",
	}, "the-sweep"},
	alert.PayoutRefused: {text.Text{
		ZH: "向商户核实这些请求；不是它发出的，就立即更换密钥。",
		EN: "Ask the merchant whether it sent these requests. If it did not, replace its key at once.",
	}, "alerts"},
	alert.BreakGlass: {text.Text{
		ZH: "确认登录的是本人，且确有必要；否则立即重置其密码并结束其登录。",
		EN: "Make sure that it was this person, and necessary. If not, reset the password and end the sessions at once.",
	}, "alerts"},
	alert.MerchantNegative: {text.Text{
		ZH: "与商户商定补足办法；在此之前其出款会被拒绝。",
		EN: "Agree with the merchant how to fill the account; until then its payouts are refused.",
	}, "alerts"},
}

var eventWords = map[string]text.Text{
	alert.EventFired:        {ZH: "触发", EN: "Fired"},
	alert.EventCleared:      {ZH: "恢复", EN: "Cleared"},
	alert.EventNotified:     {ZH: "已发送消息", EN: "Notified"},
	alert.EventSilent:       {ZH: "未发送消息", EN: "No message sent"},
	alert.EventAcknowledged: {ZH: "已认领", EN: "Acknowledged"},
	alert.EventAssigned:     {ZH: "已指派", EN: "Assigned"},
	alert.EventSnoozed:      {ZH: "已暂缓", EN: "Snoozed"},
	alert.EventWoke:         {ZH: "暂缓到期", EN: "Snooze ended"},
	alert.EventResumed:      {ZH: "恢复发送消息", EN: "Messages resumed"},
	alert.EventClosed:       {ZH: "已关闭", EN: "Closed"},
	alert.EventOver:         {ZH: "结束", EN: "Over"},
}

// Texts of these pages.
var (
	tAttentionHow = text.Text{
		ZH: "金额大的在前。不同币种不相加、不比较：涉及条目最多的币种在前，没有金额的在最后。",
		EN: "Most money first. Amounts of different currencies are neither added nor compared: the currency with the most lines comes first, lines without money last.",
	}
	tOpenSince      = text.Text{ZH: "开始于", EN: "Since"}
	tWhatIs         = text.Text{ZH: "事项", EN: "What"}
	tContains       = text.Text{ZH: "包含文字", EN: "Contains"}
	tAnyMatter      = text.Text{ZH: "全部类型", EN: "Any kind"}
	tAnybody        = text.Text{ZH: "不限", EN: "Anybody"}
	tAssignedMe     = text.Text{ZH: "我", EN: "Me"}
	tFilteredOut    = text.Text{ZH: "没有符合筛选条件的事项", EN: "Nothing matches the filter"}
	tFilteredOutHow = text.Text{ZH: "筛选隐藏了 %s 项", EN: "Lines that the filter hides: %s"}
	tLinesMore      = text.Text{ZH: "另有 %s%s 项：请筛选，或导出全部", EN: "%s%s more: filter them, or export all"}
	tShowAll        = text.Text{ZH: "显示全部", EN: "Show all"}
	tAlertRules     = text.Text{ZH: "规则和消息", EN: "Rules and messages"}
	tInHandNow      = text.Text{ZH: "已有人处理", EN: "Being worked on"}
	tSnoozedNow     = text.Text{ZH: "暂缓", EN: "Snoozed"}
	tEndedNow       = text.Text{ZH: "最近 24 小时结束", EN: "Ended within the last 24 hours"}
	tHandledBy      = text.Text{ZH: "负责人：%s", EN: "assigned to %s"}
	tSnoozedTo      = text.Text{ZH: "暂缓至", EN: "until"}
	tIncidentLine   = text.Text{ZH: "%s：%s", EN: "%s: %s"}
	tFiredTimes     = text.Text{ZH: "%s 次", EN: "%s times"}
	tCalmSince      = text.Text{ZH: "%s 起已恢复，正在观察", EN: "quiet since %s"}
	tIsOver         = text.Text{ZH: "已于 %s 结束。", EN: "Over since %s."}
	tIsCalm         = text.Text{ZH: "%s 起已恢复。若不再触发，%s 结束。", EN: "Quiet since %s. It ends at %s if nothing fires until then."}
	tIsEvent        = text.Text{ZH: "这是一次性事件，处理完成后请手动关闭。", EN: "This is an event. Close it once it has been dealt with."}
	tIsFiring       = text.Text{ZH: "%s 起持续告警。", EN: "Firing since %s."}
	tOpenMessages   = text.Text{ZH: "还没有人认领：每次触发和恢复都会发送消息。", EN: "Not acknowledged: a message is sent each time it fires or clears."}
	tAckMessages    = text.Text{
		ZH: "%s 正在处理：再次触发不发送消息，结束时发送一条。",
		EN: "%s is working on it: no messages if it fires again, and one when it is over.",
	}
	tSnoozeMessages = text.Text{ZH: "%s 之前不发送消息；届时仍未恢复，会再次发送。", EN: "No messages until %s. If it is still firing then, messages resume."}
	tOverMessages   = text.Text{ZH: "再次触发时会成为新的事件。", EN: "If it fires again, a new incident opens."}
	tIncidentLog    = text.Text{ZH: "经过", EN: "Timeline"}
	tTimelineCut    = text.Text{ZH: "只显示最近的记录。", EN: "Only the latest events are shown."}
	tRunbookChapter = text.Text{ZH: "打开手册的这一章", EN: "Open this chapter"}
	tIncidentFacts  = text.Text{ZH: "影响", EN: "What it affects"}
	tLastFired      = text.Text{ZH: "最近触发", EN: "Last fired"}
	tAcknowledge    = text.Text{ZH: "认领", EN: "Acknowledge"}
	tAcknowledgeHow = text.Text{
		ZH: "由您处理；期间不再发送消息，结束时发送一条。",
		EN: "You are working on it. No further messages until it is over, then one.",
	}
	tSnooze           = text.Text{ZH: "暂缓", EN: "Snooze"}
	tSnoozeFor        = text.Text{ZH: "暂缓时长", EN: "Snooze for"}
	tSnoozeHow        = text.Text{ZH: "最长 7 天；期间不发送消息。", EN: "At most 7 days, without messages."}
	tResumeMessages   = text.Text{ZH: "恢复发送消息", EN: "Resume messages"}
	tResumeHow        = text.Text{ZH: "回到待处理：再次触发时会发送消息。", EN: "The incident is open again and sends messages when it fires."}
	tCloseIncident    = text.Text{ZH: "关闭", EN: "Close"}
	tCloseIncidentHow = text.Text{ZH: "没有指标能表明问题已解决，因此需手动关闭。", EN: "No measurement can end this incident, so a person closes it."}
	tRowsWaitingFor   = text.Text{ZH: "挂起的通知", EN: "Notifications that wait"}
	tRowsAwaiting     = text.Text{ZH: "等待结果的订单", EN: "Orders that wait for a result"}
	tAdviceAny        = text.Text{ZH: "先看范围和原因，再按手册处理。", EN: "Find out what is affected and why, then follow the runbook."}
)
