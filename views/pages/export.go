package pages

import (
	"strconv"

	"backstop/internal/alert"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/text"
	"backstop/internal/callback"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/views/ui"
)

func plain[T any](word, head string, cell func(T) string) ui.Column[T] {
	return ui.TextCol(word, text.Text{ZH: head, EN: head}, cell).ExportOnly()
}

func numbers[T any](word, head string, value func(T) int64) ui.Column[T] {
	return ui.CountCol(word, text.Text{ZH: head, EN: head}, value).ExportOnly()
}

func moments[T any](_ *ui.Page, word string, head text.Text, at func(T) *int64) ui.Column[T] {
	return ui.TimeCol(word, head, at).ExportOnly()
}

func amounts[T any](word, head string, money func(T) (int64, string)) ui.Column[T] {
	return ui.MoneyCol(word, text.Text{ZH: head, EN: head}, money).ExportOnly()
}

// exportsOf is what the export menu needs of a list without a filter of its own.
func exportsOf[T any](p *ui.Page, path string, columns []ui.Column[T]) ui.List {
	return ui.List{Query: ui.Query{Path: path}}.Listed(p, ui.Headings(columns), nil)
}

// OrderColumns are those of exported orders.
func OrderColumns(p *ui.Page) []ui.Column[console.Order] {
	type o = console.Order
	return []ui.Column[o]{
		moments(p, "created", text.Created, func(o o) *int64 { return &o.CreatedAt }),
		plain("no", p.T(text.OrderNo), func(o o) string { return o.OrderNo }),
		plain("out_trade_no", p.T(text.OutTradeNo), func(o o) string { return o.OutTradeNo }),
		plain("merchant", p.T(text.Merchant), func(o o) string { return o.Merchant }),
		plain("supplier", p.T(text.Supplier), func(o o) string { return o.Supplier }),
		plain("currency", p.T(tCurrency), func(o o) string { return o.Currency }),
		amounts("amount", p.T(text.Amount), func(o o) (int64, string) { return o.Amount, o.Currency }),
		plain("status", p.T(text.State), func(o o) string { return p.T(ui.Look(ui.OrderStates, o.Status).Label) }),
		moments(p, "paid", tPaidAt, func(o o) *int64 { return o.PaidAt }),
		amounts("paid_amount", p.T(text.PaidSum), func(o o) (int64, string) { return o.PaidAmount, o.Currency }),
		amounts("fee_amount", p.T(tFeeOfPayment), func(o o) (int64, string) { return o.FeeAmount, o.Currency }),
		amounts("fee_returned", p.T(tFeeReturned), func(o o) (int64, string) { return o.FeeReturned, o.Currency }),
		amounts("refunded_amount", p.T(tRefunded), func(o o) (int64, string) { return o.RefundedAmount, o.Currency }),
		plain("refund_status", p.T(tRefundStatus), func(o o) string {
			if look, ok := ui.Refunded[o.RefundStatus()]; ok {
				return p.T(look.Label)
			}
			return ""
		}),
		amounts("refunds_held", p.T(tRefundsHeld), func(o o) (int64, string) { return o.RefundsHeld, o.Currency }),
		amounts("disputed_amount", p.T(tDisputed), func(o o) (int64, string) { return o.Disputed, o.Currency }),
		amounts("dispute_fees", p.T(tDisputeFee), func(o o) (int64, string) { return o.DisputeFees, o.Currency }),
		amounts("net", p.T(tNetAmount), func(o o) (int64, string) { return o.Net(), o.Currency }),
		plain("trade_no", p.T(text.TradeNo), func(o o) string { return o.TradeNo }),
		plain("notified", p.T(tNotified), func(o o) string {
			if o.NotifyStatus == "none" {
				return ""
			}
			return p.T(ui.Look(ui.NotifyStates, o.NotifyStatus).Label)
		}),
		plain("subject", p.T(text.Subject), func(o o) string { return o.Subject }),
	}
}

// ExceptionColumns are those of exported exceptions.
func ExceptionColumns(p *ui.Page) []ui.Column[exception.Item] {
	type x = exception.Item
	return []ui.Column[x]{
		moments(p, "opened", text.Time, func(x x) *int64 { return &x.OpenedAt }),
		plain("kind", p.T(text.Kind), func(x x) string { return p.T(ui.KindText(x.Kind)) }),
		plain("state", p.T(text.State), func(x x) string { return p.T(ui.Look(ui.ExceptionStates, x.State).Label) }),
		plain("assignee", p.T(tInHand), func(x x) string { return x.Assignee }),
		plain("no", p.T(text.Order), func(x x) string { return x.OrderNo }),
		plain("currency", p.T(tCurrency), func(x x) string { return x.Currency }),
		amounts("amount", p.T(text.Amount), func(x x) (int64, string) { return x.Amount, x.Currency }),
		numbers("seen", p.T(tSeen), func(x x) int64 { return x.Seen }),
		plain("detail", p.T(text.Detail), func(x x) string { return detailLine(p, x) }),
	}
}

// CallbackColumns are those of exported callbacks.
func CallbackColumns(p *ui.Page) []ui.Column[callback.Row] {
	type r = callback.Row
	return []ui.Column[r]{
		moments(p, "received", text.Time, func(r r) *int64 { return &r.ReceivedAt }),
		plain("supplier", p.T(text.Supplier), func(r r) string { return r.Supplier }),
		plain("outcome", p.T(text.Outcome), func(r r) string { return p.T(ui.OutcomeState(r.Outcome).Label) }),
		plain("no", p.T(text.Order), func(r r) string { return r.OrderNo }),
		plain("checks", p.T(text.Checks), func(r r) string { return p.T(text.ChecksOf, passed(r.Steps), len(r.Steps)) }),
		plain("reason", p.T(text.Reason), func(r r) string { return refusal(p, r.Steps) }),
		plain("from", p.T(text.From), func(r r) string { return r.RemoteAddr }),
	}
}

// NotificationColumns are those of exported notifications.
func NotificationColumns(p *ui.Page) []ui.Column[console.Delivery] {
	type d = console.Delivery
	return []ui.Column[d]{
		moments(p, "created", text.Created, func(d d) *int64 { return &d.CreatedAt }),
		plain("no", p.T(text.Order), func(d d) string { return d.OrderNo }),
		plain("merchant", p.T(text.Merchant), func(d d) string { return d.Merchant }),
		plain("type", p.T(text.Kind), func(d d) string { return d.EventType }),
		plain("currency", p.T(tCurrency), func(d d) string { return d.Currency }),
		amounts("amount", p.T(text.Amount), func(d d) (int64, string) { return d.Amount, d.Currency }),
		plain("status", p.T(text.State), func(d d) string { return p.T(deliveryState(d.Status, d.Parked).Label) }),
		numbers("attempts", p.T(tExportTries), func(d d) int64 { return d.Attempts }),
		plain("http", "HTTP", func(d d) string {
			if d.HTTPStatus == 0 {
				return ""
			}
			return strconv.Itoa(d.HTTPStatus)
		}),
		numbers("took", p.T(tExportTook), func(d d) int64 { return d.TookUS / 1000 }),
		moments(p, "next", tExportNext, func(d d) *int64 { return d.NextAt }),
		plain("error", p.T(text.Reason), func(d d) string {
			if d.LastClass == "" || d.LastClass == notify.OK {
				return ""
			}
			return p.T(ui.ClassText(d.LastClass)) + " · " + errorText(p, d.LastError)
		}),
	}
}

// CompensationColumns are those of exported compensations.
func CompensationColumns(p *ui.Page) []ui.Column[console.Compensation] {
	type x = console.Compensation
	return []ui.Column[x]{
		moments(p, "opened", text.Time, func(x x) *int64 { return &x.OpenedAt }),
		plain("kind", p.T(text.Kind), func(x x) string { return p.T(compensationKind(x.Kind)) }),
		plain("state", p.T(text.State), func(x x) string { return p.T(ui.Look(ui.CompensationStates, x.State).Label) }),
		plain("cause", p.T(tCompCause), func(x x) string { return p.T(compensationClass(string(x.Cause))) }),
		plain("subject", p.T(tBatchRow), func(x x) string { return x.Subject() }),
		plain("no", p.T(text.Order), func(x x) string { return x.OrderNo }),
		plain("supplier", p.T(text.Supplier), func(x x) string { return x.Supplier }),
		plain("merchant", p.T(text.Merchant), func(x x) string { return x.Merchant }),
		plain("currency", p.T(tCurrency), func(x x) string { return x.Currency }),
		amounts("amount", p.T(text.Amount), func(x x) (int64, string) { return x.Amount, x.Currency }),
		numbers("attempts", p.T(tExportTries), func(x x) int64 { return x.Attempts }),
		moments(p, "next", tExportNext, func(x x) *int64 { return x.NextAt }),
		plain("error", p.T(text.Reason), func(x x) string { return x.LastError }),
	}
}

// ApprovalColumns are those of exported proposals.
func ApprovalColumns(p *ui.Page) []ui.Column[console.Approval] {
	type a = console.Approval
	return []ui.Column[a]{
		plain("id", p.T(text.NumberWord), func(a a) string { return a.No() }),
		plain("action", p.T(tAction), func(a a) string { return p.T(actionText(a.Action)) }),
		plain("object", p.T(tBatchRow), func(a a) string { return a.Object + ":" + a.ObjectID }),
		plain("no", p.T(text.Order), func(a a) string { return a.OrderNo }),
		plain("currency", p.T(tCurrency), func(a a) string { return a.Currency }),
		amounts("amount", p.T(text.Amount), func(a a) (int64, string) { return a.Amount, a.Currency }),
		plain("state", p.T(text.State), func(a a) string { return p.T(ui.Look(ui.ApprovalStates, a.State).Label) }),
		plain("maker", p.T(tExportMaker), func(a a) string { return a.MakerName }),
		moments(p, "made", text.Created, func(a a) *int64 { return &a.MadeAt }),
		plain("checker", p.T(tExportChecker), func(a a) string { return a.CheckerName }),
		moments(p, "decided", tExportDecided, func(a a) *int64 { return a.DecidedAt }),
		moments(p, "done", tEnded, func(a a) *int64 { return a.DoneAt }),
		plain("reason", p.T(text.Reason), func(a a) string { return a.Reason }),
		moments(p, "expires", tAprExpires, func(a a) *int64 {
			if a.State != approval.Waiting {
				return nil
			}
			return &a.ExpiresAt
		}),
		plain("hash", p.T(tAprHash), func(a a) string { return a.Hash }),
	}
}

// AlertColumns are those of exported alerts.
func AlertColumns(p *ui.Page) []ui.Column[alert.Alert] {
	type a = alert.Alert
	return []ui.Column[a]{
		moments(p, "opened", text.Time, func(a a) *int64 { return &a.OpenedAt }),
		plain("state", p.T(text.State), func(a a) string { return p.T(ui.Look(ui.AlertStates, a.State).Label) }),
		plain("rule", p.T(text.Rule), func(a a) string { return alert.Title(a.Rule, p.Language) }),
		plain("subject", p.T(tExportAbout), func(a a) string { return alertOf(p, a.Subject) }),
		plain("level", p.T(tExportLevel), func(a a) string { return levelOf(p, a) }),
		numbers("count", p.T(tSeen), func(a a) int64 { return a.Count }),
		moments(p, "resolved", tExportOver, func(a a) *int64 { return a.ResolvedAt }),
	}
}

// ActColumns are those of the exported audit.
func ActColumns(p *ui.Page) []ui.Column[audit.Row] {
	type r = audit.Row
	return []ui.Column[r]{
		numbers("number", "#", func(r r) int64 { return r.Number }),
		moments(p, "at", text.Time, func(r r) *int64 { return &r.At }),
		plain("actor", p.T(text.Actor), func(r r) string { return r.Actor }),
		plain("action", p.T(tAction), func(r r) string { return r.Action }),
		plain("object", p.T(tBatchRow), func(r r) string { return r.Object + ":" + r.ObjectID }),
		plain("reason", p.T(text.Reason), func(r r) string { return reasonOf(r) }),
		plain("params", p.T(text.Detail), func(r r) string { return r.Params }),
		plain("from", p.T(text.From), func(r r) string { return r.RemoteAddr }),
		plain("hash", p.T(tAprHash), func(r r) string { return r.Hash }),
	}
}

// MerchantColumns are those of exported merchants. Money at risk is one text: a merchant may
// have several currencies.
func MerchantColumns(p *ui.Page) []ui.Column[console.MerchantStatus] {
	type m = console.MerchantStatus
	moment := func(us int64) *int64 {
		if us == 0 {
			return nil
		}
		return &us
	}
	return []ui.Column[m]{
		plain("code", p.T(tCode), func(m m) string { return m.Code }),
		plain("name", p.T(tName), func(m m) string { return m.Name }),
		plain("state", p.T(text.State), func(m m) string {
			if m.Disabled {
				return p.T(tDisabledWord)
			}
			return p.T(healthState(m.MerchantHealth).Label)
		}),
		numbers("attempts", p.T(tExportHour), func(m m) int64 { return m.Attempts() }),
		plain("rate", p.T(text.RateHour), func(m m) string {
			r, ok := m.Rate()
			return shareCell(p, r, ok).Plain
		}),
		plain("p95", p.T(text.P95), func(m m) string { return lengthCell(p, m.Took, .95).Plain }),
		numbers("waiting", p.T(text.WaitingN), func(m m) int64 { return m.Waiting }),
		plain("at_risk", p.T(text.AtRisk), func(m m) string { return sumsCell(p, m.AtRisk.Sums).Plain }),
		moments(p, "last_ok", tLastOK, func(m m) *int64 { return moment(m.LastOK) }),
		moments(p, "last_failed", tLastFailed, func(m m) *int64 { return moment(m.LastFailed) }),
	}
}

// Texts of exports.
var (
	tCurrency      = text.Text{ZH: "币种", EN: "Currency"}
	tAction        = text.Text{ZH: "操作", EN: "Action"}
	tExportTries   = text.Text{ZH: "尝试次数", EN: "Attempts"}
	tExportTook    = text.Text{ZH: "耗时（毫秒）", EN: "Took (ms)"}
	tExportHour    = text.Text{ZH: "通知次数（近 1 小时）", EN: "Attempts (last hour)"}
	tExportNext    = text.Text{ZH: "下次执行", EN: "Next"}
	tExportMaker   = text.Text{ZH: "提交人", EN: "Proposed by"}
	tExportChecker = text.Text{ZH: "复核人", EN: "Decided by"}
	tExportDecided = text.Text{ZH: "复核时间", EN: "Decided at"}
	tExportAbout   = text.Text{ZH: "对象", EN: "About"}
	tExportLevel   = text.Text{ZH: "数值", EN: "Level"}
	tExportOver    = text.Text{ZH: "恢复时间", EN: "Resolved at"}
	tRefundStatus  = text.Text{ZH: "退款状态", EN: "Refund status"}
	tPaidAt        = text.Text{ZH: "支付时间", EN: "Paid at"}
)
