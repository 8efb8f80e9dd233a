package partners

import (
	"strconv"

	"backstop/internal/base/text"
	"backstop/internal/callback"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/supplier"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// PlaygroundTime is how a time is entered, in the reader's zone.
const PlaygroundTime = "2006-01-02 15:04:05"

// PlaygroundData is what was pasted, and what was found.
type PlaygroundData struct {
	Code              string
	Request, From, At string // as entered
	Problem           string // why it cannot be checked
	Found             *callback.Finding
	Masked            supplier.Callback // what the message says, masked
}

func examplePaste(code string) string {
	return "POST /callback/" + code + " HTTP/1.1\nContent-Type: application/x-www-form-urlencoded\n\nout_trade_no=…&trade_no=…&sign=…"
}

// Playground shows what would become of a callback, without any effect.
func Playground(p *ui.Page, d PlaygroundData) templ.Component {
	request := panel.Input{
		ID: "request", Label: tPasteLabel, Hint: p.T(tPasteHint, ui.Count(callback.MaxPaste)), Value: d.Request, More: templ.Attributes{
			"class": "mono", "rows": "12", "required": true, "spellcheck": "false",
			"maxlength": strconv.Itoa(callback.MaxPaste), "placeholder": examplePaste(d.Code),
		},
	}
	from := panel.Input{
		ID: "from", Label: tPasteFrom, Hint: p.T(tPasteFromHint), Value: d.From,
		More: templ.Attributes{"class": "input mono", "maxlength": "64", "placeholder": "203.0.113.7"},
	}
	now := p.At(p.Now.UnixMicro()).Format(PlaygroundTime)
	at := panel.Input{
		ID: "at", Label: tPasteAt, Hint: p.T(tPasteAtHint), Value: d.At,
		More: templ.Attributes{"class": "input mono", "maxlength": "32", "placeholder": now},
	}
	paste := panel.PostForm(string(link.Supplier(d.Code))+"/playground", templ.Attributes{"class": "body playground"},
		ui.If(d.Problem != "", ui.Notice(p, "bad", d.Problem)),
		panel.TextField(p, request),
		panel.Box("pair", panel.InputField(p, from), panel.InputField(p, at)),
		panel.Line("row", ui.Button(p, ui.Act{Icon: "flask-conical", Label: tPasteCheck, Class: "primary", Writes: true})),
	)
	return panel.Page(p, p.T(tPlayground),
		ui.Crumb(p, string(link.Supplier(d.Code)), text.Supplier), panel.Head(p.T(tPlaygroundOf, d.Code), p.T(tPlaygroundHow)),
		panel.Box("stack", playgroundResult(p, d), panel.Section("paste-title", p.T(tPasteTitle), "", nil, paste)))
}

// playgroundResult is what was found; nothing if nothing was pasted.
func playgroundResult(p *ui.Page, d PlaygroundData) templ.Component {
	f := d.Found
	if f == nil {
		return templ.NopComponent
	}
	return panel.Box("grid g-1-1",
		panel.Checks(p, f.Steps),
		panel.Section("would-title", p.T(tWould), "", ui.Pill(p, ui.OutcomeState(f.Outcome)), panel.Box("body stack-tight",
			panel.Paragraph("strong", wouldText(p, f)),
			ui.FactList(p, playgroundFacts(p, d, f)...),
			panel.Small(p.T(tNothingDone)),
		)),
	)
}

// wouldMove is the order's state, and that which it would have.
func wouldMove(p *ui.Page, w *payment.Preview) templ.Component {
	is := ui.Pill(p, ui.StateOf(ui.OrderStates, w.Order.Status))
	if w.To == "" {
		return is
	}
	return panel.Spaced(is, panel.Text("→"), ui.Pill(p, ui.StateOf(ui.OrderStates, w.To)))
}

// playgroundFacts are what the message says, and what it would do.
func playgroundFacts(p *ui.Page, d PlaygroundData, f *callback.Finding) []ui.Fact {
	facts := []ui.Fact{ui.TextFact(tAnswerStatus, "mono", "HTTP "+strconv.Itoa(f.Status))}
	if c := f.Content; c != nil {
		facts = append(
			facts,
			ui.TextFact(tSaysOrder, "mono small", d.Masked.OrderRef),
			ui.TextFact(text.TradeNo, "mono small", d.Masked.TradeNo),
			ui.TextFact(tSaysStatus, "mono small", d.Masked.RawStatus),
			ui.MoneyFact(text.Amount, c.Amount, c.Currency),
		)
	}
	if f.Would == nil {
		return facts
	}
	if o := f.Would.Order; o != nil {
		facts = append(
			facts,
			ui.IDFact(text.Order, o.OrderNo, string(link.Order(o.OrderNo))),
			ui.MoneyFact(text.Payable, o.Amount, o.Currency),
			ui.BodyFact(text.State, wouldMove(p, f.Would)),
		)
	}
	before := strconv.FormatInt(f.Would.Before, 10)
	return append(facts, ui.LinkFact(tSeenBefore, before, link.Callback(f.Would.Before)).If(f.Would.Before != 0))
}

// wouldText says what a callback would do.
func wouldText(p *ui.Page, f *callback.Finding) string {
	switch {
	case f.Would == nil:
		return p.T(tWouldRefuse)
	case f.Outcome == payment.Repeat:
		return p.T(tWouldRepeat)
	case f.Would.Exception != nil:
		held := tWouldExcept
		if exception.IsHeld(f.Would.Exception.Kind) {
			held = tWouldHold
		}
		return p.T(held, p.T(ui.KindText(f.Would.Exception.Kind)))
	case f.Would.To == order.Paid:
		return p.T(tWouldPay, f.Would.Order.OrderNo, ui.Amount(f.Content.Amount, f.Content.Currency)+" "+f.Content.Currency)
	case f.Would.To != "":
		return p.T(tWouldMove, f.Would.Order.OrderNo, p.T(ui.StateOf(ui.OrderStates, f.Would.To).Label))
	}
	return p.T(tWouldRecord)
}

// Texts of this page.
var (
	tPlaygroundOf  = text.Text{ZH: "回调试验台 · %s", EN: "Playground · %s"}
	tPlaygroundHow = text.Text{
		ZH: "粘贴一条回调，逐项查看验证结果和它会造成的影响。不保存、不入账、不通知任何人。",
		EN: "Paste a callback to see each check and what it would do. Nothing is stored, booked or sent.",
	}
	tPasteTitle = text.Text{ZH: "回调", EN: "The callback"}
	tPasteLabel = text.Text{ZH: "完整的 HTTP 请求，或一行 curl", EN: "The whole HTTP request, or a curl command"}
	tPasteHint  = text.Text{
		ZH: "最多 %s 字节。请粘贴原文：有遮盖（•••）的内容验签不会通过。",
		EN: "At most %s bytes. Paste the original: the signature of masked text (•••) is not valid.",
	}
	tPasteFrom     = text.Text{ZH: "来源地址（可不填）", EN: "From address (optional)"}
	tPasteFromHint = text.Text{ZH: "不填则不检查白名单", EN: "if empty, the allowlist is not checked"}
	tPasteAt       = text.Text{ZH: "收到时间（可不填）", EN: "Received at (optional)"}
	tPasteAtHint   = text.Text{ZH: "签名带时间的渠道用它检查；不填则为现在", EN: "signed timestamps are checked against it; if empty, now"}
	tPasteCheck    = text.Text{ZH: "检查", EN: "Check"}
	tPasteBadFrom  = text.Text{ZH: "来源地址应是 IP 地址，例如 203.0.113.7", EN: "the from address must be an IP address such as 203.0.113.7"}
	tPasteBadAt    = text.Text{ZH: "收到时间的格式应如 %s", EN: "the time must look like %s"}
	tWould         = text.Text{ZH: "会发生什么", EN: "What would happen"}
	tWouldRefuse   = text.Text{ZH: "会被拒绝：不影响任何订单。", EN: "It would be rejected and affect no order."}
	tWouldRepeat   = text.Text{ZH: "这条消息已处理过：不会有任何变化。", EN: "It was accepted before: nothing would change."}
	tWouldPay      = text.Text{ZH: "订单 %s 会变为已支付（%s），并通知商户。", EN: "Order %s would be paid (%s), and its merchant notified."}
	tWouldMove     = text.Text{ZH: "订单 %s 会变为%s，并通知商户。", EN: "Order %s would become: %s. Its merchant would be notified."}
	tWouldExcept   = text.Text{ZH: "会记为异常：%s。订单状态不变。", EN: "It would open an exception: %s. The order would not change."}
	tWouldHold     = text.Text{
		ZH: "会记为异常：%s。资金挂账，订单状态不变。",
		EN: "It would open an exception: %s. Its money would be held in suspense, and the order would not change.",
	}
	tWouldRecord  = text.Text{ZH: "会被受理并记录，订单状态不变。", EN: "It would be accepted and recorded, and the order would not change."}
	tAnswerStatus = text.Text{ZH: "应答", EN: "Answer"}
	tSaysOrder    = text.Text{ZH: "消息中的订单号", EN: "Order in the message"}
	tSaysStatus   = text.Text{ZH: "渠道状态", EN: "Supplier's status"}
	tSeenBefore   = text.Text{ZH: "之前的回调", EN: "Accepted before as"}
	tNothingDone  = text.Text{ZH: "这只是检查：数据没有任何变化，也没有计入统计。", EN: "This was a check: nothing was changed, recorded or counted."}
)

// PlaygroundBadFrom and PlaygroundBadAt say how to fix a field.
func PlaygroundBadFrom(p *ui.Page) string { return p.T(tPasteBadFrom) }

// PlaygroundBadAt says how a time is entered.
func PlaygroundBadAt(p *ui.Page) string {
	return p.T(tPasteBadAt, p.At(p.Now.UnixMicro()).Format(PlaygroundTime))
}

// PlaygroundProblem says why a pasted text cannot be checked.
func PlaygroundProblem(p *ui.Page, why text.Message) string { return wording.Message(p, why) }
