package pages

import (
	"backstop/internal/base/money"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/views/ui"
)

// Column is one column of an exported list.
type Column[T any] struct {
	Head string
	Cell func(T) string
}

// Heads is the row with the names of the columns.
func Heads[T any](columns []Column[T]) []string {
	row := make([]string, len(columns))
	for i, c := range columns {
		row[i] = c.Head
	}
	return row
}

// ExportTitle is the first row of an exported list: its filter as in the address, when,
// by whom, and with which version.
func ExportTitle(p *ui.Page, filter, by string) string {
	if filter == "" {
		filter = p.T(text.None)
	}
	return p.T(tExportTitle, p.Version, filter, p.Full(p.Now.UnixMicro()), by)
}

// momentOf is a moment as spreadsheets read it, in the page's zone; "" = none.
func momentOf(p *ui.Page, us *int64) string {
	if us == nil {
		return ""
	}
	return p.At(*us).Format("2006-01-02 15:04:05.000")
}

// zoned is the head of a column of moments.
func zoned(p *ui.Page, head text.Text) string { return p.T(head) + " (" + p.Zone.String() + ")" }

// OrderColumns are those of exported orders.
func OrderColumns(p *ui.Page) []Column[console.Order] {
	type o = console.Order
	return []Column[o]{
		{zoned(p, text.Created), func(o o) string { return momentOf(p, &o.CreatedAt) }},
		{p.T(text.OrderNo), func(o o) string { return o.OrderNo }},
		{p.T(text.OutTradeNo), func(o o) string { return o.OutTradeNo }},
		{p.T(text.Merchant), func(o o) string { return o.Merchant }},
		{p.T(text.Supplier), func(o o) string { return o.Supplier }},
		{p.T(tCurrency), func(o o) string { return o.Currency }},
		{p.T(text.Amount), func(o o) string { return money.Format(o.Amount, o.Currency) }},
		{p.T(text.State), func(o o) string { return p.T(ui.Look(ui.OrderStates, o.Status).Label) }},
		{zoned(p, tPaidAt), func(o o) string { return momentOf(p, o.PaidAt) }},
		{p.T(text.PaidSum), func(o o) string { return money.Format(o.PaidAmount, o.Currency) }},
		{p.T(text.TradeNo), func(o o) string { return o.TradeNo }},
		{p.T(tNotified), func(o o) string {
			if o.NotifyStatus == "none" {
				return ""
			}
			return p.T(ui.Look(ui.NotifyStates, o.NotifyStatus).Label)
		}},
		{p.T(text.Subject), func(o o) string { return o.Subject }},
	}
}

// ExceptionColumns are those of exported exceptions.
func ExceptionColumns(p *ui.Page) []Column[exception.Item] {
	type x = exception.Item
	return []Column[x]{
		{zoned(p, text.Time), func(x x) string { return momentOf(p, &x.OpenedAt) }},
		{p.T(text.Kind), func(x x) string { return p.T(ui.KindText(x.Kind)) }},
		{p.T(text.State), func(x x) string { return p.T(ui.Look(ui.ExceptionStates, x.State).Label) }},
		{p.T(tInHand), func(x x) string { return x.Assignee }},
		{p.T(text.Order), func(x x) string { return x.OrderNo }},
		{p.T(tCurrency), func(x x) string { return x.Currency }},
		{p.T(text.Amount), func(x x) string {
			if x.Currency == "" {
				return ""
			}
			return money.Format(x.Amount, x.Currency)
		}},
		{p.T(tSeen), func(x x) string { return ui.Count(x.Seen) }},
		{p.T(text.Detail), func(x x) string { return detailLine(p, x) }},
	}
}

// Texts of exports.
var (
	tCurrency    = text.Text{ZH: "币种", EN: "Currency"}
	tPaidAt      = text.Text{ZH: "支付时间", EN: "Paid at"}
	tExportTitle = text.Text{ZH: "Backstop %s · 筛选条件：%s · %s 由 %s 导出", EN: "Backstop %s · filter: %s · exported %s by %s"}
)
