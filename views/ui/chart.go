package ui

import (
	"math"
	"strconv"
	"strings"
	"time"

	"backstop/internal/report"
)

// Box is one rectangle.
type Box struct{ X, Y, W, H float64 }

// Px writes a measure in pixels.
func Px(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// Share writes a horizontal length as a percentage of a chart's width: charts scale with
// the page, their texts do not.
func Share(v, width float64) string { return strconv.FormatFloat(100*v/width, 'f', 2, 64) + "%" }

// Short writes 800, 1.6k, 2.4M.
func Short(n int64) string {
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

// SpanName is a bar's moment: the day too where days differ.
func (p *Page) SpanName(us int64, span time.Duration) string {
	if span > 24*time.Hour {
		return p.At(us).Format("01-02 15:04")
	}
	return p.At(us).Format("15:04")
}

// Percent writes a rate; 100 % only where it is exact.
func Percent(rate float64, decimals int) string {
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

// Length writes a duration from a histogram: value and unit. Above the
// last bound it only says so.
func Length(l report.Length) (value, unit string) {
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

// LengthText is a length in one piece.
func LengthText(l report.Length) string {
	value, unit := Length(l)
	return value + " " + unit
}

// Curve is a small line without axes: x and y within 100 × 30.
type Curve struct{ Line, Area string }

// DrawCurve draws values over times (both in any unit), from 0 to most or to the
// highest value, whichever is more.
func DrawCurve(at []int64, values []float64, from, to int64, most float64) Curve {
	if len(values) < 2 || to <= from {
		return Curve{}
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
		x := Px(100 * float64(at[i]-from) / float64(to-from))
		if i == 0 {
			first = x
		} else {
			b.WriteByte(' ')
		}
		last = x
		b.WriteString(x + "," + Px(28-v/most*23.6))
	}
	return Curve{Line: b.String(), Area: first + ",30 " + b.String() + " " + last + ",30"}
}
