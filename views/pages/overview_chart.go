package pages

import (
	"fmt"
	"strings"
	"time"

	"backstop/internal/base/text"
	"backstop/internal/report"
	"backstop/views/ui"
)

// The chart of outcomes: bars below, the success rate as a line above. Measures are
// pixels of a page of the usual width.
const (
	plotLeft   = 0.0
	plotRight  = 714.0
	barsTop    = 70.0
	barsBottom = 216.0
	rateTop    = 6.0
	rateBottom = 52.0
	labelBelow = 231.0
	plotHeight = 236.0
)

// bar is one span of time.
type bar struct {
	ok, retried, failed ui.Box
	title               string
	label               string // below the bar; empty = none
	middle              float64
}

// grid is one horizontal line and its value.
type grid struct {
	y     float64
	label string
}

// chart is the geometry of the outcomes, ready to be drawn.
type chart struct {
	bars []bar
	grid []grid
	line string // path of the success rate
	says string
}

// barOf stacks the results of one span's attempts.
func barOf(p report.Point, x, width, scale float64) bar {
	b := bar{middle: x + width/2}
	bottom := barsBottom
	for _, part := range []struct {
		n    int64
		into *ui.Box
	}{{p.OK, &b.ok}, {p.Retried, &b.retried}, {p.Failed, &b.failed}} {
		h := float64(part.n) * scale
		bottom -= h
		*part.into = ui.Box{X: x, Y: bottom, W: width, H: h}
	}
	return b
}

// drawOutcomes computes the chart.
func drawOutcomes(p *ui.Page, points []report.Point, span time.Duration) chart {
	var most int64
	lowest := 1.0
	for _, pt := range points {
		most = max(most, pt.Attempts())
		if r, ok := pt.Rate(); ok {
			lowest = min(lowest, r)
		}
	}
	unit := gridStep(most)
	scale := (barsBottom - barsTop) / float64(3*unit)
	floor := rateFloor(lowest)
	c := chart{}
	for i := range int64(4) {
		c.grid = append(c.grid, grid{barsBottom - float64(i*unit)*scale, ui.Short(i * unit)})
	}
	c.grid = append(c.grid, grid{rateBottom, ui.Percent(floor, 0)}, grid{rateTop, "100%"})
	slot := (plotRight - plotLeft) / float64(len(points))
	var line strings.Builder
	drawn := false
	label := barLabels(p, points, span)
	for i, pt := range points {
		b := barOf(pt, plotLeft+float64(i)*slot+slot*0.09, slot*0.82, scale)
		b.title = p.T(tBarTitle, p.SpanName(pt.Start, span), ui.Count(pt.OK), ui.Count(pt.Retried), ui.Count(pt.Failed))
		b.label = label[i]
		c.bars = append(c.bars, b)
		r, ok := pt.Rate()
		if !ok {
			drawn = false
			continue
		}
		y := rateTop + (1-r)/(1-floor)*(rateBottom-rateTop)
		if drawn {
			fmt.Fprintf(&line, "L%s %s", ui.Px(b.middle), ui.Px(y))
		} else {
			fmt.Fprintf(&line, "M%s %sh4L%s %s", ui.Px(b.middle-2), ui.Px(y), ui.Px(b.middle), ui.Px(y)) // a lone point is seen too
		}
		drawn = true
	}
	c.line = line.String()
	t := report.Total(points)
	c.says = p.T(tChartSays, p.Took(span), ui.Count(t.Attempts()), ui.Count(t.OK), ui.Count(t.Retried), ui.Count(t.Failed))
	return c
}

// gridStep is a round third of the axis.
func gridStep(most int64) int64 {
	for unit := int64(1); ; unit *= 10 {
		for _, m := range []int64{1, 2, 4, 5, 8} {
			if 3*m*unit >= most {
				return m * unit
			}
		}
	}
}

// rateFloor is where the axis of the rate begins: as near to 100 % as it may.
func rateFloor(lowest float64) float64 {
	for _, f := range []float64{0.8, 0.5} {
		if lowest >= f {
			return f
		}
	}
	return 0
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
	tBarTitle  = text.Text{ZH: "%s  成功 %s · 重试 %s · 失败 %s", EN: "%s  delivered %s · retried %s · failed %s"}
	tChartSays = text.Text{ZH: "%s 内 %s 次通知，成功 %s，重试 %s，失败 %s", EN: "Within %s, %s attempts: %s delivered, %s retried, %s failed"}
)
