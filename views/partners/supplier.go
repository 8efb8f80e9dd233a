package partners

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/breaker"
	"backstop/internal/console"
	"backstop/internal/report"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

var keyKinds = map[supplier.KeyKind]text.Text{
	supplier.Certificate: {ZH: "渠道证书", EN: "Supplier's certificate"},
	supplier.PublicKey:   {ZH: "渠道公钥", EN: "Supplier's public key"},
	supplier.PrivateKey:  {ZH: "我方私钥（指纹为其公钥的）", EN: "Our private key (fingerprint of its public key)"},
	supplier.SharedKey:   {ZH: "共享密钥", EN: "Shared key"},
}

// SupplierPage is one supplier: how it does, what it was refused for, its keys and settings.
func SupplierPage(p *ui.Page, d *console.SupplierDetail, g *GoLive) templ.Component {
	code := link.Query(d.Code)
	try := ui.Act{Icon: "flask-conical", Label: tPlayground, Class: "primary"}
	playground := ui.ButtonLink(p, string(link.Supplier(d.Code))+"/playground", try)
	return ui.DetailPage(p, ui.Detail{
		List: ui.Link{Href: "/suppliers", Label: text.Suppliers}, Title: p.Supplier(d.Code), State: supplierState(p, d.SupplierHealth),
		About: []ui.Fact{
			ui.TextFact(text.Text{}, "mono", d.Code+" · "+d.Kind),
			ui.LinkFact(text.Text{}, p.T(text.Callbacks), templ.URL("/callbacks?supplier="+code)),
			ui.LinkFact(text.Text{}, p.T(text.Orders), templ.URL("/orders?supplier="+code)),
			ui.LinkFact(text.Text{}, p.T(tItsWaiting), link.Awaited(d.Code)),
		},
		Actions: []templ.Component{settingsButton(p, link.Settings("suppliers", d.Code), tEditSettings), playground},
		Lead:    []templ.Component{ui.If(d.Broken, ui.Notice(p, "bad", p.T(tUnusableHow))), ui.If(g != nil && !g.Over(), supplierSteps(p, g))},
		Main: []templ.Component{
			ui.TablePanel(p, "refusals-title", refusalTexts, refusalColumns(d), d.Refusals),
			ui.TablePanel(p, "calls-title", callTexts, callColumns, d.Calls),
			ui.TablePanel(p, "keys-title", keyTexts, keyColumns, d.Keys),
			SettingsHistory(p, d.Changes),
			breakerHistory(p, d.History),
		},
		Side: []templ.Component{
			ui.Facts(p, "figures-title", tLastHour, supplierFigures(p, d.SupplierHealth)...),
			ui.Facts(p, "settings-title", tSupplierSettings, supplierSettings(p, d.SupplierHealth)...),
		},
	})
}

func supplierFigures(p *ui.Page, s console.SupplierHealth) []ui.Fact {
	return []ui.Fact{
		ui.BodyFact(tCallbacksMinute, supplierFlow(p, s)),
		ui.TextFact(tVerifiedShare, "", shareOf(p, s.Verified)),
		ui.TextFact(tPaidShare, "", shareOf(p, s.PaidShare)),
		ui.BodyFact(tLastCallback, supplierGap(p, s)),
		ui.BodyFact(tTopFailing, supplierFailing(p, s)),
		ui.BodyFact(tBreakerTitle, templ.Join(ui.Pill(p, ui.StateOf(ui.BreakerStates, breakerState(s.Breaker))), openSince(p, s))),
		ui.BodyFact(text.WaitingN, supplierWaiting(p, s)),
		ui.BodyFact(tPaidToday, panel.Sums(p, s.Paid.Sums)),
	}
}

func supplierSettings(p *ui.Page, s console.SupplierHealth) []ui.Fact {
	facts := []ui.Fact{
		ui.TextFact(tCallbackURL, "mono small", "/callback/"+s.Code),
		ui.BodyFact(tAllowlist, supplierAllowlist(p, s)).As("mono small"),
	}
	if s.Broken {
		return facts
	}
	facts = append(
		facts,
		ui.TextFact(tNewOrders, "", yesOrNo(p, s.Enabled)),
		ui.TextFact(tAccountOf, "mono small", s.Adapter.Account()),
		ui.TextFact(tQueryAfter, "", p.Rough(s.QueryAfter)),
		ui.TextFact(tQueryRate, "", p.T(tInAll, ui.Count(int64(s.QueryRate))+"/s")),
		ui.TextFact(tQueryPending, "", yesOrNo(p, s.QueryPending)),
	)
	if s.Uncallable != nil {
		facts = append(facts, ui.TextFact(tUncallable, "t-bad", s.Uncallable.Error()))
	}
	return facts
}

var refusalTexts = ui.ListTexts{Title: tRefusals, Icon: "shield-check", None: tNoRefusals, NoneHow: tNoRefusalsHow}

// refusalColumns are those of the callbacks that were refused; each leads to them.
func refusalColumns(d *console.SupplierDetail) []ui.Column[console.Refusal] {
	return []ui.Column[console.Refusal]{
		ui.WordCol("outcome", text.Outcome, func(p *ui.Page, r console.Refusal) string { return p.T(ui.OutcomeState(r.Outcome).Label) }).
			As("").To(func(r console.Refusal) string { return string(refusedBy(d.Code, r.Outcome)) }),
		ui.CountCol("count", tRefusedN, func(r console.Refusal) int64 { return r.N }).
			With(func(p *ui.Page, r console.Refusal) templ.Component {
				return panel.RowCount(p, r.N, d.More, refusedBy(d.Code, r.Outcome))
			}),
		ui.TimeCol("newest", tNewest, func(r console.Refusal) *int64 { return &r.Last }),
		ui.WordCol("failed", tNewestFailed, func(p *ui.Page, r console.Refusal) string {
			return wording.Refusal(p, []supplier.Step{r.Step})
		}).As("wrap"),
		ui.TextCol("from", text.From, func(r console.Refusal) string { return r.Addr }).As("mono small").Optional(),
	}
}

var callTexts = ui.ListTexts{Title: tCallsTitle, Icon: "arrow-right-left", None: tNoCalls, NoneHow: tNoCallsHow}

// callColumns are those of the calls to a supplier.
var callColumns = []ui.Column[report.Calls]{
	ui.WordCol("kind", text.Kind, func(p *ui.Page, c report.Calls) string { return p.T(wording.CallOp(suppliercall.Op(c.Op))) }),
	ui.CountCol("count", tCallsN, func(c report.Calls) int64 { return c.All() }),
	ui.Col("success", tCallsAnswered, ui.TextKind, func(_ *ui.Page, c report.Calls) ui.Cell {
		return ui.Cell{Text: ui.Percent(callsShare(c), 1), Class: bad(callsFail(c))}
	}).As("num"),
	ui.WordCol("p95", text.P95, func(p *ui.Page, c report.Calls) string { return ui.P95Text(p, c.Took) }).As("num"),
	ui.TextCol("failures", tCallsFailed, failedClasses).As(""),
}

var keyTexts = ui.ListTexts{Title: tKeys, Icon: "lock", None: tNoKeys, NoneHow: tNoKeysHow}

// keyColumns are those of the keys of a supplier.
var keyColumns = []ui.Column[supplier.Key]{
	ui.TextCol("field", tKeyField, func(k supplier.Key) string { return k.Field }).As("mono small"),
	ui.WordCol("kind", text.Kind, func(p *ui.Page, k supplier.Key) string { return p.T(keyKinds[k.Kind]) }).As(""),
	ui.TextCol("fingerprint", tFingerprint, func(k supplier.Key) string { return k.Fingerprint }).As("wrap mono small").With(keyFingerprint),
	ui.TextCol("expires", tKeyEnds, func(supplier.Key) string { return "" }).With(keyEnd),
}

func supplierAllowlist(p *ui.Page, s console.SupplierHealth) templ.Component {
	if len(s.AllowIPs) == 0 {
		return panel.Text(p.T(tAnyAddress))
	}
	lines := make([]templ.Component, len(s.AllowIPs))
	for i, r := range s.AllowIPs {
		lines[i] = ui.Styled("sub", r.String())
	}
	return templ.Join(lines...)
}

func keyFingerprint(p *ui.Page, k supplier.Key) templ.Component {
	shown := panel.Text(k.Fingerprint)
	if k.Fingerprint == "" {
		shown = ui.Styled("muted", p.T(tNoFingerprint))
	}
	return templ.Join(shown, ui.If(k.Serial != "", ui.Styled("muted sub", p.T(tSerial, k.Serial))))
}

func keyEnd(p *ui.Page, k supplier.Key) templ.Component {
	if k.NotAfter.IsZero() {
		return ui.Styled("muted", p.T(tNeverEnds))
	}
	left := ui.Styled(bad(k.NotAfter.Sub(p.Now) < console.ExpirySoon), daysLeft(p, k.NotAfter))
	return templ.Join(left, ui.Styled("muted small sub", p.Day(k.NotAfter.UnixMicro())))
}

func breakerState(r *breaker.Row) string {
	if r == nil {
		return string(breaker.Closed)
	}
	return string(r.State)
}

func yesOrNo(p *ui.Page, yes bool) string {
	if yes {
		return p.T(text.Yes)
	}
	return p.T(text.No)
}

// failedClasses are how the calls that failed went.
func failedClasses(c report.Calls) string {
	var all []string
	for _, class := range slices.Sorted(maps.Keys(c.Classes)) {
		if !supplier.Class(class).Healthy() {
			all = append(all, fmt.Sprintf("%s %s", class, ui.Count(c.Classes[class])))
		}
	}
	return strings.Join(all, ", ")
}

// Texts of this page.
var (
	tItsWaiting  = text.Text{ZH: "等待结果的订单", EN: "Orders waiting for a result"}
	tPlayground  = text.Text{ZH: "回调试验台", EN: "Playground"}
	tUnusableHow = text.Text{
		ZH: "这个渠道的配置在此无法使用：它的回调会被要求重发，直到修复。原因见日志和就绪检查 settings。",
		EN: "The settings of this supplier cannot be used here. Its callbacks are refused, so that the supplier repeats them, until the settings are repaired. The log and the check settings say why.",
	}
	tLastHour      = text.Text{ZH: "近一小时", EN: "Last hour"}
	tRefusals      = text.Text{ZH: "24 小时内被拒绝的回调", EN: "Rejected callbacks within 24 h"}
	tNoRefusals    = text.Text{ZH: "没有被拒绝的回调", EN: "No rejected callbacks"}
	tNoRefusalsHow = text.Text{
		ZH: "来源地址或签名不通过的回调按检查项列在这里。",
		EN: "Callbacks from a wrong address or with an invalid signature are listed here by check.",
	}
	tRefusedN      = text.Text{ZH: "条数", EN: "Callbacks"}
	tNewest        = text.Text{ZH: "最近一条", EN: "Newest"}
	tNewestFailed  = text.Text{ZH: "最近一条未通过", EN: "Latest failure"}
	tCallsTitle    = text.Text{ZH: "近一小时的调用", EN: "Calls within the last hour"}
	tNoCalls       = text.Text{ZH: "没有调用", EN: "No calls"}
	tNoCallsHow    = text.Text{ZH: "查单、关单、退款等调用会按类型列在这里。", EN: "Queries, closes, refunds and other calls appear here by kind."}
	tCallsN        = text.Text{ZH: "次数", EN: "Calls"}
	tCallsAnswered = text.Text{ZH: "成功率", EN: "Success"}
	tCallsFailed   = text.Text{ZH: "失败", EN: "Failures"}
	tKeys          = text.Text{ZH: "密钥与证书", EN: "Keys and certificates"}
	tNoKeys        = text.Text{ZH: "没有密钥", EN: "No keys"}
	tNoKeysHow     = text.Text{ZH: "配置可用后，密钥的指纹会列在这里。", EN: "Fingerprints of keys appear here once the settings can be used."}
	tKeyField      = text.Text{ZH: "配置项", EN: "Field"}
	tFingerprint   = text.Text{ZH: "SHA-256 指纹", EN: "SHA-256 fingerprint"}
	tNoFingerprint = text.Text{ZH: "不显示", EN: "not shown"}
	tSerial        = text.Text{ZH: "序列号 %s", EN: "serial %s"}
	tKeyEnds       = text.Text{ZH: "有效期", EN: "Expires"}
	tNeverEnds     = text.Text{ZH: "无期限", EN: "never"}
	tChanges       = text.Text{ZH: "配置变更", EN: "Changes of settings"}
	tNoChanges     = text.Text{ZH: "没有记录的变更", EN: "No recorded changes"}
	tNoChangesHow  = text.Text{
		ZH: "配置变更会列在这里：谁、何时、改了哪些项。更早的见审计日志。",
		EN: "Changes of settings appear here: who, when, and which fields. Older ones are in the audit.",
	}
	tChangedFields    = text.Text{ZH: "配置项", EN: "Fields"}
	tSupplierSettings = text.Text{ZH: "配置", EN: "Settings"}
	tCallbackURL      = text.Text{ZH: "回调地址", EN: "Callback URL"}
	tAllowlist        = text.Text{ZH: "来源白名单", EN: "Allowlist"}
	tAnyAddress       = text.Text{ZH: "任何地址", EN: "any address"}
	tNewOrders        = text.Text{ZH: "接受新订单", EN: "New orders"}
	tAccountOf        = text.Text{ZH: "渠道账户", EN: "Account"}
	tQueryAfter       = text.Text{ZH: "查无此单视为未付", EN: "“Not found” means unpaid after"}
	tQueryRate        = text.Text{ZH: "调用速率上限", EN: "Max. call rate"}
	tQueryPending     = text.Text{ZH: "关单前查单", EN: "Queried before closing"}
	tUncallable       = text.Text{ZH: "无法调用", EN: "Cannot be called"}
)
