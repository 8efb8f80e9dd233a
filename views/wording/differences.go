package wording

import (
	"strings"
	"time"

	"backstop/internal/base/text"
	"backstop/internal/sweep"
	"backstop/internal/verify"
	"backstop/views/ui"
)

// Figure names a figure that was wrong, or what an invariant demands.
func Figure(what string) text.Text {
	if title, ok := verify.Titles[what]; ok {
		return title
	}
	return ui.TextFor(figures, what)
}

var figures = map[string]text.Text{
	sweep.UnnotifiedMoney: {ZH: "未通知金额统计", EN: "Money not notified"},
	sweep.OrdersNotified:  {ZH: "订单通知统计", EN: "Orders notified"},
}

// Differences says what differs, with moments in the person's time; old rows have it in English only.
func Differences(p *ui.Page, d sweep.Difference) string {
	if len(d.Said) == 0 {
		return d.Detail
	}
	all := make([]string, len(d.Said))
	for i, m := range d.Said {
		all[i] = p.Texts.Say(m, p.Language, func(arg string) string {
			if at, err := time.Parse(time.RFC3339, arg); err == nil {
				return ui.Minute(p, at.UnixMicro())
			}
			return arg
		})
	}
	return strings.Join(all, p.T(text.Semicolon))
}
