// Package overview draws how things are now: today, incidents, the queues, the runbook and the first
// steps.
package overview

import (
	"time"

	"backstop/internal/base/queue"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/report"
	"backstop/views/panel"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// TodayData is what the first page shows.
type TodayData struct {
	Range  console.Range
	Filter console.AttentionFilter // of what needs an operator; set, nothing else is shown
	Read   time.Time               // when the oldest of the figures were read
	System System
	Panels map[string]templ.Component // by name
}

// live is where the page is kept current, and what is read where that does not get through.
func (d TodayData) live(p *ui.Page) (stream, poll string) {
	if !d.Filter.Any() {
		return "/_/live?range=" + d.Range.Name + "&lang=" + p.Language, ""
	}
	v := d.Filter.Values()
	v.Set("topics", "attention")
	v.Set("lang", p.Language)
	return "/_/live?" + v.Encode(), "/_/attention"
}

// exports is what needs an operator, as its export menu needs it.
func (d TodayData) exports(p *ui.Page) ui.List {
	return ui.List{Query: ui.Query{Path: "/", Values: d.Filter.Values()}}.Listed(p, ui.Headings(AttentionColumns), nil)
}

// System is what the installation runs on.
type System struct {
	Engine   string // "external", "child" or "in-process"
	Database string
	Inspect  bool // whether the person may open Asynqmon
}

// engines are the words of System.Engine.
var engines = map[string]text.Text{
	"external":   {ZH: "外部 Redis", EN: "external Redis"},
	"child":      {ZH: "内置 redis-server（随服务启动）", EN: "embedded redis-server (runs with the server)"},
	"in-process": {ZH: "进程内替代实现", EN: "in-process replacement"},
}

var laneWords = map[string]text.Text{
	string(queue.Live):    {ZH: "商户通知", EN: "new notifications"},
	string(queue.Retry):   {ZH: "重试", EN: "further attempts"},
	string(queue.Delayed): {ZH: "熔断延迟", EN: "waiting for a breaker"},
	string(queue.Slow):    {ZH: "慢商户", EN: "slow merchants"},
	queue.CompensateQueue: {ZH: "实时补偿", EN: "compensation"},
	queue.TimeoutQueue:    {ZH: "超时关单", EN: "order timeout"},
	queue.SweepQueue:      {ZH: "低峰扫描（隔离）", EN: "sweep, isolated"},
	queue.AlertQueue:      {ZH: "告警", EN: "alerts"},
}

// Waits from which a queue is late; the tick takes up within two seconds what
// Redis lost.
const (
	laneLate  = 5 * time.Second
	laneStuck = time.Minute
)

// laneWait is by how much the oldest task of a queue is overdue.
// Parked tasks count from their creation.
func laneWait(l console.Lane) time.Duration { return max(l.Overdue, l.Latency, l.Age) }

func laneState(l console.Lane) ui.State {
	switch wait := laneWait(l); {
	case l.Age > 0:
		return ui.State{Kind: "warn", Icon: "zap-off", Label: text.Parked}
	case wait > laneStuck:
		return ui.State{Kind: "bad", Icon: "triangle-alert", Label: tLate}
	case wait > laneLate:
		return ui.State{Kind: "warn", Icon: "clock", Label: tLate}
	case l.Rows == 0 && l.InRedis == 0:
		return ui.State{Kind: "idle", Icon: "clock", Label: tIdle}
	}
	return ui.State{Kind: "ok", Icon: "check", Label: text.Healthy}
}

// Example are keys for a first apply file. They are made on request only: an example that came with
// keys would be copied with them.
type Example struct{ SupplierKey, APIKey, SigningSecret string }

// noKeys stand where keys have to be.
var noKeys = Example{SupplierKey: "…", APIKey: "sk_live_…", SigningSecret: "whsec_…"}

// yaml is an apply file to begin with; its supplier is of the kind sortedparams,
// for which no account is needed.
func (e Example) yaml() string {
	return `suppliers:
  - code: first
    kind: sortedparams
    enabled: true
    config: {format: form, algorithm: md5, key: ` + e.SupplierKey + `, key_append: "&key={key}", sign_field: sign,
      order_field: order, trade_field: trade, amount_field: amount, amount_unit: minor, currency: CNY,
      status_field: status, paid_values: [OK], reply: {content_type: text/plain, success: success, failure: fail}}
merchants:
  - code: m1
    name: First Merchant
    api_key: ` + e.APIKey + `
    signing_secret: ` + e.SigningSecret + `
    notify: {urls: [https://merchant.example/notify]}`
}

// firstCall creates the first order.
func firstCall(api string) string {
	return `curl -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/json' \` + "\n" +
		`  -d '{"out_trade_no":"T1","amount":1999,"currency":"CNY","supplier":"first","subject":"Book"}' \` + "\n  " + api +
		"/api/v1/orders"
}

// p95 is how long something took in all but the slowest cases.
func p95(p *ui.Page, label text.Text, of report.Histogram) templ.Component {
	value, unit := p.T(text.None), ""
	if d, ok := of.Quantile(0.95); ok {
		value, unit = ui.Length(d)
	}
	return panel.KPI(p.T(label), value, unit)
}

// notifiedInAll adds orders up over currencies; their money cannot be.
func notifiedInAll(all []report.Notified) (sum report.Notified) {
	for _, n := range all {
		sum.Raised, sum.Notified = sum.Raised+n.Raised, sum.Notified+n.Notified
	}
	return sum
}

// ageOf is how long something has lasted, in words.
func ageOf(p *ui.Page, us int64) string {
	switch d := p.Now.Sub(time.UnixMicro(us)); {
	case d < time.Minute:
		return p.T(tSecondsN, ui.Count(max(0, int64(d/time.Second))))
	case d < 2*time.Hour:
		return p.T(tMinutesN, ui.Count(int64(d/time.Minute)))
	case d < 48*time.Hour:
		return p.T(tHoursN, ui.Count(int64(d/time.Hour)))
	default:
		return p.T(tDaysN, ui.Count(int64(d/(24*time.Hour))))
	}
}

// Texts of this page.
var (
	tSecondsN    = text.Text{ZH: "%s 秒", EN: "%s s"}
	tMinutesN    = text.Text{ZH: "%s 分钟", EN: "%s min"}
	tHoursN      = text.Text{ZH: "%s 小时", EN: "%s h"}
	tDaysN       = text.Text{ZH: "%s 天", EN: "%s d"}
	tOwnFigures  = text.Text{ZH: "您的商户，截至 %s", EN: "Your merchants, as of %s"}
	tLate        = text.Text{ZH: "偏慢", EN: "Late"}
	tIdle        = text.Text{ZH: "空闲", EN: "Idle"}
	tMiniWarn    = text.Text{ZH: "队列在进程内运行，仅供开发", EN: "The queue runs in-process, for development only"}
	tMiniWarnHow = text.Text{
		ZH: "没有找到 redis-server。进程内的替代实现较慢，重启后不保留任务（数据库中的记录不受影响）。请安装 redis-server，或设置 BACKSTOP_REDIS_URL。",
		EN: "No redis-server was found. The in-process replacement is slow and keeps no tasks across restarts (the rows in the database are safe). Install redis-server or set BACKSTOP_REDIS_URL.",
	}
)
