package operators

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/text"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// Person is an operator with what is open in that name.
type Person struct {
	access.Operator
	Sessions int64
	Tokens   int64
}

// Role is a role that operators can have, with its permissions.
type Role struct {
	Name string
	May  []access.Permission
}

// does says what a role is for.
func (r Role) does(p *ui.Page) string {
	if built, ok := wording.RoleDoes[r.Name]; ok {
		return p.T(built)
	}
	names := make([]string, len(r.May))
	for i, permission := range r.May {
		names[i] = p.T(wording.Permissions[permission])
	}
	return strings.Join(names, p.T(tComma))
}

// PeopleData is what the list of operators shows.
type PeopleData struct {
	People []Person
	Roles  []Role // all that there are
	Key    string
	Link   *InviteLink // of whom was just invited; nil = nobody
	Did    *audit.Row  // what the form that led here did; nil = nothing

	First       bool // the reader has just set the first password
	NoPasswords bool // people come in by the provider
	Mails       bool // a link can be mailed
}

// InviteLink is shown once, to whom invites.
type InviteLink struct {
	Name, URL string
	Until     int64  // Unix µs
	To        string // mail address; "" = it was not to be mailed
	NotMailed string // why it was not; "" = it was
}

// InvitationMail returns the mail with a link, in both languages, as nobody knows the reader's.
func InvitationMail(l *InviteLink, zone *time.Location) (title, body string) {
	until := time.UnixMicro(l.Until).In(zone).Format("2006-01-02 15:04 MST")
	title = tMailTitle.ZH + " · " + tMailTitle.EN
	for _, language := range access.Languages {
		body += fmt.Sprintf(tMailBody.In(language), l.Name, l.URL, until) + "\n\n"
	}
	return title, body
}

// personStates are what an operator can be.
var personStates = map[string]ui.State{
	"active":   {Kind: "ok", Icon: "check", Label: text.Text{ZH: "在用", EN: "Active"}},
	"one_time": {Kind: "warn", Icon: "clock", Label: text.Text{ZH: "一次性密码", EN: "One-time password"}},
	"invited":  {Kind: "info", Icon: "clock", Label: text.Text{ZH: "已邀请", EN: "Invited"}},
	"expired":  {Kind: "warn", Icon: "circle-x", Label: text.Text{ZH: "邀请已过期", EN: "Invitation expired"}},
	"disabled": {Kind: "idle", Icon: "ban", Label: text.Text{ZH: "已停用", EN: "Disabled"}},
}

func stateOf(p *ui.Page, op access.Operator) ui.State {
	word := "active"
	switch late := op.PasswordExpiresAt != nil && *op.PasswordExpiresAt <= p.Now.UnixMicro(); {
	case op.DisabledAt != nil:
		word = "disabled"
	case op.MustChange && late:
		word = "expired"
	case op.InviteHash != nil:
		word = "invited"
	case op.MustChange:
		word = "one_time"
	}
	return personStates[word]
}

func secondOf(p *ui.Page, x Person) string {
	if x.Issuer != "" {
		return p.T(tSecondThere)
	}
	if x.TOTPSince == nil {
		return p.T(tNoSecond)
	}
	return p.T(tHasSecond)
}

func personPath(name string) string { return "/operators/" + url.PathEscape(name) }

// PersonColumns are those of the list of operators.
var PersonColumns = []ui.Column[Person]{
	ui.Col("name", text.Name, ui.TextKind, func(_ *ui.Page, x Person) ui.Cell {
		return ui.Cell{Text: x.Name, Href: personPath(x.Name)}
	}).As("strong nowrap"),
	ui.Col("role", text.Role, ui.TextKind, func(p *ui.Page, x Person) ui.Cell {
		return ui.Cell{Text: string(x.Roles), Show: p.RoleNames(x.Roles.Names())}
	}),
	ui.TextCol("merchants", text.Merchants, func(x Person) string { return string(x.Merchants) }),
	ui.Col("state", text.State, ui.StateKind, func(p *ui.Page, x Person) ui.Cell { return ui.Cell{State: stateOf(p, x.Operator)} }),
	ui.WordCol("second", text.SecondFactor, secondOf),
	ui.TimeCol("signed_in", tLastSignIn, func(x Person) *int64 { return x.SignedInAt }),
	ui.CountCol("sessions", tOpenSessions, func(x Person) int64 { return x.Sessions }),
	ui.CountCol("tokens", tTokens, func(x Person) int64 { return x.Tokens }),
	ui.TimeCol("added", text.Created, func(x Person) *int64 { return &x.CreatedAt }).Optional(),
}

// People is the list of operators, with who may be invited as what.
func People(p *ui.Page, x PeopleData) templ.Component {
	invite := narrow(p, "invite-title", tInvite, "body", inviteForm(p, x))
	if x.NoPasswords {
		invite = ui.Notice(p, "info", p.T(tByGroups))
	}
	return panel.Page(p, p.T(text.Operators),
		panel.Head(p.T(text.Operators), p.T(tPeopleHow)),
		ui.If(x.Link == nil, panel.Did(p, x.Did)),
		inviteLink(p, x.Link),
		ui.If(x.First, templ.Join(ui.Notice(p, "ok", p.T(tFirst)), panel.LinkLine("/guide", p.T(tFirstLater)))),
		panel.Box("stack",
			ui.TablePanel(p, "people-title", personTexts, PersonColumns, x.People),
			panel.Box("settings",
				invite,
				panel.Section("roles-title", p.T(tRoles), "narrow", panel.Anchor("/roles", p.T(tMatrix)), roleList(p, x.Roles)),
			),
		),
	)
}

func inviteForm(p *ui.Page, x PeopleData) templ.Component {
	name := templ.Attributes{"required": true, "maxlength": "64", "autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
	mail := templ.Attributes{"type": "email", "maxlength": "254", "autocomplete": "off"}
	return panel.PostForm("/operators", panel.Guarded,
		panel.FormKey(x.Key),
		panel.Small(p.T(tInviteHow)),
		panel.BlankField(p, panel.Input{ID: "invite-name", Name: "name", Label: text.Name, Hint: p.T(tNameRule), More: name}),
		roleField(p, x.Roles, access.Viewer),
		merchantsField(p, "invite-merchants", ""),
		ui.If(x.Mails, panel.BlankField(p, panel.Input{ID: "invite-email", Name: "email", Label: tEmail, Hint: p.T(tEmailHow), More: mail})),
		ui.Reason(p, "invite-reason", text.ReasonAudit, "", false),
		panel.Code(p, "invite-code"),
		panel.Submit(p, "", tInvite),
	)
}

func merchantsField(p *ui.Page, id string, limit access.Merchants) templ.Component {
	more := templ.Attributes{"maxlength": "2000", "autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
	return panel.InputField(p, panel.Input{
		ID: id, Name: "merchants", Label: text.Merchants, Hint: p.T(tMerchantsRule), Value: string(limit), More: more,
	})
}

func inviteLink(p *ui.Page, l *InviteLink) templ.Component {
	return ui.If(l != nil, linkNotice(p, l))
}

// Roles is what each role may do.
func Roles(p *ui.Page, roles []Role) templ.Component {
	return panel.Page(p, p.T(tMatrix), panel.Head(p.T(tMatrix), p.T(tRolesHow)),
		ui.TablePanel(p, "matrix-title", ui.ListTexts{Title: tMatrix}, roleColumns(roles), access.Permissions))
}

// Welcome is the page of an invitation; an empty name = its link is no longer valid.
func Welcome(p *ui.Page, w Invited) templ.Component {
	parts := []templ.Component{ui.Notice(p, "bad", p.T(tLinkEnded)), panel.LinkLine("/login", p.T(tSignIn))}
	if w.Name != "" {
		parts = []templ.Component{
			problemNotice(p, w.Problem),
			ui.Say(p.T(tWelcomeHow, w.Name, p.RoleNames(w.Roles.Names()))),
			panel.PostForm("/invite/"+w.Token, nil, userName(w.Name), newPasswords(p, p.T(tPasswordRule), true),
				ui.Button(p, ui.Act{Label: tWelcome, Class: "primary"})),
		}
	}
	return panel.Outside(p, "welcome", tWelcome, tWelcome, append(parts, panel.Languages(""))...)
}

var personTexts = ui.ListTexts{Title: text.Operators, Icon: "users"}

// PersonData is what the page of one operator shows.
type PersonData struct {
	Person
	All      []Role // that there are
	Sessions []access.Session
	Tokens   []access.PersonalToken
	Key      string
	Link     *InviteLink
	Did      *audit.Row
	Self     bool // it is the reader's own
}

var sessionColumns = []ui.Column[access.Session]{
	ui.TextCol("device", tDevice, func(s access.Session) string { return s.Device }).As(""),
	ui.TextCol("from", text.Address, func(s access.Session) string { return s.RemoteAddr }).As("mono small").
		With(func(p *ui.Page, s access.Session) templ.Component {
			return panel.Spaced(panel.Text(s.RemoteAddr), ui.If(s.Here, ui.Styled("tag", p.T(tThisOne))))
		}),
	ui.TimeCol("started", tStarted, func(s access.Session) *int64 { return &s.StartedAt }),
	ui.TimeCol("seen", tLastSeen, func(s access.Session) *int64 { return &s.SeenAt }),
}

var endColumn = ui.TextCol("end", tEnd, func(access.Session) string { return "" }).As("nowrap").With(endOne)

var sessionTexts = ui.ListTexts{Title: tOpenSessions, Icon: "users", None: tNoSessions}

var tokenColumns = []ui.Column[access.PersonalToken]{
	ui.TimeCol("made", text.Created, func(t access.PersonalToken) *int64 { return &t.CreatedAt }),
	ui.TimeCol("used", tLastUse, func(t access.PersonalToken) *int64 { return t.UsedAt }),
	ui.TimeCol("ends", text.Expires, func(t access.PersonalToken) *int64 { return &t.ExpiresAt }),
}

var tokenTexts = ui.ListTexts{Title: tTokens, Icon: "lock", None: tNoTokens}

// PersonPage is one operator.
func PersonPage(p *ui.Page, x PersonData) templ.Component {
	path := personPath(x.Name)
	act := func(show bool, name, word string, title, how text.Text, fields ...templ.Component) templ.Component {
		return ui.If(show, panel.ReasonPanel(p, name, path+"/"+word, x.Key, title, how, append(fields, panel.Code(p, name+"-code"))...))
	}
	on, own := x.DisabledAt == nil, x.Issuer == "" // own: role and password are set here
	return ui.DetailPage(p, ui.Detail{
		List: ui.Link{Href: "/operators", Label: text.Operators}, Title: x.Name, State: stateOf(p, x.Operator),
		Notices: []templ.Component{panel.Did(p, x.Did), inviteLink(p, x.Link)},
		About:   []ui.Fact{ui.TextFact(text.Text{}, "", p.RoleNames(x.Roles.Names()))},
		Main: []templ.Component{
			ui.Facts(p, "person-title", text.Operator, append(
				rolesOf(p, x.All, x.Roles),
				ui.TextFact(tSignsInAt, "", x.Issuer).If(x.Issuer != ""),
				ui.TextFact(text.Merchants, "", strings.Join(x.Merchants.Codes(), ", ")).If(x.Merchants != ""),
				ui.TextFact(text.SecondFactor, "", secondOf(p, x.Person)),
				ui.TimeFact(tLastSignIn, x.SignedInAt), ui.TimeFact(text.Created, &x.CreatedAt), ui.TimeFact(tDisabledAt, x.DisabledAt),
				ui.TimeFact(tLinkUntil, x.PasswordExpiresAt).If(x.MustChange && on),
				ui.LinkFact(tDidWhat, p.T(text.Audit), templ.URL("/audit?actor="+url.QueryEscape(x.Name))),
			)...),
			ui.TablePanel(p, "sessions-title", sessionTexts, sessionColumns, x.Sessions),
			ui.TablePanel(p, "tokens-title", tokenTexts, tokenColumns, x.Tokens),
		},
		Side: []templ.Component{
			ui.If(x.Self, ui.Notice(p, "info", p.T(tOwnAccess))),
			act(on && own && !x.Self, "role", "role", tChangeRoles, tChangeRolesHow, roleField(p, x.All, x.Roles)),
			act(on && !x.Self, "merchants", "merchants", tChangeLimit, tChangeRolesHow, merchantsField(p, "merchants-of", x.Merchants)),
			act(on && own && !x.Self, "reset", "reset", tResetPassword, tResetHow),
			act(x.TOTPSince != nil && !x.Self, "second", "reset_second", tResetSecond, tResetSecHow),
			act(len(x.Sessions) > 0 && !x.Self, "sessions", "end_sessions", tEndSessions, tEndSessionsHow),
			act(len(x.Tokens) > 0, "tokens", "revoke_tokens", tRevokeTokens, tRevokeHow),
			act(on && !x.Self, "disable", "disable", tDisable, tDisableHow),
			act(!on, "enable", "enable", tEnable, tEnableHow),
		},
	})
}

func rolesOf(p *ui.Page, all []Role, roles access.Roles) (facts []ui.Fact) {
	for _, role := range all {
		fact := ui.TextFact(text.Role, "strong", p.T(ui.RoleText(role.Name))+" · "+role.does(p))
		facts = append(facts, fact.If(roles.Has(role.Name)))
	}
	return facts
}

// roleColumns are the permission and the roles, one column each.
func roleColumns(roles []Role) []ui.Column[access.Permission] {
	all := []ui.Column[access.Permission]{
		ui.Col("permission", tPermission, ui.TextKind, func(p *ui.Page, permission access.Permission) ui.Cell {
			return ui.Cell{Text: string(permission), Show: p.T(wording.Permissions[permission])}
		}).With(func(p *ui.Page, permission access.Permission) templ.Component {
			return panel.Spaced(panel.Text(p.T(wording.Permissions[permission])), ui.Styled("hint mono", string(permission)))
		}),
	}
	for _, role := range roles {
		all = append(all, ui.Col(role.Name, ui.RoleText(role.Name), ui.TextKind, func(p *ui.Page, permission access.Permission) ui.Cell {
			return ui.Cell{Text: cmp.Or(map[bool]string{true: "✓"}[slices.Contains(role.May, permission)], p.T(text.None))}
		}))
	}
	return all
}

// Texts of these pages.
var (
	tLastSignIn   = text.Text{ZH: "最近登录", EN: "Last sign-in"}
	tOpenSessions = text.Text{ZH: "登录中", EN: "Sessions"}
	tTokens       = text.Text{ZH: "个人令牌", EN: "Personal tokens"}
	tNoSessions   = text.Text{ZH: "没有登录", EN: "Not signed in anywhere"}
	tLastUse      = text.Text{ZH: "最近使用", EN: "Last used"}
	tNoTokens     = text.Text{ZH: "没有个人令牌", EN: "No personal tokens"}
	tSignsInAt    = text.Text{ZH: "通过身份提供方登录", EN: "Signs in at"}
	tSecondThere  = text.Text{ZH: "由身份提供方负责", EN: "Asked for by the provider"}
	tByGroups     = text.Text{
		ZH: "密码登录已关闭：属于 BACKSTOP_OIDC_ROLES 中某个组的人，首次登录时自动加入。",
		EN: "Sign-in by password is off: whoever is in a group of BACKSTOP_OIDC_ROLES is added at the first sign-in.",
	}
	tDisabledAt = text.Text{ZH: "停用时间", EN: "Disabled"}
	tLinkUntil  = text.Text{ZH: "链接或一次性密码有效至", EN: "Link or one-time password valid until"}
	tDidWhat    = text.Text{ZH: "操作记录", EN: "Activity"}
	tOwnAccess  = text.Text{
		ZH: "这是您自己：角色和停用由另一位管理员处理，密码和登录在“我的设置”里。",
		EN: "This is you: another admin changes your roles or disables you; password and sessions are in your own settings.",
	}
	tChangeRoles    = text.Text{ZH: "更改角色", EN: "Change the roles"}
	tChangeRolesHow = text.Text{ZH: "从下一次请求起生效。", EN: "Takes effect with the next request."}
	tChangeLimit    = text.Text{ZH: "限定商户", EN: "Limit to merchants"}
	tMerchantsRule  = text.Text{ZH: "商户代码，用逗号分隔；留空 = 全部商户", EN: "Codes, separated by commas; empty = all merchants"}
	tResetPassword  = text.Text{ZH: "重置密码", EN: "Reset the password"}
	tResetHow       = text.Text{ZH: "旧密码和登录立即失效；新密码通过一次性链接设置。", EN: "The password and all sessions end at once; a new one is set by a link, once."}
	tEndSessions    = text.Text{ZH: "结束登录", EN: "End the sessions"}
	tEndSessionsHow = text.Text{ZH: "需要重新登录；密码不变。", EN: "The person has to sign in again; the password stays."}
	tRevokeTokens   = text.Text{ZH: "吊销个人令牌", EN: "Revoke personal tokens"}
	tRevokeHow      = text.Text{ZH: "用这些令牌的程序会立即失去权限。", EN: "Programs that use them lose access at once."}
	tDisable        = text.Text{ZH: "停用", EN: "Disable"}
	tDisableHow     = text.Text{ZH: "登录、令牌和邀请链接立即失效；可以再启用。", EN: "Sessions, tokens and invitations end at once. It can be enabled again."}
	tEnable         = text.Text{ZH: "启用", EN: "Enable"}
	tEnableHow      = text.Text{ZH: "恢复原来的角色和密码。", EN: "With the roles and the password of before."}
	tComma          = text.Text{ZH: "、", EN: ", "}
	tPermission     = text.Text{ZH: "权限", EN: "Permission"}
	tPeopleHow      = text.Text{ZH: "谁能登录，能做什么。", EN: "Who can sign in, and what each may do."}
	tInvite         = text.Text{ZH: "邀请", EN: "Invite"}
	tInviteHow      = text.Text{ZH: "生成一次性链接，24 小时内有效，由本人设置密码。", EN: "Makes a link, valid once within 24 hours, by which the person sets a password."}
	tNameRule       = text.Text{ZH: "a-z、0-9、点、- 和 _，例如 li.hang", EN: "a-z, 0-9, dot, - and _, such as li.hang"}
	tRoles          = text.Text{ZH: "角色", EN: "Roles"}
	tRolesHow       = text.Text{
		ZH: "由权限策略和配置中的自定义角色生成。同一笔资金的提议和复核永远是两个人。",
		EN: "From the policy, and the roles of your own in the settings. Proposing and approving the same money always takes two people.",
	}
	tMatrix = text.Text{ZH: "角色与权限", EN: "Roles and permissions"}
	tFirst  = text.Text{
		ZH: "密码已设置。您现在是唯一的操作员：管理员负责安装和人员，不处理资金。请在下面邀请第一位同事；资金的提议和复核至少需要财务和财务主管各一位。",
		EN: "Your password is set. You are the only operator, and an admin decides nothing about money: invite the first colleague below. Decisions about money need two people, such as one with the role finance and a lead.",
	}
	tFirstLater = text.Text{ZH: "稍后再说，先看试用步骤", EN: "Later: see the first steps"}
	tEmail      = text.Text{ZH: "邮箱（选填）", EN: "Mail address (optional)"}
	tEmailHow   = text.Text{ZH: "填写后，链接也会发到这里。", EN: "The link is mailed there too."}
	tMailed     = text.Text{ZH: "已发到 %s。", EN: "Mailed to %s."}
	tNotMailed  = text.Text{ZH: "没能发到 %s（%s）：请用别的方式转交链接。", EN: "Not mailed to %s (%s): hand the link over in another way."}
	tMailTitle  = text.Text{ZH: "Backstop 控制台邀请", EN: "Invitation to Backstop"}
	tMailBody   = text.Text{
		ZH: "您被邀请使用 Backstop 控制台，用户名 %s。请打开下面的链接设置密码：\n\n%s\n\n链接只能用一次，有效至 %s。如果您不认识邀请人，请忽略这封邮件。",
		EN: "You are invited to the console of Backstop, as %s. Open this link to set a password:\n\n%s\n\nIt works once, until %s. If you do not expect it, ignore this mail.",
	}
	tLinkOf     = text.Text{ZH: "给 %s 的链接，只显示这一次，有效至 %s：", EN: "Link for %s, shown only now, valid until %s:"}
	tWelcome    = text.Text{ZH: "设置密码", EN: "Set your password"}
	tWelcomeHow = text.Text{ZH: "您将以 %s（%s）登录。", EN: "You sign in as %s (%s)."}
	tLinkEnded  = text.Text{ZH: "这个链接已使用、已过期或已更换，请管理员重新发送。", EN: "This link was used, has expired or was replaced: ask an admin for a new one."}
)
