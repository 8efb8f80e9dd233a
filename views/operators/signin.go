package operators

import (
	"time"

	"backstop/internal/access"
	"backstop/internal/base/text"
	"backstop/internal/passkey"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// Problem is what was wrong with a form, for its page to say.
type Problem string

// Problems.
const (
	WrongLogin   Problem = "wrong_login"
	WrongPasskey Problem = "wrong_passkey"
	TooMany      Problem = "too_many"
	// PasswordExpired is of a one-time password that was not used in time.
	PasswordExpired Problem = "password_expired"
	Foreign         Problem = "foreign"
	OldWrong        Problem = "old_wrong"
	NewBad          Problem = "new_bad"
	NewCommon       Problem = "new_common"
	NotSame         Problem = "not_same"
	BadChoice       Problem = "bad_choice"
	MustChange      Problem = "must_change"
	ChoicesKept     Problem = "kept" // none: all went well
	// Of sign-ins at a provider.
	ProviderAway     Problem = "provider_away"
	ProviderState    Problem = "provider_state"
	ProviderDenied   Problem = "provider_denied"
	ProviderToken    Problem = "provider_token"
	ProviderNotFresh Problem = "provider_not_fresh"
	PasswordsOff     Problem = "passwords_off"
	OthersEnded      Problem = "ended"
)

// Problems are how each looks and reads.
var Problems = map[Problem]struct {
	Kind  string
	Label text.Text
}{
	WrongLogin: {"bad", text.Text{ZH: "用户名或密码不正确。", EN: "Wrong user name or password."}},
	WrongPasskey: {"bad", text.Text{
		ZH: "通行密钥未被接受：请重试，或用密码登录。",
		EN: "The passkey was not accepted: try again, or sign in by password.",
	}},
	PasswordExpired: {"bad", text.Text{
		ZH: "一次性密码已过期，请管理员用 backstop operator reset-password 重新生成。",
		EN: "The one-time password has expired: ask an administrator for a new one (backstop operator reset-password).",
	}},
	Foreign: {
		"bad",
		text.Text{ZH: "请求来自别的网站，已拒绝。请在本页重试。", EN: "The request came from another site and was refused. Try again on this page."},
	},
	OldWrong: {"bad", text.Text{ZH: "当前密码不正确。", EN: "The current password is wrong."}},
	NewBad: {"bad", text.Text{
		ZH: "新密码需要 12 到 256 个字符，且不能与旧密码相同。",
		EN: "The new password needs 12 to 256 characters and must differ from the old one.",
	}},
	NewCommon: {"bad", text.Text{
		ZH: "这个密码太常见，或由常见密码拼成，会最先被猜到：请换一个，例如几个不相关的词。",
		EN: "This password is a common one, or made of one, and is guessed first: take another one, such as a few unrelated words.",
	}},
	NotSame:   {"bad", text.Text{ZH: "两次输入的新密码不同。", EN: "The two new passwords differ."}},
	BadChoice: {"bad", text.Text{ZH: "没有这个选项：请检查时区的名称。", EN: "Invalid choice: check the name of the time zone."}},
	MustChange: {"warn", text.Text{
		ZH: "这是一次性密码。请先设置您自己的密码，才能继续。",
		EN: "This is a one-time password. Set your own password to continue.",
	}},
	ProviderAway: {"bad", text.Text{
		ZH: "身份提供方现在无法访问，请稍后再试。已登录的会话不受影响。",
		EN: "The identity provider cannot be reached now: try again later. Running sessions go on.",
	}},
	ProviderState: {"bad", text.Text{
		ZH: "这次登录已过期、已用过，或不是从这个浏览器开始的。请重新登录。",
		EN: "This sign-in has expired, was used already, or was begun in another browser. Sign in again.",
	}},
	ProviderDenied: {"bad", text.Text{ZH: "身份提供方没有完成登录。请重新登录。", EN: "The identity provider did not complete the sign-in. Sign in again."}},
	ProviderToken: {"bad", text.Text{
		ZH: "身份提供方的应答无效，原因在服务的日志里。请联系管理员。",
		EN: "The identity provider's answer is not valid; the log of the server says why. Ask an administrator.",
	}},
	ProviderNotFresh: {"bad", text.Text{
		ZH: "身份提供方没有说明您刚刚登录过（auth_time）。请联系管理它的人。",
		EN: "The identity provider does not say that you have signed in just now (auth_time). Ask whoever manages it.",
	}},
	PasswordsOff: {"bad", text.Text{ZH: "密码登录已关闭：请通过身份提供方登录。", EN: "Sign-in by password is off: sign in at the identity provider."}},
	ChoicesKept:  {"ok", text.Saved},
	OthersEnded:  {"ok", text.Text{ZH: "其他登录已结束。", EN: "Your other sessions were ended."}},
}

// Invited is what the page of an invitation shows.
type Invited struct {
	Name, Token string
	Roles       access.Roles
	Problem     Problem
}

// Login is what the page for signing in shows.
type Login struct {
	Name    string
	Next    string // where to go afterwards
	Problem Problem
	Wait    time.Duration // with TooMany
	// Provider is the host at which one can sign in; "" = by password only.
	Provider    string
	NoPasswords bool              // but for the operator for emergencies
	Passkey     *passkey.Question // of whoever signs in; nil = nobody can by one
}

// SignIn is the page for signing in.
func SignIn(p *ui.Page, l Login) templ.Component {
	problem := problemNotice(p, l.Problem)
	if l.Problem == TooMany {
		problem = ui.Notice(p, "warn", p.T(tTooMany, l.wait(p)))
	}
	atProvider := panel.Linked(link.SignIn(l.Next, false), templ.Attributes{"class": "btn primary"}, panel.Text(p.T(tAtProvider, l.Provider)))
	form := templ.Join(byPassword(p, l), panel.Small(p.T(tFirstHint)))
	if l.NoPasswords {
		form = emergency(p, l)
	}
	return panel.Outside(p, "signin", tSignIn, tSignInLong,
		problem,
		ui.If(l.Provider != "", panel.Line("", atProvider)),
		givePasskey(p, "/login/passkey", l.Passkey, tByPasskey, ui.Hidden("next", l.Next)),
		form,
		panel.Languages("/login"),
	)
}

// problemNotice says what was wrong with a form; "" = nothing was.
func problemNotice(p *ui.Page, problem Problem) templ.Component {
	return ui.If(problem != "", ui.Notice(p, Problems[problem].Kind, p.T(Problems[problem].Label)))
}

func byPassword(p *ui.Page, l Login) templ.Component {
	send := ui.Act{Label: tSignIn}
	if l.Provider == "" {
		send.Class = "primary"
	}
	name := templ.Attributes{
		"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false", "required": true, "maxlength": "64",
		"autofocus": l.Provider == "",
	}
	password := templ.Attributes{"type": "password", "autocomplete": "current-password", "required": true, "maxlength": "1024"}
	return panel.PostForm("/login", nil,
		ui.Hidden("next", l.Next),
		panel.InputField(p, panel.Input{ID: "name", Label: tName, Value: l.Name, More: name}),
		panel.BlankField(p, panel.Input{ID: "password", Label: tPassword, More: password}),
		ui.Button(p, send),
	)
}

// NotAdmitted says why a person whom the provider lets in may not come in here, and whom to ask.
func NotAdmitted(p *ui.Page, reason string) templ.Component {
	return panel.Outside(p, "signin", tNotAdmitted, tNotAdmitted,
		ui.Notice(p, "bad", reason), panel.LinkLine(link.SignIn("/", true), p.T(tAsAnother)))
}

// SignedOut goes on to the provider, to end the person's session there.
func SignedOut(p *ui.Page, provider, to string) templ.Component {
	return panel.Outside(p, "signin", tSignedOut, tSignedOut,
		ui.Say(p.T(tOutThere, provider)), panel.LinkLine(templ.URL(to), p.T(tGoOn, provider)))
}

func (l Login) wait(p *ui.Page) string {
	// Rounded up to whole seconds, so that it never says "try again in 0 s".
	return p.Took((l.Wait + time.Second - 1).Truncate(time.Second))
}

// Texts of these pieces.
var (
	tSignIn     = text.Text{ZH: "登录", EN: "Sign in"}
	tSignInLong = text.Text{ZH: "登录控制台", EN: "Sign in to the console"}
	tName       = text.Text{ZH: "用户名", EN: "Name"}
	tPassword   = text.Text{ZH: "密码", EN: "Password"}
	tAtProvider = text.Text{ZH: "通过 %s 登录", EN: "Sign in with %s"}
	tByPasskey  = text.Text{ZH: "用通行密钥登录", EN: "Sign in with a passkey"}
	tEmergency  = text.Text{ZH: "紧急登录", EN: "Emergency sign-in"}
	tEmergHow   = text.Text{
		ZH: "只有一位指定的操作员能用密码登录，每次都会告警。",
		EN: "One operator only may sign in by password. Each time raises an alert.",
	}
	tNotAdmitted = text.Text{ZH: "不能登录", EN: "You cannot sign in"}
	tAsAnother   = text.Text{ZH: "以其他身份登录", EN: "Sign in as somebody else"}
	tSignedOut   = text.Text{ZH: "已退出登录", EN: "Signed out"}
	tOutThere    = text.Text{ZH: "这里的登录已结束。正在前往 %s，在那里也退出登录。", EN: "Your session here has ended. Going on to %s to end the one there too."}
	tGoOn        = text.Text{ZH: "前往 %s", EN: "Go on to %s"}
	tTooMany     = text.Text{ZH: "尝试次数过多，请 %s后再试。", EN: "Too many attempts: wait %s and try again."}
	tFirstHint   = text.Text{
		ZH: "admin 的一次性密码：首次启动时打印在服务的输出里；设置了 BACKSTOP_ADMIN_PASSWORD_FILE 时，是该文件里的密码。",
		EN: "The server prints the one-time password of admin at its first start; if BACKSTOP_ADMIN_PASSWORD_FILE is set, it is the one in that file.",
	}
)
