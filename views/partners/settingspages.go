package partners

import (
	"strconv"
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/settings"
	"backstop/internal/settings/apply"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// Settings lists every object that can be edited.
func Settings(p *ui.Page, x SettingsIndex) templ.Component {
	sections := []templ.Component{ui.If(len(x.Drafts) > 0, draftList(p, x.Drafts))}
	for _, s := range x.Sections {
		sections = append(sections, settingsSection(p, s))
	}
	return panel.Page(p, p.T(text.Settings), panel.Head(p.T(text.Settings), p.T(tSettingsHow)), panel.Box("stack", sections...))
}

func draftList(p *ui.Page, drafts []apply.Draft) templ.Component {
	lines := make([]templ.Component, len(drafts))
	for i, d := range drafts {
		lines[i] = panel.Line("row", objectLink(draftLink(d), d.Object.String()), ui.Styled("muted", p.T(tDraftSince, p.Away(d.At))))
	}
	return panel.Section("drafts-title", p.T(tDrafts), "", nil, panel.Box("body stack-tight", lines...))
}

func settingsSection(p *ui.Page, s SectionObjects) templ.Component {
	label := p.T(s.Label)
	button := ui.ButtonLink(p, string(link.Settings(s.Word, "")), ui.Act{Label: tEditSettings, Class: "sm"})
	if !s.One {
		more := templ.Attributes{"aria-label": p.T(tAddOf, label)}
		button = ui.ButtonLink(p, string(link.NewObject(s.Word)), ui.Act{Label: tAdd, Class: "sm", More: more})
	}
	var objects []templ.Component
	for _, code := range s.Codes {
		objects = append(objects, objectLink(link.Settings(s.Word, code), code))
	}
	if s.More > 0 {
		objects = append(objects, ui.Styled("muted", p.T(tMoreObjects, ui.Count(int64(s.More)))))
	}
	return panel.Section(s.Word, label, "", button,
		panel.Box("body stack-tight", panel.Small(p.T(s.Help)), panel.Line("row wrap", objects...)))
}

// objectLink leads to the form of an object.
func objectLink(href templ.SafeURL, name string) templ.Component {
	return panel.Linked(href, templ.Attributes{"class": "btn sm mono"}, panel.Text(name))
}

// SettingsPage is the form of one object.
func SettingsPage(p *ui.Page, d SettingsData) templ.Component {
	title, path := titleOf(p, d.Section, d.Entry.Object), string(settingsLink(d.Section, d.Entry.Object))
	fields := []templ.Component{ui.Hidden("was", d.Was), ui.Hidden("version", strconv.FormatInt(d.Entry.Version, 10))}
	for _, g := range d.groups() {
		fields = append(fields, fieldGroup(p, g))
	}
	fields = append(fields, panel.Line("row", panel.Submit(p, "", tReview)))
	discard := ui.Button(p, ui.Act{Label: tDiscard, Writes: true})
	return panel.Page(p, title,
		ui.Crumb(p, "/settings", text.Settings), panel.Head(title, ""), panel.Did(p, d.Did),
		settingsNotices(p, d), othersChanged(p, d.Others),
		panel.Box("stack",
			supplierSteps(p, d.GoLive),
			panel.PostForm(path, templ.Attributes{"class": "stack", "data-guard": true}, fields...),
			ui.If(d.Draft != nil, panel.PostForm(path+"/discard", nil, discard)),
			ui.If(d.Entry.Stored, SettingsHistory(p, d.History)),
		),
	)
}

func settingsNotices(p *ui.Page, d SettingsData) templ.Component {
	var all []templ.Component
	add := func(ok bool, kind, says string) { all = append(all, ui.If(ok, ui.Notice(p, kind, says))) }
	add(!d.Entry.Stored, "info", p.T(tIsNew))
	if d.Draft != nil && len(d.Draft.Typed) > 0 {
		add(true, "info", p.T(tDraftShown, p.Short(d.Draft.At)))
	}
	add(d.Nothing, "info", p.T(tNothingChanged))
	add(d.Section.Kind == "sku" && d.Entry.Stored, "info", p.T(tStockKept))
	add(len(d.Entry.Unread) > 0, "bad", p.T(tUnreadNow, strings.Join(d.Entry.Unread, ", ")))
	for _, problem := range d.Problems {
		add(true, "bad", problem)
	}
	return templ.Join(all...)
}

// othersChanged is what others changed since the form was opened.
func othersChanged(p *ui.Page, rows []settings.HistoryRow) templ.Component {
	return ui.If(len(rows) > 0, templ.Join(ui.Notice(p, "warn", p.T(tOthersChanged)), SettingsHistory(p, rows)))
}

// SettingsReviewed shows what an edit changes, and applies it.
func SettingsReviewed(p *ui.Page, r SettingsReview) templ.Component {
	path, send := string(settingsLink(r.Section, r.Plan.Object)), tApply
	if r.waits() {
		send = tApplyPropose
	}
	return panel.Page(p, p.T(tDifference),
		ui.Crumb(p, path, tBackToForm), panel.Head(titleOf(p, r.Section, r.Plan.Object), ""), othersChanged(p, r.Others),
		panel.Box("stack",
			ui.TablePanel(p, "difference-title", differenceTexts, differenceColumns(r.Plan.Object), r.Plan.Differences),
			panel.Section("apply-title", p.T(tApply), "narrow", nil, panel.Box("body", panel.PostForm(path+"/review", panel.Guarded,
				panel.FormKey(r.Key),
				ui.Hidden("version", strconv.FormatInt(r.Plan.Version, 10)),
				panel.Small(p.T(tApplyHow)),
				panel.Code(p, "apply-code"),
				ui.Reason(p, "apply-reason", text.ReasonAudit, "", false),
				panel.Submit(p, "", send),
			))),
		),
	)
}

// SettingHistory is the page of the changes of one object, for whoever approves them.
func SettingHistory(p *ui.Page, s apply.Section, o settings.Object, rows []settings.HistoryRow) templ.Component {
	return panel.Page(p, titleOf(p, s, o), ui.Crumb(p, "/approvals", text.Approvals), panel.ListHead(titleOf(p, s, o)),
		ui.TablePanel(p, "changes-title", settingsHistoryTexts, settingsHistoryColumns, rows))
}

// SettingsSecrets shows the secrets that were made, once.
func SettingsSecrets(p *ui.Page, m SettingsMade) templ.Component {
	secrets := make([]templ.Component, len(m.Secrets))
	for i, s := range m.Secrets {
		secrets[i] = panel.Box("", panel.Paragraph("strong", p.T(s.Label)), ui.Copied(p, s.Value))
	}
	parts := []templ.Component{made(p, secrets...)}
	if merchant := link.Merchant(m.Object.ID); m.Section.Kind == "merchant" {
		parts = append(parts,
			panel.Box("narrow", panel.ReasonPanel(p, "ping", string(merchant)+"/ping", m.Key, tTestNow, tPingHow)),
			panel.Line("", ui.ButtonLink(p, string(merchant), ui.Act{Label: tMerchantSteps})))
	}
	return panel.Page(p, p.T(tMadeTitle),
		ui.Crumb(p, string(settingsLink(m.Section, m.Object)), tBackToForm), panel.Head(titleOf(p, m.Section, m.Object), ""),
		ui.Notice(p, "ok", p.T(tApplied)), panel.Box("stack", parts...))
}

// made shows secrets that are nowhere else.
func made(p *ui.Page, secrets ...templ.Component) templ.Component {
	return panel.Section("made-title", p.T(tMadeTitle), "", nil,
		panel.Box("body stack", append([]templ.Component{ui.Say(p.T(tMadeHow))}, secrets...)...))
}

// SettingsNew asks for what identifies a new object.
func SettingsNew(p *ui.Page, d NewObject) templ.Component {
	title := p.T(tAddOf, p.T(d.Section.Label))
	var parts []templ.Component
	for _, f := range d.fields() {
		parts = append(parts, newInput(p, d, f))
	}
	parts = append(parts, ui.If(d.Section.Kind == "merchant", panel.Small(p.T(tKeysMade))), panel.Submit(p, "", tContinue))
	return panel.Page(p, title, ui.Crumb(p, "/settings", text.Settings), panel.Head(title, ""),
		panel.Labelled(title, "narrow", panel.Box("body", panel.PostForm(string(link.NewObject(d.Section.Word)), panel.Guarded, parts...))))
}

// settingsButton leads to a form of the settings.
func settingsButton(p *ui.Page, href templ.SafeURL, label text.Text) templ.Component {
	return ui.If(maySettings(p), ui.ButtonLink(p, string(href), ui.Act{Icon: "settings", Label: label}))
}
