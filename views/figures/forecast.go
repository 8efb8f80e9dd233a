package figures

import (
	"math"
	"strconv"
	"time"

	"backstop/internal/analytics"
	"backstop/internal/base/text"
	"backstop/views/chart"
	"backstop/views/ui"
)

// volumeStart is when an expected step begins, Unix µs; 0 is the first one after now.
func (d AnalyticsData) volumeStart(i int) int64 {
	return d.Expected.From + int64(len(d.Expected.Behind)+i)*analytics.VolumeStep.Microseconds()
}

func roundCell(v float64) chart.Cell {
	return chart.Cell{Show: ui.Count(int64(math.Round(v))), Plain: strconv.FormatFloat(v, 'f', 1, 64)}
}

func (d AnalyticsData) volumeFigure(p *ui.Page) Figure {
	f := Figure{
		Name: "volume", Title: tExpectedVolume, Definition: tExpectedDef, Rows: "/orders?status=paid&window=24h", RowsText: text.Orders,
		Heads: []string{p.T(text.Time) + " (" + p.Zone.String() + ")", p.T(tExpectedN), p.T(tLow), p.T(tHigh)},
	}
	for i, e := range d.Expected.Ahead {
		f.Table = append(f.Table, []chart.Cell{
			{Show: p.At(d.volumeStart(i)).Format("15:04"), Plain: p.At(d.volumeStart(i)).Format("2006-01-02 15:04")},
			roundCell(e.Value), roundCell(e.Low), roundCell(e.High),
		})
	}
	return f
}

func (d AnalyticsData) volumePlot(p *ui.Page) chart.Plot {
	const height = 268
	e := d.Expected
	behind, n := len(e.Behind), len(e.Behind)+len(e.Ahead)
	actual, expected := make([]float64, n), make([]float64, n)
	low, high := make([]float64, len(e.Ahead)), make([]float64, len(e.Ahead))
	var most int64
	for i := range n {
		actual[i], expected[i] = math.NaN(), math.NaN()
		if i < behind {
			actual[i], most = float64(e.Behind[i]), max(most, e.Behind[i])
			continue
		}
		x := e.Ahead[i-behind]
		expected[i], low[i-behind], high[i-behind] = x.Value, x.Low, x.High
		most = max(most, int64(math.Ceil(x.High)))
	}
	a, lines := chart.CountAxis(most, height)
	now := chart.Width * float64(behind) / float64(n)
	c := chart.Plot{
		Height: height, Grid: lines,
		Labels: chart.Labels(n, func(i int) string { return p.At(d.volumeStart(i - behind)).Format("15:04") }),
		Paths: []chart.Path{
			{Class: "area f-acc", D: chart.Band(low, high, behind, n, a)},
			{Class: "line s-mark", D: "M" + ui.Px(now) + " " + ui.Px(a.Top) + "V" + ui.Px(a.Bottom)},
			{Class: "line s-ok", D: chart.Line(actual, a)},
			{Class: "line s-plan", D: chart.Line(expected, a)},
		},
		Hits: chart.Hits(n, func(i int) string {
			at := p.At(d.volumeStart(i - behind)).Format("15:04")
			if i < behind {
				return p.T(tActualHit, at, ui.Count(e.Behind[i]))
			}
			x := e.Ahead[i-behind]
			return p.T(tExpectedHit, at, roundCell(x.Value).Show, roundCell(x.Low).Show, roundCell(x.High).Show)
		}),
	}
	c.Says = d.volumeSays(p)
	return c
}

// volumeSays is the volume expected within the next hour.
func (d AnalyticsData) volumeSays(p *ui.Page) string {
	if d.Expected.Outside {
		return p.T(tOutside)
	}
	var sum, low, high float64
	for _, x := range d.Expected.Ahead[:min(len(d.Expected.Ahead), int(time.Hour/analytics.VolumeStep))] {
		sum += x.Value
		// The steps of an hour err independently.
		low, high = low+(x.Value-x.Low)*(x.Value-x.Low), high+(x.High-x.Value)*(x.High-x.Value)
	}
	return p.T(tVolumeSays, roundCell(sum).Show, roundCell(max(0, sum-math.Sqrt(low))).Show, roundCell(sum+math.Sqrt(high)).Show)
}

func minuteName(p *ui.Page, at int64, i, n int) (string, string) {
	t := p.At(at - int64(n-1-i)*time.Minute.Microseconds())
	return t.Format("15:04"), t.Format("2006-01-02 15:04")
}

func (d AnalyticsData) outlookFigure(p *ui.Page, f Figure, o analytics.Outlook, value func(float64) chart.Cell) Figure {
	title := p.T(f.Title)
	if o.Held != nil {
		title = p.T(tDue)
	}
	f.Heads = []string{p.T(text.Time) + " (" + p.Zone.String() + ")", title, p.T(tTrendLine), p.T(tLimitValue)}
	if o.Held != nil {
		f.Heads = append(f.Heads, p.T(tHeldN))
	}
	for i := len(o.Values) - 1; i >= 0; i-- {
		show, plain := minuteName(p, d.At, i, len(o.Values))
		v, line := chart.NoCell(p), chart.NoCell(p)
		if !math.IsNaN(o.Values[i]) {
			v = value(o.Values[i])
		}
		if o.Known {
			line = value(o.LineAt(float64(i - len(o.Values) + 1)))
		}
		row := []chart.Cell{{Show: show, Plain: plain}, v, line, value(o.Limit)}
		if o.Held != nil {
			held := chart.NoCell(p)
			if !math.IsNaN(o.Held[i]) {
				held = value(o.Held[i])
			}
			row = append(row, held)
		}
		f.Table = append(f.Table, row)
	}
	return f
}

func (d AnalyticsData) backlogFigure(p *ui.Page) Figure {
	f := Figure{Name: "backlog", Title: tBacklog, Definition: tBacklogDef, Rows: "/notifications?risk=untold", RowsText: text.Notifications}
	return d.outlookFigure(p, f, d.Backlog, roundCell)
}

func (d AnalyticsData) rateFigure(p *ui.Page) Figure {
	f := Figure{Name: "rate", Title: tSuccessRate, Definition: tRateDef, Rows: "/notifications?window=1h", RowsText: text.Notifications}
	return d.outlookFigure(p, f, d.Rate, func(v float64) chart.Cell { return chart.ShareCell(p, v, true) })
}

// outlookAhead is how far a chart extends a trend beyond now, in minutes.
const outlookAhead = 60

// outlookPlot draws the last half hour, the trend through it, and its next hour with the interval
// of its slope.
func outlookPlot(p *ui.Page, at int64, o analytics.Outlook, a chart.Axis, lines []chart.GridLine, height float64, show func(float64) string,
	says string,
) chart.Plot {
	behind := len(o.Values)
	n := behind + outlookAhead
	known, line := make([]float64, n), make([]float64, n)
	low, high := make([]float64, outlookAhead+1), make([]float64, outlookAhead+1)
	for i := range n {
		known[i], line[i] = math.NaN(), math.NaN()
		if i < behind {
			known[i] = o.Values[i]
		}
		if ahead := i - behind + 1; o.Known {
			if v := o.LineAt(float64(ahead)); a.Low <= v && v <= a.High { // it ends at the edge
				line[i] = v
			}
			if ahead >= 0 {
				low[ahead], high[ahead] = o.Line.Now+finite(o.Line.Low)*float64(ahead), o.Line.Now+finite(o.Line.High)*float64(ahead)
			}
		}
	}
	c := chart.Plot{Height: height, Grid: lines, Says: says}
	if o.Held != nil {
		none, due, all := make([]float64, behind), make([]float64, behind), make([]float64, behind)
		for i := range behind {
			if !math.IsNaN(o.Values[i]) {
				due[i], all[i] = o.Values[i], o.Values[i]+o.Held[i]
			}
		}
		c.Paths = append(c.Paths, chart.Path{Class: "area f-ok", D: chart.Band(none, due, 0, n, a)},
			chart.Path{Class: "area f-warn", D: chart.Band(due, all, 0, n, a)})
	}
	if o.Known {
		c.Paths = append(c.Paths, chart.Path{Class: "area f-acc", D: chart.Band(low, high, behind-1, n, a)},
			chart.Path{Class: "line s-plan", D: chart.Line(line, a)})
	}
	c.Paths = append(c.Paths,
		chart.Path{Class: "line s-mark", D: "M" + ui.Px(chart.Middle(behind-1, n)) + " " + ui.Px(a.Top) + "V" + ui.Px(a.Bottom)},
		chart.Path{Class: "line s-objective", D: chart.Across(o.Limit, a)}, chart.Path{Class: "line s-ok", D: chart.Line(known, a)})
	name := func(i int) string {
		return p.At(at + int64(i-behind+1)*time.Minute.Microseconds()).Format("15:04")
	}
	c.Labels = chart.Labels(n, name)
	c.Hits = chart.Hits(n, func(i int) string {
		switch {
		case i < behind && !math.IsNaN(known[i]):
			return name(i) + " · " + show(known[i])
		case i >= behind && !math.IsNaN(line[i]):
			return name(i) + " · " + p.T(tTrendLine) + " " + show(line[i])
		}
		return name(i)
	})
	return c
}

// finite replaces the slope of an interval without an end.
func finite(v float64) float64 {
	if math.IsInf(v, 0) {
		return 0
	}
	return v
}

func (d AnalyticsData) backlogPlot(p *ui.Page) chart.Plot {
	const height = 150
	most := d.Backlog.Limit
	for i, v := range d.Backlog.Values {
		if v += d.Backlog.Held[i]; v > most {
			most = v
		}
	}
	a, lines := chart.CountAxis(int64(most), height)
	return outlookPlot(p, d.At, d.Backlog, a, lines, height, func(v float64) string { return roundCell(max(v, 0)).Show }, d.backlogSays(p))
}

func (d AnalyticsData) ratePlot(p *ui.Page) chart.Plot {
	const height = 150
	a, lines := chart.ShareAxis(chart.ShareFloor(min(chart.Lowest(d.Rate.Values), d.Rate.Limit-0.02)), height)
	return outlookPlot(p, d.At, d.Rate, a, lines, height, func(v float64) string { return ui.Percent(min(max(v, 0), 1), 2) }, d.rateSays(p))
}

// says writes an outlook as a sentence.
func (d AnalyticsData) says(p *ui.Page, o analytics.Outlook, t outlookTexts, limit, now string) string {
	switch {
	case !o.Known:
		return p.T(tUnknownTrend)
	case o.Beyond:
		return p.T(t.beyond, now, limit)
	case o.Reached:
		clock := func(in time.Duration) string { return p.At(d.At + in.Microseconds()).Format("15:04") }
		latest := clock(o.Latest)
		if o.Latest >= analytics.Horizon {
			latest = p.T(tLater)
		}
		return p.T(t.reached, limit, clock(o.At), clock(o.Earliest), latest)
	}
	return p.T(t.steady, limit, now)
}

// outlookTexts are the sentences about one level.
type outlookTexts struct{ reached, beyond, steady text.Text }

func (d AnalyticsData) backlogSays(p *ui.Page) string {
	held, due := 0.0, 0.0
	if last := len(d.Backlog.Values) - 1; last >= 0 && !math.IsNaN(d.Backlog.Values[last]) {
		due, held = d.Backlog.Values[last], d.Backlog.Held[last]
	}
	says := ""
	if held > 0 {
		says = p.T(tBacklogOf, roundCell(due+held).Show, roundCell(due).Show, roundCell(held).Show)
	}
	return says + d.says(p, d.Backlog, backlogTexts, ui.Count(int64(d.Backlog.Limit)), roundCell(max(d.Backlog.Line.Now, 0)).Show)
}

func (d AnalyticsData) rateSays(p *ui.Page) string {
	return d.says(p, d.Rate, rateTexts, ui.Percent(d.Rate.Limit, 0), ui.Percent(min(max(d.Rate.Line.Now, 0), 1), 2))
}

// outlookKind is the state of an outlook: the nearer, the worse.
func outlookState(o analytics.Outlook) ui.State {
	switch {
	case !o.Known:
		return ui.State{Kind: "idle", Icon: "clock", Label: tTooLittle}
	case o.Beyond:
		return ui.State{Kind: "bad", Icon: "triangle-alert", Label: tBeyond}
	case o.Reached && o.At <= time.Hour:
		return ui.State{Kind: "warn", Icon: "activity", Label: tSoon}
	case o.Reached:
		return ui.State{Kind: "idle", Icon: "activity", Label: tDrifting}
	}
	return ui.State{Kind: "ok", Icon: "check", Label: tSteady}
}

// slopeText is the trend per hour.
func slopeText(o analytics.Outlook, factor float64, unit string, decimals int) string {
	v := o.PerHour() * factor
	sign := "+"
	if v < 0 {
		sign = "−"
	}
	return sign + strconv.FormatFloat(math.Abs(v), 'f', decimals, 64) + unit
}

// Texts of the analytics page.
var (
	tAnalyticsLead = text.Text{ZH: "通知、支付与异常的走势，以及接下来会怎样", EN: "Trends of notifications, payments and exceptions, and forecasts"}
	tNotifiedRate  = text.Text{ZH: "通知成功率", EN: "Notified rate"}
	tNotifiedDef   = text.Text{
		ZH: "分母：该时段内需要通知商户的订单（按通知生成时间归入时段）；分子：其中商户至今已全部确认的订单。重发不重复计数，订阅方不计入。目标 %s，其余为误差预算；仍在等待的订单按未通知计。",
		EN: "Of the orders whose notification was created in the span, those that the merchant has acknowledged by now. A notification sent again counts once; subscribers do not count. The objective is %s; the rest is the error budget, and orders that still wait count against it.",
	}
	tWaits    = text.Text{ZH: "从支付到通知成功的时间", EN: "Time from paid to notified"}
	tWaitsDef = text.Text{
		ZH: "从通知生成（入账的同一事务）到商户确认的时间，按订单支付的时段归类；尚未通知成功的订单不在其中。分位数由直方图估算，桶边界处精确。",
		EN: "From the notification's creation, in the transaction that books the payment, to the merchant's acknowledgement, by the span of the payment. Orders not notified yet are not included. Percentiles are estimated from a histogram and exact at its bounds.",
	}
	tHeatTitle = text.Text{ZH: "分布", EN: "Distribution"}
	tCurve     = text.Text{ZH: "多快通知到", EN: "How soon merchants are notified"}
	tCurveDef  = text.Text{
		ZH: "该时段需要通知的订单中，在 1 秒、10 秒、1 分钟、1 小时内通知成功的比例。",
		EN: "Of all orders of which merchants had to be notified, the share notified within each time.",
	}
	tCauses    = text.Text{ZH: "失败原因", EN: "Causes of failure"}
	tCausesDef = text.Text{
		ZH: "每次未成功的通知尝试按原因计一次。订单数与金额只算首次尝试即因该原因失败的订单，因此每笔钱只计一次。“新增”指过去 7 天内首次出现的原因。",
		EN: "Each attempt that failed counts once, by its cause. Orders and money are those whose first attempt failed for it, so that money counts once. A cause is new if it first appeared within the last seven days.",
	}
	tBySupplier = text.Text{ZH: "各渠道的订单量与转化率", EN: "Volume and conversion per supplier"}
	tByMerchant = text.Text{ZH: "各商户的订单量与转化率", EN: "Volume and conversion per merchant"}
	tFlowsDef   = text.Text{
		ZH: "该时段内创建的订单，以及其中至今已支付的比例与金额（按创建时间归类）。导入的历史订单不计入。变化与上周同一时段相比。",
		EN: "Orders created in the span, and of these the share and the money paid by now. Imported orders do not count. The growth is against the same span of last week.",
	}
	tExceptionsBy  = text.Text{ZH: "异常：类型、时长与处理用时", EN: "Exceptions by kind, age and time to decision"}
	tExceptionsDef = text.Text{
		ZH: "左：当前未结异常按已等待时长（最新 10,000 条）。右：该时段内出现且已结的异常，在多长时间内处理完。",
		EN: "Left: open exceptions by how long they have been open (the newest 10,000). Right: exceptions opened in the span and decided, by how soon.",
	}
	tForecast       = text.Text{ZH: "预测", EN: "Forecast"}
	tExpectedVolume = text.Text{ZH: "预计支付量", EN: "Expected volume"}
	tExpectedDef    = text.Text{
		ZH: "预计需要通知的订单数（每 5 分钟）：最近 4 周同一时刻（含前后各 5 分钟）的中位数 × 最近几小时的水平（实际与往常之比的指数加权平均，半衰期 1 小时）。区间来自上周预测误差的中位绝对偏差（MAD），约含 95 %。至少需要 14 天数据。",
		EN: "Orders to notify per 5 minutes: the median of the same time of the last 4 weeks, and the 5 minutes before and after it, × the level of the last hours (exponentially weighted ratio of actual to usual, half-life 1 hour). The band is from the median absolute deviation of last week's forecasts and holds about 95 %. It needs 14 days of data.",
	}
	tBacklog    = text.Text{ZH: "积压", EN: "Backlog"}
	tBacklogDef = text.Text{
		ZH: "每分钟到期未发的通知数（下段），以及因熔断挂起的通知数（上段，不计入趋势）。趋势为最近 30 分钟的 Theil–Sen 斜率，区间 99 %，并按相邻残差的相关性放宽；只有整个区间都在上升时才给出时间。上限取告警规则“队列过长”。",
		EN: "Notifications that are due, by the minute, and above them those held for breakers, of which there is no trend. The trend is the Theil–Sen slope of the last 30 minutes with a 99 % interval, widened by the correlation of neighbouring residuals; a time is given only if the whole interval rises. The limit is that of the alert rule for queues.",
	}
	tSuccessRate = text.Text{ZH: "成功率", EN: "Success rate"}
	tRateDef     = text.Text{
		ZH: "每分钟被商户确认的尝试占比；尝试少于 5 次的分钟不计。方法与积压相同；下限取告警规则“通知尝试成功率过低”。",
		EN: "The share of attempts that merchants acknowledge, by the minute; minutes with fewer than 5 attempts are left out. The method is that of the backlog; the limit is that of the alert rule for the success rate.",
	}
	tToNotify    = text.Text{ZH: "应通知", EN: "To notify"}
	tNotifiedN   = text.Text{ZH: "已通知", EN: "Notified"}
	tByOrders    = text.Text{ZH: "按订单", EN: "By orders"}
	tByMoney     = text.Text{ZH: "按金额", EN: "By money"}
	tBudget      = text.Text{ZH: "误差预算已用", EN: "Error budget spent"}
	tNotifiedHit = text.Text{
		ZH: "%s\n按订单 %s · 按金额 %s\n上周同期 %s · 应通知 %s 笔",
		EN: "%s\nby orders %s · by money %s\nlast week %s · orders to notify: %s",
	}
	tNotifiedSays   = text.Text{ZH: "通知成功率 %s，目标 %s", EN: "Notified rate %s, objective %s"}
	tWaitsHit       = text.Text{ZH: "%s\np50 %s · p95 %s · p99 %s\n上周同期 p95 %s", EN: "%s\np50 %s · p95 %s · p99 %s\nlast week p95 %s"}
	tWaitsSays      = text.Text{ZH: "从支付到通知成功：p50 %s，p95 %s，p99 %s", EN: "From paid to notified: p50 %s, p95 %s, p99 %s"}
	tHeatSays       = text.Text{ZH: "各时段通知用时的分布，颜色越深订单越多", EN: "How long notifications took, by span: darker means more orders"}
	tWithin         = text.Text{ZH: "用时不超过", EN: "Within"}
	tShare          = text.Text{ZH: "占比", EN: "Share"}
	tCurveSays      = text.Text{ZH: "通知成功的比例 %s", EN: "Share notified within %s"}
	tFailedAttempts = text.Text{ZH: "失败次数", EN: "Failed attempts"}
	tCumulative     = text.Text{ZH: "累计", EN: "Cumulative"}
	tMoney          = text.Text{ZH: "金额", EN: "Money"}
	tNewSince       = text.Text{ZH: "新增于", EN: "New since"}
	tNewSinceAt     = text.Text{ZH: "新增 · %s 起", EN: "new since %s"}
	tStillWaiting   = text.Text{ZH: "仍在重试", EN: "Still retrying"}
	tFailedN        = text.Text{ZH: "失败 %s 次", EN: "%s failed attempts"}
	tCausesSays     = text.Text{ZH: "%s 次失败，%s 种原因", EN: "%s failed attempts, %s causes"}
	tOtherCauses    = text.Text{ZH: "其他", EN: "Others"}
	tConversion     = text.Text{ZH: "转化率", EN: "Conversion"}
	tVsLastWeek     = text.Text{ZH: "较上周", EN: "vs last week"}
	tOpenN          = text.Text{ZH: "未结", EN: "Open"}
	tDecidedN       = text.Text{ZH: "已结", EN: "Decided"}
	tDecidedIn      = text.Text{ZH: "%s 内结", EN: "in %s"}
	tExpectedN      = text.Text{ZH: "预计", EN: "Expected"}
	tActual         = text.Text{ZH: "实际", EN: "Actual"}
	tLow            = text.Text{ZH: "区间下限", EN: "Band from"}
	tHigh           = text.Text{ZH: "区间上限", EN: "Band to"}
	tActualHit      = text.Text{ZH: "%s · 实际 %s", EN: "%s · actual %s"}
	tExpectedHit    = text.Text{ZH: "%s · 预计 %s（%s 至 %s）", EN: "%s · expected %s (%s to %s)"}
	tVolumeSays     = text.Text{ZH: "未来一小时预计约 %s 笔（%s 至 %s）", EN: "About %s orders within the next hour (%s to %s)"}
	tTrendLine      = text.Text{ZH: "趋势", EN: "Trend"}
	tLimitValue     = text.Text{ZH: "限值", EN: "Limit"}
	tUnknownTrend   = text.Text{ZH: "最近 30 分钟的数据不足，无法判断趋势。", EN: "Too little data in the last 30 minutes for a trend."}
	tLater          = text.Text{ZH: "更晚", EN: "later"}
	tTooLittle      = text.Text{ZH: "数据不足", EN: "Too little data"}
	tBeyond         = text.Text{ZH: "已越限", EN: "Beyond the limit"}
	tSoon           = text.Text{ZH: "一小时内越限", EN: "Within the hour"}
	tDrifting       = text.Text{ZH: "缓慢接近", EN: "Slowly approaching"}
	tSteady         = text.Text{ZH: "平稳", EN: "Steady"}
	tPerHour        = text.Text{ZH: "每小时 %s", EN: "%s an hour"}
	tLevel          = text.Text{ZH: "当前水平", EN: "Level now"}
	tLevelOf        = text.Text{ZH: "往常的 %s", EN: "%s of the usual"}
	tErrorOf        = text.Text{ZH: "上周误差", EN: "Last week's error"}
	tErrorHow       = text.Text{
		ZH: "提前 1 小时预测的平均绝对误差占总量的比例（WAPE）",
		EN: "mean absolute error of forecasts one hour ahead, as a share of the volume (WAPE)",
	}
	tInside    = text.Text{ZH: "落在区间内", EN: "Within the band"}
	tInsideHow = text.Text{ZH: "上周实际值，目标 95 %", EN: "of last week's values; the target is 95 %"}
	tInputs    = text.Text{ZH: "输入", EN: "Inputs"}
	tInputsOf  = text.Text{ZH: "%d 天数据，%d 周", EN: "%d days of data, %d weeks"}
	tOutside   = text.Text{
		ZH: "最近 15 分钟的支付量不在区间内，暂不预测；回到区间后恢复。",
		EN: "The last 15 minutes are outside of the band: no forecast until they are back within it.",
	}
	tBacklogOf   = text.Text{ZH: "共 %s 条待发：到期 %s，熔断挂起 %s。", EN: "%s wait: %s due, %s held for breakers. "}
	tDue         = text.Text{ZH: "到期", EN: "Due"}
	tHeldN       = text.Text{ZH: "熔断挂起", EN: "Held for breakers"}
	tNeedDays    = text.Text{ZH: "还没有足够的数据", EN: "Not enough data yet"}
	tNeedDaysHow = text.Text{ZH: "预测需要 %d 天的数据，目前有 %d 天。", EN: "A forecast needs %d days of data; there are %d."}
	tDefinition  = text.Text{ZH: "定义", EN: "Definition"}
	tCSV         = text.Text{ZH: "CSV", EN: "CSV"}
	tNothingYet  = text.Text{ZH: "这段时间还没有数据", EN: "No data in this time range"}
	tNothingHow  = text.Text{ZH: "换一个更长的时间范围，或等第一批订单到来。", EN: "Choose a longer range, or wait for the first orders."}
	tNoFailures  = text.Text{ZH: "这段时间没有失败的尝试", EN: "No attempt failed in this time range"}
	tNoOpen      = text.Text{ZH: "没有未结的异常", EN: "No open exceptions"}
	tZoneDays    = text.Text{ZH: "按 %s 的自然日", EN: "days in %s"}
	tSinceDay    = text.Text{ZH: "数据自 %s 起", EN: "figures since %s"}
	tCounted     = text.Text{ZH: "只计最新 10,000 条", EN: "only the newest 10,000 are counted"}
	tBand        = text.Text{ZH: "区间", EN: "Band"}
	tMethod      = text.Text{ZH: "方法、输入与误差", EN: "Method, inputs and error"}
)

var backlogTexts = outlookTexts{
	reached: text.Text{ZH: "积压约在 %[2]s 达到 %[1]s（%[3]s 至 %[4]s）。", EN: "The backlog reaches %s at about %s (%s to %s)."},
	beyond:  text.Text{ZH: "积压为 %s，已超过 %s。", EN: "The backlog is %s, beyond %s."},
	steady:  text.Text{ZH: "暂无积压趋势：上限 %s，趋势水平 %s。", EN: "No trend towards %s; its level is %s."},
}

var rateTexts = outlookTexts{
	reached: text.Text{ZH: "成功率约在 %[2]s 跌破 %[1]s（%[3]s 至 %[4]s）。", EN: "The success rate falls below %s at about %s (%s to %s)."},
	beyond:  text.Text{ZH: "成功率为 %s，已低于 %s。", EN: "The success rate is %s, below %s."},
	steady:  text.Text{ZH: "没有跌破 %s 的趋势，趋势水平 %s。", EN: "No trend towards %s; its level is %s."},
}
