package work

import (
	"net/url"
	"strconv"
	"time"

	"backstop/internal/act"
	"backstop/internal/base/text"
	"backstop/internal/batch"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/internal/report"
	"backstop/views/chart"
	"backstop/views/link"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// BatchTexts are the texts of the list of batches.
var BatchTexts = ui.ListTexts{
	Title: text.Batches, Icon: "layers", None: tBatchNone, NoneHow: tBatchNoneHow,
	Fields: map[string]ui.Field{
		"action": {Label: text.Action, Value: func(action string) text.Text { return wording.BatchActions[action][0] }},
		"state":  ui.States(wording.BatchStates),
		"maker":  {Label: tBatchMadeBy},
	},
}

// BatchColumns are those of the list of batches. A batch may have several currencies, so that its
// amounts are one text.
var BatchColumns = []ui.Column[batch.Batch]{
	ui.NumberCol("id", text.NumberWord, func(b batch.Batch) (string, templ.SafeURL) { return b.No(), batchLink(&b, "") }),
	ui.TimeCol("made", text.Time, func(b batch.Batch) *int64 { return &b.MadeAt }).InFiles(text.Created),
	ui.WordCol("action", text.Action, func(p *ui.Page, b batch.Batch) string { return actionTitle(p, &b) }).As("nowrap strong"),
	ui.StateCol("state", text.State, func(b batch.Batch) ui.State { return ui.StateOf(wording.BatchStates, b.State) }),
	ui.CountCol("rows", tBatchFound, func(b batch.Batch) int64 { return b.Rows }).ExportOnly(),
	ui.CountCol("to_do", tBatchToDo, func(b batch.Batch) int64 { return b.ToDo }).ExportOnly(),
	ui.Col("ended", tBatchProgress, ui.CountKind, func(_ *ui.Page, b batch.Batch) ui.Cell {
		return ui.Cell{Minor: b.Ended(), Show: ui.Count(b.Ended()) + " / " + ui.Count(b.ToDo)}
	}),
	ui.WordCol("amount", text.Amount, func(p *ui.Page, b batch.Batch) string { return chart.SumsCell(p, b.Planned.Acts()).Plain }).As("num").
		With(func(p *ui.Page, b batch.Batch) templ.Component { return sums(p, b.Planned.Acts()) }),
	ui.WordCol("maker", tBatchMadeBy, func(p *ui.Page, b batch.Batch) string { return wording.Actor(p, b.MadeBy) }),
	ui.TextCol("reason", text.Reason, func(b batch.Batch) string { return b.Reason }).ExportOnly(),
	ui.TimeCol("started", tAprStarted, func(b batch.Batch) *int64 { return b.StartedAt }).ExportOnly(),
	ui.TimeCol("finished", tEnded, func(b batch.Batch) *int64 { return b.FinishedAt }).ExportOnly(),
	ui.WordCol("stopped_because", tBatchWhy, func(p *ui.Page, b batch.Batch) string { return causeText(p, b.StoppedBecause) }).ExportOnly(),
}

// BatchData is what the page of a batch shows.
type BatchData struct {
	Progress BatchProgressData
	Results  batch.Tally // what came by now of the rows that are done; nil = nothing more
	Typed    []report.Sum
	Second   bool            // it needs a second person
	Key      string          // of the form
	Mine     bool            // only who made it may start it
	May      bool            // the operator may run such batches
	Breakers []console.Named // whose breakers rows wait for, some of them
	Rows     []batch.Row
	// RowResults is what came by now of the rows, by ObjectID; nil = the rows say it all.
	RowResults map[int64]string
	Filter     batch.RowQuery
	More       bool // there are rows behind the last one
}

// BatchProgressData is what is kept current while a batch runs.
type BatchProgressData struct {
	*batch.Batch
	Causes []batch.Cause
	Now    int64
}

// BatchPage shows what would be done to many rows, how far it is, and what was done.
func BatchPage(p *ui.Page, d BatchData) templ.Component {
	b := d.Progress.Batch
	kind, notice := d.noticeOf(p)
	return ui.DetailPage(p, ui.Detail{
		List: ui.Link{Href: "/batches", Label: text.Batches}, Title: actionTitle(p, b),
		About: []ui.Fact{
			ui.IDFact(text.Text{}, b.No(), "").Whole(),
			ui.TextFact(text.Text{}, "", wording.Actor(p, b.MadeBy)),
			ui.TimeFact(text.Text{}, &b.MadeAt),
			ui.TimeFact(tBatchUntil, &b.ExpiresAt).If(b.State == batch.Planned && b.ExpiresAt > 0),
			ui.LinkFact(text.Text{}, p.T(tBatchApproval), link.Approval(b.ApprovalID)).If(b.ApprovalID != 0),
		},
		Main: []templ.Component{BatchProgress(p, d.Progress), batchPlan(p, d)},
		Side: []templ.Component{
			ui.If(notice != "", ui.Notice(p, kind, notice)),
			ui.If(d.startable(p), batchStart(p, d)),
			ui.If(d.May && (b.State == batch.Running || b.State == batch.Paused), batchControl(p, d)),
		},
		Foot: []templ.Component{batchRows(p, d)},
	})
}

func batchLink(b *batch.Batch, part string) templ.SafeURL {
	return templ.URL("/batches/" + b.No() + part)
}

// startable reports whether the form to start is shown.
func (d BatchData) startable(p *ui.Page) bool {
	b := d.Progress.Batch
	return d.Mine && d.May && b.State == batch.Planned && b.ToDo > 0 && p.Now.UnixMicro() < b.ExpiresAt
}

// begun says whether the batch was started.
func (d BatchProgressData) begun() bool { return d.StartedAt != nil }

// share is how much of it was processed, in thousandths.
func (d BatchProgressData) share() int64 {
	if d.ToDo == 0 {
		return 0
	}
	return d.Ended() * 1000 / d.ToDo
}

// paceText says how fast it runs, and how long it still takes.
func (d BatchProgressData) paceText(p *ui.Page) string {
	pace := d.Pace(d.Now)
	at := strconv.FormatFloat(pace.PerSecond, 'f', 1, 64)
	if pace.Left < 0 {
		return p.T(tBatchPace, at)
	}
	return p.T(tBatchLeft, at, p.Rough(time.Duration(pace.Left)*time.Second))
}

// rowsLink is the rows of a batch with a filter.
func (d BatchData) rowsLink(state, cause, after, format string) templ.SafeURL {
	v := url.Values{}
	for name, value := range map[string]string{"state": state, "cause": cause, "after": after, "format": format} {
		if value != "" {
			v.Set(name, value)
		}
	}
	query := ""
	if len(v) > 0 {
		query = "?" + v.Encode()
	}
	if format == "" {
		query += "#rows"
	}
	return batchLink(d.Progress.Batch, query)
}

// rowStates are the filters of the rows.
var rowStates = append([]string{""}, batch.RowMoves.Words()...)

func rowStateText(p *ui.Page, state string) string {
	if state == "" {
		return p.T(text.All)
	}
	return p.T(ui.StateOf(batchRowStates, batch.RowState(state)).Label)
}

// end is what happened to a row: what came of it by now, what it waits for, or why it was left alone.
func (d BatchData) end(r batch.Row) ui.State {
	planned, result := r.State == batch.RowWaiting && !d.Progress.begun(), d.RowResults[r.ObjectID]
	switch {
	case r.Cause == batch.MerchantBreaker && (planned || r.State == batch.RowDone && result == notify.ResultWaiting):
		return ui.StateOf(batchEnds, string(act.Waits))
	case planned, r.State == batch.RowSkipped:
		return ui.StateOf(batchEnds, r.Outcome)
	case r.State == batch.RowDone && result != "":
		return ui.StateOf(batchEnds, result)
	}
	return ui.StateOf(batchRowStates, r.State)
}

// cause is why a row ended so; a breaker is none any more once the merchant was notified, or refused.
func (d BatchData) cause(r batch.Row) string {
	if result := d.RowResults[r.ObjectID]; r.Cause == batch.MerchantBreaker && r.State == batch.RowDone && result != notify.ResultWaiting {
		return ""
	}
	return r.Cause
}

// causeText is a cause in words, where there are some.
func causeText(p *ui.Page, cause string) string {
	if t, ok := batchCauses[cause]; ok {
		return p.T(t)
	}
	if t, ok := wording.CompensationClasses[cause]; ok {
		return p.T(t)
	}
	return cause
}

// noticeOf says how a batch stands that cannot be started here.
func (d BatchData) noticeOf(p *ui.Page) (kind, words string) {
	b := d.Progress.Batch
	switch {
	case b.State == batch.Stopped:
		return "bad", p.T(tBatchStopped, causeText(p, b.StoppedBecause), ui.Count(b.ToDo-b.Ended()))
	case b.State == batch.Done && d.Results != nil && b.ToDo <= batch.MaxResults:
		n := func(of string) string { return ui.Count(d.Results.Count(of)) }
		kind = "ok"
		if d.Results.Count(notify.ResultRefused, notify.ResultWaiting) > 0 {
			kind = "warn"
		}
		return kind, p.T(tBatchResult, n(notify.ResultNotified), n(notify.ResultRefused), n(notify.ResultWaiting))
	case b.State == batch.Done:
		return "ok", p.T(tBatchDone)
	case b.State == batch.Waiting:
		return "warn", p.T(tBatchWaits)
	case b.State != batch.Planned:
		return "", ""
	case b.ToDo == 0:
		return "warn", p.T(tBatchEmpty)
	case !d.Mine || !d.May:
		return "warn", p.T(tBatchNotYours, b.MadeBy)
	case p.Now.UnixMicro() >= b.ExpiresAt:
		return "warn", p.T(tBatchExpired)
	}
	return "", ""
}

type batchRow = batch.Row

// BatchRowColumns are those of the rows of a batch.
var BatchRowColumns = []ui.Column[batchRow]{
	ui.CountCol("number", tBatchNumber, func(r batchRow) int64 { return r.Number }),
	ui.IDCol("no", text.Order, func(r batchRow) (string, string) { return r.OrderNo, string(link.Order(r.OrderNo)) }).InFiles(text.OrderNo),
	ui.TextCol("object", text.BatchRow, func(r batchRow) string { return r.Object + ":" + strconv.FormatInt(r.ObjectID, 10) }).ExportOnly(),
	ui.StateCol("state", text.State, func(r batchRow) ui.State { return ui.StateOf(batchRowStates, r.State) }).ExportOnly(),
	ui.Col("outcome", text.Outcome, ui.TextKind, func(p *ui.Page, r batchRow) ui.Cell {
		return ui.Cell{Text: r.Outcome, Show: p.T(ui.StateOf(batchEnds, r.Outcome).Label)}
	}).As("whole"),
	ui.Col("cause", text.Cause, ui.TextKind, func(p *ui.Page, r batchRow) ui.Cell {
		return ui.Cell{Text: r.Cause, Show: causeText(p, r.Cause)}
	}).As("whole"),
	ui.MoneyCol("amount", text.Amount, func(r batchRow) (int64, string) { return r.Amount, r.Currency }),
	ui.TextCol("currency", text.Currency, func(r batchRow) string { return r.Currency }).ExportOnly(),
	ui.TimeCol("at", tBatchAt, func(r batchRow) *int64 { return r.At }),
}

// table is the rows with what happened to each by now; each cause leads to the rows with the same one.
func (d BatchData) table(p *ui.Page) ui.List {
	columns := ui.Replace(BatchRowColumns, ui.StateCol("outcome", text.Outcome, d.end))
	columns = ui.Replace(columns, ui.Col("cause", text.Cause, ui.TextKind, func(p *ui.Page, r batchRow) ui.Cell {
		cause := d.cause(r)
		if cause == "" {
			return ui.Cell{}
		}
		return ui.Cell{Text: cause, Show: causeText(p, cause), Href: string(d.rowsLink(d.Filter.State, cause, "", ""))}
	}).As("whole"))
	return ui.Rowed(p, columns, d.Rows)
}

func actionTitle(p *ui.Page, b *batch.Batch) string { return p.T(wording.BatchActions[b.Action][0]) }

func actionButton(p *ui.Page, b *batch.Batch) string {
	return p.T(wording.BatchActions[b.Action][1], ui.Count(b.ToDo))
}

var batchRowStates = map[string]ui.State{
	string(batch.RowWaiting): {Kind: "idle", Icon: "clock", Label: text.Text{ZH: "未执行", EN: "Not processed"}},
	string(batch.RowDone):    {Kind: "ok", Icon: "check", Label: text.Text{ZH: "已执行", EN: "Done"}},
	string(batch.RowSkipped): {Kind: "idle", Icon: "ban", Label: text.Text{ZH: "已跳过", EN: "Skipped"}},
	string(batch.RowFailed):  {Kind: "bad", Icon: "x", Label: text.Text{ZH: "失败", EN: "Failed"}},
}

// effects are the planned outcomes, as they are shown.
func effects() (all []string) {
	for _, p := range act.Effects {
		all = append(all, string(p))
	}
	return all
}

// batchEnds are what a batch would do with a row, and what came of notifications.
var batchEnds = map[string]ui.State{
	string(act.Will):      {Kind: "ok", Icon: "send", Label: text.Text{ZH: "会执行", EN: "Will run"}},
	string(act.Waits):     {Kind: "warn", Icon: "zap-off", Label: text.Text{ZH: "熔断挂起", EN: "Waits for the breaker"}},
	string(act.WillQuery): {Kind: "info", Icon: "search", Label: text.Text{ZH: "会先查单", EN: "Will query"}},
	string(act.Final):     {Kind: "idle", Icon: "ban", Label: text.Text{ZH: "跳过：已有结果", EN: "Skip: final"}},
	string(act.Unknown):   {Kind: "warn", Icon: "triangle-alert", Label: text.Text{ZH: "不执行：结果未知", EN: "Blocked: unknown result"}},
	string(act.Blocked):   {Kind: "warn", Icon: "hourglass", Label: text.Text{ZH: "不执行：正在进行", EN: "Blocked: in progress"}},

	notify.ResultNotified: {Kind: "ok", Icon: "check", Label: text.Text{ZH: "已送达", EN: "Notified"}},
	notify.ResultRefused:  {Kind: "bad", Icon: "x", Label: text.Text{ZH: "未成功", EN: "Refused"}},
	notify.ResultWaiting:  {Kind: "warn", Icon: "hourglass", Label: text.Text{ZH: "仍在等待", EN: "Still waiting"}},
}

// batchCauses are why a batch stopped, and the causes of its rows that compensations do not
// have.
var batchCauses = map[string]text.Text{
	batch.ByPerson:        {ZH: "人工停止", EN: "stopped by an operator"},
	batch.ByDrift:         {ZH: "金额与预检相差超过 1%", EN: "the amount differs from the dry run by more than 1 %"},
	batch.ByBreaker:       {ZH: "渠道已熔断", EN: "the supplier's breaker is open"},
	batch.ByRejection:     {ZH: "未通过复核", EN: "it was not approved"},
	batch.MerchantBreaker: {ZH: "商户已熔断，恢复后发出", EN: "Waits for the merchant's breaker"},
	"gone":                {ZH: "记录已清理", EN: "No longer stored"},
	"paid":                {ZH: "渠道：已支付", EN: "Supplier: paid"},
	"paying":              {ZH: "渠道：支付中", EN: "Supplier: paying"},
	"failed":              {ZH: "渠道：支付失败", EN: "Supplier: failed"},
	"closed":              {ZH: "渠道：已关闭", EN: "Supplier: closed"},
	"not_found":           {ZH: "渠道：查无此单", EN: "Supplier: not found"},
}

// Texts of these pages.
var (
	tBatchNone    = text.Text{ZH: "还没有批次", EN: "No batches yet"}
	tBatchNoneHow = text.Text{
		ZH: "在列表中选择多行，或选择全部符合条件的行，先预检再执行。",
		EN: "Select rows of a list, or all that match. You see what would be done before anything runs.",
	}
	tBatchMadeBy   = text.Text{ZH: "创建者", EN: "Created by"}
	tBatchFound    = text.Text{ZH: "选中行数", EN: "Rows found"}
	tBatchToDo     = text.Text{ZH: "待执行行数", EN: "Rows to act on"}
	tBatchWhy      = text.Text{ZH: "停止原因", EN: "Stopped because"}
	tBatchProgress = text.Text{ZH: "进度", EN: "Progress"}
	tBatchOf       = text.Text{ZH: "已处理 %s / %s", EN: "%s of %s processed"}
	tBatchPace     = text.Text{ZH: "每秒 %s 条", EN: "%s rows per second"}
	tBatchLeft     = text.Text{ZH: "每秒 %s 条，还需约 %s", EN: "%s rows per second, about %s left"}
	tBatchSums     = text.Text{ZH: "已执行金额", EN: "Amount done"}
	tBatchCauses   = text.Text{ZH: "按原因", EN: "By cause"}
	tBatchRows     = text.Text{ZH: "明细", EN: "Rows"}
	tBatchNumber   = text.Text{ZH: "序号", EN: "Number"}
	tBatchNext     = text.Text{ZH: "下一页", EN: "Next page"}
	tBatchAt       = text.Text{ZH: "处理时间", EN: "Ended"}
	tBatchExport   = text.Text{ZH: "导出 %s", EN: "Export %s"}
	tBatchCount    = text.Text{ZH: "条数", EN: "Count"}
	tBatchLater    = text.Text{
		ZH: "其中 %s 条的商户已熔断：现在不会发出，熔断恢复后自动发出。",
		EN: "%s of them wait for a breaker: they are not sent now but when it closes.",
	}
	tBatchClose    = text.Text{ZH: "解除 %s 的熔断", EN: "Close the breaker of %s"}
	tBatchApproval = text.Text{ZH: "复核", EN: "Approval"}
	tBatchNow      = text.Text{ZH: "执行结果，截至", EN: "Result as of"}
	tBatchFirst    = text.Text{ZH: "（前 %s 条）", EN: "(of the first %s rows)"}
	tBatchResult   = text.Text{ZH: "全部已处理：%s 条已送达，%s 条未成功，%s 条仍在等待。", EN: "All processed: %s notified, %s refused, %s still waiting."}
	tBatchDone     = text.Text{ZH: "全部已处理。", EN: "All processed."}
	tDryRun        = text.Text{ZH: "预检结果（不执行）", EN: "Dry run"}
	tFrozenFilter  = text.Text{ZH: "冻结时的列表", EN: "The list as it was planned"}
	tBatchNothing  = text.Text{ZH: "还没有执行任何操作。", EN: "Nothing has been done yet."}
	tBatchUntil    = text.Text{ZH: "有效至", EN: "valid until"}
	tBatchStopped  = text.Text{ZH: "已停止：%s。已执行的保留，%s 条没有执行。", EN: "Stopped: %s. What was done stays done; %s rows were not processed."}
	tBatchWaits    = text.Text{ZH: "超过限额，等待另一人复核。", EN: "Above the limit: another person must approve it."}
	tBatchSecond   = text.Text{ZH: "超过限额：提交后需另一人复核才会执行。", EN: "Above the limit: another person must approve it before it runs."}
	tBatchEmpty    = text.Text{ZH: "没有可以执行的行。", EN: "There is nothing to do."}
	tBatchNotYours = text.Text{ZH: "只有 %s 能执行这个批次。", EN: "Only %s may start this batch."}
	tBatchExpired  = text.Text{ZH: "这个预检已过期，请重新做一次。", EN: "This dry run has expired: make a new one."}
	tBatchStart    = text.Text{ZH: "执行", EN: "Start"}
	tBatchHow      = text.Text{
		ZH: "由服务器执行，可以关闭页面；执行前逐条重新检查。",
		EN: "The server runs it, so you may close the page. Each row is checked again when its turn comes.",
	}
	tBatchControl = text.Text{ZH: "控制", EN: "Control"}
	tBatchStop    = text.Text{ZH: "停止", EN: "Stop"}
	tBatchStopHow = text.Text{
		ZH: "停止后不能继续。已执行的保留，其余列在明细中。",
		EN: "A stopped batch cannot be resumed. What was done stays done; the rest is listed below.",
	}
	tBatchRate    = text.Text{ZH: "每秒条数", EN: "Rows per second"}
	tBatchSetRate = text.Text{ZH: "修改速度", EN: "Change the rate"}
)
