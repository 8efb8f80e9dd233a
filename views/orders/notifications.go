package orders

import (
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/fund/dispute"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/views/link"
)

// aboutOf returns what a notification is about: its kind, its number and its page. A ping is
// about nothing.
func aboutOf(d console.Delivery) (kind text.Text, no, page string) {
	switch of, _, _ := strings.Cut(d.EventType, "."); of {
	case "refund":
		no = refund.Number(d.SubjectID)
		return text.Refund, no, string(link.Refund(no))
	case "payout":
		no = payout.Number(d.SubjectID)
		return text.Payout, no, string(link.Payout(no))
	case "dispute":
		no = dispute.Number(d.SubjectID)
		return text.Dispute, no, string(link.Dispute(no))
	}
	return text.Order, d.OrderNo, string(link.Order(d.OrderNo))
}

// Texts of this page.
var (
	tNoNotifs    = text.Text{ZH: "还没有通知", EN: "No notifications yet"}
	tNoNotifsHow = text.Text{
		ZH: "订单付款、失败或关闭后，这里会出现给商户的通知。",
		EN: "Once an order is paid, fails or closes, the notification to its merchant appears here.",
	}
	tBarsNotify = text.Text{ZH: "给商户的通知", EN: "Attempts to notify merchants"}
	tByCause    = text.Text{ZH: "失败原因", EN: "Failed because"}
	tHTTP       = text.Text{ZH: "HTTP", EN: "HTTP"}
	tDryPicked  = text.Text{ZH: "预检：选中的", EN: "Dry run: selected"}
	tDryAll     = text.Text{ZH: "预检：全部 %s%s 条", EN: "Dry run: all %s%s"}
)

var tExportTook = text.Text{ZH: "耗时（毫秒）", EN: "Took (ms)"}
