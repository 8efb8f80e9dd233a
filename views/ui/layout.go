package ui

import (
	"backstop/internal/base/text"
	"backstop/internal/pause"

	"github.com/a-h/templ"
)

// section is an entry of the navigation, and the pages that are its tabs.
type section struct {
	icon  string
	label text.Text
	paths []string
}

// sections are the navigation: what a day's work is made of. Every page of it belongs to one.
var sections = []section{
	{"layout-dashboard", text.Today, []string{"/", "/reports"}},
	{
		"receipt-text",
		text.Text{ZH: "交易", EN: "Trade"},
		[]string{"/orders", "/refunds", "/payouts", "/disputes", "/callbacks", "/notifications"},
	},
	{"wrench", text.Text{ZH: "处理", EN: "Handling"}, []string{"/exceptions", "/approvals", "/batches"}},
	{"landmark", text.Text{ZH: "资金", EN: "Money"}, []string{"/accounts", "/statements"}},
	{"chart-line", text.Text{ZH: "分析", EN: "Analysis"}, []string{"/analytics"}},
	{"store", text.Text{ZH: "商户", EN: "Merchants"}, []string{"/merchants"}},
	{"credit-card", text.Text{ZH: "渠道", EN: "Suppliers"}, []string{"/suppliers"}},
	{"users", text.Text{ZH: "人员与审计", EN: "People and audit"}, []string{"/operators", "/audit"}},
	{"settings", text.Text{ZH: "系统", EN: "System"}, []string{"/settings", "/queues", "/compensations", "/sweeps", "/comparisons", "/alerts", "/runbook"}},
}

// menuSection is a section with the pages of it that the person may open.
type menuSection struct {
	section
	tabs    []MenuItem
	current bool
	count   int64 // what waits for the person in all of them; more: at least that
	more    bool
	rows    string // where these are listed; "" = on several pages
}

// menu is the navigation; sections without a page that the person may open are left out.
func (p *Page) menu() (all []menuSection) {
	for _, s := range sections {
		x := menuSection{section: s}
		for _, path := range s.paths {
			for _, m := range p.Menu {
				if m.Path == path {
					x.tabs = append(x.tabs, m)
					if m.Count > 0 {
						x.rows = map[bool]string{true: m.Rows}[x.count == 0]
					}
					x.current, x.more, x.count = x.current || m.Current, x.more || m.More, x.count+m.Count
				}
			}
		}
		if len(x.tabs) > 0 {
			all = append(all, x)
		}
	}
	return all
}

// tabs are the pages of the section that is open; one alone needs no tab.
func (p *Page) tabs() (menuSection, bool) {
	for _, s := range p.menu() {
		if s.current {
			return s, len(s.tabs) > 1
		}
	}
	return menuSection{}, false
}

// Product is the name of the product.
var Product = text.Text{ZH: "兜底 Backstop", EN: "Backstop"}

// Texts of this page.
var (
	tCountWaits  = text.Text{ZH: "待处理", EN: "Waiting"}
	tSkip        = text.Text{ZH: "跳到正文", EN: "Skip to content"}
	tMainMenu    = text.Text{ZH: "主导航", EN: "Main"}
	tSignOut     = text.Text{ZH: "退出", EN: "Sign out"}
	tFind        = text.Text{ZH: "查找订单、通知或商户", EN: "Find an order, a notification or a merchant"}
	tFindHint    = text.Text{ZH: "单号、渠道流水号、末尾 6 位、ntf_…、商户代码、金额", EN: "Number or its last 6 digits, merchant, amount"}
	tOtherTongue = text.Text{ZH: "English", EN: "中文"}
	tVersion     = text.Text{ZH: "版本 %s", EN: "Version %s"}
	tKeys        = text.Text{ZH: "键盘快捷键", EN: "Keyboard shortcuts"}
	tKeyRows     = text.Text{ZH: "上一行 / 下一行", EN: "Previous / next row"}
	tKeyOpen     = text.Text{ZH: "选中 / 打开 / 复制编号", EN: "Select / open / copy the id"}
	tKeyGo       = text.Text{ZH: "概览 · 订单 · 回调 · 通知 · 异常", EN: "Overview · orders · callbacks · notifications · exceptions"}
	tKeyPages    = text.Text{ZH: "上一页 / 下一页", EN: "Newer / older page"}
	tClose       = text.Text{ZH: "关闭", EN: "Close"}
	tKeyPause    = text.Text{ZH: "暂停实时更新", EN: "Pause live updates"}
	tOpenQueue   = text.Text{ZH: "打开队列页", EN: "Open the queue"}
	tBannerRedis = text.Text{
		ZH: "Redis 无法连接：通知改由数据库推进，会慢一些；暂时不能执行操作。",
		EN: "Redis cannot be reached: notifications continue from the database, more slowly. Actions are disabled.",
	}
	tBannerShadow = text.Text{
		ZH: "影子模式：不通知任何人，也不向渠道发起支付、退款和出款。",
		EN: "Shadow mode: nobody is notified, and no supplier is called for payments, refunds or payouts.",
	}
	tBannerStuck = text.Text{
		ZH: "回调会被拒收并由渠道重发；暂时不能执行操作。",
		EN: "Callbacks are refused, and suppliers repeat them. Actions are disabled.",
	}
)

// shortcuts are the keys of the console: in one place a press after the other, or · in place of it.
var shortcuts = []struct {
	does text.Text
	keys string
}{
	{text.Search, "/"},
	{tPalette, "Ctrl K · ⌘ K"},
	{tQuery, "f"},
	{tKeyRows, "k j"},
	{tKeyOpen, "x Enter c"},
	{tKeyGo, "g d · o · c · n · e"},
	{tKeyPages, "[ ]"},
	{tKeyPause, "p"},
}

// otherTheme is what the button of the theme changes to, by whether the theme is dark.
var otherTheme = map[bool]struct {
	value, icon string
	label       text.Text
}{
	true:  {"light", "sun", text.Light},
	false: {"dark", "moon", text.Dark},
}

// searched reports whether the page can be left by the search of all pages and objects.
func (p *Page) searched() bool { return len(p.Menu) > 0 && !p.Limited }

// scripts are the files that the page needs, in the order in which they run.
func (p *Page) scripts() (all []string) {
	if p.Live || p.Parts {
		all = append(all, "vendor/htmx.min.js")
	}
	if p.Live {
		all = append(all, "vendor/idiomorph-ext.min.js")
	}
	all = append(all, "console.js")
	if p.searched() {
		all = append(all, "palette.js")
	}
	if p.Live {
		all = append(all, "live.js")
	}
	return all
}

// DatabaseState is whether the database takes writes, and why not.
type DatabaseState string

// States of the database.
const (
	DatabaseWell     DatabaseState = ""
	DatabaseReadOnly DatabaseState = "read-only"
	DatabaseFull     DatabaseState = "full"
	DatabaseAway     DatabaseState = "away"
)

var databaseTroubles = map[DatabaseState]text.Text{
	DatabaseReadOnly: {ZH: "数据库是只读的。", EN: "The database is read-only. "},
	DatabaseFull:     {ZH: "数据库的磁盘已满。", EN: "The disk of the database is full. "},
	DatabaseAway:     {ZH: "数据库没有按时应答。", EN: "The database does not answer in time. "},
}

// environments are the words of Page.Environment.
var environments = map[string]text.Text{
	"production": {ZH: "生产环境", EN: "Production"},
	"staging":    {ZH: "预发环境", EN: "Staging"},
	"test":       {ZH: "测试环境", EN: "Test"},
}

// title is the title of the window. The environment comes first: tabs are cut at their ends.
func (p *Page) title(of string) string {
	of += " · " + p.T(Product)
	if p.Environment == "" {
		return of
	}
	return "[" + p.T(environments[p.Environment]) + "] " + of
}

// pausedWords say what does not happen while a queue is paused.
var pausedWords = map[string]text.Text{
	pause.Notifications: {
		ZH: "通知自 %[1]s 起暂停（%[2]s：%[3]s）。恢复前不发送任何商户通知。",
		EN: "Notifications paused since %[1]s by %[2]s: “%[3]s”. No merchant is notified until they are resumed.",
	},
	pause.Compensations: {
		ZH: "补偿任务自 %[1]s 起暂停（%[2]s：%[3]s）。恢复前退款、出款和补发都不会推进。",
		EN: "Compensations paused since %[1]s by %[2]s: “%[3]s”. Refunds, payouts and resends do not progress until they are resumed.",
	},
}

// home is the first page of the navigation: with an own role, today may be none of it.
func (p *Page) home() templ.SafeURL {
	if all := p.menu(); len(all) > 0 {
		return templ.SafeURL(all[0].tabs[0].Path)
	}
	return "/"
}
