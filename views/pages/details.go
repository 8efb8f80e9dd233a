package pages

import (
	"strconv"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// NotificationData is what one notification's page shows.
type NotificationData struct {
	*console.Notification
	Unmask    Unmask
	CanResend bool
	// CanControl: the person may open and close breakers.
	CanControl bool
	Key        string // of the form
}

// resendPath returns where the form of a notification goes: one about an order leads back to that.
func resendPath(n NotificationData) string {
	if n.OrderNo != "" {
		return string(orderLink(n.OrderNo)) + "/resend"
	}
	return "/notifications/" + n.PublicID + "/resend"
}

var outcomeWords = map[exception.Outcome]text.Text{
	exception.RefundedElsewhere: {ZH: "已在别处退款", EN: "Refunded elsewhere"},
	exception.AcceptedElsewhere: {ZH: "已在别处入账", EN: "Accepted elsewhere"},
	exception.NoEffect:          {ZH: "无资金影响", EN: "No effect on money"},
	exception.BookedPaid:        {ZH: "该笔支付已入账", EN: "The payment is booked"},
	exception.Accepted:          {ZH: "已入账", EN: "Accepted"},
	exception.KeepSurplus:       {ZH: "归商户，暂挂账", EN: "For the merchant, held in suspense"},
	exception.OweBack:           {ZH: "应退还买家，暂挂账", EN: "Owed to the buyer, held in suspense"},
	exception.RefundMade:        {ZH: "退款已成功", EN: "The refund succeeded"},
	exception.RefundNotMade:     {ZH: "退款未成功", EN: "The refund was not made"},
	exception.Booked:            {ZH: "已自动入账", EN: "Booked automatically"},
}

func outcomeWord(o exception.Outcome) text.Text { return ui.TextFor(outcomeWords, o) }

// endText is how an exception about money ended, in one line; "" = nothing is
// known of it.
func endText(p *ui.Page, x *exception.Item) string {
	if x.Outcome == "" {
		return ""
	}
	ended := p.T(outcomeWord(x.Outcome))
	if x.Reference != "" {
		ended += " · " + p.T(text.Proof) + p.T(text.Colon) + x.Reference
	}
	return ended
}

func callbackLink(id int64) templ.SafeURL {
	return templ.URL("/callbacks/" + strconv.FormatInt(id, 10))
}

// notificationLink leads to a notification; one of a subscriber shares its event
// with the merchant's.
func notificationLink(d console.Delivery) templ.SafeURL {
	link := "/notifications/" + d.PublicID
	if d.ToSubscriber {
		link += "?delivery=" + strconv.FormatInt(d.ID, 10)
	}
	return templ.URL(link)
}

func exceptionPageLink(id int64) templ.SafeURL {
	return templ.URL("/exceptions/" + console.ExceptionID(id))
}

// notifyURL is where an order's notifications go: its own address, or the merchant's.
func notifyURL(p *ui.Page, own string) string {
	if own == "" {
		return p.T(text.OfMerchant)
	}
	return notify.Shown(own)
}

// attemptState is how one attempt ended.
func attemptState(a notify.Attempt) ui.State {
	if a.Class == notify.OK {
		return ui.State{Kind: "ok", Icon: "check", Label: text.ClassOK}
	}
	return ui.State{Kind: "bad", Icon: "x", Label: ui.ClassText(a.Class)}
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

// deliveryState is the state of a notification, also of a parked one.
func deliveryState(status notify.Status, parked bool) ui.State {
	if parked {
		return ui.Look(ui.NotifyStates, "parked")
	}
	return ui.Look(ui.DeliveryStates, string(status))
}

// Texts of this page.
var (
	tCallback  = text.Text{ZH: "渠道回调", EN: "Callback"}
	tPassed    = text.Text{ZH: "通过", EN: "passed"}
	tNotPassed = text.Text{ZH: "未通过", EN: "not passed"}
	tKept      = text.Text{ZH: "留存的回调", EN: "Kept callbacks"}
	tKeptHow   = text.Text{
		ZH: "原记录的保留期已到；异常未结，所以留存最早的 5 个。",
		EN: "The original records are past their retention. The five oldest are kept while the exception is open.",
	}
	tKeptCut     = text.Text{ZH: "正文共 %[2]s 字节，只留存前 %[1]s 字节。", EN: "The first %s of the body's %s bytes are kept."}
	tRefusedNote = text.Text{
		ZH: "这个回调验证未通过，已被拒绝：没有改变任何订单，只保留一部分内容。",
		EN: "This callback was rejected: it changed no order, and only part of it is stored.",
	}
	tAttemptsHead = text.Text{ZH: "每次尝试", EN: "Attempts"}
	tAttemptsCut  = text.Text{ZH: "只显示最早的 %s 次。", EN: "Only the first %s are shown."}
	tNotTried     = text.Text{ZH: "还没有尝试", EN: "Not tried yet"}
	tNotTriedHow  = text.Text{
		ZH: "到期自动发送；没有通知地址的不会发送。",
		EN: "It is sent automatically when it is due; a notification without an endpoint never is.",
	}
	tSays          = text.Text{ZH: "通知内容", EN: "Content"}
	tSeenN         = text.Text{ZH: "报告 %s 次", EN: "times reported: %s"}
	tWhatIsWrong   = text.Text{ZH: "问题", EN: "Problem"}
	tReference     = text.Text{ZH: "渠道流水号或通知编号", EN: "Supplier's number or notification"}
	tItsCallbacks  = text.Text{ZH: "这个编号的全部回调", EN: "All callbacks of this number"}
	tPeopleSaid    = text.Text{ZH: "人工处理记录", EN: "Notes and acts"}
	tNoActivity    = text.Text{ZH: "暂无处理记录", EN: "No activity yet"}
	tNoActivityHow = text.Text{ZH: "备注、指派和处理结果都会记在这里。", EN: "Notes, assignments and the outcome appear here."}
	tInHand        = text.Text{ZH: "负责人", EN: "Assignee"}
	tUnassigned    = text.Text{ZH: "未指派", EN: "Unassigned"}
	tAssign        = text.Text{ZH: "指派", EN: "Assign"}
	tReopen        = text.Text{ZH: "重新打开", EN: "Reopen"}
	tReopenHow     = text.Text{
		ZH: "异常回到待处理并再次告警；之前的结果留在审计中。",
		EN: "The exception is open again and raises an alert; its previous outcome stays in the audit.",
	}
)
