package panel

import (
	"backstop/internal/base/text"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// Form asks for the reason of an act.
type Form struct {
	Name   string // of its reason
	Action string // "" = its buttons say where it goes
	Key    string
	Above  []templ.Component // above the reason
	Below  []templ.Component // below it, with the buttons
}

// FormKey makes a form act once, however often it is sent.
func FormKey(key string) templ.Component { return ui.Hidden("form_key", key) }

// Submit sends a form.
func Submit(p *ui.Page, icon string, label text.Text) templ.Component {
	return ui.Button(p, ui.Act{Icon: icon, Label: label, Class: "primary", Writes: true})
}

// ReasonPanel is the form of an act: fields are what it asks for beside the reason.
func ReasonPanel(p *ui.Page, name, action, key string, title, how text.Text, fields ...templ.Component) templ.Component {
	send := ui.Act{Label: title, Class: "primary", Writes: true}
	if name == "reject" || name == "cancel" {
		send.Class = ""
	}
	above := []templ.Component{ui.If(how != (text.Text{}), Small(p.T(how)))}
	return Body(p, name+"-title", title, Ask(p, Form{
		Name: name, Action: action, Key: key, Above: append(above, fields...), Below: []templ.Component{ui.Button(p, send)},
	}))
}

// QueryForm asks a supplier now.
func QueryForm(p *ui.Page, action templ.SafeURL, key string, title, how text.Text) templ.Component {
	return Fold(p, "ask", p.T(title), Ask(p, Form{
		Name: "ask", Action: string(action), Key: key,
		Above: []templ.Component{Small(p.T(how))}, Below: []templ.Component{Submit(p, "search", title)},
	}))
}

// OpenDialog is a button that opens a dialog.
func OpenDialog(p *ui.Page, name, icon string, label text.Text) templ.Component {
	return Opener(p, "sm", name, icon, label)
}

// Opener is OpenDialog with a class.
func Opener(p *ui.Page, class, name, icon string, label text.Text) templ.Component {
	return ui.Button(p, ui.Act{
		Icon: icon, Label: label, Class: class, Writes: true, More: templ.Attributes{"type": "button", "data-open": "#" + name},
	})
}

// asked is a form in a dialog.
type asked struct {
	name, action, key string
	title, how, send  text.Text // how zero = nothing explains it
	asks              templ.Component
	recorded          bool // it says in whose name the audit records the act
}

// AskDialog asks for the reason of an act, or for what the person has to say.
func AskDialog(p *ui.Page, name, action, key string, title, label, how, send text.Text) templ.Component {
	return dialog(p, asked{name, action, key, title, how, send, ui.Reason(p, name+"-reason", label, "", true), true})
}

// NoteDialog asks for a note.
func NoteDialog(p *ui.Page, action, key string, people []string) templ.Component {
	return dialog(p, asked{
		name: "note", action: action, key: key, title: text.Note, send: text.Note, asks: noteField(p, "note-reason", people, true),
	})
}

// passkeyScript has the script in a page once, however many of its forms need it.
var passkeyScript = templ.NewOnceHandle()

// Texts of these forms.
var (
	tPasskeyFailed = text.Text{ZH: "浏览器没有给出通行密钥，请重试。", EN: "The browser gave no passkey: try again."}
	tRecordedAs    = text.Text{ZH: "审计记录：%s", EN: "Recorded as %s"}
	tCodeAgain     = text.Text{ZH: "上次两步验证已超过 10 分钟，请再输入一次。", EN: "Your second factor was given more than 10 minutes ago: give it once more."}
	tSignInFirst   = text.Text{ZH: "您上次登录已超过 10 分钟，请先重新登录。", EN: "You signed in more than 10 minutes ago: sign in again first."}
	tSignInAt      = text.Text{ZH: "在 %s 重新登录", EN: "Sign in again at %s"}
	tMentionHow    = text.Text{ZH: "写 @用户名 可将备注发到同事的收件箱。", EN: "Write @name to send the note to a colleague's inbox."}
	tMentionWho    = text.Text{ZH: "可以提到的同事", EN: "Colleagues you can mention"}
)
