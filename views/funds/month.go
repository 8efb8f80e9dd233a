package funds

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"backstop/internal/base/text"
	"backstop/internal/fund"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// MonthData is the statement of a month: of one merchant, or a line for each of them.
type MonthData struct {
	Merchant      string // code; "" = all
	Month         string // such as 2026-11, as it was chosen
	Currency      string // that was chosen; "" = all
	From, To      time.Time
	Before, After string       // months; "" = there can be no statement
	Rows          []fund.Month // by currency and merchant
	Problem       text.Text    // why there is no such month; zero = there is
}

// path is the page without its month.
func (d MonthData) path() string {
	if d.Merchant == "" {
		return "/statements"
	}
	return string(link.Merchant(d.Merchant)) + "/statement"
}

func (d MonthData) link(month string) templ.SafeURL {
	query := url.Values{"month": {month}}
	if d.Currency != "" {
		query.Set("currency", d.Currency)
	}
	return templ.URL(d.path() + "?" + query.Encode())
}

// merchantMonth leads to a merchant's statement of the same month.
func (d MonthData) merchantMonth(m fund.Month) string {
	return string(MonthData{Merchant: m.Merchant, Currency: m.Currency}.link(d.Month))
}

func (d MonthData) title(p *ui.Page) string {
	if d.Merchant == "" {
		return p.T(text.Statements)
	}
	return p.T(tStatementOf, p.Merchant(d.Merchant))
}

// span says which time the month is.
func (d MonthData) span(p *ui.Page) string {
	says := p.T(tMonthSpan, d.From.Format(time.DateOnly), d.To.Add(-time.Second).Format(time.DateOnly), p.Zone.String())
	if d.To.After(p.Now) {
		says += " · " + p.T(tMonthRuns, p.Full(p.Now.UnixMicro()))
	}
	return says
}

// period chooses the days that a statement covers, with links to the periods before and after.
type period struct {
	path           string // "" = that of the page
	fields         []templ.Component
	before, after  templ.SafeURL // "" = there is none
	earlier, later text.Text
}

// form is shown above the statement.
func (x period) form(p *ui.Page) templ.Component {
	all := append(slices.Clone(x.fields), ui.Button(p, ui.Act{Icon: "filter", Label: text.Show, Class: "primary"}))
	if x.before != "" {
		all = append(all, ui.ButtonLink(p, string(x.before), ui.Act{Icon: "chevron-left", Label: x.earlier}))
	}
	if x.after != "" {
		all = append(all, panel.Linked(x.after, templ.Attributes{"class": "btn"}, panel.Text(p.T(x.later)), ui.Icon(p, "chevron-right")))
	}
	return panel.FilterForm(x.path, p.T(text.Filter), all...)
}

// period chooses the month.
func (d MonthData) period(p *ui.Page) period {
	chosen := period{path: d.path(), earlier: tMonthBefore, later: tMonthAfter}
	chosen.fields = []templ.Component{
		panel.FilterInput(p, panel.Input{
			Name: "month", Label: tMonth, Value: d.Month,
			More: templ.Attributes{"class": "input day", "type": "month", "aria-invalid": d.Problem != (text.Text{})},
		}),
		ui.If(d.Currency != "", ui.Hidden("currency", d.Currency)),
	}
	if d.Before != "" {
		chosen.before = d.link(d.Before)
	}
	if d.After != "" {
		chosen.after = d.link(d.After)
	}
	return chosen
}

// actions are the buttons of the page.
func (d MonthData) actions(p *ui.Page) (all []templ.Component) {
	if d.Merchant != "" {
		all = append(all, ui.ButtonLink(p, string(StatementData{Merchant: d.Merchant}.link("", d.Currency)), ui.Act{Label: tByDay}),
			ui.ButtonLink(p, string(MonthData{}.link(d.Month)), ui.Act{Label: tAllMerchants}))
	}
	if d.Problem == (text.Text{}) {
		printed := ui.Act{Icon: "receipt-text", Label: tPrint, More: templ.Attributes{"type": "button", "data-print": true}}
		all = append(all, ui.Button(p, printed), ui.ExportMenu(p, d.exports(p)))
	}
	return all
}

// table is the statement of one currency: a line for each merchant, or those of the one.
func (d MonthData) table(p *ui.Page, rows []fund.Month) templ.Component {
	currency := rows[0].Currency
	label := text.Text{ZH: currency, EN: currency}
	if d.Merchant != "" {
		return panel.Of(p, "month-"+currency, label, ui.Rows(p, ui.Rowed(p, MonthLineColumns, MonthLines(rows[0])), label))
	}
	label = text.Text{ZH: text.Merchants.ZH + " " + currency, EN: text.Merchants.EN + " " + currency}
	return panel.Of(p, "month-"+currency, label, ui.Rows(p, ui.Rowed(p, d.Columns(), append(rows, monthTotal(rows))), label))
}

// byCurrency are the statements of each currency.
func (d MonthData) byCurrency() (all [][]fund.Month) {
	for i, m := range d.Rows {
		if i == 0 || m.Currency != d.Rows[i-1].Currency {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], m)
	}
	return all
}

// exports is the list whose columns the menu of exports offers.
func (d MonthData) exports(p *ui.Page) ui.List {
	l := ui.List{Query: ui.Query{Path: d.path(), Values: url.Values{"month": {d.Month}}}}
	if d.Currency != "" {
		l.Values.Set("currency", d.Currency)
	}
	if d.Merchant != "" {
		return l.Listed(p, ui.Headings(MonthLineColumns), nil)
	}
	return l.Listed(p, ui.Headings(d.Columns()), nil)
}

// Columns are those of the statements of all merchants. The row of a total has no merchant.
func (d MonthData) Columns() []ui.Column[fund.Month] {
	all := []ui.Column[fund.Month]{
		ui.Col("merchant", text.Merchant, ui.TextKind, func(p *ui.Page, m fund.Month) ui.Cell {
			if m.Merchant == "" {
				return ui.Cell{Text: p.T(text.Total), Class: "strong"}
			}
			return ui.Cell{Text: m.Merchant, Show: p.Merchant(m.Merchant), Title: m.Merchant, Href: d.merchantMonth(m)}
		}),
		ui.TextCol("currency", text.Currency, func(m fund.Month) string { return m.Currency }).ExportOnly(),
		monthSum("opening", tOpening, func(m fund.Month) int64 { return m.Opening }),
	}
	for _, x := range movements {
		all = append(
			all,
			ui.CountCol(x.name+"_count", x.count, func(m fund.Month) int64 { return x.of(m).Count }).ExportOnly(),
			monthSum(x.name, x.label, func(m fund.Month) int64 { return x.of(m).Minor }).
				With(func(p *ui.Page, m fund.Month) templ.Component { return movement(p, x.of(m), m.Currency) }),
		)
	}
	return append(
		all,
		monthSum("closing", tClosing, func(m fund.Month) int64 { return m.Closing }).As("num strong"),
		monthSum("frozen", tFrozenThen, func(m fund.Month) int64 { return m.Frozen }).ExportOnly(),
		monthSum("reserved", tReservedThen, func(m fund.Month) int64 { return m.Reserved }).ExportOnly(),
	)
}

func monthSum(name string, label text.Text, of func(fund.Month) int64) ui.Column[fund.Month] {
	return ui.Col(name, label, ui.MoneyKind, func(_ *ui.Page, m fund.Month) ui.Cell {
		c := ui.Cell{Minor: of(m), Currency: m.Currency}
		if m.Merchant == "" {
			c.Class = "strong"
		}
		return c
	})
}

func movement(p *ui.Page, m fund.Movement, currency string) templ.Component {
	return templ.Join(ui.Money(m.Minor, currency),
		ui.If(m.Count != 0, panel.Box("small muted", panel.Text(p.T(tEntriesN, ui.Count(m.Count))))))
}

// movements are the parts of a statement.
var movements = []struct {
	name         string
	label, count text.Text
	of           func(fund.Month) fund.Movement
}{
	{"payments", tPayments, text.Text{ZH: "收款笔数", EN: "Payments, number"}, func(m fund.Month) fund.Movement { return m.Payments }},
	{"fees", tFees, text.Text{ZH: "手续费笔数", EN: "Fees, number"}, func(m fund.Month) fund.Movement { return m.Fees }},
	{"refunds", text.Refunds, text.Text{ZH: "退款笔数", EN: "Refunds, number"}, func(m fund.Month) fund.Movement { return m.Refunds }},
	{"payouts", text.Payouts, text.Text{ZH: "出款笔数", EN: "Payouts, number"}, func(m fund.Month) fund.Movement { return m.Payouts }},
	{"disputes", text.Disputes, text.Text{ZH: "争议笔数", EN: "Disputes, number"}, func(m fund.Month) fund.Movement { return m.Disputes }},
	{"other", tOtherEntries, text.Text{ZH: "其他笔数", EN: "Other, number"}, func(m fund.Month) fund.Movement { return m.Other }},
}

// monthTotal is the line of all merchants in one currency.
func monthTotal(rows []fund.Month) fund.Month {
	sum := fund.Month{Currency: rows[0].Currency}
	for _, m := range rows {
		sum.Add(m)
	}
	return sum
}

// MonthLine is a line of a merchant's statement.
type MonthLine struct {
	name     string
	label    text.Text
	entries  int64 // below zero: it is a balance
	minor    int64
	currency string
}

// MonthLines are the statement of one currency from its opening to its closing balance.
func MonthLines(m fund.Month) []MonthLine {
	balance := func(name string, label text.Text, minor int64) MonthLine {
		return MonthLine{name, label, -1, minor, m.Currency}
	}
	all := []MonthLine{balance("opening", tOpening, m.Opening)}
	for _, x := range movements {
		all = append(all, MonthLine{x.name, x.label, x.of(m).Count, x.of(m).Minor, m.Currency})
	}
	all = append(all, balance("closing", tClosing, m.Closing))
	if m.Frozen != 0 || m.Reserved != 0 {
		all = append(all, balance("frozen", tFrozenThen, m.Frozen), balance("reserved", tReservedThen, m.Reserved),
			balance("payable", tPayable, m.Payable()))
	}
	return all
}

// MonthLineColumns are those of a merchant's statement of a month.
var MonthLineColumns = []ui.Column[MonthLine]{
	ui.Col("line", tLine, ui.TextKind, func(p *ui.Page, l MonthLine) ui.Cell { return ui.Cell{Text: p.T(l.label), Class: l.class()} }),
	ui.TextCol("currency", text.Currency, func(l MonthLine) string { return l.currency }).ExportOnly(),
	ui.Col("entries", tEntries, ui.TextKind, func(p *ui.Page, l MonthLine) ui.Cell {
		if l.entries < 0 {
			return ui.Cell{Body: templ.NopComponent}
		}
		return ui.Cell{Text: ui.Count(l.entries)}
	}).As("num"),
	ui.Col("amount", text.Amount, ui.BalanceKind, func(_ *ui.Page, l MonthLine) ui.Cell {
		return ui.Cell{Minor: l.minor, Currency: l.currency, Class: l.class()}
	}),
}

// class makes balances strong.
func (l MonthLine) class() string {
	if l.entries < 0 {
		return "strong"
	}
	return ""
}

// StatementData is a merchant's statement of a day.
type StatementData struct {
	Merchant           string // code
	Balances           []fund.Balance
	Statement          fund.Statement // of no currency: the merchant has no account
	Day, Before, After string         // days; After "" = it has not begun
	Zone               string
}

// link leads to the statement of a day in a currency.
func (d StatementData) link(day, currency string) templ.SafeURL {
	return templ.URL(string(link.Merchant(d.Merchant)) + "/statement?" + url.Values{"day": {day}, "currency": {currency}}.Encode())
}

// month is the month of the day.
func (d StatementData) month() string { return d.Day[:min(len(d.Day), len(fund.MonthLayout))] }

// more leads to the entries after those that are shown.
func (d StatementData) more() templ.SafeURL {
	return d.link(d.Day, d.Statement.Currency) + templ.SafeURL("&cursor="+strconv.FormatInt(d.Statement.Next, 10))
}

// period chooses the day and the currency.
func (d StatementData) period(p *ui.Page) period {
	currencies := make([]panel.Choice, len(d.Balances))
	for i, b := range d.Balances {
		currencies[i] = panel.Choice{Value: b.Currency, Label: b.Currency}
	}
	chosen := period{
		fields: []templ.Component{
			panel.FilterInput(p, panel.Input{
				Name: "day", Label: text.Day, Value: d.Day, More: templ.Attributes{"class": "input day", "type": "date"},
			}),
			panel.FilterSelect(p, panel.Input{Name: "currency", Label: text.Currency, Value: d.Statement.Currency}, currencies...),
		},
		before: d.link(d.Before, d.Statement.Currency), earlier: text.DayBefore, later: tDayAfter,
	}
	if d.After != "" {
		chosen.after = d.link(d.After, d.Statement.Currency)
	}
	return chosen
}

// statementSum is a sum of a statement.
type statementSum struct {
	label text.Text
	minor int64
}

// sums are those of the day, and the balances now.
func (d StatementData) sums() []statementSum {
	s := d.Statement
	all := []statementSum{{tOpening, s.Opening}, {tCredits, s.Credits}, {tDebits, s.Debits}, {tClosing, s.Closing}}
	for _, b := range d.Balances {
		if b.Currency != s.Currency {
			continue
		}
		all = append(all, statementSum{tAvailable, b.Available})
		if b.Frozen != 0 {
			all = append(all, statementSum{tFrozen, b.Frozen})
		}
		if b.Reserved != 0 {
			all = append(all, statementSum{tReserved, b.Reserved})
		}
	}
	return all
}

// statementColumns are those of a statement's lines in a currency.
func statementColumns(currency string) []ui.Column[fund.Item] {
	return []ui.Column[fund.Item]{
		ui.TimeCol("at", text.Time, func(i fund.Item) *int64 { return &i.At }),
		ui.WordCol("kind", text.Kind, func(p *ui.Page, i fund.Item) string { return p.T(lineKindText(string(i.Kind))) }),
		ui.TextCol("order", text.Order, func(i fund.Item) string { return i.OrderNo }).As("").
			With(func(p *ui.Page, i fund.Item) templ.Component {
				return ui.TailOr(p, i.OrderNo, string(link.Order(i.OrderNo)))
			}),
		ui.TextCol("ref", text.Reference, func(i fund.Item) string { return i.Ref }).As("").
			With(func(p *ui.Page, i fund.Item) templ.Component { return refOf(p, i.Ref) }),
		ui.MoneyCol("amount", text.Amount, func(i fund.Item) (int64, string) { return i.Amount, currency }),
		ui.MoneyCol("fee", text.Fee, func(i fund.Item) (int64, string) {
			if i.Fee == 0 {
				return 0, ""
			}
			return i.Fee, currency
		}),
		ui.MoneyCol("balance", tBalance, func(i fund.Item) (int64, string) { return i.Balance, currency }).As("num strong"),
	}
}

// Texts of statements of a month.
var (
	tPayments     = text.Text{ZH: "收款", EN: "Payments"}
	tFees         = text.Text{ZH: "手续费", EN: "Fees"}
	tOtherEntries = text.Text{ZH: "冻结与调账", EN: "Freezes and adjustments"}
	tFrozenThen   = text.Text{ZH: "期末冻结", EN: "Frozen at the end"}
	tReservedThen = text.Text{ZH: "期末争议保留", EN: "Reserved for disputes at the end"}
	tPayable      = text.Text{ZH: "应付合计", EN: "Payable in total"}
	tLine         = text.Text{ZH: "项目", EN: "Line"}
	tEntries      = text.Text{ZH: "笔数", EN: "Entries"}
	tEntriesN     = text.Text{ZH: "%s 笔", EN: "entries: %s"}
	tMonth        = text.Text{ZH: "月份", EN: "Month"}
	tMonthBefore  = text.Text{ZH: "上月", EN: "Month before"}
	tMonthAfter   = text.Text{ZH: "下月", EN: "Month after"}
	tMonthSpan    = text.Text{ZH: "%s 至 %s（%s）", EN: "%s to %s, %s"}
	tMonthRuns    = text.Text{ZH: "本月未结束，截至 %s", EN: "the month has not ended; as of %s"}
	tByDay        = text.Text{ZH: "按日对账单", EN: "By day"}
	tByMonth      = text.Text{ZH: "按月对账单", EN: "By month"}
	tAllMerchants = text.Text{ZH: "全部商户", EN: "All merchants"}
	tPrint        = text.Text{ZH: "打印", EN: "Print"}
)
