package pages

import (
	"backstop/internal/base/text"
	"backstop/internal/exception"
	"backstop/views/ui"
)

// exceptionTexts is what the list of exceptions says.
var exceptionTexts = ui.ListTexts{
	Columns: []ui.Heading{
		ui.Head(text.Time).Named("opened"), ui.Head(text.Kind).Named("kind"), ui.Head(text.State).Named("state"),
		ui.Head(text.Order).Named("no"), ui.Sum(text.Amount).Named("amount"), ui.Num(tSeen).Named("seen"),
		ui.Head(text.Detail).Named("detail"),
	},
	Title: text.Exceptions, Icon: "circle-check", None: text.AllClear, NoneHow: text.AllClearHow,
	Fields: map[string]ui.Field{
		"state": {Label: text.State, Value: ui.ExceptionStateText}, "assignee": {Label: tInHand},
		"cause": {Label: tCompCause, Value: compensationClass},
	},
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
