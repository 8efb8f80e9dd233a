package overview

import (
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/link"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// todoLine is how a line of the to-do list looks.
type todoLine struct {
	icon, title, note string
	href              templ.SafeURL
	rows              templ.SafeURL // exactly the rows with the line's count and sums; "" = none
}

func lineOf(p *ui.Page, t console.Todo) todoLine {
	count := ui.Count(t.Count) + ui.Plus(t.More)
	switch t.Matter {
	case console.MatterBreaker:
		return todoLine{
			icon: "zap-off", title: p.T(tTodoBreaker, wording.MerchantName(t.Name, t.Code, t.ID)), note: p.T(tTodoParked, count),
			href: link.Merchant(t.Code), rows: link.Unnotified(t.Code),
		}
	case console.MatterApprovals:
		return todoLine{icon: "users", title: p.T(tTodoApprovals, count), href: link.YourApprovals, rows: link.YourApprovals}
	case console.MatterUnreached:
		return todoLine{
			icon: "zap-off", title: p.T(tTodoUnreached, p.Supplier(t.Code)), note: p.T(tTodoAwaits, count),
			href: link.Supplier(t.Code), rows: link.Awaited(t.Code),
		}
	case console.MatterSupplier:
		usual, window := strings.TrimSuffix(ui.PerSecond(t.Flow.PerMinute()), ".0"), int64(t.Flow.Span.Minutes())
		note := p.T(tTodoFlow, usual, window, ui.Count(t.Flow.Now))
		if t.Flow.Now == 0 {
			note = p.T(tTodoSilent, usual, int64(t.Silent.Minutes()))
		}
		return todoLine{
			icon: "webhook", title: p.T(tTodoSupplier, p.Supplier(t.Code)), note: note,
			href: templ.URL("/callbacks?supplier=" + link.Query(t.Code)),
		}
	}
	rows := templ.URL("/exceptions?kind=" + t.Kind + "&state=needs")
	note := ""
	if t.Next != nil {
		note = p.T(tTodoDue, t.Next.DisputeNo, p.Full(*t.Next.DueBy), p.Away(*t.Next.DueBy))
	}
	return todoLine{
		icon: wording.ExceptionIcon(t.Kind), title: p.T(tTodoTitle, p.T(ui.KindText(t.Kind)), ui.Count(t.Count), ui.Plus(t.More)),
		note: note, href: rows, rows: rows,
	}
}

// Texts of the to-do list.
var (
	tNeedsYou      = text.Text{ZH: "现在要处理", EN: "Needs a person now"}
	tLook          = text.Text{ZH: "查看", EN: "Open"}
	tTodoUnreached = text.Text{ZH: "渠道 %s 已熔断，查单暂停", EN: "Supplier %s cannot be reached: its breaker is open"}
	tTodoAwaits    = text.Text{ZH: "%s 笔订单等待查单", EN: "%s orders wait for its answer"}
	tTodoApprovals = text.Text{ZH: "%s 项待您复核", EN: "Proposals that wait for you: %s"}
	tTodoBreaker   = text.Text{ZH: "%s 已熔断", EN: "Breaker open: %s"}
	tTodoParked    = text.Text{ZH: "未通知订单 %s 笔", EN: "orders not notified: %s"}
	tTodoSupplier  = text.Text{ZH: "渠道 %s 静默", EN: "Supplier silent: %s"}
	tTodoSilent    = text.Text{ZH: "通常每分钟 %s 条回调，已静默 %d 分钟", EN: "normally %s callbacks a minute, silent for %d min"}
	tTodoFlow      = text.Text{
		ZH: "通常每分钟 %s 条回调，近 %d 分钟只有 %s 条",
		EN: "normally %s callbacks a minute, only %[3]s within the last %[2]d min",
	}
	tTodoDue      = text.Text{ZH: "下一个举证截止：%s，%s（%s）", EN: "next evidence due: %s, %s (%s)"}
	tTodoTitle    = text.Text{ZH: "%s %s%s 笔", EN: "%s: %s%s"}
	tNothingSince = text.Text{ZH: "没有待处理事项", EN: "Nothing needs a person"}
)
