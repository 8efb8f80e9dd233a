// Package operators draws the pages of operators: their settings, and the audit of their acts.
package operators

import (
	"strings"

	"backstop/internal/access"
	"backstop/internal/base/text"
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
