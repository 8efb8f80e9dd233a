// Package chart draws plots, and holds the values of their tables: of pages, of files and of the mailed
// report.
package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/views/ui"

	"github.com/a-h/templ"
)

// Plot is a chart of the analytics page, ready to be drawn: as wide as Width, stretched to
// its panel.
type Plot struct {
	Height float64
	Grid   []GridLine
	Labels []Label
	Cells  []Block
	Paths  []Path
	Hits   []Hit
	Says   string
	rows   bool   // the labels of grid name rows, not lines
	Name   string // "" = it is the only one of its page
	Load   string // path of the chart with its hits; "" = they are drawn
}

// spots are the hits that are drawn.
func (c Plot) spots() []Hit {
	if c.Load != "" {
		return nil
	}
	return c.Hits
}

// Label is a text below the plot.
type Label struct {
	X      float64
	Text   string
	Anchor string // text-anchor
	Roomy  bool   // it needs a wide page
}

// place is where the label is in a plot of this height.
func (l Label) place(height float64) templ.Attributes {
	return templ.Attributes{
		"class": templ.KV("roomy", l.Roomy), "x": ui.Share(l.X, Width), "y": ui.Px(height - 5), "text-anchor": l.Anchor,
	}
}

// Path is one line or area.
type Path struct{ Class, D string }

// Block is one box; its opacity is its strength, "" = full.
type Block struct {
	ui.Box
	class, opacity string
}

// paths are its boxes, joined where they look the same, in the order in which the first of each comes, and
// then its lines and areas.
func (c Plot) paths() (all []templ.Attributes) {
	pens := map[[2]string]*Pen{}
	var looks [][2]string
	for _, b := range c.Cells {
		look := [2]string{b.class, b.opacity}
		if pens[look] == nil {
			pens[look], looks = new(Pen), append(looks, look)
		}
		pens[look].box(b.Box)
	}
	for _, look := range looks {
		all = append(all, templ.Attributes{"class": look[0], "fill-opacity": templ.KV(look[1], look[1] != ""), "d": pens[look].String()})
	}
	for _, l := range c.Paths {
		if l.D != "" {
			all = append(all, templ.Attributes{"class": l.Class, "vector-effect": "non-scaling-stroke", "d": l.D})
		}
	}
	return all
}

// Pen writes a path in whole pixels, relative to where it is: that is short.
type Pen struct {
	strings.Builder
	x, y int
}

// step writes one command, and where it leads from here.
func (p *Pen) step(command string, x, y float64) {
	toX, toY := int(math.Round(x)), int(math.Round(y))
	fmt.Fprintf(p, "%s%d", command, toX-p.x)
	if toY >= p.y {
		p.WriteByte(' ')
	}
	p.WriteString(strconv.Itoa(toY - p.y))
	p.x, p.y = toX, toY
}

func (p *Pen) Move(x, y float64) {
	p.x, p.y = int(math.Round(x)), int(math.Round(y))
	fmt.Fprintf(p, "M%d %d", p.x, p.y)
}

func (p *Pen) Line(x, y float64) { p.step("l", x, y) }

// box draws at least a pixel.
func (p *Pen) box(b ui.Box) {
	if p.Len() == 0 {
		p.Move(b.X, b.Y)
	} else {
		p.step("m", b.X, b.Y)
	}
	w, h := max(1, int(math.Round(b.X+b.W))-p.x), max(1, int(math.Round(b.Y+b.H))-p.y)
	fmt.Fprintf(p, "h%dv%dh-%dz", w, h, w)
}

// Hit is a column under the pointer: what it says, and where it leads ("" = nowhere).
type Hit struct {
	X, W  float64
	Title string
	Href  string
}

// box is the column in a plot of this height.
func (h Hit) box(height float64) templ.Attributes {
	return templ.Attributes{"class": "hit", "x": ui.Share(h.X, Width), "width": ui.Share(h.W, Width), "height": ui.Px(height - Foot)}
}

const (
	Top       = 8.0
	Foot      = 20.0  // for the labels
	gap       = 118.0 // between two labels at least: a third of that on a phone
	FaintLine = "line s-faint"
)

// Axis maps values to heights.
type Axis struct {
	Low, High, Top, Bottom float64
	Log                    bool
}

func (a Axis) Y(v float64) float64 {
	low, high := a.Low, a.High
	if a.Log {
		v, low, high = math.Log10(max(v, low)), math.Log10(low), math.Log10(high)
	}
	if high <= low {
		return a.Bottom
	}
	return a.Bottom - (min(max(v, low), high)-low)/(high-low)*(a.Bottom-a.Top)
}

// Middle is the middle of a column.
func Middle(i, n int) float64 { return Width * (float64(i) + 0.5) / float64(n) }

// Line draws values, one per column; NaN leaves a gap. A lone value is seen too.
func Line(values []float64, a Axis) string {
	var p Pen
	drawn := false
	for i, v := range values {
		if math.IsNaN(v) {
			drawn = false
			continue
		}
		x, y := Middle(i, len(values)), a.Y(v)
		if !drawn {
			p.Move(x-3, y)
		}
		p.Line(x, y)
		drawn = true
	}
	return p.String()
}

// Band draws the area between two lines of the columns from first on, of n.
func Band(low, high []float64, first, n int, a Axis) string {
	var p Pen
	for i, v := range high {
		if x, y := Middle(first+i, n), a.Y(v); i == 0 {
			p.Move(x, y)
		} else {
			p.Line(x, y)
		}
	}
	for i := len(low) - 1; i >= 0; i-- {
		p.Line(Middle(first+i, n), a.Y(low[i]))
	}
	if p.Len() > 0 {
		p.WriteString("z")
	}
	return p.String()
}

// Across draws a horizontal line.
func Across(v float64, a Axis) string {
	return "M0 " + ui.Px(a.Y(v)) + "H" + ui.Px(Width)
}

// named says what the chart is: an image, unless parts of it are links.
func (c Plot) named() templ.Attributes {
	role := "img"
	if slices.ContainsFunc(c.Hits, func(h Hit) bool { return h.Href != "" }) {
		role = "group"
	}
	return templ.Attributes{"role": role, "aria-label": c.Says, "id": templ.KV(c.Name+"-chart", c.Name != "")}
}

// loading has the chart load its hits when it is looked at, unless they are drawn.
func (c Plot) loading() templ.Attributes {
	if c.Load == "" {
		return nil
	}
	return templ.Attributes{"hx-get": c.Load, "hx-trigger": "pointerenter once, focusin once", "hx-swap": "outerHTML"}
}

// Hits makes each column say something.
func Hits(n int, says func(i int) string) []Hit {
	all := make([]Hit, n)
	for i := range all {
		all[i] = Hit{X: Width * float64(i) / float64(n), W: Width / float64(n), Title: says(i)}
	}
	return all
}

// Labels names some of the columns, far enough from each other.
func Labels(n int, name func(i int) string) (all []Label) {
	every := max(1, int(math.Ceil(gap*float64(n)/Width)))
	for i := (n - 1) % every; i < n; i += every {
		x := Middle(i, n)
		if x < gap/3 || x > Width-gap/3 {
			continue
		}
		all = append(all, Label{X: x, Text: name(i), Anchor: "middle"})
	}
	return all
}

// CountAxis is an Axis from 0 to a round number, with its grid.
func CountAxis(most int64, height float64) (Axis, []GridLine) {
	unit := GridStep(max(most, 1))
	a := Axis{High: float64(3 * unit), Top: Top, Bottom: height - Foot}
	var lines []GridLine
	for i := range int64(4) {
		lines = append(lines, GridLine{a.Y(float64(i * unit)), ui.Short(i * unit)})
	}
	return a, lines
}

// ShareAxis is an Axis of shares from a floor to 100 %.
func ShareAxis(floor, height float64) (Axis, []GridLine) {
	a := Axis{Low: floor, High: 1, Top: Top, Bottom: height - Foot}
	decimals := 0
	if floor > 0.9 {
		decimals = 1
	}
	middle := (1 + floor) / 2
	return a, []GridLine{{a.Bottom, ui.Percent(floor, decimals)}, {a.Y(middle), ui.Percent(middle, decimals+1)}, {a.Top, "100%"}}
}

// ShareFloor is where an Axis of shares begins: as near to 100 % as it may.
func ShareFloor(lowest float64) float64 {
	for _, f := range []float64{0.99, 0.98, 0.95, 0.9, 0.8, 0.5} {
		if lowest >= f {
			return f
		}
	}
	return 0
}

// Lowest returns the lowest known value, 1 if there is none.
func Lowest(lines ...[]float64) float64 {
	lowest := 1.0
	for _, line := range lines {
		for _, v := range line {
			if !math.IsNaN(v) {
				lowest = min(lowest, v)
			}
		}
	}
	return lowest
}

// DurationAxis is a logarithmic Axis from 10 ms to an hour.
func DurationAxis(height float64) (Axis, []GridLine) {
	a := Axis{Low: 0.01, High: 3600, Top: Top, Bottom: height - Foot, Log: true}
	var lines []GridLine
	for _, d := range []time.Duration{
		10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute,
		10 * time.Minute, time.Hour,
	} {
		lines = append(lines, GridLine{a.Y(d.Seconds()), Briefly(d)})
	}
	return a, lines
}

// Briefly writes a round duration: 100 ms, 10 s, 1 m, 1 h.
func Briefly(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
	case d < time.Hour:
		return strconv.FormatFloat(d.Minutes(), 'f', -1, 64) + " m"
	case d < 24*time.Hour:
		return strconv.FormatFloat(d.Hours(), 'f', -1, 64) + " h"
	}
	return strconv.FormatFloat(d.Hours()/24, 'f', -1, 64) + " d"
}

// Stack draws columns of stacked counts, the first row at the bottom.
func Stack(rows [][]int64, classes []string, n int, a Axis) (all []Block) {
	slot := Width / float64(n)
	bottoms := make([]float64, n)
	for r, row := range rows {
		for i, v := range row {
			if v == 0 {
				continue
			}
			from, to := a.Y(bottoms[i]), a.Y(bottoms[i]+float64(v))
			bottoms[i] += float64(v)
			all = append(all, Block{
				Box:   ui.Box{X: float64(i)*slot + slot*0.09, Y: to, W: slot * 0.82, H: max(from-to, 0.75)},
				class: classes[r],
			})
		}
	}
	return all
}

const heatRow = 17.0

// heatLevels is how many strengths a heat map has.
const heatLevels = 6

// Heat draws a table of counts as boxes, the stronger the more: rows from top to bottom.
func Heat(rows [][]int64, names []string) Plot {
	n := len(rows[0])
	c := Plot{Height: heatRow*float64(len(rows)) + Top + Foot, rows: true}
	slot := Width / float64(n)
	var most int64 = 1
	for _, row := range rows {
		most = max(most, slices.Max(row))
	}
	for r := range rows {
		y := Top + heatRow*float64(r)
		c.Grid = append(c.Grid, GridLine{y + heatRow/2, names[r]})
		c.Cells = append(c.Cells, Block{Box: ui.Box{Y: y + 1, W: Width, H: heatRow - 2}, class: "f-track", opacity: "0.55"})
	}
	for r, row := range rows {
		for i, v := range row {
			if v > 0 {
				level := math.Ceil(heatLevels * math.Sqrt(float64(v)/float64(most)))
				c.Cells = append(c.Cells, Block{Box: ui.Box{
					X: float64(i) * slot, Y: c.Grid[r].Y - heatRow/2 + 1, W: slot - 1,
					H: heatRow - 2,
				}, class: "f-acc", opacity: strconv.FormatFloat(0.1+0.9*level/heatLevels, 'f', 2, 64)})
			}
		}
	}
	return c
}
