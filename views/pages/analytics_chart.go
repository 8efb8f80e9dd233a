package pages

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/text"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// plot is a chart of the analytics page, ready to be drawn: as wide as plotRight, stretched to
// its panel.
type plot struct {
	height float64
	grid   []grid
	labels []plotLabel
	cells  []plotCell
	paths  []plotPath
	hits   []plotHit
	says   string
	rows   bool   // the labels of grid name rows, not lines
	name   string // "" = it is the only one of its page
	load   string // path of the chart with its hits; "" = they are drawn
}

// spots are the hits that are drawn.
func (c plot) spots() []plotHit {
	if c.load != "" {
		return nil
	}
	return c.hits
}

// plotLabel is a text below the plot.
type plotLabel struct {
	x      float64
	text   string
	anchor string // text-anchor
	roomy  bool   // it needs a wide page
}

// plotPath is one line or area.
type plotPath struct{ class, d string }

// plotCell is one box; its opacity is its strength, "" = full.
type plotCell struct {
	ui.Box
	class, opacity string
}

// plotShape is all boxes that look the same.
type plotShape struct{ class, opacity, d string }

// shapes joins the boxes that look the same, in the order in which the first of each comes.
func (c plot) shapes() (all []plotShape) {
	pens := map[[2]string]*pen{}
	for _, b := range c.cells {
		look := [2]string{b.class, b.opacity}
		if pens[look] == nil {
			pens[look] = new(pen)
			all = append(all, plotShape{class: b.class, opacity: b.opacity})
		}
		pens[look].box(b.Box)
	}
	for i, s := range all {
		all[i].d = pens[[2]string{s.class, s.opacity}].String()
	}
	return all
}

// pen writes a path in whole pixels, relative to where it is: that is short.
type pen struct {
	strings.Builder
	x, y int
}

// step writes one command, and where it leads from here.
func (p *pen) step(command string, x, y float64) {
	toX, toY := int(math.Round(x)), int(math.Round(y))
	fmt.Fprintf(p, "%s%d", command, toX-p.x)
	if toY >= p.y {
		p.WriteByte(' ')
	}
	p.WriteString(strconv.Itoa(toY - p.y))
	p.x, p.y = toX, toY
}

func (p *pen) move(x, y float64) {
	p.x, p.y = int(math.Round(x)), int(math.Round(y))
	fmt.Fprintf(p, "M%d %d", p.x, p.y)
}

func (p *pen) line(x, y float64) { p.step("l", x, y) }

// box draws at least a pixel.
func (p *pen) box(b ui.Box) {
	if p.Len() == 0 {
		p.move(b.X, b.Y)
	} else {
		p.step("m", b.X, b.Y)
	}
	w, h := max(1, int(math.Round(b.X+b.W))-p.x), max(1, int(math.Round(b.Y+b.H))-p.y)
	fmt.Fprintf(p, "h%dv%dh-%dz", w, h, w)
}

// plotHit is a column under the pointer: what it says, and where it leads ("" = nowhere).
type plotHit struct {
	x, w  float64
	title string
	href  string
}

const (
	plotTop   = 8.0
	plotFoot  = 20.0  // for the labels
	plotGap   = 118.0 // between two labels at least: a third of that on a phone
	faintLine = "line s-faint"
)

// plotAxis maps values to heights.
type plotAxis struct {
	low, high, top, bottom float64
	log                    bool
}

func (a plotAxis) y(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		v, low, high = math.Log10(max(v, low)), math.Log10(low), math.Log10(high)
	}
	if high <= low {
		return a.bottom
	}
	return a.bottom - (min(max(v, low), high)-low)/(high-low)*(a.bottom-a.top)
}

// middleOf is the middle of a column.
func middleOf(i, n int) float64 { return plotRight * (float64(i) + 0.5) / float64(n) }

// linePath draws values, one per column; NaN leaves a gap. A lone value is seen too.
func linePath(values []float64, a plotAxis) string {
	var p pen
	drawn := false
	for i, v := range values {
		if math.IsNaN(v) {
			drawn = false
			continue
		}
		x, y := middleOf(i, len(values)), a.y(v)
		if !drawn {
			p.move(x-3, y)
		}
		p.line(x, y)
		drawn = true
	}
	return p.String()
}

// bandPath draws the area between two lines of the columns from first on, of n.
func bandPath(low, high []float64, first, n int, a plotAxis) string {
	var p pen
	for i, v := range high {
		if x, y := middleOf(first+i, n), a.y(v); i == 0 {
			p.move(x, y)
		} else {
			p.line(x, y)
		}
	}
	for i := len(low) - 1; i >= 0; i-- {
		p.line(middleOf(first+i, n), a.y(low[i]))
	}
	if p.Len() > 0 {
		p.WriteString("z")
	}
	return p.String()
}

// across draws a horizontal line.
func across(v float64, a plotAxis) string {
	return "M0 " + ui.Px(a.y(v)) + "H" + ui.Px(plotRight)
}

// chartRole is an image's, unless parts of the chart are links.
func chartRole(c plot) templ.Attributes {
	if slices.ContainsFunc(c.hits, func(h plotHit) bool { return h.href != "" }) {
		return templ.Attributes{"role": "group"}
	}
	return templ.Attributes{"role": "img"}
}

// hitsOf makes each column say something.
func hitsOf(n int, says func(i int) string) []plotHit {
	all := make([]plotHit, n)
	for i := range all {
		all[i] = plotHit{x: plotRight * float64(i) / float64(n), w: plotRight / float64(n), title: says(i)}
	}
	return all
}

// labelsOf names some of the columns, far enough from each other.
func labelsOf(n int, name func(i int) string) (all []plotLabel) {
	every := max(1, int(math.Ceil(plotGap*float64(n)/plotRight)))
	for i := (n - 1) % every; i < n; i += every {
		x := middleOf(i, n)
		if x < plotGap/3 || x > plotRight-plotGap/3 {
			continue
		}
		all = append(all, plotLabel{x: x, text: name(i), anchor: "middle"})
	}
	return all
}

// countAxis is an plotAxis from 0 to a round number, with its grid.
func countAxis(most int64, height float64) (plotAxis, []grid) {
	unit := gridStep(max(most, 1))
	a := plotAxis{high: float64(3 * unit), top: plotTop, bottom: height - plotFoot}
	var lines []grid
	for i := range int64(4) {
		lines = append(lines, grid{a.y(float64(i * unit)), ui.Short(i * unit)})
	}
	return a, lines
}

// shareAxis is an plotAxis of shares from a floor to 100 %.
func shareAxis(floor, height float64) (plotAxis, []grid) {
	a := plotAxis{low: floor, high: 1, top: plotTop, bottom: height - plotFoot}
	decimals := 0
	if floor > 0.9 {
		decimals = 1
	}
	middle := (1 + floor) / 2
	return a, []grid{{a.bottom, ui.Percent(floor, decimals)}, {a.y(middle), ui.Percent(middle, decimals+1)}, {a.top, "100%"}}
}

// shareFloor is where an plotAxis of shares begins: as near to 100 % as it may.
func shareFloor(lowest float64) float64 {
	for _, f := range []float64{0.99, 0.98, 0.95, 0.9, 0.8, 0.5} {
		if lowest >= f {
			return f
		}
	}
	return 0
}

// lowestOf returns the lowest known value, 1 if there is none.
func lowestOf(lines ...[]float64) float64 {
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

// durationAxis is a logarithmic plotAxis from 10 ms to an hour.
func durationAxis(height float64) (plotAxis, []grid) {
	a := plotAxis{low: 0.01, high: 3600, top: plotTop, bottom: height - plotFoot, log: true}
	var lines []grid
	for _, d := range []time.Duration{
		10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute,
		10 * time.Minute, time.Hour,
	} {
		lines = append(lines, grid{a.y(d.Seconds()), briefly(d)})
	}
	return a, lines
}

// briefly writes a round duration: 100 ms, 10 s, 1 m, 1 h.
func briefly(d time.Duration) string {
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

// stack draws columns of stacked counts, the first row at the bottom.
func stack(rows [][]int64, classes []string, n int, a plotAxis) (all []plotCell) {
	slot := plotRight / float64(n)
	bottoms := make([]float64, n)
	for r, row := range rows {
		for i, v := range row {
			if v == 0 {
				continue
			}
			from, to := a.y(bottoms[i]), a.y(bottoms[i]+float64(v))
			bottoms[i] += float64(v)
			all = append(all, plotCell{
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

// heat draws a table of counts as boxes, the stronger the more: rows from top to bottom.
func heat(rows [][]int64, names []string) plot {
	n := len(rows[0])
	c := plot{height: heatRow*float64(len(rows)) + plotTop + plotFoot, rows: true}
	slot := plotRight / float64(n)
	var most int64 = 1
	for _, row := range rows {
		most = max(most, slices.Max(row))
	}
	for r := range rows {
		y := plotTop + heatRow*float64(r)
		c.grid = append(c.grid, grid{y + heatRow/2, names[r]})
		c.cells = append(c.cells, plotCell{Box: ui.Box{Y: y + 1, W: plotRight, H: heatRow - 2}, class: "f-track", opacity: "0.55"})
	}
	for r, row := range rows {
		for i, v := range row {
			if v > 0 {
				level := math.Ceil(heatLevels * math.Sqrt(float64(v)/float64(most)))
				c.cells = append(c.cells, plotCell{Box: ui.Box{
					X: float64(i) * slot, Y: c.grid[r].y - heatRow/2 + 1, W: slot - 1,
					H: heatRow - 2,
				}, class: "f-acc", opacity: strconv.FormatFloat(0.1+0.9*level/heatLevels, 'f', 2, 64)})
			}
		}
	}
	return c
}

// columnName is the time of a column, in days of the installation's zone or the person's time.
func (d AnalyticsData) columnName(p *ui.Page, i int) string {
	if d.Range.Days() {
		return time.UnixMicro(d.Starts[i]).In(d.Zone).Format("01-02")
	}
	if d.Range.Step >= time.Hour {
		return p.At(d.Starts[i]).Format("01-02 15:04")
	}
	return p.At(d.Starts[i]).Format("15:04")
}

// columnLabel is columnName below the plot.
func (d AnalyticsData) columnLabel(p *ui.Page, i int) string {
	if !d.Range.Days() && d.Range.Step >= time.Hour {
		return p.At(d.Starts[i]).Format("01-02 15h")
	}
	return d.columnName(p, i)
}

// cell is one value of a figure's table, as a page shows it and as a spreadsheet reads it.
type cell struct{ Show, Plain string }

func same(s string) cell     { return cell{s, s} }
func countCell(n int64) cell { return cell{ui.Count(n), strconv.FormatInt(n, 10)} }
func noCell(p *ui.Page) cell { return cell{p.T(text.None), ""} }

func shareCell(p *ui.Page, v float64, known bool) cell {
	if !known || math.IsNaN(v) {
		return noCell(p)
	}
	return cell{ui.Percent(v, 2), strconv.FormatFloat(v, 'f', 6, 64)}
}
