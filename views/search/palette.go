package search

import (
	"net/url"
	"slices"

	"backstop/internal/access"
	"backstop/internal/alert"
	"backstop/internal/base/text"
	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/orderquery"
	"backstop/internal/pause"
	"backstop/internal/sweep"
	"backstop/views/link"
	"backstop/views/ui"
	"backstop/views/wording"
)

// Start is an act that is found by its name, and the place where its page asks for it.
type Start struct {
	Place
	// Act is the kind of the act; "" = it is none, and needs the permission.
	Act        string
	Permission access.Permission
	// Queue is what the act pauses, or resumes: only one of them is possible.
	Queue   string
	Resumes bool
}

// Starts are the acts of no single row, beside batches.
var Starts = []Start{
	{Act: sweep.RunAct, Place: Place{Path: "/sweeps#open-run", Icon: "moon", Label: text.Text{ZH: "立即执行低峰扫描", EN: "Run the sweep now"}}},
	{Act: pause.PauseAct, Queue: pause.Notifications, Place: Place{
		Path: "/queues/" + pause.Notifications + "#open-pause", Icon: "pause", Also: queueWords,
		Label: text.Text{ZH: "暂停通知", EN: "Pause notifications"},
	}},
	{Act: pause.ResumeAct, Queue: pause.Notifications, Resumes: true, Place: Place{Path: "/queues/" + pause.Notifications +
		"#open-resume", Icon: "check", Also: queueWords, Label: text.Text{ZH: "恢复通知", EN: "Resume notifications"}}},
	{Act: pause.PauseAct, Queue: pause.Compensations, Place: Place{
		Path: "/queues/" + pause.Compensations + "#open-pause", Icon: "pause", Also: queueWords,
		Label: text.Text{ZH: "暂停补偿任务", EN: "Pause compensations"},
	}},
	{Act: pause.ResumeAct, Queue: pause.Compensations, Resumes: true, Place: Place{Path: "/queues/" + pause.Compensations +
		"#open-resume", Icon: "check", Also: queueWords, Label: text.Text{ZH: "恢复补偿任务", EN: "Resume compensations"}}},
	{Act: notify.ResendAct, Place: Place{
		Path: "/notifications?status=exhausted", Icon: "send", Label: text.Text{ZH: "补发通知", EN: "Resend a notification"},
	}},
	{Act: breaker.MoveAct(breaker.CloseIt), Place: Place{
		Path: "/?matter=breaker", Icon: "check", Label: text.Text{ZH: "解除熔断", EN: "Close a breaker"},
	}},
	{Act: breaker.MoveAct(breaker.OpenIt), Place: Place{
		Path: "/merchants", Icon: "zap-off", Label: text.Text{ZH: "手动熔断商户", EN: "Open a merchant's breaker"},
	}},
	{Act: orderquery.QueryAct, Place: Place{
		Path: "/orders?risk=stuck", Icon: "search", Label: text.Text{ZH: "查单", EN: "Query the supplier about an order"},
	}},
	{Act: exception.AssignAct, Place: Place{
		Path: "/exceptions?state=needs", Icon: "user", Label: text.Text{ZH: "指派异常", EN: "Assign an exception"},
	}},
	{Act: compensation.RunAct, Place: Place{
		Path: "/compensations?state=dead", Icon: "refresh-cw", Label: text.Text{ZH: "重新执行补偿", EN: "Run a compensation again"},
	}},
	{Act: alert.AcknowledgeAct, Place: Place{
		Path: "/?matter=incident", Icon: "shield-alert", Label: text.Text{ZH: "认领告警事件", EN: "Acknowledge an incident"},
	}},
	{Permission: access.ApproveMoney, Place: Place{
		Path: "/approvals", Icon: "users", Label: text.Text{ZH: "复核提议", EN: "Approve a proposal"},
	}},
	{Act: alert.TestAct, Place: Place{Path: "/alerts#open-test", Icon: "send", Label: text.TestAlert}},
	{Permission: access.ProposeMoney, Place: Place{Path: "/accounts#open-adjust", Icon: "landmark", Label: text.ProposeAdjustment}},
	{Permission: access.ViewAudit, Place: Place{
		Path: "/audit?check=1", Icon: "shield-check",
		Label: text.Text{ZH: "校验审计链", EN: "Check the chain of the audit"},
	}},
	{Permission: access.UseAccount, Place: Place{Path: "/me#language", Icon: "languages", Label: text.Text{
		ZH: "切换语言（中文 / English）",
		EN: "Switch language (Chinese / English)",
	}, Press: `.top [name="language"]`}},
	{Permission: access.UseAccount, Place: Place{Path: "/me#theme", Icon: "sun", Label: text.Text{
		ZH: "切换主题（浅色 / 深色）",
		EN: "Switch theme (light / dark)",
	}, Press: `.top [name="theme"]`}},
	{Permission: access.UseAccount, Place: Place{
		Path: "/me#zone", Icon: "clock",
		Label: text.Text{ZH: "修改时区", EN: "Change the time zone"},
	}},
	{Permission: access.UseAccount, Place: Place{
		Path: "/me#rows", Icon: "layers",
		Label: text.Text{ZH: "修改每页行数", EN: "Change the rows per page"},
	}},
	{Permission: access.UseAccount, Place: Place{
		Path: "/me#old", Icon: "lock",
		Label: text.Text{ZH: "修改密码", EN: "Change the password"},
	}},
	{Permission: access.UseAccount, Place: Place{
		Path: "/me#sessions", Icon: "user",
		Label: text.Text{ZH: "结束其他登录", EN: "End the other sessions"},
	}},
	{Permission: access.UseAccount, Place: Place{
		Path: "/me", Icon: "x", Label: text.Text{ZH: "退出登录", EN: "Sign out"},
		Press: `.top [action="/logout"] button`,
	}},
}

// queueWords find a queue by what it is.
const queueWords = "queue 队列"

// CloseBreaker is the place where the open breaker of a merchant is closed.
func CloseBreaker(m *merchant.Merchant) Place {
	name := wording.MerchantName(m.Name, m.Code, m.ID)
	return Place{Path: string(link.Merchant(m.Code)) + "#open-close", Icon: "check", Also: m.Code, Label: text.Text{
		ZH: "解除熔断：" + name, EN: "Close breaker: " + name,
	}}
}

// BatchStart is the place where a batch of an action begins: the button below its list's filter.
func BatchStart(list, action string) Place {
	title, does := TextsOf(list).Title, wording.BatchActions[action][0]
	return Place{Path: "/" + list + "#batch-" + action, Icon: "layers", Label: text.Text{
		ZH: "新建批次：" + does.ZH + "（" + title.ZH + "）", EN: "New batch of " + title.EN + ": " + does.EN,
	}}
}

// Pages outside of the navigation.
var (
	GuideTitle   = text.FirstSteps
	RunbookTitle = text.Runbook
	ViewsTitle   = tViews
)

// Finds is what the search found; Found is nil for an empty text.
type Finds struct {
	Q           string
	Pages, Acts []Place
	*console.Found
}

// Only returns the path of the single hit that opens at once; "" = there are several, or none.
func (d Finds) Only() string {
	places := slices.Concat(d.Pages, d.Acts)
	orders, merchants, suppliers := len(d.Orders), len(d.Merchants), len(d.Suppliers)
	if merchants > 0 && d.Merchants[0].Code == d.Q { // whole codes are before their parts
		merchants = 1
	}
	if suppliers > 0 && d.Suppliers[0].Code == d.Q {
		suppliers = 1
	}
	switch others := merchants + suppliers + len(places); {
	case orders == 1 && others == 0:
		return string(link.Order(d.Orders[0].OrderNo))
	case orders > 0:
	case others == 0 && len(d.Exceptions) > 0 && d.Exceptions[0].OrderNo == d.Q:
		return "/exceptions?no=" + url.QueryEscape(d.Q)
	case others == 0 && len(d.Exceptions) == 1:
		return string(link.Exception(d.Exceptions[0].ID))
	case len(d.Exceptions) > 0 || others != 1:
	case merchants == 1:
		return merchantOrders(d.Merchants[0].Code)
	case suppliers == 1:
		return supplierPath(d.Suppliers[0].Code)
	case places[0].Press == "":
		return places[0].Path
	}
	return ""
}

// None reports whether nothing was found, beside orders of an amount.
func (d Finds) None() bool {
	return len(d.Pages)+len(d.Acts) == 0 && (d.Found == nil || len(d.Orders)+len(d.Merchants)+len(d.Suppliers)+len(d.Exceptions) == 0)
}

func merchantOrders(merchant string) string { return "/orders?merchant=" + url.QueryEscape(merchant) }

func supplierPath(code string) string { return "/suppliers/" + url.PathEscape(code) }

// maxHits bounds the palette's lines of one kind; the page of the search has the rest.
const maxHits = 6

// Palette are the lines of the palette.
func (d Finds) Palette(p *ui.Page) (groups []HitGroup) {
	add := func(label text.Text, hits []Hit) {
		if d.Q != "" && len(hits) > maxHits {
			hits = append(hits[:maxHits:maxHits], Hit{
				Path: "/search?q=" + url.QueryEscape(d.Q), Icon: "search",
				Label: p.T(tAllHits, ui.Count(int64(len(hits)))),
			})
		}
		if len(hits) > 0 {
			groups = append(groups, HitGroup{Label: label, Hits: hits})
		}
	}
	if d.Found != nil {
		add(text.Orders, d.orderHits(p))
	}
	add(tPagesFound, hitsOf(p, d.Pages))
	add(tActsFound, hitsOf(p, d.Acts))
	if d.Found != nil {
		add(text.Merchants, d.merchantHits(p))
		add(text.Suppliers, d.supplierHits())
		add(text.Exceptions, d.exceptionHits(p))
	}
	return groups
}

func (d Finds) orderHits(p *ui.Page) (all []Hit) {
	for _, o := range d.Orders {
		all = append(all, Hit{
			Path: string(link.Order(o.OrderNo)), Icon: "receipt-text", Label: o.OrderNo,
			Detail: o.Merchant + " · " + ui.Amount(o.Amount, o.Currency) + " " + o.Currency + " · " +
				p.T(ui.StateOf(ui.OrderStates, string(o.Status)).Label),
		})
	}
	return append(all, d.amountHits(p)...)
}

// amountHits is the list of orders with an amount, if the text can be one.
func (d Finds) amountHits(p *ui.Page) (all []Hit) {
	if d.Amount {
		all = append(all, Hit{Path: ui.AmountLink(d.Q), Icon: "receipt-text", Label: p.T(tOfAmount, d.Q)})
	}
	return all
}

func (d Finds) merchantHits(p *ui.Page) (all []Hit) {
	for _, m := range d.Merchants {
		all = append(all, Hit{Path: "/merchants/" + url.PathEscape(m.Code), Icon: "store", Label: m.Code, Detail: m.Name})
	}
	if len(all) == 1 {
		all = append(all, Hit{
			Path: merchantOrders(d.Merchants[0].Code), Icon: "receipt-text", Label: d.Merchants[0].Code,
			Detail: p.T(tMerchantOrders),
		})
	}
	return all
}

func (d Finds) supplierHits() (all []Hit) {
	for _, x := range d.Suppliers {
		all = append(all, Hit{Path: supplierPath(x.Code), Icon: "credit-card", Label: x.Code, Detail: x.Name})
	}
	return all
}

func (d Finds) exceptionHits(p *ui.Page) (all []Hit) {
	for _, x := range d.Exceptions {
		all = append(all, Hit{
			Path: string(link.Exception(x.ID)), Icon: "wrench", Label: p.T(ui.KindText(x.Kind)),
			Detail: x.OrderNo + " · " + ui.Amount(x.Amount, x.Currency) + " " + x.Currency + " · " +
				p.T(ui.ExceptionStateText(string(x.State))),
		})
	}
	return all
}
