package partners

import (
	"slices"
	"strings"

	"backstop/internal/audit"
	"backstop/internal/base/text"
	"backstop/internal/settings"
	"backstop/internal/settings/apply"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// SettingsIndex is the page of all sections of the settings.
type SettingsIndex struct {
	Sections []SectionObjects
	Drafts   []apply.Draft // of the operator
}

// SectionObjects are the objects of one section.
type SectionObjects struct {
	apply.Section

	Codes []string
	More  int // that are not listed
}

// SettingsData is the page with the form of one object.
type SettingsData struct {
	Section  apply.Section
	Entry    *apply.Entry
	Inputs   []SettingsInput
	Was      string   // the stored values when the form was drawn, as JSON in base64
	Problems []string // of no input
	Nothing  bool     // nothing was changed in the form
	Draft    *apply.Draft
	Others   []settings.HistoryRow // changes by others since the draft
	History  []settings.HistoryRow
	Did      *audit.Row
	GoLive   *GoLive // of a stored supplier
}

// SettingsInput is an input with what it shows.
type SettingsInput struct {
	apply.FormField

	Shown   string // as typed, else as stored; never a secret
	Typed   bool   // it is in the draft
	Problem string
	SetAt   int64 // when the stored secret was set; 0 = unknown
}

// SettingsReview is what an edit would change, before it is applied.
type SettingsReview struct {
	Section apply.Section
	Plan    *apply.Plan
	Others  []settings.HistoryRow
	Key     string
}

// SettingsMade is shown once: the secrets that were made.
type SettingsMade struct {
	Section apply.Section
	Object  settings.Object
	Secrets []MadeSecret
	Key     string // of the form of a test notification
}

// MadeSecret is a secret that the program made.
type MadeSecret struct {
	Label text.Text
	Value string
}

// NewObject is the form of a new object.
type NewObject struct {
	Section apply.Section
	Typed   map[string]string
	Problem map[string]string
	Kinds   []string // of suppliers
	Codes   []string // of merchants, for payout accounts
}

// newField is one of the fields of that form.
type newField struct {
	name        string
	label, hint text.Text
	choices     []panel.Choice // nil = it is typed
	optional    bool
}

// fields are what identifies an object of the section.
func (d NewObject) fields() (all []newField) {
	kind := d.Section.Kind
	if kind == settings.PayoutAccountKind {
		all = append(all, newField{name: "merchant", label: text.Merchant, choices: choicesOf(d.Codes)})
	}
	all = append(all, newField{name: "code", label: text.CodeWord, hint: tCodeRule})
	if kind == "merchant" || kind == "supplier" || kind == "subscription" {
		all = append(all, newField{name: "name", label: text.Name, optional: true})
	}
	switch kind {
	case "supplier":
		all = append(all, newField{name: "kind", label: text.Kind, choices: choicesOf(d.Kinds)})
	case "merchant":
		all = append(all, newField{name: "url", label: tFirstURL, hint: tFirstURLHow})
	}
	return all
}

func choicesOf(words []string) []panel.Choice {
	all := make([]panel.Choice, len(words))
	for i, word := range words {
		all[i] = panel.Choice{Value: word, Label: word}
	}
	return all
}

// group is the inputs of one part of the form.
type group struct {
	title  text.Text
	inputs []SettingsInput
}

func (d SettingsData) groups() (all []group) {
	titles := map[string]text.Text{"": d.Section.Label, "notify": tNotifySettings, "config": tProtocolSettings}
	for _, in := range d.Inputs {
		if len(all) == 0 || all[len(all)-1].title != titles[in.Group] {
			all = append(all, group{title: titles[in.Group]})
		}
		last := &all[len(all)-1]
		last.inputs = append(last.inputs, in)
	}
	return all
}

// id is the input's id in the page.
func (in SettingsInput) id() string { return "f-" + strings.ReplaceAll(in.Path, ".", "-") }

// empty reports whether the field may be left to a default that is not known here.
func (in SettingsInput) empty() bool { return in.Default == "" && !in.Required }

// secretState says whether a secret is stored, and since when.
func (in SettingsInput) secretState(p *ui.Page) string {
	switch {
	case in.Typed:
		return p.T(tSecretTyped)
	case in.Stored == 0:
		return p.T(tSecretUnset)
	case in.SetAt == 0:
		return p.T(tSecretSet)
	}
	return p.T(tSecretSetAt, p.Away(in.SetAt))
}

// hint is what to enter.
func (in SettingsInput) hint(p *ui.Page) string {
	parts := []string{strings.ReplaceAll(p.T(in.Help), "`", "")}
	switch in.Input {
	case apply.Lines:
		parts = append(parts, p.T(tPerLine))
	case apply.YAML:
		parts = append(parts, p.T(tAsYAML))
	case apply.Password, apply.Signing:
		parts = append(parts, in.secretState(p))
	}
	if in.Default != "" && in.Input != apply.Password {
		parts = append(parts, p.T(tDefaultIs, in.Default))
	} else if in.Shown == "" && in.Example != "" && in.Input != apply.Password && in.Input != apply.Signing {
		parts = append(parts, p.T(tExampleIs, in.Example))
	}
	if in.Waits {
		parts = append(parts, "("+p.T(tWaitsSecond)+")")
	}
	return strings.Join(parts, " ")
}

// attributes are those of its control.
func (in SettingsInput) attributes() templ.Attributes {
	all := templ.Attributes{"id": in.id(), "name": in.Path}
	if in.Problem != "" {
		all["aria-invalid"], all["aria-describedby"], all["autofocus"] = "true", in.id()+"-problem", true
	}
	return all
}

// choices are what a select offers.
func (in SettingsInput) choices(p *ui.Page) (all []panel.Choice) {
	if in.Shown == "" || in.empty() {
		all = append(all, panel.Choice{Label: p.T(tNotListed)})
	}
	for _, choice := range in.Choices {
		all = append(all, panel.Choice{Value: choice, Label: choiceText(p, choice)})
	}
	return all
}

// overlaps are what becomes of the stored secrets when there is a new one.
func (in SettingsInput) overlaps(p *ui.Page) (all []panel.Choice, chosen string) {
	all = []panel.Choice{{Label: p.T(tOverlapNone)}, {Value: apply.OverlapKeep, Label: p.T(tOverlapKeep)}}
	if in.Stored > 1 {
		return append(all, panel.Choice{Value: apply.OverlapEnd, Label: p.T(tOverlapEnd)}), ""
	}
	return all, apply.OverlapKeep
}

// attributes are those of a field that is typed.
func (d NewObject) attributes(f newField) templ.Attributes {
	all := templ.Attributes{"id": "new-" + f.name, "name": f.name, "value": d.Typed[f.name], "required": !f.optional}
	if d.Problem[f.name] != "" {
		all["aria-invalid"], all["autofocus"] = "true", true
	}
	return all
}

// draftLink leads to the form with a draft.
func draftLink(d apply.Draft) templ.SafeURL {
	for _, s := range apply.Sections {
		if s.Kind == d.Object.Kind {
			return settingsLink(s, d.Object)
		}
	}
	return "/settings"
}

// choiceText is a choice in the reader's language.
func choiceText(p *ui.Page, choice string) string {
	switch choice {
	case "true":
		return p.T(text.Yes)
	case "false":
		return p.T(text.No)
	}
	return choice
}

// rows is the height of a text of several lines.
func rows(shown string) string {
	n := min(max(strings.Count(shown, "\n")+2, 3), 16)
	return []string{"3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"}[n-3]
}

// titleOf names an object.
func titleOf(p *ui.Page, s apply.Section, o settings.Object) string {
	if s.One {
		return p.T(s.Label)
	}
	return p.T(s.Label) + " · " + s.Code(o)
}

func settingsLink(s apply.Section, o settings.Object) templ.SafeURL {
	return link.Settings(s.Word, s.Code(o))
}

// maySettings reports whether the navigation leads to the settings.
func maySettings(p *ui.Page) bool {
	for _, item := range p.Menu {
		if item.Path == "/settings" {
			return true
		}
	}
	return false
}

var settingsHistoryTexts = ui.ListTexts{Title: tChanges, Icon: "scroll-text", None: tNoChanges, NoneHow: tNoChangesHow}

// settingsHistoryColumns are those of the changes of an object's settings.
var settingsHistoryColumns = []ui.Column[settings.HistoryRow]{
	ui.TimeCol("at", text.Time, func(r settings.HistoryRow) *int64 { return &r.At }),
	ui.WordCol("actor", text.Actor, func(p *ui.Page, r settings.HistoryRow) string { return wording.Actor(p, r.Actor) }).As(""),
	ui.WordCol("field", tChangedFields, func(p *ui.Page, r settings.HistoryRow) string {
		if r.Field == "" {
			return p.T(tCreated)
		}
		return p.T(wording.FieldName(p, r.Object, r.Field))
	}).As("wrap small"),
	ui.WordCol("old", tBefore, func(p *ui.Page, r settings.HistoryRow) string { return wording.SettingValue(p, r.Old) }).As("wrap mono small"),
	ui.WordCol("new", tAfter, func(p *ui.Page, r settings.HistoryRow) string { return wording.SettingValue(p, r.New) }).As("wrap mono small"),
	ui.IDCol("approval", tApprovedAs, func(r settings.HistoryRow) (id, href string) {
		return r.Approval, "/approvals/" + r.Approval
	}),
	ui.TextCol("reason", text.Reason, func(r settings.HistoryRow) string { return r.Reason }).As("wrap"),
}

// SettingsHistory is the panel of the changes of an object. Values are for those who may edit it.
func SettingsHistory(p *ui.Page, rows []settings.HistoryRow) templ.Component {
	columns := settingsHistoryColumns
	if !maySettings(p) {
		columns = slices.DeleteFunc(slices.Clone(columns), func(c ui.Column[settings.HistoryRow]) bool {
			return c.Name == "old" || c.Name == "new" || c.Name == "reason"
		})
	}
	return ui.TablePanel(p, "changes-title", settingsHistoryTexts, columns, rows)
}

var differenceTexts = ui.ListTexts{Title: tDifference, Icon: "git-compare"}

// differenceColumns are those of what an edit of an object changes.
func differenceColumns(o settings.Object) []ui.Column[apply.Difference] {
	return []ui.Column[apply.Difference]{
		ui.WordCol("field", tChangedFields, func(p *ui.Page, d apply.Difference) string {
			return p.T(wording.FieldName(p, o.String(), d.Field))
		}).As("wrap small"),
		ui.WordCol("old", tBefore, func(p *ui.Page, d apply.Difference) string { return wording.SettingValue(p, d.Old) }).As("wrap mono small"),
		ui.WordCol("new", tAfter, func(p *ui.Page, d apply.Difference) string { return wording.SettingValue(p, d.New) }).As("wrap mono small"),
		ui.WordCol("how", tTakesEffect, func(p *ui.Page, d apply.Difference) string {
			if d.Waits {
				return p.T(tAfterSecond)
			}
			return p.T(tAtOnce)
		}).As(""),
	}
}

// waits reports whether a part of the plan waits for a second person.
func (r SettingsReview) waits() bool {
	for _, d := range r.Plan.Differences {
		if d.Waits {
			return true
		}
	}
	return false
}

// Texts of these pages.
var (
	tSettingsHow = text.Text{
		ZH: "渠道、商户及其余配置：与 backstop apply 相同的字段、校验和复核。",
		EN: "Suppliers, merchants and the rest: the same fields, checks and approvals as backstop apply.",
	}
	tDrafts           = text.Text{ZH: "未完成的修改", EN: "Unfinished changes"}
	tDraftSince       = text.Text{ZH: "未应用，保存于 %s", EN: "not applied, saved %s"}
	tAdd              = text.Text{ZH: "新增", EN: "Add"}
	tAddMerchant      = text.Text{ZH: "新增商户", EN: "Add a merchant"}
	tAddSupplier      = text.Text{ZH: "新增渠道", EN: "Add a supplier"}
	tAddOf            = text.Text{ZH: "新增：%s", EN: "Add: %s"}
	tMoreObjects      = text.Text{ZH: "还有 %s 个", EN: "%s more"}
	tEditSettings     = text.Text{ZH: "修改配置", EN: "Settings"}
	tProtocolSettings = text.Text{ZH: "协议参数", EN: "Protocol settings"}
	tReview           = text.Text{ZH: "查看变更", EN: "Review changes"}
	tDiscard          = text.Text{ZH: "放弃修改", EN: "Discard"}
	tNothingChanged   = text.Text{ZH: "没有任何变更。", EN: "Nothing was changed."}
	tStockKept        = text.Text{ZH: "初始库存只设置一次：当前库存从不被覆盖。", EN: "The initial stock is set once: the current stock is never overwritten."}
	tDraftShown       = text.Text{
		ZH: "这里有您于 %s 保存、尚未应用的修改。",
		EN: "This form has your changes of %s, which were not applied yet.",
	}
	tOthersChanged = text.Text{
		ZH: "您打开之后，有人修改了这些配置；您输入的内容都保留着。",
		EN: "Others changed this after you opened it. What you entered is kept.",
	}
	tIsNew         = text.Text{ZH: "尚未创建：应用之后才会保存。", EN: "This is new: nothing is stored before you apply it."}
	tSecretTyped   = text.Text{ZH: "已输入新值，尚未应用", EN: "a new value was entered and is not applied yet"}
	tSecretUnset   = text.Text{ZH: "未设置", EN: "not set"}
	tSecretSet     = text.Text{ZH: "已设置；留空则不变", EN: "set; leave it empty to keep it"}
	tSecretSetAt   = text.Text{ZH: "设置于 %s；留空则不变", EN: "set %s; leave it empty to keep it"}
	tMake          = text.Text{ZH: "生成一个新的", EN: "Make a new one"}
	tOverlap       = text.Text{ZH: "轮换期间", EN: "During rotation"}
	tOverlapNone   = text.Text{ZH: "新密钥立即替换旧密钥", EN: "the new secret replaces the stored ones"}
	tOverlapKeep   = text.Text{ZH: "同时保留当前密钥（新旧都有效）", EN: "keep the current secret beside the new one"}
	tOverlapEnd    = text.Text{ZH: "结束轮换：只留最新的密钥", EN: "end the rotation: only the newest stays"}
	tDefaultIs     = text.Text{ZH: "默认 %s", EN: "Default: %s"}
	tExampleIs     = text.Text{ZH: "例如 %s", EN: "Example: %s"}
	tWaitsSecond   = text.Text{ZH: "可能需要复核", EN: "may need a second person"}
	tAsYAML        = text.Text{ZH: "以 YAML 填写，与配置文件相同。", EN: "In YAML, as in the apply file."}
	tPerLine       = text.Text{ZH: "每行一个。", EN: "One per line."}
	tNotListed     = text.Text{ZH: "默认", EN: "Default"}
	tDifference    = text.Text{ZH: "变更内容", EN: "What changes"}
	tCreated       = text.Text{ZH: "新建", EN: "created"}
	tBefore        = text.Text{ZH: "变更前", EN: "Before"}
	tAfter         = text.Text{ZH: "变更后", EN: "After"}
	tApprovedAs    = text.Text{ZH: "复核", EN: "Approval"}
	tTakesEffect   = text.Text{ZH: "生效", EN: "Takes effect"}
	tAtOnce        = text.Text{ZH: "立即", EN: "at once"}
	tAfterSecond   = text.Text{ZH: "经第二人复核后", EN: "once a second person approves"}
	tApplied       = text.Text{ZH: "已应用。", EN: "Applied."}
	tApply         = text.Text{ZH: "应用", EN: "Apply"}
	tApplyPropose  = text.Text{ZH: "应用并提交复核", EN: "Apply and propose"}
	tApplyHow      = text.Text{ZH: "各节点在两秒内使用新配置。", EN: "All nodes use it within two seconds."}
	tBackToForm    = text.Text{ZH: "返回修改", EN: "Back to the form"}
	tMadeTitle     = text.Text{ZH: "请立即保存这些密钥", EN: "Store these secrets now"}
	tMadeHow       = text.Text{ZH: "只在此显示一次。", EN: "They are shown only here, once."}
	tTestNow       = text.Text{ZH: "发送测试通知", EN: "Send a test notification"}
	tCodeRule      = text.Text{ZH: "1 到 64 个 a-z、0-9、- 和 _，以字母或数字开头；之后不能修改。", EN: "1 to 64 of a-z, 0-9, - and _, beginning with a letter or digit. It never changes."}
	tFirstURL      = text.Text{ZH: "通知地址", EN: "Endpoint"}
	tFirstURLHow   = text.Text{ZH: "商户接收通知的地址；以后可以添加更多。", EN: "Where the merchant is notified; more can be added later."}
	tKeysMade      = text.Text{ZH: "API 密钥和签名密钥会自动生成，应用之后显示一次。", EN: "An API key and a signing secret are made, and shown once after you apply it."}
	tContinue      = text.Text{ZH: "继续", EN: "Continue"}
	tUnreadNow     = text.Text{ZH: "已存的这些值无法读取，请重新填写：%s", EN: "The stored values of these fields cannot be read; enter them again: %s"}
	tMerchantSteps = text.Text{ZH: "打开商户页", EN: "Open the merchant"}
)
