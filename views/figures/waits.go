package figures

import (
	"math"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/text"
	"backstop/internal/report"
	"backstop/views/chart"
	"backstop/views/panel"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// percentiles of the waits.
var percentiles = []struct {
	q     float64
	name  string
	class string
}{{0.5, "p50", "line s-ok"}, {0.95, "p95", "line s-warn"}, {0.99, "p99", "line s-bad"}}

// quantiles are a percentile by step, in seconds; NaN = nothing was notified.
func quantiles(waits []report.Histogram, q float64) []float64 {
	all := make([]float64, len(waits))
	for i, h := range waits {
		if l, ok := h.Quantile(q); ok {
			all[i] = l.D.Seconds()
		} else {
			all[i] = math.NaN()
		}
	}
	return all
}

func (d AnalyticsData) waitsFigure(p *ui.Page) Figure {
	f := Figure{
		Name: "waits", Title: tWaits, Definition: tWaitsDef, Rows: "/notifications?window=" + d.window(), RowsText: text.Notifications,
		Heads: []string{d.timeHead(p), p.T(tNotifiedN), "p50", "p95", "p99", "p95 · " + p.T(text.LastWeek)},
	}
	for i, h := range slices.Backward(d.Waits) {
		f.Table = append(f.Table, []chart.Cell{
			d.timeCell(p, i), chart.CountCell(h.Count()), chart.LengthCell(p, h, .5), chart.LengthCell(p, h, .95),
			chart.LengthCell(p, h, .99), chart.LengthCell(p, d.WaitsBefore[i], .95),
		})
	}
	return f
}

func (d AnalyticsData) waitsPlot(p *ui.Page) chart.Plot {
	const height = 190
	a, lines := chart.DurationAxis(height)
	c := chart.Plot{Height: height, Grid: lines, Labels: chart.Labels(len(d.Waits), func(i int) string { return d.columnLabel(p, i) })}
	c.Paths = append(c.Paths, chart.Path{Class: chart.FaintLine, D: chart.Line(quantiles(d.WaitsBefore, .95), a)})
	for _, of := range percentiles {
		c.Paths = append(c.Paths, chart.Path{Class: of.class, D: chart.Line(quantiles(d.Waits, of.q), a)})
	}
	c.Hits = chart.Hits(len(d.Waits), func(i int) string {
		h := d.Waits[i]
		return p.T(tWaitsHit, d.columnName(p, i), chart.LengthCell(p, h, .5).Show, chart.LengthCell(p, h, .95).Show,
			chart.LengthCell(p, h, .99).Show, chart.LengthCell(p, d.WaitsBefore[i], .95).Show)
	})
	all := sumOf(d.Waits)
	c.Says = p.T(tWaitsSays, chart.LengthCell(p, all, .5).Show, chart.LengthCell(p, all, .95).Show, chart.LengthCell(p, all, .99).Show)
	return c
}

func waitsPanel(p *ui.Page, d AnalyticsData) templ.Component {
	f, all := d.figure(p, "waits"), sumOf(d.Waits)
	if all.Count() == 0 {
		return figurePanel(p, d, f, nothingYet(p, "timer"))
	}
	var figures, keys []templ.Component
	for _, of := range percentiles {
		figures = append(figures, panel.KPI(of.name, chart.LengthCell(p, all, of.q).Show, ""))
		keys = append(keys, chart.Key(of.class, of.name))
	}
	return figurePanel(
		p, d, f, panel.KPIs("three", figures...),
		panel.Box("body", d.legend(p, "p95 · "+p.T(text.LastWeek), keys...), chart.Draw(p, d.chart(p, "waits")),
			figureSub(p.T(tHeatTitle)), chart.Draw(p, d.chart(p, "heat")), figureFoot(p, d, f)),
	)
}

func sumOf(waits []report.Histogram) report.Histogram {
	points := make([]report.Point, len(waits))
	for i, h := range waits {
		points[i].Lag = h
	}
	return report.Total(points).Lag
}

// heatEnds are the upper ends of the rows of the heat map; each is a bound of the histogram.
var heatEnds = []time.Duration{
	100 * time.Millisecond, 500 * time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second, time.Minute,
	10 * time.Minute, time.Hour,
}

// bands counts waits by heatEnds, and one more for longer ones.
func bands(h report.Histogram) []int64 {
	all := make([]int64, len(heatEnds)+1)
	var below int64
	for i, end := range heatEnds {
		n := h.Within(end)
		all[i], below = n-below, n
	}
	all[len(heatEnds)] = h.Count() - below
	return all
}

func (d AnalyticsData) heatPlot(p *ui.Page) chart.Plot {
	rows, names := make([][]int64, len(heatEnds)+1), make([]string, len(heatEnds)+1)
	for r := range rows {
		rows[r] = make([]int64, len(d.Waits))
		if names[r] = "> 1 h"; r < len(heatEnds) {
			names[r] = "≤ " + chart.Briefly(heatEnds[r])
		}
	}
	for i, h := range d.Waits {
		for r, n := range bands(h) {
			rows[r][i] = n
		}
	}
	slices.Reverse(rows)
	slices.Reverse(names)
	c := chart.Heat(rows, names)
	c.Hits = chart.Hits(len(d.Waits), func(i int) string {
		said := d.columnName(p, i)
		for r, name := range names {
			if n := rows[r][i]; n > 0 {
				said += "\n" + name + ": " + ui.Count(n)
			}
		}
		return said
	})
	c.Labels = chart.Labels(len(d.Waits), func(i int) string { return d.columnLabel(p, i) })
	c.Says = p.T(tHeatSays)
	return c
}

// marks are the times that the curve names.
var marks = []time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour}

// within is the share of the orders that were notified within a time, of all that had to be.
func within(waits []report.Histogram, raised int64, end time.Duration) (float64, bool) {
	if raised <= 0 {
		return 0, false
	}
	return min(1, float64(sumOf(waits).Within(end))/float64(raised)), true
}

func (d AnalyticsData) lastWeekRaised() (n int64) {
	for _, s := range d.LastWeek {
		n += s.Raised
	}
	return n
}

func (d AnalyticsData) curveFigure(p *ui.Page) Figure {
	f := Figure{
		Name: "curve", Title: tCurve, Definition: tCurveDef, Rows: "/notifications?window=" + d.window(), RowsText: text.Notifications,
		Heads: []string{p.T(tWithin), p.T(tNotifiedN), p.T(tShare), p.T(text.LastWeek)},
	}
	for _, end := range report.Bounds() {
		v, ok := within(d.Waits, d.Total.Raised, end)
		w, had := within(d.WaitsBefore, d.lastWeekRaised(), end)
		f.Table = append(f.Table, []chart.Cell{
			{Show: chart.Briefly(end), Plain: end.String()},
			chart.CountCell(sumOf(d.Waits).Within(end)), chart.ShareCell(p, v, ok), chart.ShareCell(p, w, had),
		})
	}
	return f
}

func (d AnalyticsData) curvePlot(p *ui.Page) chart.Plot {
	const height = 190
	a := chart.Axis{High: 1, Top: chart.Top, Bottom: height - chart.Foot}
	c := chart.Plot{Height: height, Grid: []chart.GridLine{
		{Y: a.Y(0), Label: "0%"},
		{Y: a.Y(.25), Label: "25%"},
		{Y: a.Y(.5), Label: "50%"},
		{Y: a.Y(.75), Label: "75%"},
		{Y: a.Y(1), Label: "100%"},
	}}
	across := chart.Axis{Low: 0.005, High: 3600, Top: 0, Bottom: chart.Width, Log: true}
	x := func(end time.Duration) float64 { return chart.Width - across.Y(end.Seconds()) }
	draw := func(waits []report.Histogram, raised int64) string {
		var to chart.Pen
		for i, end := range report.Bounds() {
			v, ok := within(waits, raised, end)
			if !ok {
				return ""
			}
			if i == 0 {
				to.Move(x(end), a.Y(v))
			} else {
				to.Line(x(end), a.Y(v))
			}
		}
		return to.String()
	}
	now := draw(d.Waits, d.Total.Raised)
	if now != "" {
		c.Paths = append(c.Paths, chart.Path{
			Class: "area f-acc", D: now + "L" + ui.Px(chart.Width) + " " + ui.Px(a.Bottom) + "L0 " + ui.Px(a.Bottom) + "Z",
		})
	}
	c.Paths = append(c.Paths, chart.Path{Class: chart.FaintLine, D: draw(d.WaitsBefore, d.lastWeekRaised())},
		chart.Path{Class: "line s-acc", D: now})
	for _, m := range marks {
		anchor := "middle"
		if m == time.Hour {
			anchor = "end"
		}
		c.Labels = append(c.Labels, chart.Label{X: x(m), Text: chart.Briefly(m), Anchor: anchor})
		c.Paths = append(c.Paths, chart.Path{Class: "line s-mark", D: "M" + ui.Px(x(m)) + " " + ui.Px(a.Top) + "V" + ui.Px(a.Bottom)})
	}
	var said []string
	for _, m := range marks {
		said = append(said, chart.Briefly(m)+": "+chart.ShareText(p, func() (float64, bool) { return within(d.Waits, d.Total.Raised, m) }))
	}
	c.Says = p.T(tCurveSays, strings.Join(said, ", "))
	return c
}

func curvePanel(p *ui.Page, d AnalyticsData) templ.Component {
	f := d.figure(p, "curve")
	if d.Total.Raised == 0 {
		return figurePanel(p, d, f, nothingYet(p, "timer"))
	}
	var figures []templ.Component
	for _, m := range marks {
		share := chart.ShareText(p, func() (float64, bool) { return within(d.Waits, d.Total.Raised, m) })
		figures = append(figures, panel.KPI("≤ "+chart.Briefly(m), share, ""))
	}
	return figurePanel(
		p, d, f, panel.KPIs("", figures...),
		panel.Box("body", d.legend(p, p.T(text.LastWeek), chart.Key("line s-acc", p.T(tNotifiedN))),
			chart.Draw(p, d.curvePlot(p)), figureFoot(p, d, f)),
	)
}
