package partners

import (
	"strings"
	"time"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/report"
	"backstop/internal/supplier"
	"backstop/views/chart"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// Suppliers is the list of suppliers, those that need an operator first.
func Suppliers(p *ui.Page, all []console.SupplierHealth) templ.Component {
	l := ui.List{Query: ui.Query{Path: "/suppliers"}}.Listed(p, ui.Headings(SupplierColumns), ui.Cells(p, SupplierColumns, all))
	rows := noSuppliers(p)
	if len(all) > 0 {
		rows = ui.PlainRows(p, l, text.Suppliers)
	}
	add := settingsButton(p, link.NewObject("suppliers"), tAddSupplier)
	return panel.Page(p, p.T(text.Suppliers),
		panel.Headed(p.T(text.Suppliers), ui.Say(p.T(tSuppliersHow)), add, ui.ExportMenu(p, l)),
		panel.Labelled(p.T(text.Suppliers), "suppliers", rows),
	)
}

func noSuppliers(p *ui.Page) templ.Component {
	return ui.Empty(p, "webhook", p.T(tNoSuppliers), p.T(tNoSuppliersHow))
}

// supplierFlow is callbacks a minute, with those of the same hour a week ago.
func supplierFlow(p *ui.Page, s supplierHealth) templ.Component {
	now, before, known := s.PerMinute()
	weekAgo := p.T(tNoWeekAgo)
	if known {
		weekAgo = p.T(tWeekAgo, perMinute(before))
	}
	count := panel.Anchor(callbacksOf(s.Code, ""), perMinute(now))
	return templ.Join(panel.Box("", count), ui.Styled("muted small sub", weekAgo))
}

// suppliersShown is how many suppliers the overview shows.
const suppliersShown = 6

// healthColumns are those of the list that the overview has of them.
var healthColumns = []string{"code", "state", "per_minute", "verified", "last_callback", "waiting"}

type supplierHealth = console.SupplierHealth

// SupplierColumns are those of the list of suppliers.
var SupplierColumns = []ui.Column[supplierHealth]{
	ui.TextCol("code", text.Supplier, func(s supplierHealth) string { return s.Code }).InFiles(text.CodeWord).As("strong").
		With(supplierName),
	ui.TextCol("kind", text.Kind, func(s supplierHealth) string { return s.Kind }).ExportOnly(),
	ui.Col("state", text.State, ui.StateKind, func(p *ui.Page, s supplierHealth) ui.Cell {
		return ui.Cell{State: supplierState(p, s)}
	}).As("").With(func(p *ui.Page, s supplierHealth) templ.Component {
		return templ.Join(ui.Pill(p, supplierState(p, s)), openSince(p, s))
	}),
	ui.TimeCol("open_since", tOpenSince, func(s supplierHealth) *int64 { return ui.MomentOr(s.OpenSince) }).ExportOnly(),
	ui.TextCol("per_minute", tCallbacksMinute, func(s supplierHealth) string {
		now, _, _ := s.PerMinute()
		return perMinute(now)
	}).As("num").With(supplierFlow).Hinted(tCallbacksMinuteHint),
	ui.TextCol("last_week", text.Text{
		ZH: tCallbacksMinute.ZH + " · " + text.LastWeek.ZH, EN: tCallbacksMinute.EN + " · " + text.LastWeek.EN,
	}, func(s supplierHealth) string {
		_, before, known := s.PerMinute()
		if !known {
			return ""
		}
		return perMinute(before)
	}).ExportOnly(),
	shareCol("verified", tVerifiedShare, func(s supplierHealth) (float64, bool) { return s.Verified() }).Hinted(tVerifiedShareHint),
	shareCol("paid_share", tPaidShare, func(s supplierHealth) (float64, bool) { return s.PaidShare() }).Hinted(tPaidShareHint),
	ui.TimeCol("last_callback", tLastCallback, func(s supplierHealth) *int64 { return ui.MomentOr(s.Last) }).InFiles(tLastCallbackAt).
		As("nowrap").With(supplierGap).Hinted(tLastCallbackHint),
	ui.WordCol("top_failing", tTopFailing, func(p *ui.Page, s supplierHealth) string {
		if top := s.TopFailing(); top.N > 0 {
			return p.T(ui.OutcomeState(top.Outcome).Label) + " " + ui.Count(top.N)
		}
		return ""
	}).As("").With(supplierFailing).Hinted(tTopFailingHint),
	ui.WordCol("calls", tCallsHour, func(p *ui.Page, s supplierHealth) string {
		var all []string
		for _, c := range s.Calls {
			all = append(all, c.Op+" "+ui.Percent(callsShare(c), 1)+" "+ui.P95Text(p, c.Took))
		}
		return strings.Join(all, "; ")
	}).As("nowrap small").With(supplierCalls).Hinted(tCallsHourHint),
	ui.WordCol("expires", tFirstExpiry, expiryText).Hinted(tFirstExpiryHint).PageOnly(),
	ui.TimeCol("expires", tKeyEnds, func(s supplierHealth) *int64 {
		if s.Expires == nil {
			return nil
		}
		end := s.Expires.NotAfter.UnixMicro()
		return &end
	}).ExportOnly(),
	ui.CountCol("waiting", text.WaitingN, func(s supplierHealth) int64 { return s.Waiting.Orders() }).With(supplierWaiting).
		Hinted(tSupplierWaitsHint),
	ui.WordCol("waiting_amount", tWaitingAmount, func(p *ui.Page, s supplierHealth) string {
		return chart.SumsCell(p, s.Waiting.Sums).Plain
	}).ExportOnly(),
	ui.WordCol("paid_today", tPaidToday, func(p *ui.Page, s supplierHealth) string { return chart.SumsCell(p, s.Paid.Sums).Plain }).
		As("num").
		With(supplierPaid).Hinted(tPaidTodayHint),
}

func shareCol(name string, label text.Text, of func(supplierHealth) (float64, bool)) ui.Column[supplierHealth] {
	return ui.Col(name, label, ui.TextKind, func(p *ui.Page, s supplierHealth) ui.Cell {
		v, known := of(s)
		return ui.Cell{Text: chart.ShareCell(p, v, known).Plain, Show: shareOf(p, func() (float64, bool) { return v, known })}
	}).As("num")
}

// callbacksOf links to the supplier's callbacks of the last hour with an outcome; "" = all.
func callbacksOf(code, outcome string) templ.SafeURL {
	href := "/callbacks?supplier=" + link.Query(code) + "&window=1h"
	if outcome != "" {
		href += "&outcome=" + link.Query(outcome)
	}
	return templ.URL(href)
}

// refusedBy links to the supplier's callbacks of the last day with an outcome.
func refusedBy(code, outcome string) templ.SafeURL {
	return templ.URL("/callbacks?supplier=" + link.Query(code) + "&outcome=" + link.Query(outcome))
}

// paidToday links to the supplier's orders that were created today and have been paid.
func paidToday(p *ui.Page, s supplierHealth) templ.SafeURL {
	from := p.At(s.Today).Format("2006-01-02T15:04Z07:00")
	return templ.URL("/orders?supplier=" + link.Query(s.Code) + "&status=paid&from=" + link.Query(from))
}

var troubleStates = map[console.Trouble]ui.State{
	console.NoTrouble:     {Kind: "ok", Icon: "check", Label: text.Healthy},
	console.Quiet:         {Kind: "idle", Icon: "clock", Label: text.Quiet},
	console.Disabled:      {Kind: "idle", Icon: "ban", Label: tDisabledWord},
	console.Expiring:      {Kind: "warn", Icon: "calendar", Label: tCertificateEnds},
	console.Refusing:      {Kind: "bad", Icon: "shield-alert", Label: tChecksFail},
	console.CallsFail:     {Kind: "bad", Icon: "activity", Label: tCallsFail},
	console.IsSilent:      {Kind: "bad", Icon: "hourglass", Label: tSilent},
	console.IsUnreachable: {Kind: "bad", Icon: "zap-off", Label: text.BreakerOpen},
	console.Unusable:      {Kind: "bad", Icon: "circle-x", Label: tUnusable},
}

func supplierState(p *ui.Page, s console.SupplierHealth) ui.State {
	return troubleStates[s.Trouble(p.Now)]
}

func shareOf(p *ui.Page, of func() (float64, bool)) string {
	if share, ok := of(); ok {
		return ui.Percent(share, 1)
	}
	return p.T(text.None)
}

func perMinute(n float64) string { return strings.TrimSuffix(ui.PerSecond(n), ".0") }

// gapText is the time since the last callback; its minute is all that is known.
func gapText(p *ui.Page, gap time.Duration) string {
	if gap < time.Minute {
		return p.T(tUnderAMinute)
	}
	return p.Rough(gap)
}

// usualGap is the usual time between two callbacks.
func usualGap(p *ui.Page, s console.SupplierHealth) string {
	gap := time.Duration(float64(s.Flow.Span) / s.Flow.Usual)
	if gap < time.Second {
		return p.T(tUnderASecond)
	}
	return p.Rough(gap)
}

func callsShare(c report.Calls) float64 {
	ok := int64(0)
	for class, n := range c.Classes {
		if supplier.Class(class).Healthy() {
			ok += n
		}
	}
	return float64(ok) / float64(max(c.All(), 1))
}

// bad is the class of a figure that is bad, if it is.
func bad(is bool) string {
	if is {
		return "t-bad"
	}
	return ""
}

func callsFail(c report.Calls) bool { return callsShare(c) < console.HealthyShare }

// expiryText is how many days the certificate that ends first has left.
func expiryText(p *ui.Page, s console.SupplierHealth) string {
	if s.Expires == nil {
		return p.T(text.None)
	}
	return daysLeft(p, s.Expires.NotAfter)
}

func daysLeft(p *ui.Page, end time.Time) string {
	left := end.Sub(p.Now)
	if left <= 0 {
		return p.T(tExpired)
	}
	return p.T(tDaysLeft, ui.Count(int64(left/(24*time.Hour))))
}

// Texts of this page.
var (
	tSupplierHealth = text.Text{ZH: "渠道健康", EN: "Supplier health"}
	tAllSuppliers   = text.Text{ZH: "全部 %s 个", EN: "all %s"}
	tSuppliersHow   = text.Text{ZH: "近一小时的数据，需要处理的在前。", EN: "Figures of the last hour; suppliers that need a person come first."}
	tNoSuppliers    = text.Text{ZH: "还没有渠道", EN: "No suppliers yet"}
	tNoSuppliersHow = text.Text{
		ZH: "在配置文件的 suppliers 里声明，再运行 backstop apply。",
		EN: "Declare them under suppliers in the settings file and run backstop apply.",
	}
	tCallbacksMinute     = text.Text{ZH: "回调/分钟", EN: "Callbacks/min"}
	tCallbacksMinuteHint = text.Text{
		ZH: "近一小时每分钟的回调数，含被拒绝的；下面是上周同一小时",
		EN: "Callbacks per minute in the last hour, including rejected ones; below: the same hour last week",
	}
	tWeekAgo           = text.Text{ZH: "上周 %s", EN: "last week %s"}
	tNoWeekAgo         = text.Text{ZH: "上周无数据", EN: "no data last week"}
	tVerifiedShare     = text.Text{ZH: "验签通过", EN: "Verified"}
	tVerifiedShareHint = text.Text{
		ZH: "近一小时的回调中，来源和签名都通过的比例",
		EN: "Share of the last hour's callbacks with an allowed address and a valid signature",
	}
	tPaidShare     = text.Text{ZH: "入账", EN: "Paid"}
	tPaidShareHint = text.Text{
		ZH: "验签通过且不是重复的回调中，支付了订单的比例",
		EN: "Share of the verified callbacks, without repeats, that paid an order",
	}
	tLastCallback      = text.Text{ZH: "静默", EN: "Silent for"}
	tLastCallbackAt    = text.Text{ZH: "最近一条可信回调", EN: "Last verified callback"}
	tWaitingAmount     = text.Text{ZH: "等待金额", EN: "Amount waiting"}
	tLastCallbackHint  = text.Text{ZH: "距上一条验签通过的回调的时间；下面是平时的间隔", EN: "Time since the last verified callback; below: the usual interval"}
	tUsualGap          = text.Text{ZH: "平时 %s", EN: "usually %s"}
	tUnderAMinute      = text.Text{ZH: "不到 1 分钟", EN: "under 1 min"}
	tUnderASecond      = text.Text{ZH: "不到 1 秒", EN: "under 1 s"}
	tTopFailing        = text.Text{ZH: "最多的未通过项", EN: "Top failing check"}
	tTopFailingHint    = text.Text{ZH: "近一小时拒绝回调最多的检查项", EN: "The check that rejected most of the last hour's callbacks"}
	tCallsHour         = text.Text{ZH: "调用", EN: "Calls"}
	tCallsHourHint     = text.Text{ZH: "近一小时向渠道的调用：成功率和 P95", EN: "Calls to the supplier within the last hour: success and p95"}
	tFirstExpiry       = text.Text{ZH: "证书", EN: "Certificate"}
	tFirstExpiryHint   = text.Text{ZH: "最早到期的证书还剩几天；公钥没有期限", EN: "Days until the first certificate expires; public keys do not expire"}
	tDaysLeft          = text.Text{ZH: "剩 %s 天", EN: "%s days left"}
	tExpired           = text.Text{ZH: "已过期", EN: "expired"}
	tSupplierWaitsHint = text.Text{ZH: "等待该渠道支付结果的订单", EN: "Orders that wait for a result from this supplier"}
	tPaidToday         = text.Text{ZH: "今日收款", EN: "Paid today"}
	tPaidTodayHint     = text.Text{ZH: "今日创建的订单已收到的金额", EN: "Money received for orders created today"}
	tCertificateEnds   = text.Text{ZH: "证书将到期", EN: "Certificate expires"}
	tChecksFail        = text.Text{ZH: "验签失败多", EN: "Failing checks"}
	tCallsFail         = text.Text{ZH: "调用失败多", EN: "Failing calls"}
	tOpenSince         = text.Text{ZH: "熔断始于", EN: "Breaker open since"}
	tSilent            = text.Text{ZH: "静默", EN: "Silent"}
	tUnusable          = text.Text{ZH: "配置不可用", EN: "Unusable"}
)
