// Package partners draws the pages of merchants and suppliers, and the playground of a supplier.
package partners

import (
	"strconv"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/text"
	"backstop/internal/breaker"
	"backstop/internal/console"
	"backstop/views/chart"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// MerchantData is the page of one merchant.
type MerchantData struct {
	*console.Merchant
	CanControl, CanPing, CanEnable, CanRotate, CanTest bool

	FormKey string
	Did     *audit.Row // by the form that led here
}

// MerchantPage is one merchant: its breaker, its endpoints, its notification settings.
func MerchantPage(p *ui.Page, d MerchantData) templ.Component {
	return ui.DetailPage(p, ui.Detail{
		List: ui.Link{Href: "/merchants", Label: text.Merchants}, Notices: []templ.Component{panel.Did(p, d.Did)},
		Title: wording.MerchantName(d.Name, d.Code, d.ID), State: merchantState(d.MerchantStatus),
		About: []ui.Fact{
			ui.TextFact(text.Text{}, "mono", d.Code),
			ui.LinkFact(text.Text{}, p.T(tItsNotifs), templ.SafeURL("/notifications?merchant="+link.Query(d.Code))),
			ui.LinkFact(text.Text{}, p.T(text.Statement), link.Merchant(d.Code)+"/statement"),
			ui.LinkFact(text.Text{}, p.T(text.Statements), link.MerchantMonth(d.Code, p.At(p.Now.UnixMicro()))),
		},
		Actions: []templ.Component{settingsButton(p, link.Settings("merchants", d.Code), tEditSettings)},
		Lead:    []templ.Component{ui.If(!d.Over(), merchantSteps(p, d)), merchantNow(p, d)},
		Main:    []templ.Component{pingAnswer(p, d.Pinged), addressList(p, d), breakerHistory(p, d.History)},
		Side: []templ.Component{
			breakerPanel(p, d), ui.Facts(p, "told-title", tNotifySettings, d.settings(p)...),
			ui.Facts(p, "api-keys-title", tAPIKeys, keyFact(p, tAPIKey, d.Keys.API), keyFact(p, tPayoutKey, d.Keys.Payout)),
			ui.If(d.CanRotate, panel.ReasonPanel(p, "rotate", d.act("rotate"), d.FormKey+"r", tRotate, tRotateHow)),
			ui.If(d.CanTest, panel.ReasonPanel(p, "test-key", d.act("test_key"), d.FormKey+"t", tTestKey, tTestKeyHow)),
		},
	})
}

// settings are those of its notifications.
func (d MerchantData) settings(p *ui.Page) []ui.Fact {
	ack := p.T(tAckStatus)
	if d.Settings.Ack == "text" {
		ack = p.T(tAckText, d.Settings.AckText)
	}
	return []ui.Fact{
		ui.TextFact(tAckRule, "", ack),
		ui.TextFact(tScheduleWord, "mono", d.schedule()),
		ui.TextFact(tInFlightMost, "", p.T(tPerNode, strconv.Itoa(d.Settings.MaxInFlight))),
		ui.TextFact(tRateMost, "", p.T(tInAll, d.rate())).If(d.Settings.RatePerSecond > 0),
	}
}

// keyFact is the last use of one of its keys.
func keyFact(p *ui.Page, label text.Text, k access.KeyUse) ui.Fact {
	switch {
	case !k.Set:
		return ui.TextFact(label, "", p.T(tKeyUnset))
	case k.UsedAt == nil:
		return ui.TextFact(label, "", p.T(tKeyUnused))
	}
	return ui.TimeFact(label, k.UsedAt)
}

// merchantState is whether the merchant is disabled, or else its health.
func merchantState(m console.MerchantStatus) ui.State {
	if m.Disabled {
		return ui.State{Kind: "idle", Icon: "ban", Label: tDisabledWord}
	}
	return wording.MerchantHealth(m.MerchantHealth)
}

// breakerHistory is how a breaker has changed.
func breakerHistory(p *ui.Page, history []breaker.Change) templ.Component {
	return ui.TablePanel(p, "history-title", historyTexts, historyColumns, history)
}

var historyTexts = ui.ListTexts{Title: tHistoryTitle, Icon: "shield-check", None: tHistoryNone, NoneHow: tHistoryNoneHow}

// historyColumns are those of the changes of a breaker.
var historyColumns = []ui.Column[breaker.Change]{
	ui.TimeCol("at", text.Time, func(c breaker.Change) *int64 { return &c.At }),
	ui.StateCol("became", tBecameWord, func(c breaker.Change) ui.State { return ui.BreakerBecame(c.To) }),
	ui.WordCol("cause", text.Cause, func(p *ui.Page, c breaker.Change) string { return wording.BreakerCause(p, c.Cause, c.Failures) }).As(""),
	ui.WordCol("actor", text.Actor, func(p *ui.Page, c breaker.Change) string { return wording.Actor(p, c.Actor) }).As(""),
	ui.TextCol("reason", text.Reason, func(c breaker.Change) string { return c.Reason }).As("wrap"),
}

// addressRow is an endpoint and its position, which its dialogs are called by.
type addressRow struct {
	console.Address
	at string
}

func (d MerchantData) addresses() []addressRow {
	all := make([]addressRow, len(d.Addresses))
	for i, a := range d.Addresses {
		all[i] = addressRow{a, strconv.Itoa(i)}
	}
	return all
}

func (d MerchantData) addressColumns() []ui.Column[addressRow] {
	return []ui.Column[addressRow]{
		ui.TextCol("address", text.Address, func(a addressRow) string { return a.URL }).As("wrap").With(addressName),
		ui.TextCol("channel", tChannel, func(a addressRow) string { return a.Channel }).As("").With(addressChannel),
		ui.StateCol("state", text.State, func(a addressRow) ui.State { return addressState(a.Address) }),
		ui.TimeCol("ok", tLastOK, func(a addressRow) *int64 { return a.OKAt }),
		ui.TextCol("ping", tPing, func(addressRow) string { return "" }).
			With(func(p *ui.Page, a addressRow) templ.Component { return templ.Join(openers(p, d.addressActs(a))...) }),
	}
}

// act is the address of an act on the merchant.
func (d MerchantData) act(path string) string { return string(link.Merchant(d.Code)) + "/" + path }

// says is the state of the breaker and what comes next.
func (d MerchantData) says(p *ui.Page) string {
	switch d.state() {
	case breaker.Open:
		next := p.T(tBreakerIdle)
		if d.Breaker.ByHand {
			next = p.T(tBreakerHand)
		} else if d.Held {
			next = p.T(tBreakerUntil, p.Short(d.Breaker.OpenUntil))
		}
		return joinSentences(p, p.T(tBreakerWhy, wording.BreakerCause(p, d.Breaker.Cause, d.Breaker.Failures)), next)
	case breaker.HalfOpen:
		return p.T(tBreakerProbing)
	}
	return p.T(tBreakerWell)
}

// joinSentences joins sentences; Chinese has no space between them.
func joinSentences(p *ui.Page, all ...string) string {
	if p.Language == "en" {
		return strings.Join(all, " ")
	}
	return strings.Join(all, "")
}

// schedule is the preset's name, or the waits themselves.
func (d MerchantData) schedule() string {
	if d.Settings.Schedule != "list" {
		return d.Settings.Schedule
	}
	waits := make([]string, len(d.Settings.WaitsMS))
	for i, ms := range d.Settings.WaitsMS {
		waits[i] = noZeros.Replace((time.Duration(ms) * time.Millisecond).String() + " ")
	}
	return strings.TrimSpace(strings.Join(waits, ""))
}

// noZeros writes a wait as in an applied file: 10m, not 10m0s.
var noZeros = strings.NewReplacer("h0m0s ", "h ", "m0s ", "m ")

// rate is how many attempts all nodes may make, which may be less than one a second.
func (d MerchantData) rate() string {
	return strconv.FormatFloat(d.Settings.RatePerSecond, 'f', -1, 64) + "/s"
}

// state is the breaker's state; a merchant that never failed has no row and is healthy.
func (d MerchantData) state() breaker.State {
	if d.Breaker == nil {
		return breaker.Closed
	}
	return d.Breaker.State
}

// eventsOf are the types of events that an address takes.
func eventsOf(p *ui.Page, a console.Address) string {
	if len(a.Events) == 0 {
		return p.T(tAllEvents)
	}
	return strings.Join(a.Events, ", ")
}

func addressState(a console.Address) ui.State {
	switch {
	case a.DisabledAt != nil:
		return ui.State{Kind: "bad", Icon: "ban", Label: tDisabledWord}
	case a.Failures > 0:
		return ui.State{Kind: "warn", Icon: "activity", Label: tAddressFailing}
	case a.OKAt != nil:
		return ui.State{Kind: "ok", Icon: "check", Label: text.Healthy}
	}
	return ui.State{Kind: "idle", Icon: "clock", Label: text.Quiet}
}

// MerchantTexts are the texts of the list of merchants.
var MerchantTexts = ui.ListTexts{
	Title: text.Merchants, Icon: "store", None: tMerchantsNone, NoneHow: tMerchantsHow,
	Fields: map[string]ui.Field{
		"state": {Label: text.State, Value: func(state string) text.Text {
			if state == console.MerchantDisabled {
				return tDisabledWord
			}
			return tEnabledWord
		}},
	},
}

type merchantRow = console.MerchantStatus

// MerchantColumns are those of the list of merchants. Money at risk is one text: a merchant may
// have several currencies.
var MerchantColumns = []ui.Column[merchantRow]{
	ui.TextCol("code", text.Merchant, func(m merchantRow) string { return m.Code }).InFiles(text.CodeWord).As("strong wrap").
		With(merchantName),
	ui.TextCol("name", text.Name, func(m merchantRow) string { return m.Name }).ExportOnly(),
	ui.StateCol("state", text.State, merchantState).As(""),
	ui.CountCol("attempts", tExportHour, func(m merchantRow) int64 { return m.Attempts() }).ExportOnly(),
	ui.Col("rate", text.RateHour, ui.TextKind, func(p *ui.Page, m merchantRow) ui.Cell {
		r, ok := m.Rate()
		return ui.Cell{Text: chart.ShareCell(p, r, ok).Plain, Show: ui.RateText(p, m.Point, 1)}
	}).As("num"),
	ui.Col("p95", text.P95, ui.TextKind, func(p *ui.Page, m merchantRow) ui.Cell {
		return ui.Cell{Text: chart.LengthCell(p, m.Took, .95).Plain, Show: ui.P95Text(p, m.Took)}
	}).As("num"),
	ui.CountCol("waiting", text.Unnotified, func(m merchantRow) int64 { return m.Waiting }).
		With(func(p *ui.Page, m merchantRow) templ.Component {
			return panel.RowCount(p, m.Waiting, false, link.Unnotified(m.Code))
		}),
	ui.WordCol("at_risk", text.AtRisk, func(p *ui.Page, m merchantRow) string { return chart.SumsCell(p, m.AtRisk.Sums).Plain }).
		As("num").With(func(p *ui.Page, m merchantRow) templ.Component { return panel.Sums(p, m.AtRisk.Sums) }),
	ui.TimeCol("last_ok", tLastOK, func(m merchantRow) *int64 { return ui.MomentOr(m.LastOK) }),
	ui.TimeCol("last_failed", tLastFailed, func(m merchantRow) *int64 { return ui.MomentOr(m.LastFailed) }),
}

// Texts of this page.
var (
	tMerchantsNone = text.Text{ZH: "还没有商户", EN: "No merchants yet"}
	tMerchantsHow  = text.Text{ZH: "在这里新增商户，或在 YAML 文件中声明，再运行 backstop apply。", EN: "Add one here, or declare them in a YAML file and run backstop apply."}
	tLastOK        = text.Text{ZH: "最近成功", EN: "Last success"}
	tLastFailed    = text.Text{ZH: "最近失败", EN: "Last failure"}
	tEnabledWord   = text.Text{ZH: "已启用", EN: "Enabled"}
	tDisabledWord  = text.Text{ZH: "已停用", EN: "Disabled"}
	tBreakerTitle  = text.Text{ZH: "熔断器", EN: "Breaker"}
	tBreakerWell   = text.Text{ZH: "通知正常发送。", EN: "Notifications are sent normally."}
	tBreakerWhy    = text.Text{ZH: "熔断原因：%s。", EN: "Cause: %s."}
	tBreakerUntil  = text.Text{ZH: "%s 放行一笔探测。", EN: "One notification is sent as a probe at %s."}
	tBreakerIdle   = text.Text{
		ZH: "该商户已没有可用的通知地址，熔断器不拦截：通知直接转为异常。",
		EN: "The breaker holds nothing back: this merchant has no endpoint left, and its notifications become exceptions.",
	}
	tBreakerHand    = text.Text{ZH: "手动熔断，需人工解除。", EN: "An operator opened it, and an operator must close it."}
	tBreakerProbing = text.Text{ZH: "正在用一笔通知探测。", EN: "A probe is under way."}
	tParkedCount    = text.Text{ZH: "挂起 %s 条通知", EN: "Notifications parked: %s"}
	tOpenBreaker    = text.Text{ZH: "手动熔断", EN: "Open"}
	tCloseBreaker   = text.Text{ZH: "解除熔断", EN: "Close"}
	tProbeBreaker   = text.Text{ZH: "立即探测", EN: "Probe now"}
	tOpenBreakerT   = text.Text{ZH: "手动熔断", EN: "Open the breaker"}
	tProbeBreakerT  = text.Text{ZH: "立即放行一笔探测", EN: "Send a probe now"}
	tOpenBreakerHow = text.Text{
		ZH: "这个商户的所有通知都会等待，直到解除熔断。",
		EN: "All notifications of this merchant wait until an operator closes the breaker.",
	}
	tCloseBreakerHow = text.Text{ZH: "等待的通知会陆续发出，先慢后快。", EN: "Waiting notifications are sent, slowly at first."}
	tProbeBreakerHow = text.Text{ZH: "发一笔等待中的通知；成功就陆续补发其余的。", EN: "One parked notification is sent. If it is delivered, the others follow."}
	tHistoryTitle    = text.Text{ZH: "熔断经过", EN: "Breaker history"}
	tHistoryNone     = text.Text{ZH: "从未熔断", EN: "Never opened"}
	tHistoryNoneHow  = text.Text{ZH: "连续失败或失败率过高时会熔断。", EN: "The breaker opens when too many attempts fail."}
	tBecameWord      = text.Text{ZH: "变为", EN: "Became"}
	tAddresses       = text.Text{ZH: "通知地址", EN: "Endpoints"}
	tAddressesNone   = text.Text{ZH: "没有通知地址", EN: "No endpoint"}
	tAddressesHow    = text.Text{
		ZH: "在 notify.urls 或 notify.endpoints 里声明。没有地址时，只有订单自带地址的事件会发送，其余记为未发送。",
		EN: "Declare endpoints under notify.urls or notify.endpoints. Without one, only orders with their own notify_url are notified; other events are recorded as not sent.",
	}
	tChannel        = text.Text{ZH: "方式", EN: "Channel"}
	tAllEvents      = text.Text{ZH: "全部", EN: "all"}
	tAddressFailing = text.Text{ZH: "连续失败", EN: "Failing"}
	tEnable         = text.Text{ZH: "恢复", EN: "Enable"}
	tEnableT        = text.Text{ZH: "恢复这个地址", EN: "Use this endpoint again"}
	tEnableHow      = text.Text{ZH: "各节点在两秒内恢复向它发送。", EN: "All nodes send to it again within two seconds."}
	tPing           = text.Text{ZH: "测试", EN: "Ping"}
	tPingT          = text.Text{ZH: "发送测试通知", EN: "Send a ping"}
	tPingHow        = text.Text{
		ZH: "向这个地址发一条类型为 ping 的签名通知，马上显示它的应答。",
		EN: "Sends a signed notification of the type ping to this endpoint and shows its answer at once.",
	}
	tPinged         = text.Text{ZH: "测试通知的应答", EN: "The answer to the ping"}
	tNotifySettings = text.Text{ZH: "通知设置", EN: "Notification settings"}
	tAckRule        = text.Text{ZH: "成功标准", EN: "Counts as delivered"}
	tAckStatus      = text.Text{ZH: "任意 2xx", EN: "any 2xx"}
	tAckText        = text.Text{ZH: "2xx 且正文为 %s", EN: "2xx and the text %s"}
	tScheduleWord   = text.Text{ZH: "重试计划", EN: "Schedule"}
	tInFlightMost   = text.Text{ZH: "并发上限", EN: "Max. in flight"}
	tRateMost       = text.Text{ZH: "速率上限", EN: "Max. rate"}
	tInAll          = text.Text{ZH: "%s（所有节点合计）", EN: "%s, all nodes together"}
	tPerNode        = text.Text{ZH: "%s（每节点）", EN: "%s per node"}
	tAPIKeys        = text.Text{ZH: "API 密钥的最近使用（精确到小时）", EN: "Last use of API keys, to the hour"}
	tAPIKey         = text.Text{ZH: "商户接口", EN: "Orders and refunds"}
	tPayoutKey      = text.Text{ZH: "出款", EN: "Payouts"}
	tKeyUnset       = text.Text{ZH: "未设置", EN: "not set"}
	tKeyUnused      = text.Text{ZH: "从未使用", EN: "never used"}
	tRotate         = text.Text{ZH: "轮换签名密钥", EN: "Rotate the signing secret"}
	tRotateHow      = text.Text{
		ZH: "生成一个新密钥，只显示一次；之后的通知同时带新旧两个签名，旧密钥到下次轮换时失效。一小时内只能轮换一次。",
		EN: "Makes a new secret, which is shown once. From then on notifications carry the signatures of both, until the next rotation ends the old one. Once an hour.",
	}
	tTestKey    = text.Text{ZH: "生成测试模式密钥", EN: "Make a key of test mode"}
	tTestKeyHow = text.Text{
		ZH: "生成一个以 sk_test_ 开头的密钥，只显示一次；之前的测试密钥随即失效。测试模式没有真实资金。",
		EN: "Makes a key that begins with sk_test_, which is shown once. The one before ends at once. No money moves in test mode.",
	}
	tTestKeyMade = text.Text{ZH: "新的测试模式密钥", EN: "The new key of test mode"}
	tRotated     = text.Text{ZH: "新的签名密钥", EN: "The new signing secret"}
	tItsNotifs   = text.Text{ZH: "这个商户的通知", EN: "Its notifications"}
)

var tExportHour = text.Text{ZH: "通知次数（近 1 小时）", EN: "Attempts (last hour)"}
