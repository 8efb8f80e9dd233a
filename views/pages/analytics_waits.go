package pages

import (
	"math"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/text"
	"backstop/internal/report"
	"backstop/views/ui"
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

func lengthCell(p *ui.Page, h report.Histogram, q float64) cell {
	l, ok := h.Quantile(q)
	if !ok {
		return noCell(p)
	}
	return cell{ui.LengthText(l), strings.TrimSuffix(l.D.String(), "0s")}
}

func (d AnalyticsData) waitsFigure(p *ui.Page) Figure {
	f := Figure{
		Name: "waits", Title: tWaits, Definition: tWaitsDef, Rows: "/notifications?window=" + d.window(), RowsText: text.Notifications,
		Heads: []string{d.timeHead(p), p.T(tNotifiedN), "p50", "p95", "p99", "p95 · " + p.T(tLastWeek)},
	}
	for i, h := range slices.Backward(d.Waits) {
		f.Table = append(f.Table, []cell{
			d.timeCell(p, i), countCell(h.Count()), lengthCell(p, h, .5), lengthCell(p, h, .95), lengthCell(p, h, .99),
			lengthCell(p, d.WaitsBefore[i], .95),
		})
	}
	return f
}

func (d AnalyticsData) waitsPlot(p *ui.Page) plot {
	const height = 190
	a, lines := durationAxis(height)
	c := plot{height: height, grid: lines, labels: labelsOf(len(d.Waits), func(i int) string { return d.columnLabel(p, i) })}
	c.paths = append(c.paths, plotPath{faintLine, linePath(quantiles(d.WaitsBefore, .95), a)})
	for _, of := range percentiles {
		c.paths = append(c.paths, plotPath{of.class, linePath(quantiles(d.Waits, of.q), a)})
	}
	c.hits = hitsOf(len(d.Waits), func(i int) string {
		h := d.Waits[i]
		return p.T(tWaitsHit, d.columnName(p, i), lengthCell(p, h, .5).Show, lengthCell(p, h, .95).Show, lengthCell(p, h, .99).Show,
			lengthCell(p, d.WaitsBefore[i], .95).Show)
	})
	all := sumOf(d.Waits)
	c.says = p.T(tWaitsSays, lengthCell(p, all, .5).Show, lengthCell(p, all, .95).Show, lengthCell(p, all, .99).Show)
	return c
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

func (d AnalyticsData) heatPlot(p *ui.Page) plot {
	rows, names := make([][]int64, len(heatEnds)+1), make([]string, len(heatEnds)+1)
	for r := range rows {
		rows[r] = make([]int64, len(d.Waits))
		if names[r] = "> 1 h"; r < len(heatEnds) {
			names[r] = "≤ " + briefly(heatEnds[r])
		}
	}
	for i, h := range d.Waits {
		for r, n := range bands(h) {
			rows[r][i] = n
		}
	}
	slices.Reverse(rows)
	slices.Reverse(names)
	c := heat(rows, names)
	c.hits = hitsOf(len(d.Waits), func(i int) string {
		said := d.columnName(p, i)
		for r, name := range names {
			if n := rows[r][i]; n > 0 {
				said += "\n" + name + ": " + ui.Count(n)
			}
		}
		return said
	})
	c.labels = labelsOf(len(d.Waits), func(i int) string { return d.columnLabel(p, i) })
	c.says = p.T(tHeatSays)
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
		Heads: []string{p.T(tWithin), p.T(tNotifiedN), p.T(tShare), p.T(tLastWeek)},
	}
	for _, end := range report.Bounds() {
		v, ok := within(d.Waits, d.Total.Raised, end)
		w, had := within(d.WaitsBefore, d.lastWeekRaised(), end)
		f.Table = append(f.Table, []cell{
			{briefly(end), end.String()},
			countCell(sumOf(d.Waits).Within(end)), shareCell(p, v, ok),
			shareCell(p, w, had),
		})
	}
	return f
}

func (d AnalyticsData) curvePlot(p *ui.Page) plot {
	const height = 190
	a := plotAxis{high: 1, top: plotTop, bottom: height - plotFoot}
	c := plot{height: height, grid: []grid{{a.y(0), "0%"}, {a.y(.25), "25%"}, {a.y(.5), "50%"}, {a.y(.75), "75%"}, {a.y(1), "100%"}}}
	across := plotAxis{low: 0.005, high: 3600, top: 0, bottom: plotRight, log: true}
	x := func(end time.Duration) float64 { return plotRight - across.y(end.Seconds()) }
	draw := func(waits []report.Histogram, raised int64) string {
		var to pen
		for i, end := range report.Bounds() {
			v, ok := within(waits, raised, end)
			if !ok {
				return ""
			}
			if i == 0 {
				to.move(x(end), a.y(v))
			} else {
				to.line(x(end), a.y(v))
			}
		}
		return to.String()
	}
	now := draw(d.Waits, d.Total.Raised)
	if now != "" {
		c.paths = append(c.paths, plotPath{"area f-acc", now + "L" + ui.Px(plotRight) + " " + ui.Px(a.bottom) + "L0 " + ui.Px(a.bottom) +
			"Z"})
	}
	c.paths = append(c.paths, plotPath{faintLine, draw(d.WaitsBefore, d.lastWeekRaised())}, plotPath{"line s-acc", now})
	for _, m := range marks {
		anchor := "middle"
		if m == time.Hour {
			anchor = "end"
		}
		c.labels = append(c.labels, plotLabel{x: x(m), text: briefly(m), anchor: anchor})
		c.paths = append(c.paths, plotPath{"line s-mark", "M" + ui.Px(x(m)) + " " + ui.Px(a.top) + "V" + ui.Px(a.bottom)})
	}
	var said []string
	for _, m := range marks {
		said = append(said, briefly(m)+": "+shareText(p, func() (float64, bool) { return within(d.Waits, d.Total.Raised, m) }))
	}
	c.says = p.T(tCurveSays, strings.Join(said, ", "))
	return c
}
