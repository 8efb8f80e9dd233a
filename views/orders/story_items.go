package orders

import (
	"time"

	"backstop/internal/audit"
	"backstop/internal/base/text"
	"backstop/internal/breaker"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/fund/booking"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// storyItem is what a story shows of one event: its first line, and what is below it.
func storyItem(p *ui.Page, s StoryData, i console.Item) parts {
	switch {
	case i.Callback != nil:
		return storyCallback(p, s, i.Callback)
	case i.Move != nil:
		return storyMove(p, s, i.Move)
	case i.Queued != nil:
		return storyQueued(p, s, i.Queued)
	case i.Attempt != nil:
		return storyAttempt(p, s, i.Attempt)
	case i.Exception != nil:
		return parts{storyException(p, tExcOpened, i.Exception), meta(wording.ExceptionDetail(p, *i.Exception))}
	case i.Settled != nil:
		end := wording.ExceptionEnd(p, i.Settled)
		return parts{storyException(p, tExcSettled, i.Settled), ui.If(end != "", meta(end))}
	case i.Breaker != nil:
		return storyBreaker(p, i.Breaker)
	case i.Call != nil:
		return storyCall(p, s, i.Call)
	case i.Act != nil:
		return storyAct(p, i.Act)
	case i.Refund != nil:
		return storyRefund(p, i.Refund)
	case i.Dispute != nil:
		return storyDispute(p, i.Dispute)
	case i.Decision() != nil:
		return storyDecision(p, i)
	case i.Plan != nil:
		return parts{what(strong(planText(p, i.Plan)))}
	}
	return nil
}

func storyCallback(p *ui.Page, s StoryData, c *console.Callback) parts {
	masked, raw := s.Unmask.Until == 0, p.T(text.Raw, c.Size)
	if masked {
		raw += " · " + p.T(text.MaskedNote)
	}
	first, whole := repeatOf(s.Story, c), panel.Linked(rawPath(s.Order.OrderNo, c), smallLink, panel.Text(p.T(tWholeRaw)))
	return parts{
		what(strong(p.T(text.CallbackFrom)), ui.Pill(p, ui.OutcomeState(c.Outcome)), callbackFrom(p, c)),
		ui.If(len(c.Steps) > 0, block("meta", panel.Text(p.T(tVerified, panel.Passed(c.Steps), len(c.Steps))))),
		callbackChecks(p, s, c.Steps),
		ui.If(c.Seen > 0, block("meta", seenAgain(p, c))),
		ui.If(first != nil && !c.Omitted && !first.Omitted, callbackDiff(p, s, first, c)),
		rawFold(p, s, foldID("raw", c.ID), raw, panel.RawRequest(c), ui.If(masked && !s.Print, whole)),
	}
}

func storyMove(p *ui.Page, s StoryData, m *order.History) parts {
	status := func(of order.Status) templ.Component { return tag(p.T(ui.StateOf(ui.OrderStates, string(of)).Label)) }
	by := p.T(text.ByActor, wording.Actor(p, m.Actor))
	how := ui.Styled("meta", p.T(text.VersionN, m.Version)+" · "+p.T(ui.CauseText(m.Cause))+" · "+by)
	if m.From != "" {
		return parts{what(strong(p.T(text.Status)), status(m.From), panel.Text("→"), status(m.To), how)}
	}
	var stock parts
	for _, l := range s.Stock {
		stock = append(stock, tag(l.SKU+" × "+ui.Count(l.Quantity)))
	}
	return parts{what(strong(p.T(tOrderMade)), status(m.To), how), ui.If(len(stock) > 0, block("meta", stock...))}
}

func storyQueued(p *ui.Page, s StoryData, d *notify.Delivery) parts {
	made := tNotifMade
	if d.Status == notify.Skipped {
		made = tNotifSkipped
	}
	body, state := s.Bodies[d.EventID], wording.DeliveryState(d.Status, s.Parked[d.ID])
	return parts{
		what(strong(p.T(made)), eventTag(p, d.EventType), templ.Join(ui.ID(p, d.PublicID(), d.PublicID(), ""), ui.Pill(p, state))),
		ui.If(body != "", rawFold(p, s, foldID("body", d.ID), p.T(tFrozenBody), pretty(body))),
	}
}

func storyAttempt(p *ui.Page, s StoryData, a *notify.Attempt) parts {
	where := "· " + p.T(text.Node, a.Node)
	if a.Error != "" {
		where += " · " + wording.AttemptError(p, a.Error)
	}
	all := parts{
		what(strong(p.T(text.AttemptN, a.Number)), panel.Text(answered(a.HTTPStatus)+p.T(ui.ClassText(a.Class)))),
		block("meta wrap", ui.Styled("mono", a.URL), panel.Text(where)),
	}
	if want, got := expectation(p, s, a); want != "" {
		all = append(all, block("meta", panel.Text(p.T(tExpected))), changes([]change{{'-', want}, {'+', got}}))
	}
	return append(all, rawFold(p, s, foldID("attempt", a.ID), p.T(text.ReqRes), requestAndAnswer(a)))
}

func storyException(p *ui.Page, event text.Text, x *exception.Item) templ.Component {
	return what(strong(p.T(event)), templ.Join(exceptionLink(p, *x), ui.Pill(p, ui.StateOf(ui.ExceptionStates, x.State))))
}

func storyBreaker(p *ui.Page, b *breaker.Change) parts {
	cause := ui.Styled("meta", wording.BreakerCause(p, b.Cause, b.Failures))
	return parts{
		what(strong(p.T(tStoryBreaker)), ui.Pill(p, ui.BreakerBecame(b.To)), cause),
		ui.If(b.Actor != "", meta(wording.Actor(p, b.Actor)+" · "+b.Reason)),
	}
}

func storyCall(p *ui.Page, s StoryData, c *console.Call) parts {
	did := parts{strong(p.T(tCalled)), tag(p.T(wording.CallOp(c.Op))), tag(p.T(wording.CallResult(c))), panel.Text(answered(c.HTTPStatus))}
	if c.TookUS != nil {
		did = append(did, ui.Styled("meta", p.Took(time.Duration(*c.TookUS)*time.Microsecond)))
	}
	where := "· " + p.T(text.Node, c.Node)
	return parts{
		what(did...),
		block("meta wrap", titled("", c.Supplier, p.Supplier(c.Supplier)), panel.Text("·"), ui.Styled("mono", c.Reference), panel.Text(where)),
		ui.If(c.Request != "" || c.Answer != "", rawFold(p, s, foldID("call", c.ID), p.T(text.ReqRes), c.Request+"\n\n"+c.Answer)),
	}
}

func storyAct(p *ui.Page, r *audit.Row) parts {
	return parts{
		what(strong(wording.Actor(p, r.Actor)), panel.Text(p.T(wording.Act(r.Action)))),
		block("wrap", panel.Text(wording.ActReason(*r))),
		meta(wording.ActParams(p, *r)),
	}
}

func storyRefund(p *ui.Page, m *console.RefundMove) parts {
	of := m.Of
	number := ui.ID(p, of.RefundNo, ui.Tail(of.RefundNo), string(link.Refund(of.RefundNo)))
	return parts{
		fundMoved(p, text.Refund, number, ui.StateOf(ui.RefundStates, m.To), ui.Money(of.Amount, of.Currency), m.Change),
		ui.If(m.From == "" && of.Reason != "", meta(of.Reason)),
		ui.If(m.Detail != "", meta(m.Detail)),
	}
}

func storyDispute(p *ui.Page, m *console.DisputeMove) parts {
	of := m.Of
	number := ui.ID(p, of.DisputeNo, ui.Tail(of.DisputeNo), string(link.Dispute(of.DisputeNo)))
	return parts{
		fundMoved(p, text.Dispute, number, ui.StateOf(ui.DisputeStates, m.To), ui.Money(of.Amount, of.Currency), m.Change),
		ui.If(m.From == "", meta(ui.TextOrNone(p, p.T(ui.TextFor(wording.DisputeReasons, of.Reason))))),
	}
}

// fundMoved is the first line about a change of a refund or a dispute.
func fundMoved(p *ui.Page, label text.Text, number templ.Component, to ui.State, amount templ.Component, c booking.Change) templ.Component {
	by := ui.Styled("meta", p.T(text.VersionN, c.Version)+" · "+p.T(text.ByActor, wording.Actor(p, c.Actor)))
	return what(templ.Join(strong(p.T(label)), number), ui.Pill(p, to), bold(amount), by)
}

// Texts of this page.
var (
	tOrderMade    = text.Text{ZH: "下单", EN: "Order created"}
	tVerified     = text.Text{ZH: "验证通过 %d/%d", EN: "%d of %d checks passed"}
	tSameAs       = text.Text{ZH: "与第 1 次的差异：%d 行", EN: "Lines that differ from the first: %d"}
	tCompare      = text.Text{ZH: "并排比较", EN: "Compare side by side"}
	tWholeRaw     = text.Text{ZH: "查看全部", EN: "Show all"}
	tFrozenBody   = text.Text{ZH: "发给商户的正文", EN: "Body sent to the merchant"}
	tExpected     = text.Text{ZH: "期望与实际", EN: "Expected and received"}
	tExcSettled   = text.Text{ZH: "异常结束", EN: "Exception closed"}
	tNotifMade    = text.Text{ZH: "写入通知", EN: "Notification created"}
	tNotifSkipped = text.Text{
		ZH: "不通知：没有接收此类事件的地址，商户已关闭此类事件，或处于影子模式",
		EN: "Not sent: no endpoint accepts events of this type, the merchant has switched them off, or it was shadow mode",
	}
	tExcOpened = text.Text{ZH: "登记异常", EN: "Exception opened"}
)
