package figures

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"time"

	"backstop/internal/alert"
	"backstop/internal/analytics"
	"backstop/internal/base/text"
	"backstop/internal/dailyreport"
	"backstop/internal/report"
	"backstop/views/chart"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// DailyData is the page of a day's report.
type DailyData struct {
	*dailyreport.Report
	Mails []alert.Message
	// Now are the same orders as they are counted now; nil = their figures are no longer kept.
	Now *analytics.Notified
	// OtherZone: the installation's days are now those of another time zone.
	OtherZone bool
}

// ReportTexts are the texts of the list of reports.
var ReportTexts = ui.ListTexts{Title: text.Reports, Icon: "scroll-text", None: tReportsNone, NoneHow: tReportsHow}

func reportLink(r *dailyreport.Report) templ.SafeURL {
	return templ.SafeURL("/reports/" + r.Day + "?zone=" + url.QueryEscape(r.Zone))
}

// decidedOn links to the proposals that were decided on the report's day.
func decidedOn(r *dailyreport.Report) templ.SafeURL {
	return templ.URL("/approvals?decided=" + url.QueryEscape(r.Day+"@"+r.Zone))
}

type reportRow = dailyreport.Report

// ReportColumns are those of the list of reports.
var ReportColumns = []ui.Column[reportRow]{
	ui.TextCol("day", text.Day, func(r reportRow) string { return r.Day }).As("strong nowrap").
		To(func(r reportRow) string { return string(reportLink(&r)) }),
	ui.TextCol("zone", text.Zone, func(r reportRow) string { return r.Zone }).Optional(),
	ui.CountCol("to_notify", tToNotify, func(r reportRow) int64 { return r.Figures.Notified.Raised }),
	ui.CountCol("notified", tNotifiedN, func(r reportRow) int64 { return r.Figures.Notified.Notified }).ExportOnly(),
	ui.Col("rate", tNotifiedRate, ui.TextKind, func(p *ui.Page, r reportRow) ui.Cell {
		v, ok := r.Figures.Notified.Rate()
		return ui.Cell{Text: chart.ShareCell(p, v, ok).Plain, Show: chart.ShareText(p, r.Figures.Notified.Rate)}
	}).As("num"),
	ui.CountCol("orders_at_risk", tRiskOrders, func(r reportRow) int64 { return r.Figures.Risk.Orders() }).ExportOnly(),
	ui.Col("at_risk", tRiskThen, ui.TextKind, func(p *ui.Page, r reportRow) ui.Cell {
		c := riskCell(p, r.Figures.Risk)
		return ui.Cell{Text: c.Plain, Show: c.Show}
	}).As("num"),
	ui.CountCol("decisions", tDecisions, func(r reportRow) int64 { return decisionCount(r.Figures) }).
		With(func(p *ui.Page, r reportRow) templ.Component {
			return panel.RowCount(p, decisionCount(r.Figures), false, decidedOn(&r))
		}),
	ui.CountCol("suppliers", tFailingSuppliers, func(r reportRow) int64 { return int64(len(r.Figures.Suppliers)) }).
		With(func(p *ui.Page, r reportRow) templ.Component {
			return panel.RowCount(p, int64(len(r.Figures.Suppliers)), false, reportLink(&r)+"#suppliers-title")
		}),
	ui.CountCol("merchants", tFailingMerchants, func(r reportRow) int64 { return int64(len(r.Figures.Merchants)) }).
		With(func(p *ui.Page, r reportRow) templ.Component {
			return panel.RowCount(p, int64(len(r.Figures.Merchants)), false, reportLink(&r)+"#merchants-title")
		}),
	ui.TimeCol("made", tReportMade, func(r reportRow) *int64 { return &r.MadeAt }).ExportOnly(),
}

// decisionCount counts what was decided.
func decisionCount(f dailyreport.Figures) (n int64) {
	for _, d := range f.Decisions {
		n += d.N
	}
	return n
}

// riskCell is the money at risk; nothing at risk is 0, not unknown.
func riskCell(p *ui.Page, r *dailyreport.Risk) chart.Cell {
	switch sums := r.Total(); {
	case r == nil:
		return chart.NoCell(p)
	case len(sums) == 0:
		return chart.Cell{Show: "0", Plain: "0"}
	default:
		return chart.SumsCell(p, sums)
	}
}

// dailyKPI is one of the figures at the top of a report.
type dailyKPI struct{ label, value, note string }

// dailySection is a table of a report. Page, mail and its text show the same ones.
type dailySection struct {
	name  string
	title text.Text
	none  text.Text // instead of an empty table
	heads []string
	table [][]chart.Cell
	// numbers is the first column that has numbers.
	numbers int
	rows    string // link to the rows; "" = none
}

// dailyTitle names the report, as the subject of its mail.
func dailyTitle(p *ui.Page, r *dailyreport.Report) string { return p.T(tReportOf, r.Day) }

// dailyLead says which day the report is about, and when it was counted.
func dailyLead(p *ui.Page, r *dailyreport.Report) string {
	return p.T(tReportLead, r.Day, r.Zone, p.Full(r.Figures.At))
}

func dailyKPIs(p *ui.Page, r *dailyreport.Report) []dailyKPI {
	f := r.Figures
	rate, known := f.Notified.Rate()
	before, had := f.LastWeek.Rate()
	spent, _ := f.Notified.Budget(f.Objective)
	budget := chart.Cell{Show: p.T(text.None), Plain: ""}
	if known {
		budget.Show = ui.Percent(spent, 0)
	}
	return []dailyKPI{
		{p.T(tNotifiedRate), chart.ShareCell(p, rate, known).Show, p.T(tReportNotified, ui.Count(f.Notified.Notified),
			ui.Count(f.Notified.Raised), chart.ShareCell(p, before, had).Show)},
		{p.T(tBudget), budget.Show, p.T(text.Objective) + " " + chart.ExactPercent(f.Objective)},
		{p.T(tRiskThen), riskCell(p, f.Risk).Show, p.T(tReportRisk, ui.Count(f.Risk.Orders()), riskCell(p, f.RiskBefore).Show)},
		{p.T(tDecisions), ui.Count(decisionCount(f)), p.T(tReportFailing, len(f.Suppliers), len(f.Merchants))},
	}
}

// dailySections are the tables of a report.
func dailySections(p *ui.Page, r *dailyreport.Report) []dailySection {
	f := r.Figures
	return []dailySection{
		notifiedSection(p, f), riskSection(p, f), decidedSection(p, r), openedSection(p, f), suppliersSection(p, f),
		merchantsSection(p, f), growthSection(p, f),
	}
}

func notifiedSection(p *ui.Page, f dailyreport.Figures) dailySection {
	s := dailySection{
		name: "notified", title: tReportTold, none: tNothingYet, numbers: 1,
		heads: []string{
			p.T(text.Currency), p.T(tToNotify), p.T(tNotifiedN), p.T(tByOrders), p.T(tReportMoney), p.T(tReportMoneyNotified),
			p.T(tByMoney),
		},
	}
	for _, c := range f.Currencies {
		orders, known := c.Rate()
		sums, knownSums := c.MoneyRate()
		s.table = append(s.table, []chart.Cell{
			chart.Same(c.Code), chart.CountCell(c.Raised), chart.CountCell(c.Notified.Notified), chart.ShareCell(p, orders, known),
			moneyCell(p, c.RaisedAmount, c.Code), moneyCell(p, c.NotifiedAmount, c.Code), chart.ShareCell(p, sums, knownSums),
		})
	}
	return s
}

func riskSection(p *ui.Page, f dailyreport.Figures) dailySection {
	s := dailySection{
		name: "risk", title: tReportAtRisk, none: tRiskUnknown, numbers: 1,
		heads: []string{p.T(tPart), p.T(text.Orders), p.T(tMoney), p.T(text.DayBefore)},
	}
	if f.Risk == nil {
		return s
	}
	count := func(sums []report.Sum) (n int64) {
		for _, m := range sums {
			n += m.Orders
		}
		return n
	}
	for _, part := range report.Parts {
		before := chart.NoCell(p)
		if f.RiskBefore != nil {
			before = zeroOr(p, f.RiskBefore.Parts[part])
		}
		s.table = append(s.table, []chart.Cell{
			chart.Same(p.T(ui.RiskParts[part].Label)), chart.CountCell(count(f.Risk.Parts[part])),
			zeroOr(p, f.Risk.Parts[part]), before,
		})
	}
	s.table = append(s.table, []chart.Cell{
		chart.Same(p.T(text.Total)), chart.CountCell(f.Risk.Orders()), riskCell(p, f.Risk),
		riskCell(p, f.RiskBefore),
	})
	return s
}

// zeroOr writes sums; none are 0.
func zeroOr(p *ui.Page, sums []report.Sum) chart.Cell {
	if len(sums) == 0 {
		return chart.Cell{Show: "0", Plain: "0"}
	}
	return chart.SumsCell(p, sums)
}

func decidedSection(p *ui.Page, r *dailyreport.Report) dailySection {
	s := dailySection{
		name: "decided", title: tReportDecided, none: tNoDecisions, numbers: 2, rows: string(decidedOn(r)),
		heads: []string{p.T(text.Action), p.T(text.State), p.T(tNumber), p.T(tMoney)},
	}
	for _, d := range r.Figures.Decisions {
		s.table = append(s.table, []chart.Cell{
			chart.Same(p.T(wording.Action(d.Action))), chart.Same(p.T(ui.StateOf(ui.ApprovalStates, d.State).Label)),
			chart.CountCell(d.N), moneyCell(p, d.Amount, d.Currency),
		})
	}
	return s
}

func openedSection(p *ui.Page, f dailyreport.Figures) dailySection {
	s := dailySection{
		name: "exceptions", title: text.Exceptions, none: tNoExceptions, numbers: 1, rows: "/exceptions",
		heads: []string{p.T(text.Kind), p.T(tOpenedN), p.T(text.LastWeek), p.T(tDecidedN), p.T(tMoney)},
	}
	for _, x := range f.Exceptions {
		s.table = append(s.table, []chart.Cell{
			chart.Same(p.T(ui.KindText(x.Kind))), chart.CountCell(x.Opened), chart.CountCell(x.LastWeek), chart.CountCell(x.Closed),
			chart.SumsCell(p, x.Sums),
		})
	}
	return s
}

func suppliersSection(p *ui.Page, f dailyreport.Figures) dailySection {
	s := dailySection{
		name: "suppliers", title: tFailingSuppliers, none: tNoneFailed, numbers: 1,
		heads: []string{p.T(text.Supplier), p.T(text.Created), p.T(tConversion), p.T(text.LastWeek), p.T(tOpenings)},
	}
	share := func(part, of int64) chart.Cell { return chart.ShareCell(p, float64(part)/float64(max(of, 1)), of > 0) }
	for _, x := range f.Suppliers {
		s.table = append(s.table, []chart.Cell{
			chart.Same(x.Code), chart.CountCell(x.Created), share(x.Paid, x.Created), share(x.PaidBefore, x.Before),
			chart.CountCell(x.Openings),
		})
	}
	return s
}

func merchantsSection(p *ui.Page, f dailyreport.Figures) dailySection {
	s := dailySection{
		name: "merchants", title: tFailingMerchants, none: tNoneFailed, numbers: 1, rows: "/merchants",
		heads: []string{p.T(text.Merchant), p.T(tAttemptsN), p.T(tSuccessRate), p.T(tOpenings)},
	}
	for _, x := range f.Merchants {
		name := x.Code
		if x.Name != "" && x.Name != x.Code {
			name = x.Name + " (" + x.Code + ")"
		}
		s.table = append(s.table, []chart.Cell{
			chart.Same(name), chart.CountCell(x.Attempts),
			chart.ShareCell(p, float64(x.OK)/float64(max(x.Attempts, 1)), x.Attempts > 0), chart.CountCell(x.Openings),
		})
	}
	return s
}

// growthKinds name the kinds of growth.
var growthKinds = map[string]text.Text{
	dailyreport.OfCause:     {ZH: "失败原因", EN: "Cause of failure"},
	dailyreport.OfException: {ZH: "异常", EN: "Exceptions"},
	dailyreport.OfSupplier:  {ZH: "渠道订单", EN: "Orders of a supplier"},
	dailyreport.OfMerchant:  {ZH: "商户订单", EN: "Orders of a merchant"},
}

func growthSection(p *ui.Page, f dailyreport.Figures) dailySection {
	s := dailySection{
		name: "growth", title: tReportGrew, none: tNothingGrew, numbers: 2, rows: "/analytics?range=7d",
		heads: []string{p.T(text.Kind), p.T(text.Name), p.T(tThatDay), p.T(text.LastWeek), p.T(tGrowth), p.T(tMoney)},
	}
	for _, g := range f.Growth {
		name := g.Name
		switch g.Kind {
		case dailyreport.OfCause:
			name = p.T(failureText(g.Name))
		case dailyreport.OfException:
			name = p.T(ui.KindText(g.Name))
		}
		if g.FirstSince > 0 {
			name += " · " + p.T(tNewSinceAt, time.UnixMicro(g.FirstSince).In(p.Zone).Format("15:04"))
		}
		s.table = append(s.table, []chart.Cell{
			chart.Same(p.T(growthKinds[g.Kind])), chart.Same(name), chart.CountCell(g.N), chart.CountCell(g.Before),
			chart.Same(growth(p, g.N, g.Before)), chart.SumsCell(p, g.Sums),
		})
	}
	return s
}

// since says what has changed since the report; "" = nothing, or it is not known.
func (d DailyData) since(p *ui.Page) string {
	if d.Now == nil || *d.Now == d.Figures.Notified {
		return ""
	}
	rate, known := d.Now.Rate()
	return p.T(tReportSince, ui.Count(d.Now.Notified), ui.Count(d.Now.Raised), chart.ShareCell(p, rate, known).Show)
}

// mailed are the mails of the report.
func (d DailyData) mailed(p *ui.Page) (all []templ.Component) {
	for _, m := range d.Mails {
		line := []templ.Component{ui.Styled("mono", m.Target), ui.Pill(p, ui.StateOf(wording.MessageStates, m.Status))}
		if m.FinishedAt != nil {
			line = append(line, ui.When(p, *m.FinishedAt))
		}
		all = append(all, panel.Line("", append(line, ui.Styled("err", m.LastError))...))
	}
	if len(all) == 0 {
		all = append(all, panel.Line("muted", panel.Text(p.T(tReportNotMailed))))
	}
	return all
}

// panel is the table on its page, and leads to its rows as they are now.
func (s dailySection) panel(p *ui.Page) templ.Component {
	head, table := figureHead(s.name, p.T(s.title)), cellTable(p, s.title, s.heads, s.numbers, s.table)
	if s.rows != "" {
		head = figureHead(s.name, p.T(s.title), panel.Anchor(templ.SafeURL(s.rows), p.T(tRowsNow)))
	}
	if len(s.table) == 0 {
		table = panel.Box("body", panel.Line("muted", panel.Text(p.T(s.none))))
	}
	return sectionPanel(s.name, head, table)
}

// dailyText is a report as plain text, for its mail.
func dailyText(p *ui.Page, r *dailyreport.Report, console string) string {
	var b strings.Builder
	b.WriteString(dailyTitle(p, r) + "\n" + dailyLead(p, r) + "\n\n")
	for _, k := range dailyKPIs(p, r) {
		b.WriteString(k.label + p.T(text.Colon) + k.value + " (" + k.note + ")\n")
	}
	for _, s := range dailySections(p, r) {
		b.WriteString("\n" + p.T(s.title) + "\n")
		if len(s.table) == 0 {
			b.WriteString("  " + p.T(s.none) + "\n")
		}
		for _, row := range s.table {
			b.WriteString("  " + row[0].Show)
			for i, c := range row[1:] {
				b.WriteString(cmp.Or(map[bool]string{true: p.T(text.Colon)}[i == 0], " · ") + s.heads[i+1] + " " + c.Show)
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n" + dailyURL(r, console) + "\n")
	return b.String()
}

// DailyMessage is a report as a mail, in a language and time zone.
func DailyMessage(ctx context.Context, r *dailyreport.Report, language string, zone *time.Location, console string) (dailyreport.Mail, error) {
	p := &ui.Page{Language: language, Zone: zone, Now: time.UnixMicro(r.MadeAt)}
	var html strings.Builder
	err := DailyMail(p, r, console).Render(ctx, &html)
	return dailyreport.Mail{Title: dailyTitle(p, r), Text: dailyText(p, r, console), HTML: html.String()}, err
}

// dailyURL is the address of the report's page.
func dailyURL(r *dailyreport.Report, console string) string {
	return strings.TrimSuffix(console, "/") + string(reportLink(r))
}

// mailAlign is the alignment of a column in a mail.
func mailAlign(s dailySection, column int) string {
	if column >= s.numbers {
		return "right"
	}
	return "left"
}

// mailStripe is the background of a row in a mail.
func mailStripe(row int) string {
	if row%2 == 1 {
		return "#f7f8fa"
	}
	return "#ffffff"
}
