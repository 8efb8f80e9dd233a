package panel

import (
	"backstop/internal/base/text"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// Unmask is how a page's reader may see what it masks.
type Unmask struct {
	Path  string // where the form goes; "" = the reader may not
	Key   string // of the form
	Until int64  // when the page masks it again; 0 = it is masked
	Done  bool   // the form of this address showed it before
}

func (u Unmask) offered() bool { return u.Path != "" && u.Until == 0 }

// UnmaskNotice says until when the page shows what is masked, or that it did.
func UnmaskNotice(p *ui.Page, u Unmask) templ.Component {
	return templ.Join(
		ui.If(u.Done, ui.Notice(p, "warn", p.T(tDoneUnmask))),
		ui.If(u.Until > 0, ui.Notice(p, "warn", p.T(tShownUntil, p.Clock(u.Until)))),
	)
}

// UnmaskButton opens the dialog.
func UnmaskButton(p *ui.Page, u Unmask) templ.Component {
	return ui.If(u.offered(), Opener(p, "", "unmask", "lock", tUnmask))
}

// UnmaskDialog asks for the reason.
func UnmaskDialog(p *ui.Page, u Unmask) templ.Component {
	return ui.If(u.offered(), AskDialog(p, "unmask", u.Path, u.Key, tUnmask, text.ReasonAudit, tUnmaskHow, tUnmaskGo))
}

// Texts of all pages that can show what they mask.
var (
	tUnmask    = text.Text{ZH: "显示原文", EN: "Show unmasked"}
	tUnmaskHow = text.Text{
		ZH: "仅在本次打开的页面中显示 60 秒，您的用户名和原因会写入审计。",
		EN: "It is shown for 60 s in this page view only; the audit records your name and reason.",
	}
	tUnmaskGo   = text.Text{ZH: "显示 60 秒", EN: "Show for 60 s"}
	tDoneUnmask = text.Text{
		ZH: "个人信息已显示过，现已重新遮盖。如需再次查看，请再填一次原因。",
		EN: "The personal data was shown and is masked again. To see it again, give another reason.",
	}
	tShownUntil = text.Text{ZH: "个人信息显示到 %s，之后本页自动遮盖。", EN: "Personal data is shown until %s; then this page masks it again."}
)
