package work

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// AlertsData is the page of alerts.
type AlertsData struct {
	Rules                 []alert.Rule
	Editing               *alert.Rule // open for a change
	Alerts                []alert.Alert
	Firing                int64           // how many fire now, whatever the filter says
	Incidents             console.Waits   // that nobody has acknowledged: most have stopped firing
	Messages              []alert.Message // the newest
	Targets               []string        // names, without secrets
	CanTest, CanConfigure bool
	FormKey               string
	Tested, Changed       bool // what the person has just done
	Again                 bool // a message was sent again
}

// AlertTexts is what the list of alerts says.
var AlertTexts = ui.ListTexts{
	Title: text.Alerts, Icon: "circle-check", None: tAlertsNone, NoneHow: tAlertsNoneHow,
	Fields: map[string]ui.Field{"state": ui.States(ui.AlertStates)},
}

// AlertColumns are those of the list of alerts.
var AlertColumns = []ui.Column[alert.Alert]{
	ui.TimeCol("opened", text.Time, func(a alert.Alert) *int64 { return &a.OpenedAt }),
	ui.StateCol("state", text.State, func(a alert.Alert) ui.State { return ui.StateOf(ui.AlertStates, a.State) }),
	ui.WordCol("rule", text.Rule, func(p *ui.Page, a alert.Alert) string { return alert.Title(a.Rule, p.Language) }).As("nowrap strong"),
	ui.WordCol("subject", text.SubjectWord, func(p *ui.Page, a alert.Alert) string { return wording.AlertSubject(p, a.Subject) }).
		InFiles(tExportAbout).
		As("wrap").With(alertSubject),
	ui.WordCol("level", text.Worst, wording.AlertLevel).InFiles(tExportLevel).As("num nowrap"),
	ui.CountCol("count", text.Times, func(a alert.Alert) int64 { return a.Count }).InFiles(tSeen),
	ui.TimeCol("resolved", tEnded, func(a alert.Alert) *int64 { return a.ResolvedAt }).InFiles(tExportOver),
}

// Alerts is the page of rules, alerts and messages.
func Alerts(p *ui.Page, l ui.List, v AlertsData) templ.Component {
	l = l.As(AlertTexts)
	lead, tests := "", v.CanTest && len(v.Targets) > 0
	if len(v.Targets) > 0 {
		lead = p.T(tTargets, strings.Join(v.Targets, " · "))
	}
	parts := []templ.Component{
		ui.If(v.Tested, ui.Notice(p, "ok", p.T(tDoneTest))),
		ui.If(v.Again, ui.Notice(p, "ok", p.T(tDoneAgain))),
		ui.If(v.Changed, ui.Notice(p, "ok", p.T(tDoneRule))),
		ui.If(v.Firing > 0 || v.Incidents.N > 0, alertsNow(p, v)),
		ui.If(len(v.Targets) == 0, ui.Notice(p, "warn", p.T(tNoTargets))),
	}
	if v.Editing != nil {
		parts = append(parts, ruleForm(p, v.FormKey, *v.Editing))
	}
	parts = append(
		parts, filtered(p, l, text.Alerts, len(v.Alerts) == 0), messageList(p, v),
		panel.Of(p, "rules", tRules, ui.PlainRows(p, ui.Beside(p, ruleColumns(v.CanConfigure), v.Rules), tRules)),
	)
	return panel.Page(
		p, p.T(text.Alerts),
		panel.Head(
			p.T(text.Alerts), lead, ui.DisplayMenu(p, l), ui.ExportMenu(p, l),
			ui.If(tests, panel.Opener(p, "primary", "test", "send", text.TestAlert)),
		),
		ui.If(tests, panel.AskDialog(p, "test", "/alerts/test", v.FormKey, text.TestAlert, text.ReasonAudit, tTestAlertHow, text.TestAlert)),
		panel.Box("stack", parts...),
	)
}

// messageList is the newest messages, with a dialog for each that can be sent again.
func messageList(p *ui.Page, v AlertsData) templ.Component {
	if len(v.Messages) == 0 {
		how := tMsgNoneHow
		if len(v.Targets) == 0 {
			how = tNoTargets
		}
		return panel.Of(p, "messages", tMessages, ui.Empty(p, "send", p.T(tMsgNone), p.T(how)))
	}
	parts := []templ.Component{ui.PlainRows(p, ui.Beside(p, v.messageColumns(), v.Messages), tMessages)}
	for _, m := range v.Messages {
		if v.again(m) {
			path := "/alerts/messages/" + strconv.FormatInt(m.ID, 10) + "/resend"
			parts = append(parts, panel.AskDialog(p, againDialog(m), path, v.FormKey, tMsgAgain, text.ReasonAudit, tMsgAgainHow, tMsgAgain))
		}
	}
	return panel.Of(p, "messages", tMessages, parts...)
}

// again reports whether the person may send a message again.
func (v AlertsData) again(m alert.Message) bool { return v.CanTest && m.Status == alert.Failed }

// messageColumns are those of the messages; where one can be sent again there is a column for that.
func (v AlertsData) messageColumns() []ui.Column[alert.Message] {
	columns := []ui.Column[alert.Message]{
		ui.TimeCol("created", text.Time, func(m alert.Message) *int64 { return &m.CreatedAt }),
		ui.TextCol("target", tTarget, func(m alert.Message) string { return m.Target }).As("nowrap mono small"),
		ui.StateCol("state", text.State, func(m alert.Message) ui.State { return ui.StateOf(wording.MessageStates, m.Status) }),
		ui.CountCol("attempts", text.Tries, func(m alert.Message) int64 { return m.Attempts }),
		ui.TimeCol("next", text.Next, func(m alert.Message) *int64 { return m.NextAt }),
		ui.Col("title", tMessage, ui.TextKind, func(_ *ui.Page, m alert.Message) ui.Cell { return ui.Cell{Text: m.Title, Title: m.Body} }).As("wrap"),
		ui.NoteCol("error", text.Reason, func(_ *ui.Page, m alert.Message) string { return m.LastError }).
			With(func(p *ui.Page, m alert.Message) templ.Component { return ui.OrNone(p, m.LastError) }),
	}
	if slices.ContainsFunc(v.Messages, v.again) {
		columns = append(columns, ui.TextCol("again", text.Act, func(alert.Message) string { return "" }).
			With(func(p *ui.Page, m alert.Message) templ.Component {
				return ui.If(v.again(m), panel.Opener(p, "small", againDialog(m), "send", tMsgAgain))
			}))
	}
	return columns
}

func againDialog(m alert.Message) string { return "again-" + strconv.FormatInt(m.ID, 10) }

// ruleColumns are those of the rules; an operator who may change them has a column for that.
func ruleColumns(mayChange bool) []ui.Column[alert.Rule] {
	seconds := func(name string, label text.Text, of func(alert.Rule) int64) ui.Column[alert.Rule] {
		return ui.WordCol(name, label, func(p *ui.Page, r alert.Rule) string { return secondsText(p, of(r)) }).As("num nowrap")
	}
	columns := []ui.Column[alert.Rule]{
		ui.TextCol("rule", text.Rule, func(r alert.Rule) string { return r.Name }).As("").With(ruleName),
		ui.StateCol("state", text.State, func(r alert.Rule) ui.State {
			if r.Enabled {
				return ui.State{Kind: "ok", Icon: "check", Label: tEnabled}
			}
			return ui.State{Kind: "idle", Icon: "ban", Label: tDisabled}
		}).As(""),
		ui.WordCol("fires", text.FiresAt, wording.AlertLimit).As("num nowrap"),
		ui.WordCol("clears", tClears, clearOf).As("num nowrap"),
		seconds("window", tWindow, func(r alert.Rule) int64 { return r.WindowS }),
		seconds("hold", tHold, func(r alert.Rule) int64 { return r.HoldS }),
		seconds("quiet", tQuietFor, func(r alert.Rule) int64 { return r.QuietS }),
	}
	if mayChange {
		columns = append(columns, ui.TextCol("change", text.Act, func(alert.Rule) string { return "" }).As("").
			With(func(p *ui.Page, r alert.Rule) templ.Component {
				label := templ.Attributes{"aria-label": p.T(tChangeRule, alert.Title(r.Name, p.Language))}
				return ui.ButtonLink(p, "/alerts?rule="+url.QueryEscape(r.Name)+"#change", ui.Act{Label: tChange, Class: "sm", More: label})
			}))
	}
	return columns
}

// ruleFields are those of a rule that is changed.
func ruleFields(p *ui.Page, r alert.Rule) []templ.Component {
	enabled := panel.Input{ID: "enabled", Label: text.State, Value: "yes"}
	if !r.Enabled {
		enabled.Value = "no"
	}
	seconds := func(name string, label, how text.Text, value int64) templ.Component {
		return panel.InputField(p, panel.Input{
			ID: name, Label: label, Hint: p.T(how), Value: strconv.FormatInt(value, 10),
			More: templ.Attributes{"type": "number", "min": "0", "step": "1", "required": true},
		})
	}
	return []templ.Component{
		panel.SelectField(p, enabled, panel.Choice{Value: "yes", Label: p.T(tEnabled)}, panel.Choice{Value: "no", Label: p.T(tDisabled)}),
		ui.If(r.Watches(), ruleLevel(p, r, panel.Input{ID: "fire", Label: text.FiresAt}, r.Fire)),
		ui.If(r.Watches(), ruleLevel(p, r, panel.Input{ID: "clear", Label: tClears, Hint: p.T(tLimitHow)}, r.Clear)),
		ui.If(r.WindowS > 0, seconds("window", tWindow, tWindowHow, r.WindowS)),
		seconds("hold", tHold, tHoldHow, r.HoldS),
		seconds("quiet", tQuietFor, tQuietHow, r.QuietS),
	}
}

// ruleLevel asks for a level: one of those that the rule knows, or any.
func ruleLevel(p *ui.Page, r alert.Rule, in panel.Input, level int64) templ.Component {
	in.Value = alert.Write(r.Name, level)
	if unit := alert.Unit(r.Name); unit != "" {
		in.Says = p.T(in.Label) + " (" + unit + ")"
	}
	var choices []panel.Choice
	for _, limit := range alert.Limits(r.Name) {
		choices = append(choices, panel.Choice{Value: alert.Write(r.Name, limit), Label: ui.Count(limit)})
	}
	if choices != nil {
		return panel.SelectField(p, in, choices...)
	}
	in.More = templ.Attributes{"type": "number", "min": "0", "step": "any", "required": true}
	return panel.InputField(p, in)
}

func rulePath(name string) templ.SafeURL { return templ.URL("/alerts/rules/" + url.PathEscape(name)) }

func clearOf(p *ui.Page, r alert.Rule) string {
	if !r.Watches() {
		return p.T(text.None)
	}
	return alert.Level(r.Name, r.Clear)
}

// secondsText writes seconds, or nothing where there are none.
func secondsText(p *ui.Page, seconds int64) string {
	if seconds == 0 {
		return p.T(text.None)
	}
	if seconds < 60 {
		return strconv.FormatInt(seconds, 10) + " s"
	}
	return p.Took(time.Duration(seconds) * time.Second)
}

// Texts of this page.
var (
	tRules      = text.Text{ZH: "规则", EN: "Rules"}
	tClears     = text.Text{ZH: "恢复", EN: "Ends at"}
	tWindow     = text.Text{ZH: "统计窗口", EN: "Measured over"}
	tHold       = text.Text{ZH: "持续", EN: "For at least"}
	tQuietFor   = text.Text{ZH: "静默", EN: "Quiet for"}
	tEnabled    = text.Text{ZH: "启用", EN: "On"}
	tDisabled   = text.Text{ZH: "停用", EN: "Off"}
	tChange     = text.Text{ZH: "修改", EN: "Change"}
	tChangeRule = text.Text{ZH: "修改规则：%s", EN: "Change the rule: %s"}
	tLimitHow   = text.Text{
		ZH: "超过触发值并持续一段时间才告警；回到恢复值才结束，两值之间的间隔可避免反复告警。",
		EN: "An alert fires when the first level is crossed and ends at the second. The gap keeps it from firing again and again.",
	}
	tWindowHow     = text.Text{ZH: "秒，整分钟，最多 3600。", EN: "In seconds: whole minutes, at most 3600."}
	tQuietHow      = text.Text{ZH: "秒。同一对象在这段时间内不重复告警。", EN: "In seconds. No repeat alert about the same subject within this time."}
	tHoldHow       = text.Text{ZH: "秒。0 表示立即。", EN: "In seconds; 0 = immediately."}
	tIncidentCount = text.Text{ZH: "无人认领的事件：%s%s 个", EN: "Incidents not acknowledged: %s%s"}
	tFiringCount   = text.Text{ZH: "正在告警：%s 条", EN: "Firing now: %s"}
	tEnded         = text.Text{ZH: "结束", EN: "Ended"}
	tAlertsNone    = text.Text{ZH: "没有告警", EN: "No alerts"}
	tAlertsNoneHow = text.Text{
		ZH: "队列过长、成功率过低、数据库或 Redis 故障、新的异常都会列在这里。",
		EN: "Long queues, low success rates, database or Redis failures, and new exceptions appear here.",
	}
	tMessages   = text.Text{ZH: "发出的消息", EN: "Messages"}
	tTarget     = text.Text{ZH: "目标", EN: "Target"}
	tMessage    = text.Text{ZH: "内容", EN: "Text"}
	tMsgNone    = text.Text{ZH: "还没有发过消息", EN: "No messages sent yet"}
	tMsgNoneHow = text.Text{ZH: "点“发送测试告警”检查目标是否可用。", EN: "Send a test alert to see whether the targets work."}
	tNoTargets  = text.Text{
		ZH: "没有告警目标：设置 BACKSTOP_ALERT_URLS 后才会有人收到。",
		EN: "No alert targets: set BACKSTOP_ALERT_URLS to receive alerts.",
	}
	tTargets      = text.Text{ZH: "目标：%s", EN: "Targets: %s"}
	tTestAlertHow = text.Text{ZH: "向每个目标发送一条测试消息，发送方式与真实告警相同。", EN: "Each target gets one message, sent in the same way as a real alert."}
	tDoneTest     = text.Text{
		ZH: "测试告警已排队，几秒内发出；结果见下方“发出的消息”。",
		EN: "The test alert is sent within seconds; Messages below shows its result.",
	}
	tMsgAgain    = text.Text{ZH: "重新发送", EN: "Send again"}
	tMsgAgainHow = text.Text{ZH: "原文不变，按新的重试计划再次发给同一目标。", EN: "The same text is sent to the same target, with a new retry schedule."}
	tDoneAgain   = text.Text{ZH: "已安排重新发送，几秒内发出。", EN: "It is sent again within seconds."}
	tDoneRule    = text.Text{ZH: "规则已保存，10 秒内生效。", EN: "The rule was saved and takes effect within 10 seconds."}
	tExportAbout = text.Text{ZH: "对象", EN: "About"}
	tExportLevel = text.Text{ZH: "数值", EN: "Level"}
	tExportOver  = text.Text{ZH: "恢复时间", EN: "Resolved at"}
)
