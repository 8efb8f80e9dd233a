package pages

import (
	"backstop/internal/alert"
	"backstop/internal/audit"
	"backstop/internal/base/text"
	"backstop/internal/console"
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
