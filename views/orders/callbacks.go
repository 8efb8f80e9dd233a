package orders

import (
	"strconv"

	"backstop/internal/base/text"
	"backstop/internal/callback"
	"backstop/internal/console"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// CallbackTexts is what the list of callbacks says; publicURL is where suppliers
// reach us.
func CallbackTexts(publicURL string) ui.ListTexts {
	return ui.ListTexts{
		Title: text.Callbacks, Icon: "webhook", Bars: text.AuthenticCallbacks,
		None: tNoCallbacks, Causes: tRefusedBy,
		NoneHow: tNoCallbackHow,
		HowArgs: []any{publicURL + "/callback/"},
		Fields: map[string]ui.Field{
			"outcome": {Label: text.Outcome, Value: func(o string) text.Text { return ui.OutcomeState(o).Label }},
			"refused": {Label: text.Show, Any: tWithRefused, Value: func(string) text.Text { return text.Taken }},
		},
	}
}

// Texts of this page.
var (
	tRefusedBy   = text.Text{ZH: "拒绝原因", EN: "Rejected because"}
	tWithRefused = text.Text{ZH: "含被拒绝的", EN: "Include rejected"}
	tNoCallbacks = text.Text{ZH: "还没有回调", EN: "No callbacks yet"}
	tRefusedNote = text.Text{
		ZH: "这个回调验证未通过，已被拒绝：没有改变任何订单，只保留一部分内容。",
		EN: "This callback was rejected: it changed no order, and only part of it is stored.",
	}
	tNoCallbackHow = text.Text{ZH: "渠道的通知地址是 %s，末尾换成渠道代码。", EN: "Callback URL for suppliers: %s, ending in the supplier's code."}
)

type callbackRow = callback.Row

// CallbackColumns are those of the list of callbacks.
var CallbackColumns = []ui.Column[callbackRow]{
	ui.NumberCol("number", text.Number, func(r callbackRow) (string, templ.SafeURL) {
		return strconv.FormatInt(r.ID, 10), link.Callback(r.ID)
	}),
	ui.TimeCol("received", text.Time, func(r callbackRow) *int64 { return &r.ReceivedAt }),
	ui.SupplierCol(func(r callbackRow) string { return r.Supplier }),
	ui.StateCol("outcome", text.Outcome, func(r callbackRow) ui.State { return ui.OutcomeState(r.Outcome) }),
	ui.IDCol("no", text.Order, func(r callbackRow) (string, string) { return r.OrderNo, link.CallbackOrder(r.OrderID, r.OrderNo) }),
	ui.TextCol("currency", text.Currency, func(r callbackRow) string { return r.Currency }).ExportOnly(),
	ui.MoneyCol("amount", text.Amount, func(r callbackRow) (int64, string) { return r.Minor, r.Currency }),
	ui.WordCol("checks", text.Checks, func(p *ui.Page, r callbackRow) string {
		return p.T(text.ChecksOf, panel.Passed(r.Steps), len(r.Steps))
	}).As("nowrap small"),
	ui.NoteCol("reason", text.Reason, func(p *ui.Page, r callbackRow) string { return wording.Refusal(p, r.Steps) }).
		With(func(p *ui.Page, r callbackRow) templ.Component { return ui.OrNone(p, wording.Refusal(p, r.Steps)) }),
	ui.TextCol("from", text.From, func(r callbackRow) string { return r.RemoteAddr }).As("mono small nowrap").Optional(),
}

// Callbacks is the list of callbacks, refused ones too where wanted.
func Callbacks(p *ui.Page, l ui.List, publicURL string) templ.Component {
	return ui.PlainList(p, l.As(CallbackTexts(publicURL)))
}

// CallbackPage is one callback: what was checked, and what came.
func CallbackPage(p *ui.Page, c *console.CallbackDetail, u panel.Unmask) templ.Component {
	return ui.DetailPage(p, ui.Detail{
		List: ui.Link{Href: "/callbacks", Label: text.Callbacks}, Notices: []templ.Component{panel.UnmaskNotice(p, u)},
		Title: p.T(text.Callback), State: ui.OutcomeState(c.Outcome),
		About:   []ui.Fact{ui.TextFact(text.Text{}, "", p.Supplier(c.Supplier)), ui.TimeFact(text.Text{}, &c.ReceivedAt)},
		Actions: []templ.Component{panel.UnmaskButton(p, u)},
		Main:    []templ.Component{panel.Checks(p, c.Steps), callbackRaw(p, c, u.Until == 0)},
		Side: []templ.Component{
			ui.If(c.Currency != "" || c.OrderCurrency != "", ui.Facts(p, "amount-title", text.Amount, callbackMoney(c)...)), callbackIDs(p, c),
		},
		Foot: []templ.Component{panel.UnmaskDialog(p, u)},
	})
}

// callbackMoney are the amounts of the callback and of its order.
func callbackMoney(c *console.CallbackDetail) []ui.Fact {
	both := c.Currency != "" && c.Currency == c.OrderCurrency
	class := "strong t-ok"
	if c.Minor != c.OrderMinor {
		class = "strong t-bad"
	}
	return []ui.Fact{
		ui.MoneyFact(text.Callback, c.Minor, c.Currency), ui.MoneyFact(text.Order, c.OrderMinor, c.OrderCurrency),
		ui.MoneyFact(text.Difference, c.Minor-c.OrderMinor, c.Currency).As(class).If(both),
	}
}

// callbackIDs are the numbers of the callback.
func callbackIDs(p *ui.Page, c *console.CallbackDetail) templ.Component {
	ids := ui.FactList(
		p,
		ui.BodyFact(text.Order, ui.TailOr(p, c.OrderNo, link.CallbackOrder(c.OrderID, c.OrderNo))),
		ui.IDFact(text.TradeNo, c.TradeNo, ""),
		ui.TextFact(text.From, "mono small", c.RemoteAddr),
		ui.IDFact(text.Number, strconv.FormatInt(c.ID, 10), ""),
	)
	return bodyPanel("ids", p.T(text.IDs), nil, ids, ui.If(c.Refused, panel.Small(p.T(tRefusedNote))))
}

// callbackRaw is the callback as it came.
func callbackRaw(p *ui.Page, c *console.CallbackDetail, masked bool) templ.Component {
	var note parts
	if masked {
		note = parts{panel.Text(p.T(text.MaskedNote))}
	}
	raw := rawText(p, &ui.ByteBudget{Left: ui.RawBudget}, panel.RawRequest(&c.Callback), ui.RawBudget)
	return bodyPanel("raw-title", p.T(text.Raw, c.Size), note, raw, ui.If(c.Seen > 0, panel.Line("muted small", seenAgain(p, &c.Callback))))
}
