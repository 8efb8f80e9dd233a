package figures

import (
	"math"
	"net/url"
	"slices"

	"backstop/internal/analytics"
	"backstop/internal/base/text"
	"backstop/internal/notify"
	"backstop/internal/report"
	"backstop/views/chart"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

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
		Name: "causes", Title: tCauses, Definition: tCausesDef, Rows: "/notifications?status=retry_wait&window=" + d.window(),
		RowsText: tStillWaiting,
		Heads: []string{
			p.T(text.CompensationCause), p.T(text.CodeWord), p.T(tFailedAttempts), p.T(tShare), p.T(tCumulative), p.T(text.LastWeek), p.T(text.Orders),
			p.T(tMoney), p.T(tNewSince),
		},
	}
	var sum int64
	for _, c := range d.Causes {
		sum += c.Attempts
		since := chart.NoCell(p)
		if c.NewSince > 0 {
			since = chart.Same(p.At(c.NewSince).Format("2006-01-02 15:04"))
		}
		f.Table = append(f.Table, []chart.Cell{
			chart.Same(p.T(failureText(c.Class))), chart.Same(c.Class), chart.CountCell(c.Attempts),
			chart.ShareCell(p, float64(c.Attempts)/float64(d.attempts()), true),
			chart.ShareCell(p, float64(sum)/float64(d.attempts()), true), chart.CountCell(c.Before), chart.CountCell(c.Orders),
			chart.SumsCell(p, c.Sums), since,
		})
	}
	return f
}

// causeRows are the causes with the most failed attempts.
func (d AnalyticsData) causeRows(p *ui.Page) ui.List {
	var sum int64
	upTo := make([]int64, min(len(d.Causes), flowsShown)) // the attempts of each cause and of those before it
	rows := make([]int, len(upTo))                        // the positions of causes
	for i := range rows {
		sum += d.Causes[i].Attempts
		rows[i], upTo[i] = i, sum
	}
	return ui.Beside(p, []ui.Column[int]{
		ui.TextCol("cause", text.CompensationCause, func(i int) string { return d.Causes[i].Class }).As("wrap").
			With(func(p *ui.Page, i int) templ.Component { return causeName(p, d, i) }),
		ui.CountCol("attempts", tFailedAttempts, func(i int) int64 { return d.Causes[i].Attempts }),
		ui.TextCol("cumulative", tCumulative, func(i int) string { return ui.Percent(float64(upTo[i])/float64(d.attempts()), 1) }).As("num"),
		moneyCol(func(i int) []report.Sum { return d.Causes[i].Sums }, tMoney),
	}, rows)
}

// causesPanel is which failures there were, and when.
func causesPanel(p *ui.Page, d AnalyticsData) templ.Component {
	f := d.figure(p, "causes")
	if len(d.Causes) == 0 {
		return figurePanel(p, d, f, ui.Empty(p, "circle-check", p.T(tNoFailures), ""))
	}
	var keys []templ.Component
	for i, c := range d.Causes[:min(len(d.Causes), causesShown+1)] {
		label := failureText(c.Class)
		if i == causesShown {
			label = tOtherCauses
		}
		keys = append(keys, panel.Span("", chart.Square("f-"+causeKinds[i]), panel.Text(p.T(label))))
	}
	return figurePanel(
		p, d, f, panel.Box("body", d.legend(p, p.T(text.LastWeek), keys...), chart.Draw(p, d.chart(p, "causes"))),
		panel.Box("pareto", ui.PlainRows(p, d.causeRows(p), tCauses)), panel.Box("body", figureFoot(p, d, f)),
	)
}

// causeName is a cause, since when it is there, and how much of all it is.
func causeName(p *ui.Page, d AnalyticsData, i int) templ.Component {
	c := d.Causes[i]
	name := panel.Anchor(templ.SafeURL(causeHref(c.Class, d.window())), p.T(failureText(c.Class)))
	if c.NewSince > 0 {
		name = panel.Spaced(name, ui.Styled("tag warn", p.T(tNewSinceAt, ui.Minute(p, c.NewSince))))
	}
	return templ.Join(name, share("f-"+causeKinds[min(i, causesShown)], flowWidth(c.Attempts, d.Causes[0].Attempts)))
}

// moneyCol is a column of the money of rows.
func moneyCol[T any](of func(T) []report.Sum, label text.Text) ui.Column[T] {
	return ui.TextCol("money", label, func(T) string { return "" }).As("num").
		With(func(p *ui.Page, row T) templ.Component { return flowMoney(p, of(row)) })
}

func (d AnalyticsData) causesPlot(p *ui.Page) chart.Plot {
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
	a, lines := chart.CountAxis(max(slices.Max(totals), slices.Max(d.FailedBefore)), height)
	classes := make([]string, len(rows))
	for i := range rows {
		classes[i] = "f-" + causeKinds[i]
	}
	c := chart.Plot{
		Height: height, Grid: lines, Labels: chart.Labels(d.Range.N, func(i int) string { return d.columnLabel(p, i) }),
		Cells: chart.Stack(rows, classes, d.Range.N, a),
		Hits: chart.Hits(d.Range.N, func(i int) string {
			said := d.columnName(p, i) + " · " + p.T(tFailedN, ui.Count(totals[i]))
			for _, c := range d.Causes {
				if c.Steps[i] > 0 {
					said += "\n" + p.T(failureText(c.Class)) + " " + ui.Count(c.Steps[i])
				}
			}
			return said
		}),
		Says: p.T(tCausesSays, ui.Count(d.attempts()), ui.Count(int64(len(d.Causes)))),
	}
	if d.compared() {
		c.Paths = []chart.Path{{Class: chart.FaintLine, D: chart.Line(before, a)}}
	}
	return c
}

func causeHref(class, window string) string {
	return "/notifications?cause=" + url.QueryEscape(class) + "&window=" + window
}

func (d AnalyticsData) flowsFigure(p *ui.Page, name string, title text.Text, flows []analytics.Flow) Figure {
	f := Figure{
		Name: name, Title: title, Definition: tFlowsDef, Rows: "/orders?window=" + d.window(), RowsText: text.Orders,
		Heads: []string{p.T(text.CodeWord), p.T(text.Name), p.T(text.Created), p.T(text.LastWeek), p.T(text.Paid), p.T(tConversion), p.T(tMoney)},
	}
	for _, w := range flows {
		v, ok := w.Conversion()
		f.Table = append(f.Table, []chart.Cell{
			chart.Same(w.Code), chart.Same(w.Name), chart.CountCell(w.Created), chart.CountCell(w.Before), chart.CountCell(w.Paid),
			chart.ShareCell(p, v, ok), chart.SumsCell(p, w.Sums),
		})
	}
	return f
}

func flowsPanel(p *ui.Page, d AnalyticsData, name string, flows []analytics.Flow) templ.Component {
	f := d.figure(p, name)
	if len(flows) == 0 {
		return figurePanel(p, d, f, nothingYet(p, "receipt-text"))
	}
	return figurePanel(p, d, f, panel.Box("pareto", ui.PlainRows(p, d.flowRows(p, name, flows), f.Title)),
		panel.Box("body", figureFoot(p, d, f)))
}

func flowName(name, code string, href templ.SafeURL, width float64) templ.Component {
	return templ.Join(panel.Linked(href, templ.Attributes{"title": code}, panel.Text(name)), share("f-acc", width))
}

// flowRows are the merchants or suppliers with the most orders.
func (d AnalyticsData) flowRows(p *ui.Page, name string, flows []analytics.Flow) ui.List {
	columns := []ui.Column[analytics.Flow]{
		ui.TextCol("name", text.Name, func(w analytics.Flow) string { return w.Code }).As("wrap").
			With(func(p *ui.Page, w analytics.Flow) templ.Component {
				width := flowWidth(w.Created, flows[0].Created)
				if name == "merchants" {
					return flowName(wording.MerchantName(w.Name, w.Code, w.ID), w.Code, link.Merchant(w.Code), width)
				}
				orders := templ.SafeURL("/orders?supplier=" + link.Query(w.Code) + "&window=" + d.window())
				return flowName(wording.MerchantName(p.Supplier(w.Code), w.Code, w.ID), w.Code, orders, width)
			}),
		ui.CountCol("created", text.Created, func(w analytics.Flow) int64 { return w.Created }),
	}
	if d.compared() {
		columns = append(columns, ui.WordCol("growth", tVsLastWeek, func(p *ui.Page, w analytics.Flow) string {
			return growth(p, w.Created, w.Before)
		}).As("num"))
	}
	return ui.Beside(p, append(
		columns,
		ui.WordCol("conversion", tConversion, func(p *ui.Page, w analytics.Flow) string { return chart.ShareText(p, w.Conversion) }).As("num"),
		moneyCol(func(w analytics.Flow) []report.Sum { return w.Sums }, text.Paid),
	), flows[:min(len(flows), flowsShown)])
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

func exceptionsPanel(p *ui.Page, d AnalyticsData) templ.Component {
	f := d.figure(p, "exceptions")
	if len(d.Exceptions.Kinds) == 0 {
		return figurePanel(p, d, f, ui.Empty(p, "circle-check", p.T(tNoOpen), ""))
	}
	more := d.Exceptions.OpenMore || d.Exceptions.DecidedMore
	return figurePanel(p, d, f, panel.Box("ages", ui.PlainRows(p, d.kindRows(p), f.Title)),
		panel.Box("body", ui.If(more, panel.Small(p.T(tCounted))), figureFoot(p, d, f)))
}

// ageKind is the colour of an age: the older ones have another.
func ageKind(age int) string {
	if age >= 3 {
		return "f-warn"
	}
	return "f-acc"
}

func ageName(i int) string {
	if i == len(analytics.Ages) {
		return "> " + chart.Briefly(analytics.Ages[i-1])
	}
	return "≤ " + chart.Briefly(analytics.Ages[i])
}

func (d AnalyticsData) exceptionsFigure(p *ui.Page) Figure {
	f := Figure{
		Name: "exceptions", Title: tExceptionsBy, Definition: tExceptionsDef, Rows: "/exceptions?state=needs", RowsText: text.Exceptions,
		Heads: []string{p.T(text.Kind), p.T(tOpenN)},
	}
	for i := range len(analytics.Ages) + 1 {
		f.Heads = append(f.Heads, p.T(tOpenN)+" "+ageName(i))
	}
	f.Heads = append(f.Heads, p.T(tDecidedN), p.T(tDecidedIn, chart.Briefly(analytics.Ages[0])),
		p.T(tDecidedIn, chart.Briefly(analytics.Ages[1])), p.T(tDecidedIn, chart.Briefly(analytics.Ages[2])))
	for _, k := range d.Exceptions.Kinds {
		row := []chart.Cell{chart.Same(p.T(ui.KindText(k.Name))), chart.CountCell(k.OpenTotal())}
		for _, n := range k.Open {
			row = append(row, chart.CountCell(n))
		}
		row = append(row, chart.CountCell(k.DecidedTotal()))
		for i := range 3 {
			v, ok := k.Within(i)
			row = append(row, chart.ShareCell(p, v, ok))
		}
		f.Table = append(f.Table, row)
	}
	return f
}

// kindRows are the exceptions of each kind by their ages.
func (d AnalyticsData) kindRows(p *ui.Page) ui.List {
	columns := []ui.Column[analytics.Kind]{
		ui.Col("kind", text.Kind, ui.TextKind, func(p *ui.Page, k analytics.Kind) ui.Cell {
			return ui.Cell{Text: p.T(ui.KindText(k.Name)), Href: "/exceptions?kind=" + k.Name}
		}).As(""),
		ui.CountCol("open", tOpenN, func(k analytics.Kind) int64 { return k.OpenTotal() }).
			With(func(p *ui.Page, k analytics.Kind) templ.Component { return openOfKind(p, d, k) }),
	}
	headed := func(s string) text.Text { return text.Text{ZH: s, EN: s} }
	for i := range len(analytics.Ages) + 1 {
		columns = append(columns, ui.CountCol(ageName(i), headed(ageName(i)), func(k analytics.Kind) int64 { return k.Open[i] }).
			As("num age").With(func(p *ui.Page, k analytics.Kind) templ.Component {
			return ageCell(p, i, d.strength(k.Open[i]), k.Open[i])
		}))
	}
	columns = append(columns, ui.WordCol("decided", tDecidedN, func(p *ui.Page, k analytics.Kind) string {
		return ui.CountOrNone(p, k.DecidedTotal())
	}).As("num"))
	for i := range 3 {
		age := chart.Briefly(analytics.Ages[i])
		columns = append(columns, ui.WordCol("in "+age, headed(p.T(tDecidedIn, age)), func(p *ui.Page, k analytics.Kind) string {
			return chart.ShareText(p, func() (float64, bool) { return k.Within(i) })
		}).As("num"))
	}
	return ui.Beside(p, columns, d.Exceptions.Kinds)
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
