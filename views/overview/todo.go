package overview

import (
	"strings"

	"backstop/internal/alert"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/link"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// todoLines is how many lines the overview shows: as many as fit beside the chart.
const todoLines = 6

// todoLine is how a line of the to-do list looks.
type todoLine struct {
	icon, title, note string
	href              templ.SafeURL
}

func lineOf(p *ui.Page, t console.Todo) todoLine {
	switch t.Matter {
	case console.MatterBreaker:
		return todoLine{
			"zap-off", p.T(tTodoBreaker, wording.MerchantName(t.Name, t.Code, t.ID)), p.T(tTodoParked, ui.Count(t.Count)),
			link.Merchant(t.Code),
		}
	case console.MatterApprovals:
		return todoLine{"users", p.T(tTodoApprovals, ui.Count(t.Count)+ui.Plus(t.More)), "", "/approvals?state=waiting"}
	case console.MatterBreakers:
		return todoLine{"zap-off", p.T(tTodoBreakers, ui.Count(t.Count)), "", "/merchants"}
	case console.MatterAlerts:
		title := p.T(tTodoAlert, alert.Title(t.Kind, p.Language), wording.AlertSubject(p, t.Code))
		if t.Count > 1 {
			title = p.T(tTodoAlerts, alert.Title(t.Kind, p.Language), ui.Count(t.Count))
		}
		return todoLine{"bell-ring", title, "", "/attention"}
	case console.MatterUnreached:
		return todoLine{
			"zap-off", p.T(tTodoUnreached, t.Code), p.T(tTodoAwaits, ui.Count(t.Count)+ui.Plus(t.More)), link.Supplier(t.Code),
		}
	case console.MatterSupplier:
		usual, window := strings.TrimSuffix(ui.PerSecond(t.Flow.PerMinute()), ".0"), int64(t.Flow.Span.Minutes())
		note := p.T(tTodoFlow, usual, window, ui.Count(t.Flow.Now))
		if t.Flow.Now == 0 {
			note = p.T(tTodoSilent, usual, int64(t.Silent.Minutes()))
		}
		return todoLine{"webhook", p.T(tTodoSupplier, t.Code), note, templ.URL("/callbacks?supplier=" + link.Query(t.Code))}
	}
	return todoLine{
		wording.ExceptionIcon(t.Kind), p.T(tTodoTitle, p.T(ui.KindText(t.Kind)), ui.Count(t.Count), ui.Plus(t.More)), "",
		templ.URL("/exceptions?kind=" + t.Kind + "&state=needs"),
	}
}

// Texts of the to-do list.
var (
	tNeedsYou      = text.Text{ZH: "现在要处理", EN: "Needs a person now"}
	tLook          = text.Text{ZH: "查看", EN: "Open"}
	tAllAttention  = text.Text{ZH: "全部", EN: "All"}
	tTodoUnreached = text.Text{ZH: "渠道 %s 已熔断，查单暂停", EN: "Supplier %s cannot be reached: its breaker is open"}
	tTodoAwaits    = text.Text{ZH: "%s 笔订单等待查单", EN: "%s orders wait for its answer"}
	tTodoApprovals = text.Text{ZH: "%s 项待您复核", EN: "Proposals that wait for you: %s"}
	tTodoMore      = text.Text{ZH: "还有 %s 项", EN: "%s more"}
	tTodoBreaker   = text.Text{ZH: "%s 已熔断", EN: "Breaker open: %s"}
	tTodoBreakers  = text.Text{ZH: "另有 %s 个商户已熔断", EN: "Further open breakers: %s"}
	tTodoParked    = text.Text{ZH: "挂起 %s 笔", EN: "orders waiting: %s"}
	tTodoAlert     = text.Text{ZH: "告警：%s（%s）", EN: "Alert: %s (%s)"}
	tTodoAlerts    = text.Text{ZH: "告警：%s，%s 项", EN: "Alert: %s, %s of them"}
	tTodoSupplier  = text.Text{ZH: "渠道 %s 静默", EN: "Supplier silent: %s"}
	tTodoSilent    = text.Text{ZH: "通常每分钟 %s 条回调，已静默 %d 分钟", EN: "normally %s callbacks a minute, silent for %d min"}
	tTodoFlow      = text.Text{
		ZH: "通常每分钟 %s 条回调，近 %d 分钟只有 %s 条",
		EN: "normally %s callbacks a minute, only %[3]s within the last %[2]d min",
	}
	tTodoTitle    = text.Text{ZH: "%s %s%s 笔", EN: "%s: %s%s"}
	tNothingSince = text.Text{ZH: "没有待处理事项", EN: "Nothing needs a person"}
)
