package work

import (
	"slices"
	"strconv"

	"backstop/internal/approval"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/report"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// ManyData is what the approval of several proposals shows: before, what would be approved; after,
// what came of each.
type ManyData struct {
	Rows []console.Approval
	// Obstacles are what is, or was, in the way of rows, by their ids.
	Obstacles map[int64]approval.Obstacle
	Beyond    int64  // rows that could be approved, and are more than one form may
	More      bool   // more wait than were read
	Key       string // of the form; "" = it was sent
}

// NewManyData sorts out what may be approved together; what is more than one form may approve is only
// counted.
func NewManyData(w console.Waiting, key string, obstacle func(*console.Approval) approval.Obstacle) ManyData {
	d := ManyData{Obstacles: map[int64]approval.Obstacle{}, More: w.More, Key: key}
	n := 0
	for _, a := range w.Rows {
		if o := obstacle(&a); o != "" {
			d.Obstacles[a.ID] = o
		} else if n++; n > approval.MaxMany {
			d.Beyond++
			continue
		}
		d.Rows = append(d.Rows, a)
	}
	return d
}

// with are the rows with an obstacle; "" = without any.
func (d ManyData) with(o approval.Obstacle) (rows []console.Approval) {
	return slices.DeleteFunc(slices.Clone(d.Rows), func(a console.Approval) bool { return d.Obstacles[a.ID] != o })
}

// manyLine is what may be approved, or what one obstacle is in the way of.
type manyLine struct {
	label text.Text
	rows  []console.Approval
}

// lines are what may be approved, named first, and then what each obstacle is in the way of.
func (d ManyData) lines(first text.Text) []manyLine {
	all := []manyLine{{first, d.with("")}}
	for _, o := range approval.Obstacles {
		if rows := d.with(o); len(rows) > 0 {
			all = append(all, manyLine{obstacleTexts[o], rows})
		}
	}
	return all
}

var manyColumns = []ui.Column[manyLine]{
	ui.WordCol("outcome", text.Outcome, func(p *ui.Page, l manyLine) string { return p.T(l.label) }).As("strong"),
	ui.CountCol("count", tManyCount, func(l manyLine) int64 { return int64(len(l.rows)) }),
	ui.TextCol("amount", text.Amount, func(manyLine) string { return "" }).As("num").
		With(func(p *ui.Page, l manyLine) templ.Component { return sums(p, sumsOf(l.rows)) }),
}

// sumsOf adds up the money of rows.
func sumsOf(rows []console.Approval) []report.Sum {
	var s report.Standing
	for _, a := range rows {
		if a.Currency != "" {
			s.Add(report.Sum{Currency: a.Currency, Minor: a.Amount, Orders: 1})
		}
	}
	return s.Sums
}

// ApproveMany is the page of several proposals that are approved by one form.
func ApproveMany(p *ui.Page, d ManyData) templ.Component {
	sent, rows := d.Key == "", d.Rows
	if !sent {
		rows = d.with("")
	}
	return ui.DetailPage(p, ui.Detail{
		List: ui.Link{Href: "/approvals", Label: text.Approvals}, Title: p.T(tManyTitle),
		Main: []templ.Component{manyPlan(p, d), ui.If(sent || len(rows) > 0, manyRows(p, d, rows))},
		Side: []templ.Component{ui.If(!sent && len(rows) > 0, manyForm(p, d, rows))},
	})
}

// manyPlan counts what is approved, and what is left out and why, with the money.
func manyPlan(p *ui.Page, d ManyData) templ.Component {
	title, first := tDryRun, tManyReady
	if d.Key == "" {
		title, first = tManyResult, tManyDone
	}
	warn := func(says string) templ.Component { return panel.Box("body", ui.Notice(p, "warn", says)) }
	return panel.Of(
		p, "plan-title", title, ui.PlainRows(p, ui.Beside(p, manyColumns, d.lines(first)), title),
		ui.If(d.Beyond > 0, warn(p.T(tManyBeyond, approval.MaxMany, ui.Count(d.Beyond)+ui.Plus(d.More)))),
		ui.If(len(d.with("")) == 0 && d.Key != "", warn(p.T(tManyNone))),
	)
}

func manyRows(p *ui.Page, d ManyData, rows []console.Approval) templ.Component {
	return panel.Of(p, "rows-title", tManyRows, ui.PlainRows(p, d.table(p, rows), tManyRows))
}

// manyForm approves the rows: each with the hash that is shown.
func manyForm(p *ui.Page, d ManyData, rows []console.Approval) templ.Component {
	f := panel.Form{Name: "approve", Action: "/approvals/many", Key: d.Key}
	for _, a := range rows {
		f.Above = append(f.Above, ui.Hidden("row", a.No()+" "+a.Hash))
	}
	f.Above = append(f.Above, panel.Small(p.T(tManyHow)))
	f.Below = []templ.Component{panel.Code(p, "approve-code")}
	if approval.NeedsTyped(len(rows)) {
		f.Below = append(f.Below, typedFields(p, sumsOf(rows))...)
	}
	send := ui.Act{Icon: "check", Says: p.T(tManyGo, strconv.Itoa(len(rows))), Class: "primary", Writes: true}
	f.Below = append(f.Below, ui.Button(p, send))
	return panel.Body(p, "approve-title", tApprove, panel.Ask(p, f))
}

// table is the rows with what is decided; after the form was sent, with what came of each.
func (d ManyData) table(p *ui.Page, rows []console.Approval) ui.List {
	columns := []ui.Column[approvalRow]{
		ui.WordCol("action", text.Act, func(p *ui.Page, a approvalRow) string { return p.T(wording.Action(a.Action)) }).
			To(func(a approvalRow) string { return string(link.Approval(a.ID)) }),
		ui.WordCol("object", text.Object, func(p *ui.Page, a approvalRow) string {
			return p.T(ui.ObjectText(a.Object)) + " " + ui.Tail(a.ObjectID)
		}),
		ui.MoneyCol("amount", text.Amount, func(a approvalRow) (int64, string) { return a.Amount, a.Currency }),
		ui.WordCol("maker", tMaker, func(p *ui.Page, a approvalRow) string { return wording.Maker(p, &a) }),
	}
	if d.Key == "" {
		columns = append(columns, ui.StateCol("result", text.Outcome, func(a approvalRow) ui.State { return d.result(&a) }))
	}
	return ui.Rowed(p, columns, rows)
}

// result is what came of a row: its state once it is approved, otherwise what was in the way.
func (d ManyData) result(a *console.Approval) ui.State {
	o := d.Obstacles[a.ID]
	if o == "" || a.IsApproved() {
		return ui.StateOf(ui.ApprovalStates, a.State)
	}
	return ui.State{Kind: "warn", Icon: "ban", Label: obstacleTexts[o]}
}

// obstacleTexts say why a proposal is not approved with others.
var obstacleTexts = map[approval.Obstacle]text.Text{
	approval.IsOwn:        {ZH: "您自己提出的，须他人复核", EN: "Your own: another person must approve it"},
	approval.OtherRole:    {ZH: "您的角色不能复核", EN: "Your role may not approve it"},
	approval.MakerMayNot:  {ZH: "经办已无权提出", EN: "Its maker may no longer propose it"},
	approval.IsUnverified: {ZH: "未经渠道证实，须单独复核", EN: "Unverified: approve it on its own page"},
	approval.IsLong:       {ZH: "内容较多，须在其页面上单独复核", EN: "Its content is shown on its own page only: approve it there"},
	approval.AsksSupplier: {ZH: "须先向渠道查单，须单独复核", EN: "The supplier is queried first: approve it on its own page"},
	approval.HasExpired:   {ZH: "已过期", EN: "Expired"},
	approval.HasEnded:     {ZH: "此前已结束", EN: "Had already ended"},
	approval.HasChanged:   {ZH: "内容已变更，须重新核对", EN: "Changed since it was shown: check it again"},
	approval.HasFailed:    {ZH: "执行失败", EN: "Could not be carried out"},
	approval.NotKnown:     {ZH: "不确定是否生效，请打开查看", EN: "Not known whether it took effect: open it"},
}

// Texts of the approval of several proposals.
var (
	tManyPicked = text.Text{ZH: "复核选中的（预检）", EN: "Approve selected (dry run)"}
	tManyAll    = text.Text{ZH: "复核全部 %s 份（预检）", EN: "Approve all %s (dry run)"}
	tManyRule   = text.Text{ZH: "按规则复核", EN: "Approve by a rule"}
	tManyUpTo   = text.Text{ZH: "金额不超过", EN: "Amount up to"}
	tManyCheck  = text.Text{ZH: "预检", EN: "Dry run"}
	tManyTitle  = text.Text{ZH: "批量复核", EN: "Approve several proposals"}
	tManyReady  = text.Text{ZH: "将复核通过", EN: "Would be approved"}
	tManyDone   = text.Text{ZH: "已复核通过", EN: "Approved"}
	tManyResult = text.Text{ZH: "结果", EN: "Result"}
	tManyCount  = text.Text{ZH: "份数", EN: "Proposals"}
	tManyRows   = text.Text{ZH: "提议", EN: "Proposals"}
	tManyNone   = text.Text{ZH: "没有可以一起复核的提议。", EN: "None of these can be approved together."}
	tManyBeyond = text.Text{ZH: "一次最多 %d 份：另有 %s 份请下次复核。", EN: "At most %d at once: %s more are left for the next time."}
	tManyHow    = text.Text{
		ZH: "逐份按现有规则复核，立即执行；中途变更或过期的不生效。",
		EN: "Each is checked by the rules for one, and carried out at once. What has changed or expired by then is not approved.",
	}
	tManyGo = text.Text{ZH: "复核通过 %s 份", EN: "Approve %s"}
)
