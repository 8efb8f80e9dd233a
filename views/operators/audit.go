package operators

import (
	"strconv"

	"backstop/internal/audit"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/list"
	"backstop/internal/pause"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// AuditData is one page of the audit.
type AuditData struct {
	// Acts and Actors count the rows of the whole filter, by what is done and by who did it; More:
	// there are more rows than were counted.
	Acts, Actors         []list.Group
	MoreActs, MoreActors bool
	OfRole               bool // only what the operators with one of the viewer's roles did
	// Checked says that the chain of Length rows was checked: the first wrong row is Broken, and
	// KeyNeeded the first whose key is not here; 0 = none.
	Checked                   bool
	Length, Broken, KeyNeeded int64
}

// Audit is the list of acts.
func Audit(p *ui.Page, l ui.List, a AuditData) templ.Component {
	l = l.As(AuditTexts)
	rows := ui.Nothing(p, l)
	if !l.Empty {
		rows = templ.Join(
			ui.Groups(p, l, tByAct, "action", a.Acts, a.MoreActs), ui.Groups(p, l, tByPerson, "actor", a.Actors, a.MoreActors),
			ui.Rows(p, l, text.Audit), ui.Pager(p, l),
		)
	}
	footer := ui.ButtonLink(p, "/audit?check=1", ui.Act{Icon: "shield-check", Label: tAuditCheck, Class: "sm"})
	if a.OfRole {
		footer = ui.Styled("", p.T(tAuditOfRole, p.OwnRoles()))
	}
	return panel.Page(p, p.T(text.Audit),
		panel.ListHead(p.T(text.Audit), ui.DisplayMenu(p, l), ui.ExportMenu(p, l)),
		ui.ViewTabs(p, l),
		panel.Box("stack",
			ui.If(a.Checked, auditCheck(p, a)),
			panel.Labelled(p.T(text.Audit), "", ui.FilterBar(p, l), rows, panel.Footer(footer)),
		),
	)
}

// auditCheck is the result of a check of the chain.
func auditCheck(p *ui.Page, a AuditData) templ.Component {
	return templ.Join(
		ui.If(a.Broken == 0 && a.KeyNeeded == 0, ui.Notice(p, "ok", p.T(tAuditWhole, ui.Count(a.Length)))),
		ui.If(a.Broken > 0, ui.Notice(p, "bad", p.T(tAuditBroken, ui.Count(a.Broken)))),
		ui.If(a.KeyNeeded > 0, ui.Notice(p, "bad", p.T(tAuditKey, ui.Count(a.KeyNeeded)))),
	)
}

// AuditTexts is what the audit says.
var AuditTexts = ui.ListTexts{
	Title: text.Audit, Icon: "scroll-text", None: tAuditNone, NoneHow: tAuditNoneHow,
	Fields: map[string]ui.Field{
		"actor": {Label: text.Actor}, "object": {Label: text.Kind, Value: ui.ObjectText},
		"action": {Label: text.Act, Value: wording.Act}, "id": {Label: text.Object}, console.RoleWord: {Label: text.Role, Value: ui.RoleText},
	},
}

// ActColumns are those of the audit.
var ActColumns = []ui.Column[audit.Row]{
	ui.Col("number", text.Number, ui.CountKind, func(_ *ui.Page, r audit.Row) ui.Cell {
		return ui.Cell{Minor: r.Number, Show: strconv.FormatInt(r.Number, 10)}
	}).InFiles(text.Text{ZH: "#", EN: "#"}),
	ui.TimeCol("at", text.Time, func(r audit.Row) *int64 { return &r.At }),
	ui.Col("actor", text.Actor, ui.TextKind, func(p *ui.Page, r audit.Row) ui.Cell {
		return ui.Cell{Text: r.Actor, Show: wording.Actor(p, r.Actor)}
	}).As("nowrap strong"),
	ui.Col("action", text.Act, ui.TextKind, func(p *ui.Page, r audit.Row) ui.Cell {
		return ui.Cell{Text: r.Action, Show: p.T(wording.Act(r.Action))}
	}).InFiles(text.Action),
	ui.TextCol("object", text.Object, func(r audit.Row) string { return r.Object + ":" + r.ObjectID }).InFiles(text.BatchRow).As("").
		With(func(p *ui.Page, r audit.Row) templ.Component {
			return ui.If(r.ObjectID != "", ui.ID(p, r.ObjectID, ui.Tail(r.ObjectID), string(objectLink(r))))
		}),
	ui.NoteCol("reason", text.Reason, func(_ *ui.Page, r audit.Row) string { return wording.ActReason(r) }).As("wrap"),
	ui.TextCol("params", text.Detail, func(r audit.Row) string { return r.Params }).As("small wrap").With(actDetail),
	ui.NoteCol("from", text.Address, func(_ *ui.Page, r audit.Row) string { return r.RemoteAddr }).InFiles(text.From).
		As("nowrap mono small"),
	ui.TextCol("hash", text.ContentHash, func(r audit.Row) string { return r.Hash }).ExportOnly(),
}

// maxDetail is the number of bytes that a row shows of it before it is collapsed.
const maxDetail = 160

func objectLink(r audit.Row) templ.SafeURL {
	switch r.Object {
	case "order":
		return link.Order(r.ObjectID)
	case "dispute":
		return link.Dispute(r.ObjectID)
	case pause.ActObject:
		return link.Queue(r.ObjectID)
	}
	return ""
}

// Texts of this page.
var (
	tAuditNone    = text.Text{ZH: "暂无操作记录", EN: "No activity yet"}
	tAuditNoneHow = text.Text{ZH: "登录、补发、备注和管理命令都会记在这里。", EN: "Sign-ins, resends, notes and changes by commands are recorded here."}
	tByAct        = text.Text{ZH: "按操作", EN: "By act"}
	tByPerson     = text.Text{ZH: "按人", EN: "By person"}
	tAuditOfRole  = text.Text{ZH: "仅显示角色为“%s”的人员的操作。", EN: "Only what people with the role %s did."}
	tAuditCheck   = text.Text{ZH: "校验链条", EN: "Check the chain"}
	tAuditWhole   = text.Text{ZH: "校验通过：%s 条记录，未发现篡改或删除。", EN: "Chain verified: %s rows, none changed or deleted."}
	tAuditBroken  = text.Text{
		ZH: "校验未通过：第 %s 条断开，这条或前面的记录被改过或删过，或没有密钥。",
		EN: "The chain breaks at row %s: this row or one before it was changed or deleted, or it has no key. backstop verify lists the rows.",
	}
	tAuditKey = text.Text{
		ZH: "无法校验：从第 %s 条起的记录需要另一把主密钥，当前节点没有。",
		EN: "Key needed: rows from %s on were written under a master key that this node does not have.",
	}
)
