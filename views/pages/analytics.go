package pages

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/analytics"
	"backstop/internal/base/money"
	"backstop/internal/base/text"
	"backstop/internal/notify"
	"backstop/internal/report"
	"backstop/views/ui"
)

// AnalyticsData is what the analytics page shows.
type AnalyticsData struct {
	*analytics.Page
	// Objective is the share of orders of which merchants are notified that operators aim for, 0
	// to 1; the rest is the error budget.
	Objective     float64
	Backlog, Rate analytics.Outlook
	Expected      *analytics.Expected
}

// Figure is one figure of the page: its definition, and the table behind it.
type Figure struct {
	Name       string // in URLs
	Title      text.Text
	Definition text.Text
	DefArgs    []any
	Rows       string // link to the rows that it counts
	RowsText   text.Text
	Heads      []string
	Table      [][]cell
}

// Plain returns a row of the table as a spreadsheet reads it.
func (f Figure) Plain(i int) []string {
	row := make([]string, len(f.Table[i]))
	for j, c := range f.Table[i] {
		row[j] = c.Plain
	}
	return row
}

// Figures returns all figures of the page.
func (d AnalyticsData) Figures(p *ui.Page) []Figure {
	return []Figure{
		d.notifiedFigure(p), d.waitsFigure(p), d.curveFigure(p), d.causesFigure(p),
		d.flowsFigure(p, "suppliers", tBySupplier, d.Suppliers), d.flowsFigure(p, "merchants", tByMerchant, d.Merchants),
		d.exceptionsFigure(p), d.volumeFigure(p), d.backlogFigure(p), d.rateFigure(p),
	}
}

// Figure returns one figure by its name.
func (d AnalyticsData) Figure(p *ui.Page, name string) (Figure, bool) {
	for _, f := range d.Figures(p) {
		if f.Name == name {
			return f, true
		}
	}
	return Figure{}, false
}

// figure returns one of the page's own figures.
func (d AnalyticsData) figure(p *ui.Page, name string) Figure {
	f, _ := d.Figure(p, name)
	return f
}

// objective is the objective as text, without needless zeros.
func (d AnalyticsData) objective() string { return exactPercent(d.Objective) }

// allowed is how many orders the objective allows not to be notified. The tolerance keeps 19 from
// becoming 18.
func (d AnalyticsData) allowed() int64 {
	return int64(float64(d.Total.Raised)*(1-d.Objective) + 1e-6)
}

// exactPercent writes a share with as many decimals as it needs, at most three.
func exactPercent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1e5)/1e3, 'f', -1, 64) + "%"
}

// window is the window of a list that is nearest to the range.
func (d AnalyticsData) window() string {
	switch d.Range.Name {
	case "24h", "7d":
		return d.Range.Name
	}
	return "31d"
}

func (d AnalyticsData) csv(f Figure) string {
	return "/analytics/" + f.Name + "?format=csv&range=" + d.Range.Name
}

// timeCell is the time of a column; a spreadsheet gets its day and zone in any case.
func (d AnalyticsData) timeCell(p *ui.Page, i int) cell {
	layout, t := "2006-01-02 15:04", p.At(d.Starts[i])
	if d.Range.Days() {
		layout, t = time.DateOnly, time.UnixMicro(d.Starts[i]).In(d.Zone)
	}
	return cell{d.columnName(p, i), t.Format(layout)}
}

func (d AnalyticsData) timeHead(p *ui.Page) string {
	zone := p.Zone
	if d.Range.Days() {
		zone = d.Zone
	}
	return p.T(text.Time) + " (" + zone.String() + ")"
}

func moneyCell(p *ui.Page, minor int64, currency string) cell {
	if currency == "" {
		return noCell(p)
	}
	return cell{ui.Amount(minor, currency) + " " + currency, money.Format(minor, currency)}
}

// sumsCell writes the sums of several currencies.
func sumsCell(p *ui.Page, sums []report.Sum) cell {
	if len(sums) == 0 {
		return noCell(p)
	}
	var show, plain []string
	for _, s := range sums {
		show = append(show, ui.Amount(s.Minor, s.Currency)+" "+s.Currency)
		plain = append(plain, money.Format(s.Minor, s.Currency)+" "+s.Currency)
	}
	return cell{strings.Join(show, " · "), strings.Join(plain, "; ")}
}

// rates are the shares of notified orders by step; NaN = none had to be notified.
func rates(steps []analytics.Notified, of func(analytics.Notified) (float64, bool)) []float64 {
	all := make([]float64, len(steps))
	for i, n := range steps {
		var ok bool
		if all[i], ok = of(n); !ok {
			all[i] = math.NaN()
		}
	}
	return all
}

func (d AnalyticsData) notifiedFigure(p *ui.Page) Figure {
	f := Figure{
		Name: "notified", Title: tNotifiedRate, Definition: tNotifiedDef, DefArgs: []any{d.objective()},
		Rows: "/notifications?window=" + d.window(), RowsText: text.Notifications,
		Heads: []string{d.timeHead(p), p.T(tToNotify), p.T(tNotifiedN), p.T(tByOrders), p.T(tToNotify) + " " + d.Currency, p.T(tNotifiedN) + " " + d.Currency, p.T(tByMoney) + " " + d.Currency, p.T(tLastWeek)},
	}
	orders, sums, before := rates(d.Notified, analytics.Notified.Rate), rates(d.Money, analytics.Notified.MoneyRate), rates(d.LastWeek, analytics.Notified.Rate)
	for i, n := range slices.Backward(d.Notified) {
		m := d.Money[i]
		f.Table = append(f.Table, []cell{
			d.timeCell(p, i), countCell(n.Raised), countCell(n.Notified), shareCell(p, orders[i], true),
			moneyCell(p, m.RaisedAmount, d.Currency), moneyCell(p, m.NotifiedAmount, d.Currency), shareCell(p, sums[i], true), shareCell(p, before[i], true),
		})
	}
	return f
}

func (d AnalyticsData) notifiedPlot(p *ui.Page) plot {
	const height = 190
	orders, sums, before := rates(d.Notified, analytics.Notified.Rate), rates(d.Money, analytics.Notified.MoneyRate), rates(d.LastWeek, analytics.Notified.Rate)
	a, lines := shareAxis(shareFloor(min(lowestOf(orders, sums), 2*d.Objective-1)), height)
	return plot{
		height: height, grid: lines, labels: labelsOf(len(orders), func(i int) string { return d.columnLabel(p, i) }),
		paths: []plotPath{
			{faintLine, linePath(before, a)},
			{"line s-objective", across(d.Objective, a)},
			{"line s-comp", linePath(sums, a)},
			{"line s-acc", linePath(orders, a)},
		},
		hits: hitsOf(len(orders), func(i int) string {
			return p.T(tNotifiedHit, d.columnName(p, i), shareCell(p, orders[i], true).Show, shareCell(p, sums[i], true).Show, shareCell(p, before[i], true).Show, ui.Count(d.Notified[i].Raised))
		}),
		says: p.T(tNotifiedSays, shareText(p, d.Total.Rate), d.objective()),
	}
}

func shareText(p *ui.Page, of func() (float64, bool)) string {
	v, ok := of()
	return shareCell(p, v, ok).Show
}

// mainCurrency is the total of the currency with the most orders.
func (d AnalyticsData) mainCurrency() (c analytics.Currency) {
	if len(d.Currencies) > 0 {
		c = d.Currencies[0]
	}
	return c
}

// budgetWidth is how much of a meter the spent error budget takes, 0 to 100.
func budgetWidth(spent float64) float64 { return min(max(spent, 0), 1) * 100 }

func budgetKind(spent float64) string {
	switch {
	case spent >= 1:
		return "f-bad"
	case spent >= 0.7:
		return "f-warn"
	}
	return "f-ok"
}

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
			d.timeCell(p, i), countCell(h.Count()), lengthCell(p, h, .5), lengthCell(p, h, .95), lengthCell(p, h, .99), lengthCell(p, d.WaitsBefore[i], .95),
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
		return p.T(tWaitsHit, d.columnName(p, i), lengthCell(p, h, .5).Show, lengthCell(p, h, .95).Show, lengthCell(p, h, .99).Show, lengthCell(p, d.WaitsBefore[i], .95).Show)
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
var heatEnds = []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour}

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
	c := heat(rows, names, func(r, i int) string {
		return d.columnName(p, i) + " · " + names[r] + ": " + ui.Count(rows[r][i])
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
		f.Table = append(f.Table, []cell{{briefly(end), end.String()}, countCell(sumOf(d.Waits).Within(end)), shareCell(p, v, ok), shareCell(p, w, had)})
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
		var b strings.Builder
		for i, end := range report.Bounds() {
			v, ok := within(waits, raised, end)
			if !ok {
				return ""
			}
			b.WriteString(map[bool]string{true: "M", false: "L"}[i == 0] + ui.Px(x(end)) + " " + ui.Px(a.y(v)))
		}
		return b.String()
	}
	now := draw(d.Waits, d.Total.Raised)
	if now != "" {
		c.paths = append(c.paths, plotPath{"area f-acc", now + "L" + ui.Px(plotRight) + " " + ui.Px(a.bottom) + "L0 " + ui.Px(a.bottom) + "Z"})
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

// causesShown is how many causes have a colour of their own; the rest is one.
const causesShown = 5

var causeKinds = []string{"k1", "k2", "k3", "k4", "k5", "k6"}

func (d AnalyticsData) attempts() (n int64) {
	for _, c := range d.Causes {
		n += c.Attempts
	}
	return n
}

func failureText(class string) text.Text { return ui.ClassText(notify.Class(class)) }

func (d AnalyticsData) causesFigure(p *ui.Page) Figure {
	f := Figure{
		Name: "causes", Title: tCauses, Definition: tCausesDef, Rows: "/notifications?status=retry_wait&window=" + d.window(), RowsText: tStillWaiting,
		Heads: []string{p.T(tFailureCause), p.T(tCode), p.T(tFailedAttempts), p.T(tShare), p.T(tCumulative), p.T(tLastWeek), p.T(text.Orders), p.T(tMoney), p.T(tNewSince)},
	}
	var sum int64
	for _, c := range d.Causes {
		sum += c.Attempts
		since := noCell(p)
		if c.NewSince > 0 {
			since = same(p.At(c.NewSince).Format("2006-01-02 15:04"))
		}
		f.Table = append(f.Table, []cell{
			same(p.T(failureText(c.Class))), same(c.Class), countCell(c.Attempts), shareCell(p, float64(c.Attempts)/float64(d.attempts()), true),
			shareCell(p, float64(sum)/float64(d.attempts()), true), countCell(c.Before), countCell(c.Orders), sumsCell(p, c.Sums), since,
		})
	}
	return f
}

func (d AnalyticsData) causesPlot(p *ui.Page) plot {
	const height = 170
	var rows [][]int64
	totals := make([]int64, d.Range.N)
	for r, c := range d.Causes {
		if r > causesShown {
			for i, n := range c.Steps {
				rows[causesShown][i] += n
				totals[i] += n
			}
			continue
		}
		rows = append(rows, slices.Clone(c.Steps))
		for i, n := range c.Steps {
			totals[i] += n
		}
	}
	before := make([]float64, d.Range.N)
	for i, n := range d.FailedBefore {
		before[i] = float64(n)
	}
	a, lines := countAxis(max(slices.Max(totals), slices.Max(d.FailedBefore)), height)
	classes := make([]string, len(rows))
	for i := range rows {
		classes[i] = "f-" + causeKinds[i]
	}
	c := plot{
		height: height, grid: lines, labels: labelsOf(d.Range.N, func(i int) string { return d.columnLabel(p, i) }), cells: stack(rows, classes, d.Range.N, a),
		hits: hitsOf(d.Range.N, func(i int) string {
			said := d.columnName(p, i) + " · " + p.T(tFailedN, ui.Count(totals[i]))
			for _, c := range d.Causes {
				if c.Steps[i] > 0 {
					said += "\n" + p.T(failureText(c.Class)) + " " + ui.Count(c.Steps[i])
				}
			}
			return said
		}),
		says: p.T(tCausesSays, ui.Count(d.attempts()), ui.Count(int64(len(d.Causes)))),
	}
	if d.compared() {
		c.paths = []plotPath{{faintLine, linePath(before, a)}}
	}
	return c
}

func causeHref(class, window string) string {
	return "/notifications?cause=" + url.QueryEscape(class) + "&window=" + window
}

func (d AnalyticsData) flowsFigure(p *ui.Page, name string, title text.Text, flows []analytics.Flow) Figure {
	f := Figure{
		Name: name, Title: title, Definition: tFlowsDef, Rows: "/orders?window=" + d.window(), RowsText: text.Orders,
		Heads: []string{p.T(tCode), p.T(tName), p.T(tCreated), p.T(tLastWeek), p.T(tPaid), p.T(tConversion), p.T(tMoney)},
	}
	for _, w := range flows {
		v, ok := w.Conversion()
		f.Table = append(f.Table, []cell{same(w.Code), same(w.Name), countCell(w.Created), countCell(w.Before), countCell(w.Paid), shareCell(p, v, ok), sumsCell(p, w.Sums)})
	}
	return f
}

// flowsShown is how many merchants and suppliers the page shows; the table has more.
const flowsShown = 8

// flowWidth is the bar of a flow beside the largest one, 0 to 100.
func flowWidth(n, most int64) float64 {
	if most <= 0 {
		return 0
	}
	return 100 * float64(n) / float64(most)
}

// growth is how much more there is than a week before, as +12.3%.
func growth(p *ui.Page, now, before int64) string {
	if before <= 0 {
		return p.T(text.None)
	}
	v := float64(now)/float64(before) - 1
	if v >= 0 {
		return "+" + ui.Percent(v, 1)
	}
	return "−" + ui.Percent(-v, 1)
}

func ageName(i int) string {
	if i == len(analytics.Ages) {
		return "> " + briefly(analytics.Ages[i-1])
	}
	return "≤ " + briefly(analytics.Ages[i])
}

func (d AnalyticsData) exceptionsFigure(p *ui.Page) Figure {
	f := Figure{
		Name: "exceptions", Title: tExceptionsBy, Definition: tExceptionsDef, Rows: "/exceptions?state=needs", RowsText: text.Exceptions,
		Heads: []string{p.T(text.Kind), p.T(tOpenN)},
	}
	for i := range len(analytics.Ages) + 1 {
		f.Heads = append(f.Heads, p.T(tOpenN)+" "+ageName(i))
	}
	f.Heads = append(f.Heads, p.T(tDecidedN), p.T(tDecidedIn, briefly(analytics.Ages[0])), p.T(tDecidedIn, briefly(analytics.Ages[1])), p.T(tDecidedIn, briefly(analytics.Ages[2])))
	for _, k := range d.Exceptions.Kinds {
		row := []cell{same(p.T(ui.KindText(k.Name))), countCell(k.OpenTotal())}
		for _, n := range k.Open {
			row = append(row, countCell(n))
		}
		row = append(row, countCell(k.DecidedTotal()))
		for i := range 3 {
			v, ok := k.Within(i)
			row = append(row, shareCell(p, v, ok))
		}
		f.Table = append(f.Table, row)
	}
	return f
}

// strength is the opacity of a count beside the largest of its table.
func (d AnalyticsData) strength(n int64) string {
	var most int64 = 1
	for _, k := range d.Exceptions.Kinds {
		most = max(most, slices.Max(k.Open))
	}
	if n == 0 {
		return "0"
	}
	return ui.Px(0.1 + 0.5*math.Sqrt(float64(n)/float64(most)))
}

// comparedOrNot is the legend's word for the faint line, if there is one.
func (d AnalyticsData) compared() bool { return d.Range.LastWeek }
