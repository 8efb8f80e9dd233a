package pages

import (
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// exceptionTexts is what the list of exceptions says.
var exceptionTexts = ui.ListTexts{
	Title: text.Exceptions, Icon: "circle-check", None: text.AllClear, NoneHow: text.AllClearHow,
	Fields: map[string]ui.Field{
		"state": {Label: text.State, Value: ui.ExceptionStateText}, "assignee": {Label: tInHand},
		"cause": {Label: tCompCause, Value: compensationClass},
	},
}

type exceptionRow = exception.Item

// ExceptionColumns are those of the list of exceptions.
var ExceptionColumns = []ui.Column[exceptionRow]{
	ui.TimeCol("opened", text.Time, func(x exceptionRow) *int64 { return &x.OpenedAt }),
	ui.WordCol("kind", text.Kind, func(p *ui.Page, x exceptionRow) string { return p.T(ui.KindText(x.Kind)) }).As("nowrap strong").
		To(func(x exceptionRow) string { return string(exceptionPageLink(x.ID)) }),
	ui.StateCol("state", text.State, func(x exceptionRow) ui.State { return ui.Look(ui.ExceptionStates, x.State) }).As("").
		With(exceptionState),
	ui.TextCol("assignee", tInHand, func(x exceptionRow) string { return x.Assignee }).ExportOnly(),
	ui.IDCol("no", text.Order, func(x exceptionRow) (string, string) { return x.OrderNo, string(exceptionLink(x)) }),
	ui.TextCol("currency", tCurrency, func(x exceptionRow) string { return x.Currency }).ExportOnly(),
	ui.MoneyCol("amount", text.Amount, func(x exceptionRow) (int64, string) { return x.Amount, x.Currency }),
	ui.CountCol("seen", tSeen, func(x exceptionRow) int64 { return x.Seen }),
	ui.NoteCol("detail", text.Detail, detailLine).As("small cut"),
}

func exceptionPicks(p *ui.Page, rows []exceptionRow) []templ.Component {
	all := make([]templ.Component, len(rows))
	for i, x := range rows {
		if all[i] = templ.NopComponent; runsAgain(x) {
			all[i] = pickRow(p, console.ExceptionID(x.ID), console.ExceptionID(x.ID))
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
