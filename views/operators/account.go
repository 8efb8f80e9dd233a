// Package operators draws the pages of operators: their settings, and the audit of their acts.
package operators

import (
	"strconv"
	"strings"

	"backstop/internal/access"
	"backstop/internal/base/text"
	"backstop/views/panel"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// Account is what one's own settings show.
type Account struct {
	Language, Theme, Zone string // as chosen, "" = no choice
	DefaultZone           string
	Rows                  int // of lists, a page
	Sessions              []access.Session
	Problem               Problem
	// Forced says that the password must be changed before anything else.
	Forced bool
}

// zones are suggestions; any name of the IANA list is accepted.
var zones = strings.Fields("Asia/Shanghai Asia/Hong_Kong Asia/Taipei Asia/Tokyo Asia/Singapore Asia/Kolkata Asia/Dubai" +
	" Europe/London Europe/Berlin Europe/Paris America/New_York America/Chicago America/Los_Angeles America/Sao_Paulo Australia/Sydney UTC")

// Me is a person's own settings.
func Me(p *ui.Page, a Account) templ.Component {
	second := panel.Anchor("/me/second", p.T(tSetUpOrChange))
	return panel.Page(p, p.T(text.Account),
		panel.Head(p.T(text.Account), p.User+" · "+p.T(text.Role)+" "+p.OwnRoles()),
		ui.If(a.Problem != "", templ.Join(problemNotice(p, a.Problem), ui.Say(""))),
		panel.Box("settings",
			ui.If(!a.Forced, narrow(p, "choices", text.Account, "body", choicesForm(p, a))),
			panel.Box("stack",
				ui.If(!a.Forced, sessions(p, a.Sessions)),
				ui.If(p.Provider != "", ui.Notice(p, "info", p.T(tSetThere, p.Provider))),
				ui.If(p.Provider == "" && !a.Forced, narrow(p, "second-factor", text.SecondFactor, "body", second)),
				ui.If(p.Provider == "", narrow(p, "new-password", tNewPassword, "body", passwordForm(p))),
			),
		),
	)
}

// narrow is a panel as wide as a form.
func narrow(p *ui.Page, id string, title text.Text, class string, parts ...templ.Component) templ.Component {
	return panel.Section(id, p.T(title), "narrow", nil, panel.Box(class, parts...))
}

func choicesForm(p *ui.Page, a Account) templ.Component {
	density := ui.Comfortable
	if p.Compact {
		density = ui.Compact
	}
	var rows []panel.Choice
	for _, n := range access.PageRows {
		rows = append(rows, panel.Choice{Value: strconv.Itoa(n), Label: strconv.Itoa(n)})
	}
	return panel.PostForm("/me", nil,
		panel.SelectField(p, panel.Input{ID: "language", Label: tLanguage, Value: a.Language},
			panel.Choice{Label: p.T(tByBrowser)},
			panel.Choice{Value: "zh", Label: ui.NameZH, More: templ.Attributes{"lang": "zh-CN"}},
			panel.Choice{Value: "en", Label: ui.NameEN, More: templ.Attributes{"lang": "en"}}),
		panel.SelectField(p, panel.Input{ID: "theme", Label: tTheme, Value: a.Theme},
			panel.Choice{Label: p.T(tByBrowser)},
			panel.Choice{Value: "light", Label: p.T(text.Light)},
			panel.Choice{Value: "dark", Label: p.T(text.Dark)}),
		zoneField(p, a),
		panel.SelectField(p, panel.Input{ID: "density", Label: ui.RowHeight, Hint: p.T(tRowHeightHow), Value: density},
			panel.Choice{Value: ui.Comfortable, Label: p.T(ui.ComfortableRows)},
			panel.Choice{Value: ui.Compact, Label: p.T(ui.CompactRows)}),
		panel.SelectField(p, panel.Input{ID: "rows", Label: tRowsPerPage, Value: strconv.Itoa(a.Rows)}, rows...),
		ui.Button(p, ui.Act{Label: text.Save, Class: "primary"}),
	)
}

func passwordForm(p *ui.Page) templ.Component {
	old := templ.Attributes{"type": "password", "autocomplete": "current-password", "required": true, "maxlength": "1024"}
	return panel.PostForm("/me/password", nil,
		userName(p.User),
		panel.BlankField(p, panel.Input{ID: "old", Label: tOldPassword, More: old}),
		newPasswords(p, p.T(tPasswordRule)+" "+p.T(tEndsOthers), false),
		ui.Button(p, ui.Act{Label: text.Save, Class: "primary"}),
	)
}

// newPasswords asks for a new password, twice.
func newPasswords(p *ui.Page, hint string, focus bool) templ.Component {
	more := func(focus bool) templ.Attributes {
		return templ.Attributes{
			"type": "password", "autocomplete": "new-password", "required": true, "minlength": "12", "maxlength": "256",
			"autofocus": focus,
		}
	}
	return templ.Join(
		panel.BlankField(p, panel.Input{ID: "new", Label: tNewPassword1, Hint: hint, More: more(focus)}),
		panel.BlankField(p, panel.Input{ID: "again", Label: tNewPassword2, More: more(false)}),
	)
}

// sessions are the user's devices that are signed in.
func sessions(p *ui.Page, all []access.Session) templ.Component {
	endOthers := panel.PostForm("/me/sessions/end", nil, ui.Button(p, ui.Act{Label: tEndOthers, Class: "sm"}))
	return panel.Section("sessions", p.T(tSessions), "narrow", nil,
		ui.PlainRows(p, ui.Rowed(p, append(sessionColumns, endColumn), all), tSessions),
		ui.If(len(all) > 1, panel.Footer(endOthers)))
}

// endOne ends a session that is not this one.
func endOne(p *ui.Page, s access.Session) templ.Component {
	more := templ.Attributes{"name": "session", "value": s.Hash, "aria-label": p.T(tEndOne, s.Device, s.RemoteAddr)}
	return ui.If(!s.Here, panel.PostForm("/me/sessions/end", nil, ui.Button(p, ui.Act{Label: tEnd, Class: "sm", More: more})))
}

// Texts of this page.
var (
	tNewPassword   = text.Text{ZH: "设置新密码", EN: "Set a new password"}
	tOldPassword   = text.Text{ZH: "当前密码", EN: "Current password"}
	tNewPassword1  = text.Text{ZH: "新密码", EN: "New password"}
	tNewPassword2  = text.Text{ZH: "再次输入新密码", EN: "New password again"}
	tPasswordRule  = text.Text{ZH: "12 到 256 个字符。", EN: "12 to 256 characters."}
	tSetThere      = text.Text{ZH: "您通过 %s 登录：密码和两步验证在那里设置。", EN: "You sign in at %s: password and second factor are set there."}
	tEndsOthers    = text.Text{ZH: "修改密码会结束您的其他登录。", EN: "A new password ends your other sessions."}
	tLanguage      = text.Text{ZH: "语言", EN: "Language"}
	tTheme         = text.Text{ZH: "主题", EN: "Theme"}
	tByBrowser     = text.Text{ZH: "跟随浏览器", EN: "Same as the browser"}
	tByDefault     = text.Text{ZH: "默认（%s）", EN: "Default (%s)"}
	tZoneHint      = text.Text{ZH: "IANA 名称，例如 Asia/Shanghai；留空则使用默认值。", EN: "IANA name such as Asia/Shanghai; leave empty for the default."}
	tRowHeightHow  = text.Text{ZH: "只对当前浏览器生效。", EN: "For this browser only."}
	tRowsPerPage   = text.Text{ZH: "每页行数", EN: "Rows per page"}
	tSessions      = text.Text{ZH: "我的登录", EN: "My sessions"}
	tSetUpOrChange = text.Text{ZH: "设置、更换恢复码或取消", EN: "Set up, replace recovery codes, or remove"}
	tStarted       = text.Text{ZH: "登录时间", EN: "Signed in"}
	tLastSeen      = text.Text{ZH: "最近使用", EN: "Last used"}
	tThisOne       = text.Text{ZH: "当前设备", EN: "This session"}
	tEnd           = text.Text{ZH: "结束", EN: "End"}
	tEndOne        = text.Text{ZH: "结束 %s %s 的登录", EN: "End the session of %s at %s"}
	tDevice        = text.Text{ZH: "设备", EN: "Device"}
	tEndOthers     = text.Text{ZH: "结束其他登录", EN: "Sign out other sessions"}
)
