package work

import (
	"cmp"
	"strconv"

	"backstop/internal/base/text"
	"backstop/internal/inbox"
	"backstop/views/link"
	"backstop/views/ui"
)

// messageLink leads to what a message is about.
func messageLink(m inbox.Message) string {
	switch m.Object {
	case "order":
		return string(link.Order(m.ObjectID))
	case "exception":
		id, _ := strconv.ParseInt(m.ObjectID, 10, 64)
		return string(link.Exception(id))
	case "session":
		return "/me#sessions"
	}
	return "/views#view-" + m.ObjectID
}

// messageTitle says what happened.
func messageTitle(p *ui.Page, m inbox.Message) string {
	if m.Kind == inbox.OfView {
		return p.T(tInboxView, ui.Count(m.Rows), ui.Plus(m.More), m.Text)
	}
	if m.Kind == inbox.Device {
		return p.T(tInboxDevice, cmp.Or(m.Text, p.T(tUnknownDevice)), m.ObjectID)
	}
	return p.T(tInboxMention, m.Actor, p.T(ui.ObjectText(m.Object)), m.ObjectID)
}

// Texts of the inbox and of notes.
var (
	tInboxHow = text.Text{
		ZH: "同事在备注中提到您（@%s），或您设置提醒的视图出现新记录，或有人从新设备用您的账号登录时，会显示在这里；保留 90 天，最多 500 条。",
		EN: "Notes in which colleagues mention you (@%s), alerts of your views, and sign-ins in your name from new devices. Kept for 90 days, at most 500.",
	}
	tInboxNone    = text.Text{ZH: "没有消息", EN: "No messages"}
	tInboxNoneHow = text.Text{
		ZH: "同事在订单或异常的备注中写下 @ 和您的用户名，就会出现在这里。",
		EN: "When a colleague writes @ and your name in a note about an order or an exception, it appears here.",
	}
	tInboxMention  = text.Text{ZH: "%s 在%s %s 的备注中提到了您", EN: "%s mentioned you in a note: %s %s"}
	tInboxView     = text.Text{ZH: "%s%s 条新记录，视图：%s", EN: "%s%s new in the view %s"}
	tInboxDevice   = text.Text{ZH: "您的账号从新设备登录：%s，%s。不是您本人的话，请结束该登录并告知管理员。", EN: "Sign-in in your name from a new device: %s, %s. If it was not you, end that session and tell an admin."}
	tUnknownDevice = text.Text{ZH: "未知浏览器", EN: "unknown browser"}
	tInboxOpen     = text.Text{ZH: "打开", EN: "Open"}
	tInboxRead     = text.Text{ZH: "标为已读", EN: "Mark as read"}
	tInboxReadAll  = text.Text{ZH: "全部标为已读", EN: "Mark all as read"}
	tInboxNew      = text.Text{ZH: "未读", EN: "Unread"}
	tInboxOlder    = text.Text{ZH: "更早的消息", EN: "Older messages"}
)
