package overview

import (
	"cmp"
	"strconv"
	"strings"

	"backstop/internal/alert"
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

// fields are those of the filter.
func (d AttentionData) fields(p *ui.Page) []templ.Component {
	matters := []panel.Choice{{Label: p.T(tAnyMatter)}}
	for _, m := range console.AttentionMatters {
		matters = append(matters, panel.Choice{Value: m, Label: p.T(matterWords[m])})
	}
	return []templ.Component{
		panel.FilterInput(p, panel.Input{
			Name: "text", Label: tContains, Value: d.Filter.Text, More: templ.Attributes{"class": "input", "type": "text", "maxlength": "100"},
		}),
		panel.FilterSelect(p, panel.Input{Name: "matter", Label: text.Kind, Value: d.Filter.Matter}, matters...),
		ui.If(d.Alerts, panel.FilterSelect(p, panel.Input{Name: "who", Label: text.Assignee, Value: d.Filter.Who},
			panel.Choice{Label: p.T(tAnybody)}, panel.Choice{Value: console.Mine, Label: p.T(tAssignedMe)},
			panel.Choice{Value: console.Unassigned, Label: p.T(text.Unassigned)})),
		panel.Box("row", ui.Button(p, ui.Act{Label: text.Filter, Class: "primary"})),
	}
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
	tone    string
	handler string // who works on it
}

// attentionLook is how a line looks; its note and its handler are followed by more.
func attentionLook(p *ui.Page, t console.Todo) attentionLine {
	l := attentionLine{todoLine: lineOf(p, t), tone: "t-bad"}
	if i := t.Incident; i != nil {
		l.todoLine = incidentLine(p, t)
		if i.State != alert.Open {
			l.tone = "muted"
		}
		if i.Assignee != "" {
			l.handler = p.T(tHandledBy, i.Assignee) + " · "
		}
	}
	if l.note != "" {
		l.note += " · "
	}
	return l
}

// incidentLine is the line of an incident.
func incidentLine(p *ui.Page, t console.Todo) todoLine {
	i := t.Incident
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
	return l
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
