// Package search draws what leads to the pages of all districts: search, palette and saved views.
package search

import (
	"backstop/internal/base/text"
	"backstop/views/orders"
	"backstop/views/panel"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// Search shows what was found where that is more than one thing, or nothing; without a text, all
// pages and acts.
func Search(p *ui.Page, d Finds) templ.Component {
	parts := []templ.Component{panel.FilterForm(
		"/search", p.T(text.Search),
		panel.FilterInput(p, panel.Input{
			Name: "q", Label: tFindWhat, Value: d.Q, More: templ.Attributes{"class": "input", "type": "search", "maxlength": "100"},
		}),
		ui.Button(p, ui.Act{Icon: "search", Label: text.Search, Class: "primary"}),
	)}
	if d.None() {
		parts = append(parts, ui.Empty(p, "search", p.T(tNothingFound), p.T(tSearchHow)))
	} else if d.Q == "" {
		parts = append(parts, ui.Empty(p, "search", p.T(text.Search), p.T(tSearchHow)))
	}
	if d.Found != nil {
		parts = append(parts,
			found(p, text.Merchants, d.merchantHits(p)), found(p, text.Suppliers, d.supplierHits()),
			found(p, text.Exceptions, d.exceptionHits(p)), found(p, text.Orders, d.amountHits(p)),
			ui.If(len(d.Orders) > 0, foundOrders(p, d)),
			ui.If(d.More, panel.Footer(ui.Styled("", p.T(tFoundMore, ui.Count(int64(len(d.Orders))))))),
		)
	}
	parts = append(parts, found(p, tPagesFound, hitsOf(p, d.Pages)), found(p, tActsFound, hitsOf(p, d.Acts)))
	return panel.Page(p, p.T(text.Search),
		panel.Headed(p.T(text.Search), ui.If(d.Q != "", panel.Line("", ui.Styled("mono", d.Q)))),
		panel.Labelled(p.T(text.Search), "", parts...))
}

func foundOrders(p *ui.Page, d Finds) templ.Component {
	l := ui.List{}.Listed(p, ui.Headings(orders.OrderColumns), nil).Among(ui.Cells(p, orders.OrderColumns, d.Orders))
	return ui.Rows(p, l, text.Orders)
}

// Texts of this page.
var (
	tSearchHow = text.Text{
		ZH: "可以查：订单号或它末尾的 6 位以上数字、商户单号、渠道流水号、通知编号 ntf_…、商户和渠道的代码或名称、异常编号、金额、页面和操作的名称。",
		EN: "Search by order number or its last 6 digits or more, merchant's order number, supplier's trade number, notification id (ntf_…), code or name of a merchant or supplier, exception number, amount, or the name of a page or act.",
	}
	tFindWhat       = text.Text{ZH: "查找内容", EN: "What to find"}
	tNothingFound   = text.Text{ZH: "没有找到", EN: "Nothing found"}
	tMerchantOrders = text.Text{ZH: "这个商户的订单", EN: "orders of this merchant"}
	tOfAmount       = text.Text{ZH: "金额为 %s 的订单", EN: "Orders with the amount %s"}
	tFoundMore      = text.Text{ZH: "只列出最新的 %s 笔：请输入更多位数字。", EN: "Only the newest %s are listed: type more digits."}
	tPagesFound     = text.Text{ZH: "页面", EN: "Pages"}
	tActsFound      = text.Text{ZH: "操作", EN: "Acts"}
	tAllHits        = text.Text{ZH: "显示全部 %s 项", EN: "Show all %s"}
)
