package views

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"backstop/internal/report"
)

// The chart of outcomes: bars below, the success rate as a line above. Measures
// are units of its viewBox.
const (
	plotLeft   = 38.0
	plotRight  = 752.0
	barsTop    = 70.0
	barsBottom = 216.0
	rateTop    = 6.0
	rateBottom = 52.0
	labelBelow = 231.0
)

// box is one rectangle.
type box struct{ x, y, w, h float64 }

// bar is one span of time.
type bar struct {
	ok, retried, failed box
	title               string
	label               string // below the bar; empty = none
	middle              float64
}

// grid is one horizontal line with its value.
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

// px writes a measure with one decimal: a pixel is about one unit.
func px(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// barOf stacks what came of one span's attempts.
func barOf(p report.Point, x, width, scale float64) bar {
	b := bar{middle: x + width/2}
	bottom := barsBottom
	for _, part := range []struct {
		n    int64
		into *box
	}{{p.OK, &b.ok}, {p.Retried, &b.retried}, {p.Failed, &b.failed}} {
		h := float64(part.n) * scale
		bottom -= h
		*part.into = box{x, bottom, width, h}
	}
	return b
}

// drawOutcomes computes the chart.
func (p *Page) drawOutcomes(points []report.Point, span time.Duration) chart {
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
		c.grid = append(c.grid, grid{barsBottom - float64(i*unit)*scale, short(i * unit)})
	}
	c.grid = append(c.grid, grid{rateBottom, percent(floor, 0)}, grid{rateTop, "100%"})
	slot := (plotRight - plotLeft) / float64(len(points))
	var line strings.Builder
	drawn := false
	label := p.labels(points, span)
	for i, pt := range points {
		b := barOf(pt, plotLeft+float64(i)*slot+slot*0.09, slot*0.82, scale)
		b.title = p.T(tBarTitle, p.spanName(pt.Start, span), count(pt.OK), count(pt.Retried), count(pt.Failed))
		b.label = label[i]
		c.bars = append(c.bars, b)
		r, ok := pt.Rate()
		if !ok {
			drawn = false
			continue
		}
		y := rateTop + (1-r)/(1-floor)*(rateBottom-rateTop)
		if drawn {
			fmt.Fprintf(&line, "L%s %s", px(b.middle), px(y))
		} else {
			fmt.Fprintf(&line, "M%s %sh4L%s %s", px(b.middle-2), px(y), px(b.middle), px(y)) // a lone point is seen too
		}
		drawn = true
	}
	c.line = line.String()
	t := report.Total(points)
	c.says = p.T(tChartSays, p.took(span), count(t.Attempts()), count(t.OK), count(t.Retried), count(t.Failed))
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

// short writes 800, 1.6k, 2.4M.
func short(n int64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if float64(n) >= u.size {
			return strings.TrimSuffix(strconv.FormatFloat(float64(n)/u.size, 'f', 1, 64), ".0") + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// spanName is a bar's moment: the day too where days differ.
func (p *Page) spanName(us int64, span time.Duration) string {
	if span > 24*time.Hour {
		return p.at(us).Format("01-02 15:04")
	}
	return p.at(us).Format("15:04")
}

// labels names the bars with which a new part of the axis begins, in the
// person's zone.
func (p *Page) labels(points []report.Point, span time.Duration) []string {
	every := map[bool]time.Duration{true: 10 * time.Minute, false: 3 * time.Hour}[span <= time.Hour]
	if span > time.Hour && span <= 6*time.Hour {
		every = time.Hour
	}
	labels := make([]string, len(points))
	part := func(us int64) int64 {
		t := p.at(us)
		if span > 24*time.Hour {
			return int64(t.YearDay())
		}
		return int64(t.Hour()*60+t.Minute()) / int64(every.Minutes())
	}
	for i := 1; i < len(points); i++ {
		if part(points[i].Start) == part(points[i-1].Start) {
			continue
		}
		labels[i] = p.at(points[i].Start).Format("15:04")
		if span > 24*time.Hour {
			labels[i] = p.at(points[i].Start).Format("01-02")
		}
	}
	return labels
}

// percent writes a rate; 100 % only where it is exact.
func percent(rate float64, decimals int) string {
	pow := math.Pow10(decimals)
	v := math.Round(rate*100*pow) / pow
	if v >= 100 && rate < 1 {
		v = 100 - 1/pow
	}
	if rate == 1 || rate == 0 {
		decimals = 0
	}
	return strconv.FormatFloat(v, 'f', decimals, 64) + "%"
}

// about writes an estimated duration: value and unit.
func about(d time.Duration) (value, unit string) {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10), "ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 2, 64), "s"
	}
	return strconv.FormatFloat(d.Minutes(), 'f', 1, 64), "m"
}

func aboutText(d time.Duration) string {
	value, unit := about(d)
	return value + " " + unit
}

// length writes what a histogram knows of a duration: value and unit. Over the
// last bound it is not known by how much.
func length(l report.Length) (value, unit string) {
	if !l.Over {
		return about(l.D)
	}
	for _, u := range []struct {
		span time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if l.D >= u.span {
			return "> " + strconv.FormatInt(int64(l.D/u.span), 10), u.name
		}
	}
	return "> " + strconv.FormatInt(l.D.Milliseconds(), 10), "ms"
}

func lengthText(l report.Length) string {
	value, unit := length(l)
	return value + " " + unit
}

// curve is a small line without axes: x and y within 100 × 30.
type curve struct{ line, area string }

// drawCurve draws values over times (both in any unit), from 0 to most, or to the
// highest where that is more.
func drawCurve(at []int64, values []float64, from, to int64, most float64) curve {
	if len(values) < 2 || to <= from {
		return curve{}
	}
	for _, v := range values {
		most = max(most, v)
	}
	if most == 0 {
		most = 1
	}
	var b strings.Builder
	first, last := "", ""
	for i, v := range values {
		x := px(100 * float64(at[i]-from) / float64(to-from))
		if i == 0 {
			first = x
		} else {
			b.WriteByte(' ')
		}
		last = x
		b.WriteString(x + "," + px(28-v/most*23.6))
	}
	return curve{line: b.String(), area: first + ",30 " + b.String() + " " + last + ",30"}
}
