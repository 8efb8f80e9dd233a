package ui

import (
	"slices"

	"backstop/internal/base/text"
	"backstop/internal/pause"
)

// menuGroup is a part of the navigation under a heading.
type menuGroup struct {
	label text.Text
	items []MenuItem
}

// menuPlaces are the groups, and what belongs to them; the last one has everything else.
var menuPlaces = []struct {
	label text.Text
	paths []string
}{
	{tMonitor, []string{"/", "/attention", "/analytics", "/reports", "/orders", "/callbacks", "/notifications"}},
	{tHandle, []string{"/exceptions", "/approvals", "/compensations", "/batches", "/sweeps", "/queues"}},
	{tFunds, []string{"/refunds", "/payouts", "/disputes", "/accounts"}},
	{tManage, nil},
}

// menuGroups is the navigation by groups, each in the order of the routes; groups without a
// page that the person may open are left out.
func (p *Page) menuGroups() (all []menuGroup) {
	placed := map[string]bool{}
	for i, place := range menuPlaces {
		g := menuGroup{label: place.label}
		for _, m := range p.Menu {
			if slices.Contains(place.paths, m.Path) || i == len(menuPlaces)-1 && !placed[m.Path] {
				g.items, placed[m.Path] = append(g.items, m), true
			}
		}
		if len(g.items) > 0 {
			all = append(all, g)
		}
	}
	return all
}

// Texts of this page.
var (
	tProduct     = text.Text{ZH: "兜底 Backstop", EN: "Backstop"}
	tCountWaits  = text.Text{ZH: "待处理", EN: "Waiting"}
	tSkip        = text.Text{ZH: "跳到正文", EN: "Skip to content"}
	tMainMenu    = text.Text{ZH: "主导航", EN: "Main"}
	tMonitor     = text.Text{ZH: "监控", EN: "Monitor"}
	tHandle      = text.Text{ZH: "处理", EN: "Resolve"}
	tFunds       = text.Text{ZH: "资金", EN: "Funds"}
	tManage      = text.Text{ZH: "管理", EN: "Manage"}
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
	tBannerStuck = text.Text{
		ZH: "回调会被拒收并由渠道重发；暂时不能执行操作。",
		EN: "Callbacks are refused, and suppliers repeat them. Actions are disabled.",
	}
)

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
	of += " · " + p.T(tProduct)
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
