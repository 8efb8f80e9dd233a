package work

import (
	"strings"
	"time"

	"backstop/internal/base/calendar"
	"backstop/internal/base/text"
	"backstop/internal/sweep"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// SweepsData is what the page of sweeps shows.
type SweepsData struct {
	Now   *sweep.Sweep   // that is running; nil = none
	Rows  []*sweep.Sweep // newest first
	Older int64          // the id that the next page begins behind; 0 = there is none
	Weeks [][]SweepNight
	// CanRun: the operator may begin one. Key is of that form, Days what it looks back.
	CanRun bool
	Key    string
	Days   int
	Begun  bool // by the form that the page was opened with
}

// SweepNight is one night of the calendar.
type SweepNight struct {
	Day   string // "11-23"
	Sweep *sweep.Sweep
	Ahead bool // it is still to come
}

// calendarWeeks is how many weeks the calendar shows.
const calendarWeeks = 5

// CalendarFrom is the first night of the calendar, a Monday.
func CalendarFrom(now time.Time) time.Time {
	back := (int(now.Weekday())+6)%7 + 7*(calendarWeeks-1)
	return calendar.DayStart(now, -back)
}

// SweepWeeks is the calendar up to this week.
func SweepWeeks(now time.Time, nights []*sweep.Sweep) [][]SweepNight {
	of := map[int64]*sweep.Sweep{}
	for _, s := range nights {
		of[s.Night] = s
	}
	first := CalendarFrom(now)
	weeks := make([][]SweepNight, calendarWeeks)
	for i := range 7 * calendarWeeks {
		day := calendar.DayStart(first, i)
		weeks[i/7] = append(weeks[i/7], SweepNight{day.Format("01-02"), of[sweep.Number(day)], day.After(now)})
	}
	return weeks
}

// Sweeps is the page of sweeps.
func Sweeps(p *ui.Page, d SweepsData) templ.Component {
	may := d.CanRun && d.Now == nil
	return panel.Page(
		p, p.T(text.Sweeps),
		panel.Head(
			p.T(text.Sweeps), p.T(tSweepsHow),
			ui.ExportMenu(p, ui.List{Query: ui.Query{Path: "/sweeps"}}.Listed(p, ui.Headings(SweepColumns), nil)),
			ui.If(may, panel.Opener(p, "primary", "run", "refresh-cw", tSweepRun)),
		),
		ui.If(may, sweepDialog(p, d)),
		panel.Box(
			"stack", ui.If(d.Begun, ui.Notice(p, "ok", p.T(tSweepBegun))),
			panel.Of(p, "nights-title", tNights, ui.PlainRows(p, ui.Beside(p, nightColumns(), d.Weeks), tNights)),
			SweepRuns(p, d),
		),
	)
}

// drawnAnew has the part of the page drawn again while a sweep is running.
func (d SweepsData) drawnAnew() templ.Attributes {
	if d.Now == nil {
		return nil
	}
	return templ.Attributes{"hx-get": "/sweeps/_runs", "hx-trigger": "every 2s", "hx-target": "this", "hx-swap": "outerHTML"}
}

// sweepNow is the sweep that is running.
func sweepNow(p *ui.Page, s *sweep.Sweep) templ.Component {
	return ui.Facts(
		p, "now-title", tSweepNow,
		ui.TextFact(text.State, "strong", p.T(tSweepStep, s.Step(), s.Steps())),
		ui.TextFact(tSweepBy, "", wording.Actor(p, s.By)),
		ui.TextFact(text.Reason, "", s.Reason),
		ui.TextFact(tSweepNode, "mono", s.Node),
		ui.TextFact(tSweepLooked, "", ui.Count(s.LookedAt)),
		ui.TextFact(tSweepPushed, "", ui.Count(s.PushedRows())),
	)
}

func sweepList(p *ui.Page, d SweepsData) templ.Component {
	if len(d.Rows) == 0 {
		return panel.Of(p, "runs-title", tSweepRuns, ui.Empty(p, "moon", p.T(tSweepNone), p.T(tSweepNoHow)))
	}
	rows := ui.PlainRows(p, ui.Rowed(p, SweepColumns, d.Rows), tSweepRuns)
	return panel.Of(p, "runs-title", tSweepRuns, rows, ui.If(d.Older != 0, sweepOlder(p, d.Older)))
}

func sweepWhat(what string) text.Text { return ui.TextFor(sweepWhats, what) }

var sweepWhats = map[string]text.Text{
	sweep.OpenOrders:    {ZH: "支付中或关单中的订单", EN: "Orders paying or closing"},
	sweep.ExpiredOrders: {ZH: "超时未关的订单", EN: "Expired orders not closed"},
	sweep.ClosedOrders:  {ZH: "关单前未查单的订单", EN: "Orders closed without a query"},
	sweep.Deliveries:    {ZH: "通知", EN: "Notifications"},
	sweep.Compensations: {ZH: "补偿任务", EN: "Compensations"},
	sweep.Refunds:       {ZH: "无任务跟进的退款", EN: "Refunds without a task"},
	sweep.Payouts:       {ZH: "无任务跟进的出款", EN: "Payouts without a task"},
}

// sweepTook is how long it took, or takes.
func sweepTook(p *ui.Page, s *sweep.Sweep) string {
	if s.EndedAt == nil {
		return p.T(text.None)
	}
	return p.Took(time.Duration(*s.EndedAt-s.BeganAt) * time.Microsecond)
}

func sweepP99(p *ui.Page, s *sweep.Sweep) string {
	if s.P99MS == nil {
		return p.T(text.None)
	}
	return p.Took(time.Duration(*s.P99MS) * time.Millisecond)
}

type sweepRun = *sweep.Sweep

// SweepColumns are those of the list of sweeps.
var SweepColumns = []ui.Column[sweepRun]{
	ui.TimeCol("began", text.Started, func(w sweepRun) *int64 { return &w.BeganAt }),
	ui.TimeCol("ended", tEnded, func(w sweepRun) *int64 { return w.EndedAt }).ExportOnly(),
	ui.StateCol("state", text.State, func(w sweepRun) ui.State { return ui.StateOf(ui.SweepStates, w.State) }),
	ui.WordCol("by", tSweepBy, func(p *ui.Page, w sweepRun) string { return wording.Actor(p, w.By) }).As("wrap").With(sweepBy),
	ui.TextCol("reason", text.Reason, func(w sweepRun) string { return w.Reason }).ExportOnly(),
	ui.CountCol("looked_at", tSweepLooked, func(w sweepRun) int64 { return w.LookedAt }),
	ui.WordCol("pushed", tSweepPushed, func(p *ui.Page, w sweepRun) string {
		var all []string
		for _, x := range w.Pushed() {
			all = append(all, p.T(sweepWhat(x.What))+p.T(text.Colon)+ui.Count(x.Count))
		}
		return strings.Join(all, "; ")
	}).As("whole").With(sweepPushed),
	ui.WordCol("differences", tSweepWrong, func(p *ui.Page, w sweepRun) string {
		var all []string
		for _, x := range w.Differences() {
			all = append(all, p.T(wording.Figure(x.What))+p.T(text.Colon)+wording.Differences(p, x))
		}
		return strings.Join(all, "; ")
	}).As("small wrap").With(sweepDifferences),
	ui.WordCol("took", text.Took, sweepTook).As("num nowrap"),
	ui.WordCol("p99", tSweepP99, sweepP99).As("num nowrap"),
	ui.TextCol("node", tSweepNode, func(w sweepRun) string { return w.Node }).Optional(),
}

var weekdays = []text.Text{
	{ZH: "周一", EN: "Mon"},
	{ZH: "周二", EN: "Tue"},
	{ZH: "周三", EN: "Wed"},
	{ZH: "周四", EN: "Thu"},
	{ZH: "周五", EN: "Fri"},
	{ZH: "周六", EN: "Sat"},
	{ZH: "周日", EN: "Sun"},
}

// nightColumns are the days of a week.
func nightColumns() (all []ui.Column[[]SweepNight]) {
	for i, day := range weekdays {
		all = append(all, ui.TextCol("", day, func([]SweepNight) string { return "" }).
			With(func(p *ui.Page, week []SweepNight) templ.Component { return sweepNight(p, week[i]) }))
	}
	return all
}

// Texts of this page.
var (
	tSweepsHow = text.Text{
		ZH: "每晚在低峰时段检查所有未结束的订单、通知、补偿任务和复核，把遗漏的重新触发，再核对统计和账目。扫描本身不做任何决定。",
		EN: "Once a night, at low traffic, everything unfinished is checked, whatever was lost is made due again, and figures and books are verified. The sweep itself decides nothing.",
	}
	tSweepRun    = text.Text{ZH: "立即扫描", EN: "Run now"}
	tSweepRunHow = text.Text{ZH: "同一时间只有一次扫描，正常业务不受影响。", EN: "Only one sweep runs at a time, and live traffic is not affected."}
	tSweepDays   = text.Text{ZH: "检查最近 %d 天的数据。", EN: "It checks the last %d days."}
	tSweepBegun  = text.Text{ZH: "扫描已开始。", EN: "The sweep has started."}
	tSweepNow    = text.Text{ZH: "正在扫描", EN: "Running now"}
	tSweepStep   = text.Text{ZH: "第 %d 步，共 %d 步", EN: "Step %d of %d"}
	tNights      = text.Text{ZH: "每晚", EN: "Nights"}
	tSweepRuns   = text.Text{ZH: "扫描记录", EN: "Sweeps"}
	tSweepBy     = text.Text{ZH: "发起者", EN: "Started by"}
	tSweepNode   = text.Text{ZH: "节点", EN: "Node"}
	tSweepLooked = text.Text{ZH: "检查行数", EN: "Rows checked"}
	tSweepPushed = text.Text{ZH: "重新触发", EN: "Pushed"}
	tSweepWrong  = text.Text{ZH: "账实不符", EN: "Differences"}
	tSweepP99    = text.Text{ZH: "回调 p99", EN: "Callbacks p99"}
	tSweepNone   = text.Text{ZH: "还没有扫描过", EN: "No sweep yet"}
	tSweepNoHow  = text.Text{ZH: "第一次扫描在今晚的低峰时段。", EN: "The first one runs tonight, at low traffic."}
	tSweepOlder  = text.Text{ZH: "更早的扫描", EN: "Older sweeps"}
)
