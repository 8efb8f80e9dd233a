package overview

import (
	"slices"
	"strconv"
	"strings"

	"backstop/internal/base/queue"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/pause"
	"backstop/views/panel"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// QueuesData is what the page of queues shows.
type QueuesData struct {
	Queues *console.Queues
	Flows  []console.QueueFlow
	Paused []pause.Pause
}

// pauseOf returns the pause of a queue; nil = it runs.
func (d QueuesData) pauseOf(name string) *pause.Pause {
	for i := range d.Paused {
		if d.Paused[i].Name == name {
			return &d.Paused[i]
		}
	}
	return nil
}

// QueueData is what the page of one queue shows.
type QueueData struct {
	QueuesData
	Flow       console.QueueFlow
	CanControl bool
	Key        string // of the form
	Done       bool   // by the form that the page was opened with
}

func (d QueueData) pause() *pause.Pause { return d.pauseOf(d.Flow.Queue) }

func (d QueueData) act(name string) string { return "/queues/" + d.Flow.Queue + "/" + name }

// control is the button that pauses the work or resumes it, and its dialog; nothing for whoever may not.
func (d QueueData) control(p *ui.Page) (buttons, dialogs []templ.Component) {
	if !d.CanControl {
		return nil, nil
	}
	name, icon, label, title, how := "pause", "pause", text.Pause, tPauseTitle, pauseHow[d.Flow.Queue]
	if d.pause() != nil {
		name, icon, label, title, how = "resume", "check", tResumeQueue, tResumeTitle, tResumeHowTo
	}
	return []templ.Component{panel.OpenDialog(p, name, icon, label)},
		[]templ.Component{panel.AskDialog(p, name, d.act(name), d.Key, title, text.ReasonAudit, how, label)}
}

func flowFigures(p *ui.Page, f console.QueueFlow) templ.Component {
	return panel.KPIs("",
		panel.KPI(p.T(tRowsWaiting), ui.Count(f.Waiting)+ui.Plus(f.More), ""),
		panel.KPI(p.T(tFlowIn), flowRate(f.In)+ui.Plus(f.Cut), p.T(tPerMinute)),
		panel.KPI(p.T(tFlowOut), flowRate(f.Out), p.T(tPerMinute)),
		panel.KPI(p.T(tTimeToEmpty), emptyIn(p, f), ""))
}

// lanes are the queues behind the work.
func (d QueueData) lanes() (all []console.Lane) {
	for _, l := range d.Queues.Lanes {
		if slices.Contains(queuesOf[d.Flow.Queue], l.Name) {
			all = append(all, l)
		}
	}
	return all
}

var queuesOf = map[string][]string{
	pause.Notifications: {string(queue.Live), string(queue.Retry), string(queue.Delayed), string(queue.Slow)},
	pause.Compensations: {queue.CompensateQueue},
}

var (
	queueRuns   = ui.State{Kind: "ok", Icon: "check", Label: text.Text{ZH: "运行中", EN: "Running"}}
	queuePaused = ui.State{Kind: "warn", Icon: "pause", Label: text.Text{ZH: "已暂停", EN: "Paused"}}
)

func pauseState(x *pause.Pause) ui.State {
	if x == nil {
		return queueRuns
	}
	return queuePaused
}

// flowRate writes a rate without a decimal that says nothing.
func flowRate(perMinute float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(perMinute, 'f', 1, 64), ".0")
}

// emptyIn is when a queue is empty, as far as its rates say.
func emptyIn(p *ui.Page, f console.QueueFlow) string {
	d, known := f.Empty()
	switch {
	case !known && (f.More || f.Cut):
		return p.T(text.None)
	case !known:
		return p.T(tDoesNotEmpty)
	case d == 0:
		return p.T(tIsEmpty)
	}
	return p.Rough(d)
}

var flowWords = map[string]text.Text{
	string(queue.Live):    {ZH: "通知", EN: "Notifications"},
	queue.CompensateQueue: {ZH: "补偿任务", EN: "Compensations"},
}

// pauseHow says what a pause stops.
var pauseHow = map[string]text.Text{
	pause.Notifications: {
		ZH: "所有节点在几秒内停止发送商户通知，包括重试、慢商户和熔断探测；正在发送的会发完。渠道回调、入账、告警和补偿任务照常，新的通知先等待，不计重试次数。重启后仍然暂停，直到有人恢复。",
		EN: "Within seconds all nodes stop notifying merchants, including retries, slow merchants and breaker probes; attempts that have begun are completed. Callbacks, booking, alerts and compensations go on as usual. New notifications wait, and no attempt is counted. The pause outlasts restarts and ends when somebody resumes the queue.",
	},
	pause.Compensations: {
		ZH: "所有节点在几秒内停止执行补偿任务；正在执行的会执行完。退款、出款、补发和卡单处理在恢复前都不会推进。查单、关单和批次照常。重启后仍然暂停，直到有人恢复。",
		EN: "Within seconds all nodes stop starting compensations; running ones are completed. Refunds, payouts, resends and stuck orders do not progress meanwhile. Queries and closes of orders, and batches, go on. The pause outlasts restarts and ends when somebody resumes the queue.",
	},
}

// Texts of these pages.
var (
	tPauseWhat = text.Text{
		ZH: "可暂停的是“通知”和“补偿任务”。批次在各自的页面暂停；超时关单、扫描和告警不能暂停。",
		EN: "Notifications and compensations can be paused. Batches are paused on their own pages; order timeouts, the sweep and alerts cannot be paused.",
	}
	tPauseTitle  = text.Text{ZH: "暂停这个队列？", EN: "Pause this queue?"}
	tResumeQueue = text.Text{ZH: "恢复", EN: "Resume"}
	tResumeTitle = text.Text{ZH: "恢复这个队列？", EN: "Resume this queue?"}
	tResumeHowTo = text.Text{
		ZH: "等待的任务在几秒内按到期时间继续处理；商户的限速照常生效。",
		EN: "Waiting tasks continue within seconds, in the order in which they are due. Merchants' rate limits apply.",
	}
	tPauseDone   = text.Text{ZH: "已记录。其他节点在几秒内生效。", EN: "Recorded. Other nodes follow within seconds."}
	tPausedBy    = text.Text{ZH: "暂停人", EN: "Paused by"}
	tPausedSince = text.Text{ZH: "暂停时间", EN: "Paused since"}
	tPauseEffect = text.Text{ZH: "暂停的影响", EN: "What a pause stops"}
	tQueueLanes  = text.Text{ZH: "队列明细", EN: "Its queues"}
	tMayNotPause = text.Text{ZH: "由 ops 暂停和恢复。", EN: "The role ops pauses and resumes it."}
	tQueuesHow   = text.Text{
		ZH: "行数和速率来自数据库，Redis 不可用时同样准确；速率为最近 10 分钟的平均值，熔断挂起的通知不计入等待。",
		EN: "Rows and rates are read from the database, so they are correct without Redis. Rates are averages of the last 10 minutes; notifications that wait for a breaker are not counted as waiting.",
	}
	tFlowIn       = text.Text{ZH: "新增", EN: "In"}
	tFlowOut      = text.Text{ZH: "完成", EN: "Out"}
	tPerMinute    = text.Text{ZH: "每分钟", EN: "per minute"}
	tTimeToEmpty  = text.Text{ZH: "预计清空", EN: "Time to empty"}
	tIsEmpty      = text.Text{ZH: "已空", EN: "empty"}
	tDoesNotEmpty = text.Text{ZH: "未在减少", EN: "not falling"}
)
