package operators

import (
	"fmt"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/text"
	"backstop/internal/passkey"
	"backstop/views/panel"
	"backstop/views/ui"

	"github.com/a-h/templ"
	"github.com/boombuler/barcode/qr"
)

// Second is what the pages of the second factor show.
type Second struct {
	Next     string // where the sign-in leads
	Problem  CodeProblem
	Offer    *access.Offer // to set up; nil = there is one
	QR       QR
	Since    *int64
	Left     int      // recovery codes
	Recovery []string // shown once; nil = not now
	Required bool     // by the role

	Passkeys []passkey.Passkey
	Question *passkey.Question // for a passkey; nil = none is asked for
}

// GiveSecond asks for the second factor after the password.
func GiveSecond(p *ui.Page, x Second) templ.Component {
	next := ui.Hidden("next", x.Next)
	byCode := panel.PostForm("/second", tight, next, codeField(p, "code", true), ui.Button(p, ui.Act{Label: tContinue, Class: "primary"}))
	return panel.Page(p, p.T(text.SecondFactor),
		panel.Head(p.T(text.SecondFactor), p.T(tSecondHow)), codeNotice(p, x.Problem),
		panel.Labelled(p.T(text.SecondFactor), "narrow", panel.Box("body",
			byCode, givePasskey(p, "/second", x.Question, text.GivePasskey, next),
		)),
	)
}

// passkeyAsk is a form that asks for a passkey.
type passkeyAsk struct {
	action string
	use    string // "get" or "create"
	names  string // what the names of its fields begin with
	label  text.Text
}

// givePasskey asks for a passkey that there is; no question = it is not asked for.
func givePasskey(p *ui.Page, action string, q *passkey.Question, label text.Text, next templ.Component) templ.Component {
	return ui.If(q != nil, passkeyForm(p, passkeyAsk{action, "get", "passkey_", label}, q, next))
}

func removePasskey(p *ui.Page, k passkey.Passkey) templ.Component {
	more := templ.Attributes{"name": "passkey", "value": k.ID, "aria-label": p.T(tRemoveWhich, k.Device)}
	return panel.PostForm("/me/second/passkeys/remove", nil, ui.Button(p, ui.Act{Label: tRemovePasskey, Class: "sm", More: more}))
}

func codeNotice(p *ui.Page, problem CodeProblem) templ.Component {
	return ui.If(problem.Text != (text.Text{}), ui.Notice(p, "bad", problem.in(p)))
}

func codeField(p *ui.Page, id string, focus bool) templ.Component {
	return panel.BlankField(p, panel.Input{ID: id, Name: "code", Label: text.SecondCode, More: templ.Attributes{
		"required": true, "maxlength": "32", "inputmode": "numeric", "autocomplete": "one-time-code", "autofocus": focus,
	}})
}

// codeForm does something with the second factor, by a code.
func codeForm(p *ui.Page, path, id string, label text.Text) templ.Component {
	return panel.PostForm("/me/second/"+path, tight, codeField(p, id, false), ui.Button(p, ui.Act{Label: label}))
}

// tight are the attributes of a form whose rows are close together.
var tight = templ.Attributes{"class": "stack-tight"}

// SetUpSecond is where a person sets up the second factor, sees the recovery codes, or removes it.
func SetUpSecond(p *ui.Page, x Second) templ.Component {
	parts := []templ.Component{
		panel.Headed(p.T(text.SecondFactor), panel.LinkLine("/me", p.T(text.Account))), codeNotice(p, x.Problem),
	}
	switch {
	case x.Offer != nil:
		parts = append(parts, ui.If(x.Required, ui.Notice(p, "warn", p.T(tMustSetUp))), offered(p, x))
	case x.Recovery != nil:
		goOn := ui.ButtonLink(p, "/", ui.Act{Label: tContinue, Class: "primary"})
		parts = append(parts, narrow(p, "recovery", tRecovery, "body stack-tight",
			ui.Say(p.T(tRecoveryHow)), ui.Copied(p, strings.Join(x.Recovery, "\n")), panel.Line("", goOn)))
	case x.Since != nil:
		parts = append(parts, narrow(p, "second", text.SecondFactor, "body stack-tight",
			ui.Say(p.T(tSecondSince, p.Short(*x.Since))), ui.Say(p.T(tRecoveryLeft, x.Left)),
			codeForm(p, "codes", "renew-code", tRenew),
			ui.If(!x.Required, codeForm(p, "remove", "remove-code", tRemove)),
		), passkeys(p, x))
	}
	return panel.Page(p, p.T(text.SecondFactor), parts...)
}

// offered is a second factor to set up.
func offered(p *ui.Page, x Second) templ.Component {
	return narrow(p, "set-up", tSetUp, "body stack-tight",
		ui.Say(p.T(tSetUpHow)), drawQR(p, x.QR), panel.Small(p.T(tKey)), ui.Copied(p, x.Offer.Secret),
		panel.PostForm("/me/second", tight, ui.Hidden("sealed", x.Offer.Sealed), codeField(p, "code", false),
			ui.Button(p, ui.Act{Label: tSetUp, Class: "primary"})),
	)
}

// passkeys are those of the person, and the form of a new one.
func passkeys(p *ui.Page, x Second) templ.Component {
	ask := passkeyAsk{"/me/second/passkeys", "create", "", tAddPasskey}
	list := ui.PlainRows(p, ui.Rowed(p, passkeyColumns, x.Passkeys), tPasskeys)
	add := ui.If(x.Question != nil, passkeyForm(p, ask, x.Question, panel.Code(p, "passkey-code")))
	return ui.If(x.Question != nil || len(x.Passkeys) > 0, panel.Section("passkeys", p.T(tPasskeys), "narrow", nil,
		ui.If(len(x.Passkeys) > 0, list), panel.Box("body stack-tight", ui.Say(p.T(tPasskeysHow)), add)))
}

var passkeyColumns = []ui.Column[passkey.Passkey]{
	ui.TextCol("device", tDevice, func(k passkey.Passkey) string { return k.Device }).As("nowrap"),
	ui.TimeCol("added", text.Created, func(k passkey.Passkey) *int64 { return &k.CreatedAt }),
	ui.TimeCol("used", tLastSeen, func(k passkey.Passkey) *int64 { return k.UsedAt }),
	ui.TextCol("remove", tRemovePasskey, func(passkey.Passkey) string { return "" }).As("nowrap").With(removePasskey),
}

// CodeProblem is what is wrong with a code; the zero value = nothing.
type CodeProblem struct {
	Text text.Text
	Off  time.Duration // of the device's clock
}

// Args are those of the text.
func (x CodeProblem) Args() []any {
	if x.Off == 0 {
		return nil
	}
	return []any{int(x.Off.Round(time.Minute) / time.Minute)}
}

func (x CodeProblem) in(p *ui.Page) string { return p.T(x.Text, x.Args()...) }

// QR is a code in units: Path draws its dark squares on a square of Size.
type QR struct {
	Size int
	Path string
}

// NewQR returns the QR code of a text, with the quiet zone that readers need (ISO 18004: 4 units).
func NewQR(content string) (QR, error) {
	const quiet = 4
	code, err := qr.Encode(content, qr.M, qr.Auto)
	if err != nil {
		return QR{}, fmt.Errorf("draw a QR code: %w", err)
	}
	var path strings.Builder
	side := code.Bounds().Dx()
	for y := range side {
		for x := range side {
			if r, _, _, _ := code.At(x, y).RGBA(); r == 0 {
				fmt.Fprintf(&path, "M%d %dh1v1h-1z", x+quiet, y+quiet)
			}
		}
	}
	return QR{Size: side + 2*quiet, Path: path.String()}, nil
}

// Texts of these pages.
var (
	tSecondHow = text.Text{
		ZH: "请输入验证器应用现在显示的六位数字；手机不在身边时，用一个恢复码。",
		EN: "Type the six digits that your authenticator app shows now, or a recovery code if you do not have it with you.",
	}
	tContinue = text.Text{ZH: "继续", EN: "Continue"}
	tSetUpHow = text.Text{
		ZH: "用验证器应用扫描二维码，或输入密钥，再输入它显示的六位数字。",
		EN: "Scan the code with an authenticator app, or type the key into it. Then type the six digits that it shows.",
	}
	tKey         = text.Text{ZH: "密钥", EN: "Key"}
	tQR          = text.Text{ZH: "二维码", EN: "QR code"}
	tSetUp       = text.Text{ZH: "设置两步验证", EN: "Set up a second factor"}
	tMustSetUp   = text.Text{ZH: "您的角色必须有两步验证：请先设置，才能继续。", EN: "Your role requires a second factor: set it up to continue."}
	tSecondSince = text.Text{
		ZH: "已设置，自 %s。登录时、复核资金和管理人员前需要验证码。",
		EN: "Set up since %s. Signing in asks for a code, and so do approvals and changes of people.",
	}
	tRecovery    = text.Text{ZH: "恢复码", EN: "Recovery codes"}
	tRecoveryHow = text.Text{
		ZH: "只显示这一次，每个只能用一次。请打印或存入密码管理器。",
		EN: "Shown only now, each works once. Print them or keep them in a password manager.",
	}
	tRecoveryLeft = text.Text{ZH: "还剩 %d 个恢复码。", EN: "%d recovery codes are left."}
	tPasskeys     = text.Text{ZH: "通行密钥", EN: "Passkeys"}
	tPasskeysHow  = text.Text{
		ZH: "代替验证码，登录时也代替密码：指纹、面容、设备密码或安全密钥。验证器应用仍然保留。",
		EN: "Given instead of a code and, when signing in, of the password: fingerprint, face, the device's PIN or a security key. The authenticator app stays.",
	}
	tAddPasskey    = text.Text{ZH: "添加通行密钥", EN: "Add a passkey"}
	tRemovePasskey = text.Text{ZH: "删除", EN: "Remove"}
	tRemoveWhich   = text.Text{ZH: "删除 %s 的通行密钥", EN: "Remove the passkey of %s"}
	tRenew         = text.Text{ZH: "更换恢复码", EN: "Replace the recovery codes"}
	tRemove        = text.Text{ZH: "取消两步验证", EN: "Remove the second factor"}
	tHasSecond     = text.Text{ZH: "已设置", EN: "Set up"}
	tNoSecond      = text.Text{ZH: "未设置", EN: "None"}
	tResetSecond   = text.Text{ZH: "重置两步验证", EN: "Reset the second factor"}
	tResetSecHow   = text.Text{
		ZH: "手机丢失时用：登录立即失效，下次登录只需密码，再重新设置。",
		EN: "For a lost phone: all sessions end, the next sign-in needs the password only, and a new one can be set up.",
	}
)
