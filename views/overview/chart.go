package overview

import (
	"math"
	"net/url"
	"time"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/report"
	"backstop/views/chart"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// The chart of outcomes: attempts as bars below, the share of notified orders as a line above.
const (
	rateTop    = 6.0
	rateBottom = 52.0
	barsTop    = 70.0
	barsBottom = plotHeight - chart.Foot
	plotHeight = 236.0
)

// outcomesPlot draws the chart. Each column leads to the notifications created within it, which
// are those of the orders that the line counts.
func outcomesPlot(p *ui.Page, o *console.Outcomes, objective float64) chart.Plot {
	n := len(o.Points)
	rows, most := [3][]int64{}, int64(0)
	for r := range rows {
		rows[r] = make([]int64, n)
	}
	orders := make([]float64, n)
	for i, pt := range o.Points {
		rows[0][i], rows[1][i], rows[2][i] = pt.OK, pt.Retried, pt.Failed
		most = max(most, pt.Attempts())
		if rate, ok := o.Steps[i].Rate(); ok {
			orders[i] = rate
		} else {
			orders[i] = math.NaN()
		}
	}
	unit := chart.GridStep(most)
	bars := chart.Axis{High: float64(3 * unit), Top: barsTop, Bottom: barsBottom}
	share := chart.Axis{Low: chart.ShareFloor(min(chart.Lowest(orders), 2*objective-1)), High: 1, Top: rateTop, Bottom: rateBottom}
	t := report.Total(o.Points)
	c := chart.Plot{
		Height: plotHeight,
		Cells:  chart.Stack(rows[:], []string{"f-ok", "f-warn", "f-bad"}, n, bars),
		Paths: []chart.Path{
			{Class: "line s-objective", D: chart.Across(objective, share)},
			{Class: "line s-acc", D: chart.Line(orders, share)},
		},
		Hits: chart.Hits(n, func(i int) string {
			pt := o.Points[i]
			title := p.T(tBarTitle, spanText(p, o, i), ui.Count(pt.OK), ui.Count(pt.Retried), ui.Count(pt.Failed))
			if s := o.Steps[i]; s.Raised > 0 {
				title += "\n" + p.T(tOrdersHit, ui.Percent(orders[i], 2), ui.Count(s.Notified), ui.Count(s.Raised))
			}
			return title
		}),
		Says: p.T(tChartSays, p.Took(o.Range.Span), ui.Count(t.Attempts()), ui.Count(t.OK), ui.Count(t.Retried), ui.Count(t.Failed)),
	}
	for i := range c.Hits {
		if o.Points[i].Attempts() > 0 || o.Steps[i].Raised > 0 {
			c.Hits[i].Href = createdWithin(p, o.Points[i].Start, o.Range.Step)
		}
	}
	for i := range int64(4) {
		c.Grid = append(c.Grid, chart.GridLine{Y: bars.Y(float64(i * unit)), Label: ui.Short(i * unit)})
	}
	c.Grid = append(c.Grid, chart.GridLine{Y: rateBottom, Label: ui.Percent(share.Low, 0)}, chart.GridLine{Y: rateTop, Label: "100%"})
	for i, label := range barLabels(p, o.Points, o.Range.Span) {
		if label != "" {
			c.Labels = append(c.Labels, chart.Label{X: chart.Middle(i, n), Text: label, Anchor: "middle", Roomy: len(c.Labels)%2 == 1})
		}
	}
	return c
}

// spanText is the time that a column covers.
func spanText(p *ui.Page, o *console.Outcomes, i int) string {
	end := p.At(o.Points[i].Start + o.Range.Step.Microseconds()).Format("15:04")
	return p.SpanName(o.Points[i].Start, o.Range.Span) + "–" + end
}

// createdWithin leads to the notifications created within a time.
func createdWithin(p *ui.Page, start int64, span time.Duration) string {
	// With the offset, a time means the same in every zone.
	const layout = "2006-01-02T15:04Z07:00"
	v := url.Values{"from": {p.At(start).Format(layout)}, "to": {p.At(start + span.Microseconds()).Format(layout)}}
	return string(templ.URL("/notifications?" + v.Encode()))
}

// barLabels names the bars with which a new part of the axis begins, in the
// person's zone.
func barLabels(p *ui.Page, points []report.Point, span time.Duration) []string {
	every := map[bool]time.Duration{true: 10 * time.Minute, false: 3 * time.Hour}[span <= time.Hour]
	if span > time.Hour && span <= 6*time.Hour {
		every = time.Hour
	}
	labels := make([]string, len(points))
	part := func(us int64) int64 {
		t := p.At(us)
		if span > 24*time.Hour {
			return int64(t.YearDay())
		}
		return int64(t.Hour()*60+t.Minute()) / int64(every.Minutes())
	}
	for i := 1; i < len(points); i++ {
		if part(points[i].Start) == part(points[i-1].Start) {
			continue
		}
		labels[i] = p.At(points[i].Start).Format("15:04")
		if span > 24*time.Hour {
			labels[i] = p.At(points[i].Start).Format("01-02")
		}
	}
	return labels
}

// Texts of this chart.
var (
	tBarTitle  = text.Text{ZH: "%s\n尝试：成功 %s · 重试 %s · 失败 %s", EN: "%s\nattempts: %s delivered · %s retried · %s failed"}
	tOrdersHit = text.Text{ZH: "已通知订单 %s（%s / %s 笔）", EN: "orders notified: %s (%s of %s)"}
	tChartSays = text.Text{ZH: "%s 内 %s 次通知，成功 %s，重试 %s，失败 %s", EN: "Within %s, %s attempts: %s delivered, %s retried, %s failed"}
)
