package orders

import (
	"strconv"
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// NotificationData is what one notification's page shows.
type NotificationData struct {
	*console.Notification
	Unmask    panel.Unmask
	CanResend bool
	// CanControl: the person may open and close breakers.
	CanControl bool
	Key        string // of the form
}

// NotificationPage is one notification with each attempt.
func NotificationPage(p *ui.Page, n NotificationData) templ.Component {
	kind, no, page := aboutOf(n.Delivery)
	resend := panel.Opener(p, "primary", "resend", "send", text.Resend)
	return ui.DetailPage(p, ui.Detail{
		List: ui.Link{Href: "/notifications", Label: text.Notifications}, Notices: []templ.Component{panel.UnmaskNotice(p, n.Unmask)},
		No: n.PublicID, State: wording.DeliveryState(n.Status, n.Parked),
		About:   []ui.Fact{ui.TextFact(text.Text{}, "", p.T(wording.EventType(n.EventType))), ui.TextFact(text.Text{}, "", n.Merchant)},
		Actions: []templ.Component{panel.UnmaskButton(p, n.Unmask), ui.If(n.CanResend, resend)},
		Main:    []templ.Component{attemptsPanel(p, n), bodyPanel("says-title", p.T(tSays), nil, ui.Code(pretty(n.Body)))},
		Side: []templ.Component{ui.Facts(
			p, "ids", text.IDs,
			ui.IDFact(kind, no, page),
			ui.MoneyFact(text.Amount, n.Amount, n.Currency),
			ui.TimeFact(text.Created, &n.CreatedAt),
			ui.BodyFact(text.Next, nextOf(p, n.Delivery)),
			ui.TextFact(text.NotifyURL, "mono small wrap", notifyURL(p, n.URL)),
		)},
		Foot: []templ.Component{
			panel.UnmaskDialog(p, n.Unmask),
			ui.If(n.CanResend, resendDialog(p, resendPath(n), n.Key, n.Resend, n.CanControl)),
		},
	})
}

// resendPath returns where the form of a notification goes: one about an order leads back to that.
func resendPath(n NotificationData) string {
	if strings.HasPrefix(n.EventType, "order.") {
		return string(link.Order(n.OrderNo)) + "/resend"
	}
	return "/notifications/" + n.PublicID + "/resend"
}

// notifyURL is where an order's notifications go: its own address, or the merchant's.
func notifyURL(p *ui.Page, own string) string {
	if own == "" {
		return p.T(text.OfMerchant)
	}
	return notify.Shown(own)
}

// httpStatus is the HTTP status of the merchant's answer; "–" = there was no answer.
func httpStatus(p *ui.Page, status int) string {
	if status == 0 {
		return p.T(text.None)
	}
	return strconv.Itoa(status)
}

// slowAnswer is the time of an answer, in µs, from which a merchant is slow.
const slowAnswer = 3_000_000

// triesDrawn is the maximum number of bars in a row.
const triesDrawn = 6

// triesOf are the attempts of a notification as bars: f failed, s succeeded, n
// still to come.
func triesOf(d console.Delivery) (bars []string) {
	for range min(d.Delivery.Attempts, triesDrawn) {
		bars = append(bars, "f")
	}
	if d.Status == notify.Delivered && len(bars) > 0 {
		bars[len(bars)-1] = "s"
	}
	if d.Due() != nil {
		bars = append(bars, "n")
	}
	return bars
}

// Texts of this page.
var (
	tAttemptsHead = text.Text{ZH: "每次尝试", EN: "Attempts"}
	tAttemptsCut  = text.Text{ZH: "只显示最早的 %s 次。", EN: "Only the first %s are shown."}
	tAttemptsN    = text.Text{ZH: "发送 %s 次", EN: "attempts: %s"}
	tNotTried     = text.Text{ZH: "还没有尝试", EN: "Not tried yet"}
	tNotTriedHow  = text.Text{
		ZH: "到期自动发送；没有通知地址的不会发送。",
		EN: "It is sent automatically when it is due; a notification without an endpoint never is.",
	}
	tSays = text.Text{ZH: "通知内容", EN: "Content"}
)
