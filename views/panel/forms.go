package panel

import (
	"backstop/internal/base/text"

	"github.com/a-h/templ"
)

// passkeyScript has the script in a page once, however many of its forms need it.
var passkeyScript = templ.NewOnceHandle()

var tPasskeyFailed = text.Text{ZH: "浏览器没有给出通行密钥，请重试。", EN: "The browser gave no passkey: try again."}

var tPickAll = text.Text{ZH: "选中本页", EN: "Select the page"}

var tPickRow = text.Text{ZH: "选中 %s", EN: "Select %s"}

var tRecordedAs = text.Text{ZH: "审计记录：%s", EN: "Recorded as %s"}

var tCodeAgain = text.Text{ZH: "上次两步验证已超过 10 分钟，请再输入一次。", EN: "Your second factor was given more than 10 minutes ago: give it once more."}

var (
	tSignInFirst = text.Text{ZH: "您上次登录已超过 10 分钟，请先重新登录。", EN: "You signed in more than 10 minutes ago: sign in again first."}
	tSignInAt    = text.Text{ZH: "在 %s 重新登录", EN: "Sign in again at %s"}
)
