package overview

import (
	"cmp"
	"net/url"
	"strings"

	"backstop/internal/alert"
	"backstop/internal/audit"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

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
		Main: []templ.Component{x.timeline(p)},
		Side: []templ.Component{x.affects(p), incidentAdvice(p, x.Incident.Rule)},
	}
	if x.CanHandle && x.Runs() {
		for _, a := range x.acts(p) {
			d.Actions = append(d.Actions, a.button(p))
		}
		d.Foot = []templ.Component{incidentDialogs(p, x)}
	}
	return ui.DetailPage(p, d)
}

// timeline is what happened.
func (x IncidentData) timeline(p *ui.Page) templ.Component {
	all := make([]panel.Saying, len(x.Timeline))
	for i, e := range x.Timeline {
		all[i] = panel.Saying{At: e.At, Who: x.event(p, e), More: []templ.Component{ui.Styled("muted", x.eventMore(p, e))}}
		if e.Reason != "" {
			all[i].More = append(all[i].More, panel.Line("wrap", panel.Text(e.Reason)))
		}
	}
	return panel.Of(p, "timeline-title", tIncidentLog,
		ui.If(x.Cut, panel.Box("body", panel.Line("muted", panel.Text(p.T(tTimelineCut))))), panel.Sayings(p, all))
}

// affects is what the incident affects, and leads to its rows.
func (x IncidentData) affects(p *ui.Page) templ.Component {
	href, label := rowsOf(x.Line)
	return panel.Of(p, "facts-title", tIncidentFacts, panel.Box("body",
		ui.FactList(p, x.facts(p)...), panel.Line("", ui.ButtonLink(p, string(href), ui.Act{Label: label}))))
}

func incidentAdvice(p *ui.Page, rule string) templ.Component {
	return panel.Of(p, "runbook-title", text.Runbook, panel.Box("body",
		ui.Say(p.T(adviceFor(rule).text)), panel.Line("", panel.Anchor(runbookLink(rule), p.T(tRunbookChapter)))))
}

// incidentAct is what can be done about an incident.
type incidentAct struct {
	name       string
	label, how text.Text
	field      templ.Component // nil = it asks for the reason alone
	leads      bool            // it is what to do first
}

// acts are what can be done about the incident now.
func (x IncidentData) acts(p *ui.Page) (all []incidentAct) {
	if x.Silent() {
		all = append(all, incidentAct{name: "resume", label: tResumeMessages, how: tResumeHow, leads: true})
	}
	if x.State != alert.Acknowledged {
		all = append(all, incidentAct{name: "acknowledge", label: tAcknowledge, how: tAcknowledgeHow, leads: !x.Silent()})
	}
	people := []panel.Choice{{Label: p.T(text.Unassigned)}}
	for _, name := range x.People {
		people = append(people, panel.Choice{Value: name, Label: name})
	}
	var spans []panel.Choice
	for _, d := range alert.Snoozes {
		spans = append(spans, panel.Choice{Value: d.String(), Label: p.Rough(d)})
	}
	look := templ.Attributes{"class": "input"}
	all = append(
		all,
		incidentAct{name: "assign", label: text.Assign, field: panel.SelectField(
			p, panel.Input{ID: "to", Label: text.AssignTo, Value: cmp.Or(x.Assignee, p.User), More: look}, people...,
		)},
		incidentAct{name: "snooze", label: tSnooze, how: tSnoozeHow, field: panel.SelectField(
			p, panel.Input{ID: "for", Label: tSnoozeFor, Value: alert.Snoozes[1].String(), More: look}, spans...,
		)},
	)
	if x.ByHand() {
		all = append(all, incidentAct{name: "close", label: tCloseIncident, how: tCloseIncidentHow})
	}
	return all
}

// button opens the dialog of the act.
func (a incidentAct) button(p *ui.Page) templ.Component {
	class := ""
	if a.leads {
		class = "primary"
	}
	return panel.Opener(p, class, a.name, "", a.label)
}

// facts are what the incident affects, and how much.
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
