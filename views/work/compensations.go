package work

import (
	"net/url"
	"strconv"
	"time"

	"backstop/internal/audit"
	"backstop/internal/base/text"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// CompensationTexts is what the list of compensations says.
var CompensationTexts = ui.ListTexts{
	Title: text.Compensations, Icon: "circle-check", None: tCompNone, NoneHow: tCompNoneHow,
	Fields: map[string]ui.Field{
		"state": ui.States(ui.CompensationStates),
		"kind":  {Label: text.Kind, Value: wording.CompensationKind},
		"cause": {Label: text.CompensationCause, Value: wording.CompensationClass},
	},
}

type compensationRow = console.Compensation

// CompensationColumns are those of the list of compensations.
var CompensationColumns = []ui.Column[compensationRow]{
	compensationNumber.PageOnly(), // files have it last
	ui.TimeCol("opened", text.Time, func(x compensationRow) *int64 { return &x.OpenedAt }),
	ui.WordCol("kind", text.Kind, func(p *ui.Page, x compensationRow) string { return p.T(wording.CompensationKind(x.Kind)) }).
		As("nowrap strong"),
	ui.StateCol("state", text.State, func(x compensationRow) ui.State { return ui.StateOf(ui.CompensationStates, x.State) }),
	ui.WordCol("cause", text.CompensationCause, func(p *ui.Page, x compensationRow) string {
		return p.T(wording.CompensationClass(string(x.Cause)))
	}).As("whole"),
	ui.TextCol("subject", text.BatchRow, func(x compensationRow) string { return x.Subject() }).ExportOnly(),
	ui.IDCol("no", text.Order, func(x compensationRow) (string, string) { return x.OrderNo, string(link.Order(x.OrderNo)) }),
	ui.SupplierCol(func(x compensationRow) string { return x.Supplier }).Optional(),
	ui.MerchantCol(func(x compensationRow) string { return x.Merchant }).Optional(),
	ui.TextCol("currency", text.Currency, func(x compensationRow) string { return x.Currency }).ExportOnly(),
	ui.MoneyCol("amount", text.Amount, func(x compensationRow) (int64, string) { return x.Amount, x.Currency }),
	ui.Col("attempts", text.Tries, ui.CountKind, func(_ *ui.Page, x compensationRow) ui.Cell {
		return ui.Cell{Minor: x.Attempts, Show: triesOf(x)}
	}).InFiles(text.AttemptsMade),
	ui.TimeCol("next", tCompNext, func(x compensationRow) *int64 { return x.NextAt }).InFiles(text.NextRun),
	ui.Col("error", tCompError, ui.NoteKind, func(p *ui.Page, x compensationRow) ui.Cell {
		c := ui.Cell{Text: x.LastError, Title: x.LastError}
		if x.LastClass != "" {
			c.Show = p.T(wording.CompensationClass(string(x.LastClass)))
		}
		return c
	}).InFiles(text.Reason),
	compensationNumber.ExportOnly(),
}

var compensationNumber = ui.NumberCol("number", text.Number, func(x compensationRow) (string, templ.SafeURL) {
	return strconv.FormatInt(x.ID, 10), link.Compensation(x.ID)
})

// groupColumns are those of the dead ones by their cause.
var groupColumns = []ui.Column[console.CompensationGroup]{
	ui.WordCol("kind", text.Kind, func(p *ui.Page, g console.CompensationGroup) string { return p.T(wording.CompensationKind(g.Kind)) }).
		As("nowrap strong"),
	ui.WordCol("cause", text.CompensationCause, func(p *ui.Page, g console.CompensationGroup) string {
		return p.T(wording.CompensationClass(string(g.Cause)))
	}).As("whole").To(func(g console.CompensationGroup) string { return string(groupLink(g)) }),
	ui.TextCol("supplier", text.Supplier, func(g console.CompensationGroup) string { return g.Supplier }),
	ui.CountCol("count", tCompCount, func(g console.CompensationGroup) int64 { return g.Count }).
		To(func(g console.CompensationGroup) string { return string(groupLink(g)) }),
	ui.TextCol("amount", text.Amount, func(console.CompensationGroup) string { return "" }).As("num").With(groupSums),
	ui.TimeCol("oldest", tCompOldest, func(g console.CompensationGroup) *int64 { return &g.OldestAt }),
}

// CompensationsData is what the list shows around its rows.
type CompensationsData struct {
	// Groups are the dead ones by their cause; Cut = not all were looked at.
	Groups []console.CompensationGroup
	Cut    bool
	// CanRedrive: the operator may run all that are listed again. Key is of that form.
	CanRedrive bool
	Key        string
	Actions    []string   // that can be planned for all that are listed
	Done       *audit.Row // the re-drive that the page was opened with; nil = none
}

// CompensationData is what the page of one shows.
type CompensationData struct {
	*console.CompensationDetail
	Key               string
	Saved             bool
	CanRun, CanCancel bool
}

// CompensationPage is one compensation with its tries.
func CompensationPage(p *ui.Page, x CompensationData) templ.Component {
	path := string(link.Compensation(x.ID))
	return ui.DetailPage(p, ui.Detail{
		List: ui.Link{Href: "/compensations", Label: text.Compensations}, Saved: x.Saved,
		Title: p.T(wording.CompensationKind(x.Kind)), State: ui.StateOf(ui.CompensationStates, x.State),
		About: []ui.Fact{ui.TimeFact(text.Text{}, &x.OpenedAt)},
		Main: []templ.Component{
			ui.Facts(
				p, "what-title", tCompWhat,
				ui.TextFact(text.CompensationCause, "strong", p.T(wording.CompensationClass(string(x.Cause)))),
				ui.IDFact(text.Order, x.OrderNo, string(link.Order(x.OrderNo))),
				ui.TextFact(text.SubjectWord, "mono", x.Subject()),
				ui.MoneyFact(text.Amount, x.Amount, x.Currency),
				ui.SupplierFact(p, x.Supplier),
				ui.MerchantFact(p, x.Merchant),
				ui.TextFact(text.Tries, "", triesOf(x.Compensation)),
				ui.TimeFact(tCompNext, x.NextAt).If(x.State == compensation.Waiting),
				ui.TimeFact(tCompEnded, x.FinishedAt),
				ui.TextFact(tCompMadeBy, "", x.MadeBy),
			),
			ui.TablePanel(p, "tries-title", tryTexts, tryColumns, x.Tries),
			panel.Body(p, "payload-title", tCompPayload, ui.Code(string(x.Payload))),
		},
		Side: []templ.Component{
			ui.If(x.idle() && x.CanRun, panel.ReasonPanel(p, "run", path+"/run", x.Key, tCompRun, tCompRunHow)),
			ui.If(x.idle() && x.CanCancel, panel.ReasonPanel(p, "cancel", path+"/cancel", x.Key, tCompCancel, tCompCancelHow)),
		},
	})
}

// triesOf is how many of its tries were made.
func triesOf(x console.Compensation) string {
	return strconv.FormatInt(x.Attempts, 10) + " / " + strconv.FormatInt(x.MaxAttempts, 10)
}

var tryTexts = ui.ListTexts{Title: tCompTriesHead, Icon: "clock", None: tCompNoTries, NoneHow: tCompNoTryHow}

// tryColumns are those of the tries of a compensation.
var tryColumns = []ui.Column[compensation.Try]{
	ui.CountCol("number", tCompNumber, func(t compensation.Try) int64 { return t.Number }),
	ui.TimeCol("at", text.Time, func(t compensation.Try) *int64 { return &t.At }),
	ui.WordCol("took", text.Took, func(p *ui.Page, t compensation.Try) string {
		return p.Took(time.Duration(t.TookUS) * time.Microsecond)
	}).As("num"),
	ui.WordCol("outcome", text.Outcome, func(p *ui.Page, t compensation.Try) string {
		return p.T(wording.CompensationClass(string(t.Class)))
	}).As("whole"),
	ui.TextCol("detail", text.Detail, func(t compensation.Try) string { return t.Error }).As("small wrap"),
}

// idle reports whether it can be run or cancelled now.
func (d CompensationData) idle() bool { return compensation.Moves.Can(d.State, compensation.Cancelled) }

// redriveForm runs all of this list again, unless they are too many.
func redriveForm(p *ui.Page, l ui.List, d CompensationsData) templ.Component {
	title := p.T(tCompAgain) + " (" + ui.Count(l.Count) + ui.Plus(l.More) + ")"
	send := ui.Act{Icon: "refresh-cw", Label: tCompAgain, Class: "primary", Writes: !l.More, More: templ.Attributes{"disabled": l.More}}
	return panel.Box("body", panel.Fold(p, "redrive", title, panel.Ask(p, panel.Form{
		Name: "redrive", Action: "/compensations/redrive?" + l.Filter().Values.Encode(), Key: d.Key,
		Above: []templ.Component{panel.Small(p.T(tCompAgainHow))}, Below: []templ.Component{ui.Button(p, send)},
	})))
}

// groupLink leads to exactly the rows of a group.
func groupLink(g console.CompensationGroup) templ.SafeURL {
	v := url.Values{"state": {string(compensation.Dead)}, "kind": {g.Kind}, "cause": {string(g.Cause)}}
	if g.Supplier != "" {
		v.Set("supplier", g.Supplier)
	}
	return templ.URL("/compensations?" + v.Encode())
}

// redriven says what a re-drive did.
func redriven(p *ui.Page, row *audit.Row) string {
	d := compensation.RedrivenIn(row.Params)
	return p.T(tCompRedriven, ui.Count(d.Matched), ui.Count(d.Queued), ui.Count(d.Skipped))
}

// Texts of these pages.
var (
	tCompNone    = text.Text{ZH: "没有补偿任务", EN: "No compensations"}
	tCompNoneHow = text.Text{
		ZH: "中断的请求、写入和通知会出现在这里，并按间隔自动重试。",
		EN: "Interrupted calls, writes and notifications appear here and are retried automatically.",
	}
	tCompNext      = text.Text{ZH: "下次执行", EN: "Next try"}
	tCompError     = text.Text{ZH: "最近结果", EN: "Last result"}
	tCompGroups    = text.Text{ZH: "补偿失败，按原因", EN: "Dead compensations by cause"}
	tCompGroupsCut = text.Text{ZH: "只统计了最早的一部分。", EN: "Only the oldest are counted."}
	tCompCount     = text.Text{ZH: "数量", EN: "Count"}
	tCompOldest    = text.Text{ZH: "最早", EN: "Oldest"}
	tCompAgain     = text.Text{ZH: "全部重新执行", EN: "Run all of these again"}
	tCompAgainHow  = text.Text{
		ZH: "按当前筛选条件，等待执行和补偿失败的任务立即执行，并重新开始计次；执行中和已结束的跳过。一次最多 1,000 条。",
		EN: "Runs the waiting and dead rows of this list now, with a new retry schedule; running and finished ones are skipped. At most 1,000 at once.",
	}
	tCompRedriven  = text.Text{ZH: "匹配 %s 条，已安排 %s 条，跳过 %s 条。", EN: "%s matched: %s queued to run again, %s skipped."}
	tCompWhat      = text.Text{ZH: "任务", EN: "Task"}
	tCompMadeBy    = text.Text{ZH: "创建者", EN: "Opened by"}
	tCompEnded     = text.Text{ZH: "结束时间", EN: "Ended"}
	tCompTriesHead = text.Text{ZH: "执行记录", EN: "Tries"}
	tCompNoTries   = text.Text{ZH: "还没有执行过", EN: "Not tried yet"}
	tCompNoTryHow  = text.Text{ZH: "到时间后自动执行。", EN: "It runs automatically when it is due."}
	tCompNumber    = text.Text{ZH: "第几次", EN: "Number"}
	tCompPayload   = text.Text{ZH: "任务内容（已脱敏）", EN: "Payload (masked)"}
	tCompRun       = text.Text{ZH: "立即执行", EN: "Run again"}
	tCompRunHow    = text.Text{
		ZH: "立即执行，并重新开始计次。已有结果的对象不会被改动。",
		EN: "It runs now, with a new retry schedule. Anything already settled is left unchanged.",
	}
	tCompCancel    = text.Text{ZH: "取消任务", EN: "Cancel it"}
	tCompCancelHow = text.Text{ZH: "不再执行，也不能恢复。", EN: "It will never run again. This cannot be undone."}
)
