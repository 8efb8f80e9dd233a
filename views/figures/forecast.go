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

// methodLine is a line of what a forecast is made of.
type methodLine struct {
	label           text.Text
	value, how, tip string
}

// method is what the expected volume is made of, and how far it was off.
func (d AnalyticsData) method(p *ui.Page) []methodLine {
	e := d.Expected
	return []methodLine{
		{tLevel, p.T(tLevelOf, ui.Percent(e.Level, 0)), "", ""},
		{tErrorOf, chart.ShareCell(p, e.Error, true).Show, p.T(tErrorHow), p.T(tErrorHow)},
		{tInside, ui.Percent(e.Inside, 1), p.T(tInsideHow), ""},
		{tInputs, p.T(tInputsOf, e.Days, e.Weeks), "", ""},
	}
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
