package partners

import (
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// GoLive is how far a supplier has come on the way to its first order, and what its steps need.
type GoLive struct {
	console.SupplierSteps
	Code     string
	Callback string        // the URL of its callbacks
	Enabled  bool          // it takes new orders
	CanQuery bool          // it has keys and an address for queries
	Tried    *console.Call // the query that was tried just now
	Key      string        // of the form of a query
}

// Over reports whether nothing is left to do.
func (g GoLive) Over() bool { return g.Verified && g.Enabled }

// supplierSteps lead from the callback URL to the first order; nil = there are none.
func supplierSteps(p *ui.Page, g *GoLive) templ.Component {
	if g == nil {
		return templ.NopComponent
	}
	tryPaste := panel.LinkLine(link.Supplier(g.Code)+"/playground", p.T(tTryPaste))
	return panel.Steps(p, "next", tNextSteps, []panel.Step{
		{Title: p.T(tCallbackCopy), Done: g.Received, How: ui.Copied(p, g.Callback)},
		{Title: p.T(tTryCallback), Done: g.Verified, How: tryPaste},
		{Title: p.T(tTryQuery), Done: g.Queried, How: queryStep(p, *g)},
		{Title: p.T(tEnableLast), Done: g.Enabled, How: ui.If(!g.Enabled, ui.Say(p.T(tEnableField)))},
	})
}

// merchantSteps lead from the endpoint to the first order.
func merchantSteps(p *ui.Page, d MerchantData) templ.Component {
	mayPing := d.CanPing && !d.Steps.Acknowledged && len(d.Addresses) > 0
	order := ui.Say(p.T(tOrderHow))
	if d.Steps.Ordered {
		order = panel.LinkLine(ordersOf(d.Code), p.T(tItsOrders))
	}
	return panel.Steps(p, "next", tNextSteps, []panel.Step{
		{Title: p.T(tEndpointStep), Done: len(d.Addresses) > 0},
		{
			Title: p.T(tPingStep), Done: d.Steps.Pinged,
			How: ui.If(mayPing, templ.Join(ui.Say(p.T(tPingHow)), panel.OpenDialog(p, "ping-0", "send", tPing))),
		},
		{
			Title: p.T(tAckStep), Done: d.Steps.Acknowledged,
			How: ui.If(d.Steps.Pinged && !d.Steps.Acknowledged, ui.Say(p.T(tNotAcked))),
		},
		{Title: p.T(tOrderStep), Done: d.Steps.Ordered, How: order},
	})
}

// queryStep tries a query now, if the reader may, and says how the supplier answered.
func queryStep(p *ui.Page, g GoLive) templ.Component {
	var parts []templ.Component
	if !g.CanQuery {
		parts = append(parts, ui.Say(p.T(tNoQuery)))
	} else if maySettings(p) {
		try := ui.Button(p, ui.Act{Label: tTryQuery, Class: "sm", Writes: true})
		parts = append(parts, ui.Say(p.T(tTryQueryHow)), panel.PostForm(string(link.Supplier(g.Code))+"/try", nil, panel.FormKey(g.Key), try))
	}
	if g.Tried != nil {
		answer := p.T(tTried, p.T(wording.CallResult(g.Tried)))
		parts = append(parts, panel.Said(answer, templ.Attributes{"role": "status", "class": "strong"}))
	}
	return templ.Join(parts...)
}

// ordersOf is where the orders of a merchant are listed.
func ordersOf(code string) templ.SafeURL {
	return templ.SafeURL("/orders?merchant=" + link.Query(code))
}

// Texts of the steps.
var (
	tNextSteps    = text.Text{ZH: "接下来", EN: "Next steps"}
	tCallbackCopy = text.Text{ZH: "把回调地址交给渠道", EN: "Give the callback URL to the supplier"}
	tTryCallback  = text.Text{ZH: "收到一条验证通过的回调", EN: "Receive a callback that is verified"}
	tTryPaste     = text.Text{ZH: "先在回调试验台粘贴一条测试回调，查看每项检查。", EN: "Paste a test callback into the playground first, and see every check."}
	tTryQuery     = text.Text{ZH: "试查一笔不存在的订单", EN: "Query a payment that does not exist"}
	tTryQueryHow  = text.Text{ZH: "渠道答复“不存在”，说明查单的密钥有效。", EN: "If it answers “no such payment”, its keys for queries work."}
	tNoQuery      = text.Text{ZH: "没有查单的密钥或地址：只接收回调。", EN: "It has no keys or address for queries: it only sends callbacks."}
	tTried        = text.Text{ZH: "渠道的答复：%s", EN: "The supplier's answer: %s"}
	tEnableLast   = text.Text{ZH: "启用", EN: "Enable it"}
	tEnableField  = text.Text{ZH: "在配置的“启用”里选“是”并应用：之后才接收新订单。", EN: "Set Enabled to yes in its settings and apply: it takes new orders from then on."}
	tEndpointStep = text.Text{ZH: "设置通知地址", EN: "Set an endpoint"}
	tPingStep     = text.Text{ZH: "发送测试通知", EN: "Send a test notification"}
	tAckStep      = text.Text{ZH: "商户确认收到", EN: "The merchant acknowledges it"}
	tNotAcked     = text.Text{ZH: "还没有：测试通知的应答说明原因，修复后再发一次。", EN: "Not yet: the answer to the test notification says why. Fix it and send another one."}
	tOrderStep    = text.Text{ZH: "第一笔订单", EN: "The first order"}
	tOrderHow     = text.Text{ZH: "商户系统用它的 API 密钥调用 POST /api/v1/orders。", EN: "The merchant's system calls POST /api/v1/orders with its API key."}
	tItsOrders    = text.Text{ZH: "这个商户的订单", EN: "Its orders"}
)
