package search

import (
	"net/url"

	"backstop/internal/base/text"
	"backstop/internal/list"
	"backstop/internal/report"
	"backstop/internal/savedview"
	"backstop/views/funds"
	"backstop/views/operators"
	"backstop/views/orders"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/work"

	"github.com/a-h/templ"
)

// ViewsData is the page of the views.
type ViewsData struct {
	Rows     []ViewRow
	MayShare bool
	Did      string // what was just done to the view Of; "" = nothing
	Of       int64
}

// ViewRow is one view, with the key of its forms.
type ViewRow struct {
	savedview.View
	Spec     *list.Spec
	Problem  ViewProblem
	MayWatch bool
	Key      string
}

// MayChange reports whether the viewer may rename, share and delete the view.
func (d ViewsData) MayChange(p *ui.Page, r ViewRow) bool {
	return d.MayShare || r.OwnerID == p.UserID && !r.Shared
}

// Views are the saved filters of all lists.
func Views(p *ui.Page, d ViewsData) templ.Component {
	var lists []templ.Component
	if len(d.Rows) == 0 {
		lists = append(lists, panel.Labelled(p.T(tViews), "", ui.Empty(p, "layers", p.T(tViewsNone), p.T(tViewsNoneHow))))
	}
	for _, l := range viewedLists {
		rows, deleted := d.of(l.name)
		if title := l.texts().Title; len(rows)+len(deleted) > 0 {
			lists = append(lists, panel.Section(l.name, p.T(title), "", nil,
				ui.If(len(rows) > 0, viewTable(p, title, viewColumns(d, l.texts()), rows)),
				ui.If(len(deleted) > 0, deletedViews(p, d, deleted)),
			))
		}
	}
	return panel.Page(p, p.T(tViews), panel.Head(p.T(tViews), p.T(tViewsHow)), viewDone(p, d), panel.Box("stack", lists...))
}

// viewColumns are those of the views of a list.
func viewColumns(d ViewsData, texts ui.ListTexts) []ui.Column[ViewRow] {
	column := func(label text.Text, td string, body func(*ui.Page, ViewRow) templ.Component) ui.Column[ViewRow] {
		return ui.Column[ViewRow]{Heading: ui.Heading{Label: label, Td: td}, Body: body}
	}
	return []ui.Column[ViewRow]{
		column(text.Name, "strong", func(_ *ui.Page, r ViewRow) templ.Component { return panel.Anchor(viewLink(r), r.Name) }),
		column(text.Filter, "wrap small", func(p *ui.Page, r ViewRow) templ.Component {
			problem := panel.Box("warn-text", ui.Icon(p, "triangle-alert"), panel.Text(r.Problem.In(p)))
			return templ.Join(panel.Text(filterOf(p, r, texts)), ui.If(r.Problem != (ViewProblem{}), problem))
		}),
		column(tViewOwner, "nowrap", viewOwner),
		column(tViewAlert, "nowrap", viewAlert),
		column(text.Act, "", func(p *ui.Page, r ViewRow) templ.Component { return ui.If(d.MayChange(p, r), viewActs(p, d, r)) }),
	}
}

func viewOwner(p *ui.Page, r ViewRow) templ.Component {
	tag := tViewPrivate
	if r.Shared {
		tag = tViewShared
	}
	return panel.Spaced(panel.Text(r.Owner), ui.Styled("tag", p.T(tag)))
}

func viewAlert(p *ui.Page, r ViewRow) templ.Component {
	switch {
	case !r.MayWatch:
		return ui.OrNone(p, "")
	case r.Watched:
		return viewForm(p, r, "watch", tViewAlertOff, ui.Hidden("on", "no"))
	}
	return viewForm(p, r, "watch", tViewAlertOn, ui.Hidden("on", "yes"))
}

// viewActs are what may be done with a view by whoever may change it.
func viewActs(p *ui.Page, d ViewsData, r ViewRow) templ.Component {
	share := viewForm(p, r, "change", tViewShareDo, ui.Hidden("shared", "yes"))
	if r.Shared {
		share = viewForm(p, r, "change", tViewUnshare, ui.Hidden("shared", "no"))
	}
	return panel.Box("row",
		panel.PostForm(viewPath(r, "change"), templ.Attributes{"class": "inline"},
			panel.FormKey(r.Key+"-name"), viewName(p, "name-"+savedview.ID(r.ID), r.Name), viewButton(p, tViewRename)),
		ui.If(d.MayShare, share),
		viewForm(p, r, "delete", tViewDelete),
	)
}

// viewForm is a button that acts on a view.
func viewForm(p *ui.Page, r ViewRow, act string, label text.Text, fields ...templ.Component) templ.Component {
	return panel.PostForm(viewPath(r, act), nil, panel.FormKey(r.Key+"-"+act), templ.Join(fields...), viewButton(p, label))
}

func viewButton(p *ui.Page, label text.Text) templ.Component {
	return ui.Button(p, ui.Act{Label: label, Class: "sm", Writes: true})
}

// viewDone says what was done, with the way back.
func viewDone(p *ui.Page, d ViewsData) templ.Component {
	r := d.done()
	if r == nil {
		return templ.NopComponent
	}
	said, undo := "", templ.Component(templ.NopComponent)
	switch d.Did {
	case "deleted":
		said = p.T(tViewDeleted, r.Name)
		undo = ui.If(d.MayChange(p, *r), viewForm(p, *r, "restore", tViewUndo))
	case "changed":
		said = p.T(tViewChanged, r.Name)
		undo = ui.If(r.WasName != "" && d.MayChange(p, *r), viewForm(p, *r, "change", tViewUndo, ui.Hidden("name", r.WasName)))
	case "shared", "unshared":
		said = p.T(tViewChanged, r.Name)
		was := map[bool]string{true: "no", false: "yes"}[r.Shared]
		undo = ui.If(d.MayShare && r.Shared == (d.Did == "shared"), viewForm(p, *r, "change", tViewUndo, ui.Hidden("shared", was)))
	case "restored":
		said = p.T(tViewRestored, r.Name)
	}
	return undoNotice(p, said, undo)
}

// ViewProblem is what is wrong with a view; zero = nothing.
type ViewProblem struct {
	Kind        string
	Name, Value string
}

// Kinds of problems.
const (
	ViewUnreadable = "unreadable"
	ViewField      = "field"
	ViewValue      = "value"
	ViewMissing    = "missing"
)

// In says what is wrong; "" = nothing.
func (x ViewProblem) In(p *ui.Page) string {
	switch x.Kind {
	case ViewUnreadable:
		return p.T(tViewUnreadable)
	case ViewField:
		return p.T(tViewField, x.Name)
	case ViewValue:
		return p.T(tViewValue, x.Name, x.Value)
	case ViewMissing:
		return p.T(tViewMissing, x.Name, x.Value)
	}
	return ""
}

// ViewKey is the key of a view's count.
func ViewKey(v savedview.View) string { return "v" + savedview.ID(v.ID) }

// ViewTab is a view as a tab.
func ViewTab(p *ui.Page, v savedview.View) ui.ViewTab {
	t := ui.ViewTab{Key: ViewKey(v), Label: v.Name}
	switch {
	case v.Watched:
		t.Icon, t.Hint = "bell-ring", p.T(tViewWatched)
	case v.Shared:
		t.Icon = "users"
	}
	if v.Shared {
		t.Hint = p.T(tViewSharedBy, v.Owner)
	}
	return t
}

// RiskView is what the view of a part of the money at risk is called.
func RiskView(part report.Part) text.Text {
	w := ui.RiskParts[part].Label
	return text.Text{ZH: "当前风险：" + w.ZH, EN: "At risk now: " + w.EN}
}

// DecidedView is what the view of the decisions of yesterday is called.
func DecidedView() text.Text { return tDecidedView }

// PresetTab is a view that comes with the program as a tab.
func PresetTab(p *ui.Page, key string, label text.Text) ui.ViewTab {
	return ui.ViewTab{Key: key, Label: p.T(label), Hint: p.T(tPreset)}
}

// PaidView is what the view of the orders paid this month is called, of a merchant or of all.
func PaidView(merchant string) text.Text {
	if merchant == "" {
		return text.Text{ZH: "本月已付", EN: "Paid this month"}
	}
	return text.Text{ZH: "本月已付：" + merchant, EN: "Paid this month: " + merchant}
}

// viewedLists are the texts of the lists with views, in display order.
var viewedLists = []struct {
	name  string
	texts func() ui.ListTexts
}{
	{"orders", func() ui.ListTexts { return orders.OrderTexts }},
	{"callbacks", func() ui.ListTexts { return orders.CallbackTexts("") }},
	{"notifications", func() ui.ListTexts { return orders.NotificationTexts }},
	{"exceptions", func() ui.ListTexts { return work.ExceptionTexts }},
	{"approvals", func() ui.ListTexts { return work.ApprovalTexts }},
	{"refunds", func() ui.ListTexts { return funds.RefundTexts }},
	{"payouts", func() ui.ListTexts { return funds.PayoutTexts }},
	{"disputes", func() ui.ListTexts { return funds.DisputeTexts }},
	{"compensations", func() ui.ListTexts { return work.CompensationTexts }},
	{"audit", func() ui.ListTexts { return operators.AuditTexts }},
}

// of returns the rows of a list that are there, and those that can be restored.
func (d ViewsData) of(name string) (rows, deleted []ViewRow) {
	for _, r := range d.Rows {
		switch {
		case r.List != name:
		case r.DeletedAt != nil:
			deleted = append(deleted, r)
		default:
			rows = append(rows, r)
		}
	}
	return rows, deleted
}

// done returns the view that was just changed; nil = none, or the address was made up.
func (d ViewsData) done() *ViewRow {
	for i, r := range d.Rows {
		if r.ID == d.Of && (d.Did == "deleted") == (r.DeletedAt != nil) {
			return &d.Rows[i]
		}
	}
	return nil
}

// filterOf writes the filter of a view in words.
func filterOf(p *ui.Page, r ViewRow, texts ui.ListTexts) string {
	values, err := url.ParseQuery(r.Query)
	if err != nil {
		return r.Query
	}
	return p.FilterWords(r.Spec, texts, values)
}

func viewLink(r ViewRow) templ.SafeURL { return templ.URL("/" + r.List + "?" + r.Query) }

func viewPath(r ViewRow, act string) string { return "/views/" + savedview.ID(r.ID) + "/" + act }

// Texts of the views.
var (
	tPreset      = text.Text{ZH: "系统自带的视图", EN: "Built-in view"}
	tDecidedView = text.Text{ZH: "昨日复核", EN: "Decisions of yesterday"}
	tViews       = text.Text{ZH: "视图", EN: "Views"}
	tViewsHow    = text.Text{
		ZH: "视图是列表上保存的筛选条件，显示在列表上方。每人每个列表最多 20 个；共享视图对能打开该列表的人可见，能共享的人都可以修改，并记入审计。",
		EN: "A view is a saved filter of a list and appears above it. Each person has up to 20 per list. Shared views are seen by everybody who may open the list; whoever may share can change them, which is recorded in the audit.",
	}
	tViewsNone      = text.Text{ZH: "还没有视图", EN: "No views yet"}
	tViewsNoneHow   = text.Text{ZH: "在任一列表上设好筛选条件，然后点“保存为视图”。", EN: "Set a filter on any list, then choose \"Save as a view\"."}
	tViewOwner      = text.Text{ZH: "创建人", EN: "Owner"}
	tViewAlert      = text.Text{ZH: "提醒", EN: "Alert"}
	tViewAlertOn    = text.Text{ZH: "提醒我", EN: "Alert me"}
	tViewAlertOff   = text.Text{ZH: "停止提醒", EN: "Stop alerts"}
	tViewWatched    = text.Text{ZH: "有新记录时会提醒您", EN: "You are alerted to new rows"}
	tViewSharedBy   = text.Text{ZH: "共享视图，创建人：%s", EN: "Shared by %s"}
	tViewShared     = text.Text{ZH: "共享", EN: "Shared"}
	tViewPrivate    = text.Text{ZH: "个人", EN: "Personal"}
	tViewRename     = text.Text{ZH: "改名", EN: "Rename"}
	tViewShareDo    = text.Text{ZH: "共享", EN: "Share"}
	tViewUnshare    = text.Text{ZH: "取消共享", EN: "Stop sharing"}
	tViewDelete     = text.Text{ZH: "删除", EN: "Delete"}
	tViewRestore    = text.Text{ZH: "恢复", EN: "Restore"}
	tViewUndo       = text.Text{ZH: "撤销", EN: "Undo"}
	tViewGone       = text.Text{ZH: "最近删除（24 小时内可恢复）", EN: "Recently deleted (can be restored for 24 hours)"}
	tViewDeleted    = text.Text{ZH: "已删除视图：%s", EN: "Deleted the view %s"}
	tViewChanged    = text.Text{ZH: "已修改视图：%s", EN: "Changed the view %s"}
	tViewRestored   = text.Text{ZH: "已恢复视图：%s", EN: "Restored the view %s"}
	tViewUnreadable = text.Text{ZH: "此视图的筛选条件无法读取：请删除后重新保存。", EN: "The filter of this view cannot be read: delete it and save it again."}
	tViewField      = text.Text{
		ZH: "此视图的筛选条件 %s 在这个列表中已不存在，其余条件仍然有效。",
		EN: "This view filters by %s, which this list no longer has. Its other filters apply.",
	}
	tViewValue = text.Text{
		ZH: "此视图的筛选条件 %s 不再接受 %s：请删除后重新保存。",
		EN: "This view filters by %s, which no longer accepts the value %s: delete the view and save it again.",
	}
	tViewMissing = text.Text{
		ZH: "此视图筛选的 %s = %s 已不存在，因此没有记录。",
		EN: "This view filters by %s = %s, which does not exist: no row matches.",
	}
)
