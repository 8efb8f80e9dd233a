package pages

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	"backstop/internal/base/queue"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/report"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// OverviewData is what the overview shows.
type OverviewData struct {
	Range  console.Range
	Read   time.Time // when the oldest of the figures were read
	System System
	// The panels.
	Guide, Risk, Todo, Outcomes, Health, Suppliers, Queues templ.Component
}

// System is what the installation runs on.
type System struct {
	Engine   string // "external", "child" or "in-process"
	Database string
	Inspect  bool // whether the person may open Asynqmon
	Alerts   bool // whether the person may read alerts
	// Decides reports whether the person may decide a proposal now; nil = none.
	Decides func(*console.Approval) bool
}

// engines are the words of System.Engine.
var engines = map[string]text.Text{
	"external":   {ZH: "外部 Redis", EN: "external Redis"},
	"child":      {ZH: "内置 redis-server（随服务启动）", EN: "embedded redis-server (runs with the server)"},
	"in-process": {ZH: "进程内替代实现", EN: "in-process replacement"},
}

// healthState judges a merchant by its last hour, and by the present if it is slow.
func healthState(h console.MerchantHealth) ui.State {
	rate, ok := h.Rate()
	p95, _ := h.Took.Quantile(0.95)
	switch {
	case h.Breaker.Tripped():
		return ui.State{Kind: "bad", Icon: "zap-off", Label: tBreakerOpen}
	case ok && rate < 0.5:
		return ui.State{Kind: "bad", Icon: "circle-x", Label: tFailing}
	case ok && rate < 0.95:
		return ui.State{Kind: "warn", Icon: "activity", Label: tDegraded}
	case h.Slow || p95.D > slowP95:
		return ui.State{Kind: "warn", Icon: "timer", Label: tSlow}
	case !ok:
		return ui.State{Kind: "idle", Icon: "clock", Label: text.Quiet}
	}
	return ui.State{Kind: "ok", Icon: "check", Label: text.Healthy}
}

// slowP95 is a bound of the histogram, so that it is passed exactly where the
// percentile is over it.
const slowP95 = 3 * time.Second

// trendCurve draws a merchant's rate; parts without attempts are left out.
func trendCurve(h console.MerchantHealth) ui.Curve {
	var at []int64
	var values []float64
	for i, p := range h.Trend {
		if r, ok := p.Rate(); ok {
			at, values = append(at, int64(i)), append(values, r)
		}
	}
	return ui.DrawCurve(at, values, 0, int64(len(h.Trend)-1), 1)
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

// Example are keys for a first apply file, new ones on each page load,
// so that a copied example is no known key.
type Example struct{ SupplierKey, APIKey, SigningSecret string }

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

// current marks the chosen one of several links.
func current(is bool) templ.Attributes {
	if is {
		return templ.Attributes{"aria-current": "true"}
	}
	return nil
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

func rateText(p *ui.Page, pt report.Point, decimals int) string {
	if r, ok := pt.Rate(); ok {
		return ui.Percent(r, decimals)
	}
	return p.T(text.None)
}

func p95Text(p *ui.Page, h report.Histogram) string {
	if d, ok := h.Quantile(0.95); ok {
		return ui.LengthText(d)
	}
	return p.T(text.None)
}

func countOrNone(p *ui.Page, n int64) string {
	if n == 0 {
		return p.T(text.None)
	}
	return ui.Count(n)
}

// perSecond writes a rate with its significant digits.
func perSecond(v float64) string {
	if v > 0 && v < 0.1 {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// sparkKind gives a curve the colour of the state beside it.
func sparkKind(h console.MerchantHealth) string {
	if kind := healthState(h).Kind; kind != "idle" {
		return kind
	}
	return "acc"
}

// nameOr is a merchant's name; one that is gone has its number alone.
func nameOr(name, code string, id int64) string { return cmp.Or(name, code, strconv.FormatInt(id, 10)) }

func urlQuery(text string) string { return url.QueryEscape(text) }

// minuteOf is a moment to the minute, with the day where it is not today's.
func minuteOf(p *ui.Page, us int64) string {
	if t := p.At(us); t.Format(time.DateOnly) != p.Now.In(p.Zone).Format(time.DateOnly) {
		return t.Format("01-02 15:04")
	}
	return p.At(us).Format("15:04")
}

// Texts of this page.
var (
	tBreakerOpen   = text.Text{ZH: "已熔断", EN: "Breaker open"}
	tMoneyOverview = text.Text{ZH: "资金与通知总览", EN: "Money and delivery overview"}
	tLive          = text.Text{ZH: "实时 · 更新于", EN: "Live · updated"}
	tDelayed       = text.Text{ZH: "有延迟，每 10 秒更新 · 更新于", EN: "Delayed, every 10 s · updated"}
	tOffline       = text.Text{ZH: "离线：数据停留在", EN: "Offline: figures as of"}
	tPausedAt      = text.Text{ZH: "已暂停 · 更新于", EN: "Paused · updated"}
	tPause         = text.Text{ZH: "暂停", EN: "Pause"}
	tResume        = text.Text{ZH: "继续", EN: "Resume"}
	tTimeRange     = text.Text{ZH: "时间范围", EN: "Time range"}
	tSince         = text.Text{ZH: "始于", EN: "since"}
	tOldestSince   = text.Text{ZH: "最早", EN: "oldest from"}
	tSecondsN      = text.Text{ZH: "%s 秒", EN: "%s s"}
	tMinutesN      = text.Text{ZH: "%s 分钟", EN: "%s min"}
	tHoursN        = text.Text{ZH: "%s 小时", EN: "%s h"}
	tDaysN         = text.Text{ZH: "%s 天", EN: "%s d"}
	tDegraded      = text.Text{ZH: "偏低", EN: "Degraded"}
	tFailing       = text.Text{ZH: "失败多", EN: "Failing"}
	tSlow          = text.Text{ZH: "慢", EN: "Slow"}
	tLate          = text.Text{ZH: "偏慢", EN: "Late"}
	tIdle          = text.Text{ZH: "空闲", EN: "Idle"}
	tMiniWarn      = text.Text{ZH: "队列在进程内运行，仅供开发", EN: "The queue runs in-process, for development only"}
	tMiniWarnHow   = text.Text{
		ZH: "没有找到 redis-server。进程内的替代实现较慢，重启后不保留任务（数据库中的记录不受影响）。请安装 redis-server，或设置 BACKSTOP_REDIS_URL。",
		EN: "No redis-server was found. The in-process replacement is slow and keeps no tasks across restarts (the rows in the database are safe). Install redis-server or set BACKSTOP_REDIS_URL.",
	}
)
