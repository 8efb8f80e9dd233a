// Package work draws the pages of what a person must still do, or the program: exceptions, approvals,
// batches, compensations, sweeps, alerts and the inbox.
package work

import (
	"slices"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// ExceptionTexts is what the list of exceptions says.
var ExceptionTexts = ui.ListTexts{
	Title: text.Exceptions, Icon: "circle-check", None: text.AllClear, NoneHow: text.AllClearHow,
	Fields: map[string]ui.Field{
		"state": {Label: text.State, Value: ui.ExceptionStateText}, "assignee": {Label: text.Assignee},
		"cause": {Label: text.CompensationCause, Value: wording.CompensationClass},
	},
}

type exceptionRow = exception.Item

// ExceptionColumns are those of the list of exceptions.
var ExceptionColumns = []ui.Column[exceptionRow]{
	exceptionNumber.PageOnly(), // files have it last
	ui.TimeCol("opened", text.Time, func(x exceptionRow) *int64 { return &x.OpenedAt }),
	ui.WordCol("kind", text.Kind, func(p *ui.Page, x exceptionRow) string { return p.T(ui.KindText(x.Kind)) }).As("nowrap strong"),
	ui.StateCol("state", text.State, func(x exceptionRow) ui.State { return ui.StateOf(ui.ExceptionStates, x.State) }).As("").
		With(exceptionState),
	ui.TextCol("assignee", text.Assignee, func(x exceptionRow) string { return x.Assignee }).ExportOnly(),
	ui.IDCol("no", text.Order, func(x exceptionRow) (string, string) { return x.OrderNo, string(link.ExceptionCause(x)) }),
	ui.TextCol("currency", text.Currency, func(x exceptionRow) string { return x.Currency }).ExportOnly(),
	ui.MoneyCol("amount", text.Amount, func(x exceptionRow) (int64, string) { return x.Amount, x.Currency }),
	ui.CountCol("seen", tSeen, func(x exceptionRow) int64 { return x.Seen }),
	ui.NoteCol("detail", text.Detail, wording.ExceptionDetail).As("small cut"),
	exceptionNumber.ExportOnly(),
}

var exceptionNumber = ui.NumberCol("number", text.Number, func(x exceptionRow) (string, templ.SafeURL) {
	return console.ExceptionID(x.ID), link.Exception(x.ID)
})

// exceptionRows are the rows; who may run again what ran out of tries picks some, or all of a kind.
func exceptionRows(p *ui.Page, l ui.List, items []exceptionRow, again bool) templ.Component {
	all := exception.RunsAgain(l.Values.Get("kind"))
	if !again || !all && !slices.ContainsFunc(items, runsAgain) {
		return ui.Rows(p, l, text.Exceptions)
	}
	return panel.PickForm(
		p, l, text.Exceptions, "post", link.BatchPlan(l, "redrive"), exceptionPicks(items),
		panel.DryRun(p, p.T(tAgainPicked), templ.Attributes{"id": "batch-redrive", "name": "pick", "value": "rows"}),
		ui.If(all, panel.DryRun(p, p.T(tAgainAll, ui.Count(l.Count), ui.Plus(l.More)), templ.Attributes{"name": "pick", "value": "all"})),
	)
}

// exceptionState is that of a row, and who has it in hand.
func exceptionState(p *ui.Page, x exceptionRow) templ.Component {
	return templ.Join(ui.Pill(p, ui.StateOf(ui.ExceptionStates, x.State)), ui.If(x.Assignee != "", ui.Styled("muted small", x.Assignee)))
}

func exceptionPicks(rows []exceptionRow) []panel.Pick {
	all := make([]panel.Pick, len(rows))
	for i, x := range rows {
		if runsAgain(x) {
			id := console.ExceptionID(x.ID)
			all[i] = panel.Pick{Value: id, Name: id, Currency: x.Currency}
		}
	}
	return all
}

// runsAgain reports whether what the exception is about can be run again.
func runsAgain(x exception.Item) bool { return x.State.Open() && exception.RunsAgain(x.Kind) }

// Texts of this page.
var (
	tSeen        = text.Text{ZH: "次数", EN: "Seen"}
	tLanes       = text.Text{ZH: "按类型", EN: "By kind"}
	tAgainPicked = text.Text{ZH: "重新执行选中的（预检）", EN: "Run selected again (dry run)"}
	tAgainAll    = text.Text{ZH: "重新执行全部 %s%s 条（预检）", EN: "Run all %s%s again (dry run)"}
)
