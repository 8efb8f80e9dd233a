// Package figures draws the analytics and the daily reports.
package figures

import (
	"math"
	"slices"
	"strings"
	"time"

	"backstop/internal/analytics"
	"backstop/internal/base/money"
	"backstop/internal/base/text"
	"backstop/views/chart"
	"backstop/views/panel"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// AnalyticsData is what the analytics page shows.
type AnalyticsData struct {
	*analytics.Page
	// Objective is the share of orders of which merchants are notified that operators aim for, 0
	// to 1; the rest is the error budget.
	Objective     float64
	Backlog, Rate analytics.Outlook
	Expected      *analytics.Expected
	// Open names the figure whose table is open.
	Open string
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
	Table      [][]chart.Cell
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
func (d AnalyticsData) objective() string { return chart.ExactPercent(d.Objective) }

// allowed is how many orders the objective allows not to be notified. The tolerance keeps 19 from
// becoming 18.
func (d AnalyticsData) allowed() int64 {
	return int64(float64(d.Total.Raised)*(1-d.Objective) + 1e-6)
}

// lead says what the page shows, of which days, since when, and as of when.
func (d AnalyticsData) lead(p *ui.Page) string {
	parts := []string{p.T(tAnalyticsLead)}
	if d.Range.Days() {
		parts = append(parts, p.T(tZoneDays, d.Zone.String()))
	}
	if d.First > 0 {
		parts = append(parts, p.T(tSinceDay, time.UnixMicro(d.First).In(d.Zone).Format(time.DateOnly)))
	}
	return strings.Join(append(parts, p.T(text.AsOf)), " · ")
}

// head is the heading of a figure: its links, and what it means.
func (d AnalyticsData) head(p *ui.Page, f Figure) templ.Component {
	csv := templ.Attributes{"aria-label": p.T(tCSV) + ": " + p.T(f.Title)}
	return figureHead(f.Name, p.T(f.Title), panel.Anchor(templ.SafeURL(f.Rows), p.T(f.RowsText)),
		panel.Linked(templ.SafeURL(d.csv(f)), csv, panel.Text(p.T(tCSV))))
}

func figurePanel(p *ui.Page, d AnalyticsData, f Figure, parts ...templ.Component) templ.Component {
	return sectionPanel(f.Name, d.head(p, f), parts...)
}

// legend says what the lines of a chart are; before = its faint line.
func (d AnalyticsData) legend(p *ui.Page, before string, keys ...templ.Component) templ.Component {
	if d.compared() {
		keys = append(keys, chart.Key(chart.FaintLine, before))
	}
	return panel.Box("legend", keys...)
}

// nothingYet stands where a figure has nothing to count.
func nothingYet(p *ui.Page, icon string) templ.Component {
	return ui.Empty(p, icon, p.T(tNothingYet), p.T(tNothingHow))
}

// loading has the table of a figure read where its link is.
func (d AnalyticsData) loading(f Figure) templ.Attributes {
	return templ.Attributes{"id": f.Name + "-table", "class": "as-table", "hx-get": d.part(f.Name, "table"), "hx-swap": "outerHTML"}
}

// cellTable is a table of plain values; numbers is its first column of numbers.
func cellTable(p *ui.Page, label text.Text, heads []string, numbers int, rows [][]chart.Cell) templ.Component {
	columns := make([]ui.Column[[]chart.Cell], len(heads))
	for i, head := range heads {
		class := ""
		if i >= numbers {
			class = "num"
		}
		columns[i] = ui.Col(head, text.Text{ZH: head, EN: head}, ui.TextKind, func(_ *ui.Page, row []chart.Cell) ui.Cell {
			return ui.Cell{Body: panel.Text(row[i].Show)}
		}).As(class)
	}
	return ui.PlainRows(p, ui.Beside(p, columns, rows), label)
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

// TableLink leads to the page with the figure's table open.
func (d AnalyticsData) TableLink(f Figure) string {
	return "/analytics?range=" + d.Range.Name + "&table=" + f.Name + "#" + f.Name + "-title"
}

// part is the path of a figure's table or of a chart, for scripts.
func (d AnalyticsData) part(name, of string) string {
	return "/analytics/" + name + "/_" + of + "?range=" + d.Range.Name
}

// charts are all charts whose columns say their values.
var charts = map[string]func(AnalyticsData, *ui.Page) chart.Plot{
	"notified": AnalyticsData.notifiedPlot, "waits": AnalyticsData.waitsPlot, "heat": AnalyticsData.heatPlot,
	"causes": AnalyticsData.causesPlot, "backlog": AnalyticsData.backlogPlot, "rate": AnalyticsData.ratePlot,
	"volume": AnalyticsData.volumePlot,
}

// chart is one chart without the values of its columns: they load when they are looked at.
func (d AnalyticsData) chart(p *ui.Page, name string) chart.Plot {
	c := charts[name](d, p)
	c.Name, c.Load = name, d.part(name, "chart")
	return c
}

// Chart draws one chart with the values of its columns; false = there is none of this name, or it
// has no data.
func (d AnalyticsData) Chart(p *ui.Page, name string) (templ.Component, bool) {
	of, ok := charts[name]
	if !ok || name == "volume" && !d.Expected.Known {
		return nil, false
	}
	c := of(d, p)
	c.Name = name
	return chart.Draw(p, c), true
}

// timeCell is the time of a column; a spreadsheet gets its day and zone in any case.
func (d AnalyticsData) timeCell(p *ui.Page, i int) chart.Cell {
	layout, t := "2006-01-02 15:04", p.At(d.Starts[i])
	if d.Range.Days() {
		layout, t = time.DateOnly, time.UnixMicro(d.Starts[i]).In(d.Zone)
	}
	return chart.Cell{Show: d.columnName(p, i), Plain: t.Format(layout)}
}

func (d AnalyticsData) timeHead(p *ui.Page) string {
	zone := p.Zone
	if d.Range.Days() {
		zone = d.Zone
	}
	return p.T(text.Time) + " (" + zone.String() + ")"
}

func moneyCell(p *ui.Page, minor int64, currency string) chart.Cell {
	if currency == "" {
		return chart.NoCell(p)
	}
	return chart.Cell{Show: ui.Amount(minor, currency) + " " + currency, Plain: money.Format(minor, currency)}
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
		Heads: []string{d.timeHead(p), p.T(tToNotify), p.T(tNotifiedN), p.T(tByOrders), p.T(tToNotify) + " " + d.Currency, p.T(tNotifiedN) +
			" " + d.Currency, p.T(tByMoney) + " " + d.Currency, p.T(text.LastWeek)},
	}
	orders, sums, before := rates(d.Notified, analytics.Notified.Rate), rates(d.Money, analytics.Notified.MoneyRate),
		rates(d.LastWeek, analytics.Notified.Rate)
	for i, n := range slices.Backward(d.Notified) {
		m := d.Money[i]
		f.Table = append(f.Table, []chart.Cell{
			d.timeCell(p, i), chart.CountCell(n.Raised), chart.CountCell(n.Notified), chart.ShareCell(p, orders[i], true),
			moneyCell(p, m.RaisedAmount, d.Currency), moneyCell(p, m.NotifiedAmount, d.Currency), chart.ShareCell(p, sums[i], true),
			chart.ShareCell(p, before[i], true),
		})
	}
	return f
}

func (d AnalyticsData) notifiedPlot(p *ui.Page) chart.Plot {
	const height = 190
	orders, sums, before := rates(d.Notified, analytics.Notified.Rate), rates(d.Money, analytics.Notified.MoneyRate),
		rates(d.LastWeek, analytics.Notified.Rate)
	a, lines := chart.ShareAxis(chart.ShareFloor(min(chart.Lowest(orders, sums), 2*d.Objective-1)), height)
	return chart.Plot{
		Height: height, Grid: lines, Labels: chart.Labels(len(orders), func(i int) string { return d.columnLabel(p, i) }),
		Paths: []chart.Path{
			{Class: chart.FaintLine, D: chart.Line(before, a)},
			{Class: "line s-objective", D: chart.Across(d.Objective, a)},
			{Class: "line s-comp", D: chart.Line(sums, a)},
			{Class: "line s-acc", D: chart.Line(orders, a)},
		},
		Hits: chart.Hits(len(orders), func(i int) string {
			return p.T(tNotifiedHit, d.columnName(p, i), chart.ShareCell(p, orders[i], true).Show, chart.ShareCell(p, sums[i], true).Show,
				chart.ShareCell(p, before[i], true).Show, ui.Count(d.Notified[i].Raised))
		}),
		Says: p.T(tNotifiedSays, chart.ShareText(p, d.Total.Rate), d.objective()),
	}
}

func notifiedPanel(p *ui.Page, d AnalyticsData) templ.Component {
	f := d.figure(p, "notified")
	if d.Total.Raised == 0 {
		return figurePanel(p, d, f, nothingYet(p, "bell-ring"))
	}
	notified := p.T(text.OrdersNotifiedOf, ui.Count(d.Total.Notified), ui.Count(d.Total.Raised))
	return figurePanel(
		p, d, f,
		panel.KPIs("three",
			panel.KPI(p.T(tByOrders), chart.ShareText(p, d.Total.Rate), notified),
			panel.KPI(p.T(tByMoney)+" · "+d.Currency, chart.ShareText(p, d.mainCurrency().MoneyRate), ""),
			budget(p, d)),
		panel.Box("body",
			d.legend(p, p.T(text.LastWeek), chart.Key("line s-acc", p.T(tByOrders)), chart.Key("line s-comp", p.T(tByMoney)),
				chart.Key("line s-objective", p.T(text.Objective)+" "+d.objective())),
			chart.Draw(p, d.chart(p, "notified")), figureFoot(p, d, f)),
	)
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

// compared reports whether the charts have a faint line: the week before.
func (d AnalyticsData) compared() bool { return d.Range.LastWeek }

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
