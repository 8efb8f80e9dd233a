package overview

import (
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/chart"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// outcomeRows are the chart's numbers, the newest first.
func outcomeRows(p *ui.Page, o *console.Outcomes) ui.List {
	rows := make([]int, len(o.Points)) // their positions
	for i := range rows {
		rows[i] = len(rows) - 1 - i
	}
	return ui.Beside(p, []ui.Column[int]{
		ui.Col("time", text.Time, ui.TextKind, func(p *ui.Page, i int) ui.Cell {
			start := o.Points[i].Start
			return ui.Cell{Text: p.SpanName(start, o.Range.Span), Href: createdWithin(p, start, o.Range.Step)}
		}).As(""),
		ui.CountCol("ok", tOKWord, func(i int) int64 { return o.Points[i].OK }),
		ui.CountCol("retried", tRetriedWord, func(i int) int64 { return o.Points[i].Retried }),
		ui.CountCol("failed", text.Failed, func(i int) int64 { return o.Points[i].Failed }),
		ui.WordCol("rate", tRate, func(p *ui.Page, i int) string { return ui.RateText(p, o.Points[i], 1) }).As("num"),
		ui.WordCol("orders", tOrdersLine, func(p *ui.Page, i int) string { return chart.ShareText(p, o.Steps[i].Rate) }).As("num"),
	}, rows)
}

// healthColumns are those of the health of merchants.
var healthColumns = []ui.Column[console.MerchantHealth]{
	ui.Col("merchant", text.Merchant, ui.TextKind, func(_ *ui.Page, h console.MerchantHealth) ui.Cell {
		return ui.Cell{Text: wording.MerchantName(h.Name, h.Code, h.Merchant), Title: h.Code, Href: string(link.Merchant(h.Code))}
	}).As("wrap"),
	ui.StateCol("state", text.State, wording.MerchantHealth).As(""),
	ui.WordCol("rate", text.RateHour, func(p *ui.Page, h console.MerchantHealth) string { return ui.RateText(p, h.Point, 1) }).As("num"),
	ui.TextCol("trend", tTrend, func(console.MerchantHealth) string { return "" }).As("").Optional().
		With(func(_ *ui.Page, h console.MerchantHealth) templ.Component {
			return panel.Spark(panel.Trend(h), panel.TrendKind(h))
		}),
	ui.WordCol("p95", text.P95, func(p *ui.Page, h console.MerchantHealth) string { return ui.P95Text(p, h.Took) }).As("num"),
	ui.CountCol("waiting", text.Unnotified, func(h console.MerchantHealth) int64 { return h.Waiting }).
		With(func(p *ui.Page, h console.MerchantHealth) templ.Component {
			return panel.RowCount(p, h.Waiting, false, link.Unnotified(h.Code))
		}),
	ui.TextCol("risk", text.RiskColumn, func(console.MerchantHealth) string { return "" }).As("num").With(healthRisk),
}

// healthRisk is the money at risk in the main currency, and how many others there are.
func healthRisk(_ *ui.Page, h console.MerchantHealth) templ.Component {
	main, others := ui.LeadSum(h.AtRisk)
	if main.Orders == 0 {
		return nil
	}
	sum := ui.Money(main.Minor, main.Currency)
	if len(others) == 0 {
		return sum
	}
	return panel.Spaced(sum, panel.Text("+"+ui.Count(int64(len(others)))))
}

func laneName(p *ui.Page, l console.Lane) templ.Component {
	return panel.Spaced(ui.Styled("mono", l.Name), ui.Styled("muted small", p.T(laneWords[l.Name])))
}

// laneColumns are those of queues; the tasks are not known while Redis is down.
func laneColumns(redisDown bool) []ui.Column[console.Lane] {
	count := func(known bool, n int64, more bool) ui.Cell {
		if !known {
			return ui.Cell{}
		}
		return ui.Cell{Text: ui.Count(n) + ui.Plus(more)}
	}
	return []ui.Column[console.Lane]{
		ui.TextCol("queue", tQueue, func(l console.Lane) string { return l.Name }).As("").With(laneName),
		ui.Col("rows", tRowsWaiting, ui.TextKind, func(_ *ui.Page, l console.Lane) ui.Cell { return count(l.Kept, l.Rows, l.More) }).
			As("num").Hinted(tRowsHint),
		ui.Col("redis", tInRedis, ui.TextKind, func(_ *ui.Page, l console.Lane) ui.Cell { return count(!redisDown, int64(l.InRedis), false) }).
			As("num").Hinted(tInRedisHint),
		ui.WordCol("wait", tOldestWait, func(p *ui.Page, l console.Lane) string {
			if wait := laneWait(l); wait > 0 {
				return p.Rough(wait) + ui.Plus(l.Age > 0 && l.More)
			}
			return ""
		}).As("num"),
		ui.StateCol("state", text.State, laneState).As(""),
	}
}

// Texts of this page.
var (
	tOutcomes        = text.Text{ZH: "商户通知结果", EN: "Notification outcomes"}
	tOKWord          = text.Text{ZH: "成功", EN: "Delivered"}
	tRetriedWord     = text.Text{ZH: "重试", EN: "Retried"}
	tRate            = text.Text{ZH: "尝试成功率", EN: "Attempt success"}
	tRateOf          = text.Text{ZH: "%s 尝试成功率", EN: "%s attempt success"}
	tOrdersLine      = text.Text{ZH: "已通知订单", EN: "Orders notified"}
	tOrdersNotified  = text.Text{ZH: "%s 已通知到商户的订单", EN: "%s orders notified"}
	tMoneyNotifiedOf = text.Text{ZH: "%s / %s", EN: "%s of %s"}
	tUntriedOrders   = text.Text{ZH: "%s%s 笔尚未尝试通知，最早的已等 %s", EN: "%s%s not tried yet, oldest %s"}
	tMerchantP95     = text.Text{ZH: "商户 P95 耗时", EN: "Merchant p95"}
	tLagP95          = text.Text{ZH: "回调→通知 P95", EN: "Callback to notify p95"}
	tPerSecond       = text.Text{ZH: "/秒", EN: "/s"}
	tLastMinutes     = text.Text{ZH: "近 5 分钟", EN: "last 5 min"}
	tNoAttempts      = text.Text{ZH: "这段时间没有通知", EN: "No attempts in this time range"}
	tNoAttemptsHo    = text.Text{ZH: "商户被通知后，结果会按时间显示在这里。", EN: "Once merchants are notified, the results appear here over time."}
	tByRisk          = text.Text{ZH: "按风险笔数排序", EN: "most orders at risk first"}
	tTrend           = text.Text{ZH: "趋势", EN: "Trend"}
	tNoHealth        = text.Text{ZH: "一小时内没有通知商户", EN: "No merchant was notified in the last hour"}
	tNoHealthHow     = text.Text{ZH: "也没有风险资金。", EN: "And no money is at risk."}
	tQueueTable      = text.Text{ZH: "队列", EN: "Queues"}
	tQueue           = text.Text{ZH: "队列", EN: "Queue"}
	tRowsWaiting     = text.Text{ZH: "积压", EN: "Waiting"}
	tRowsHint        = text.Text{ZH: "数据库中等待的记录：以此为准", EN: "Waiting rows in the database: authoritative"}
	tInRedis         = text.Text{ZH: "Redis", EN: "Redis"}
	tInRedisHint     = text.Text{ZH: "Redis 中的任务：只是提醒", EN: "Tasks in Redis: hints only"}
	tOldestWait      = text.Text{ZH: "最久等待", EN: "Oldest wait"}
	tRedisDown       = text.Text{
		ZH: "Redis 没有应答：任务数未知。数据库里的记录不受影响，工作进程会直接从数据库取。",
		EN: "Redis does not answer: the number of tasks is unknown. The rows in the database are safe, and workers read them from there.",
	}
	tEngine   = text.Text{ZH: "队列引擎", EN: "Queue engine"}
	tDatabase = text.Text{ZH: "数据库", EN: "Database"}
)
