package work

import (
	"encoding/json"
	"strconv"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/verify"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// ExceptionData is what one exception's page shows.
type ExceptionData struct {
	*console.Exception
	Unmask panel.Unmask
	Saved  bool   // what the person has just sent was kept
	Key    string // of the one form that is sent
	// What the reader may do now.
	CanComment, CanAssign, CanReopen, CanAsk, CanRun bool

	Colleagues []string // whom a note can reach

	People    []string // who may take it in hand
	MayDecide []string // the roles that may
}

// ExceptionPage is one exception: what happened, its money, its message, and what may be done about it.
func ExceptionPage(p *ui.Page, x ExceptionData) templ.Component {
	differing := x.differing()
	return ui.DetailPage(p, ui.Detail{
		List: ui.Link{Href: "/exceptions", Label: text.Exceptions}, Saved: x.Saved,
		Notices: []templ.Component{panel.UnmaskNotice(p, x.Unmask)},
		Title:   p.T(ui.KindText(x.Kind)), State: ui.StateOf(ui.ExceptionStates, x.State),
		About: []ui.Fact{
			ui.TimeFact(text.Text{}, &x.OpenedAt), ui.BodyFact(text.Text{}, ui.Away(p, x.OpenedAt)),
			ui.TextFact(text.Text{}, "", p.T(tSeenN, ui.Count(x.Seen))),
		},
		Actions: []templ.Component{panel.UnmaskButton(p, x.Unmask)},
		Icon:    wording.ExceptionIcon(x.Kind), Says: happenedText(p, x.Exception), Next: []string{nextText(p, x)},
		Main: []templ.Component{
			exceptionFacts(p, x), ui.If(len(differing) > 0, differingRows(p, differing)), exceptionMessage(p, x), keptMessages(p, x),
			ui.If(x.OrderID != 0 && (x.Askable || x.Answer != nil), answerPanel(
				p, x.Answer, false,
				ui.If(x.CanAsk && x.Askable, panel.QueryForm(p, link.Exception(x.ID)+"/query", x.Key, text.QueryNow, text.QueryNowHow)),
			)),
			exceptionHistory(p, x.Acts),
		},
		Side: append([]templ.Component{panel.Proposals(p, x.Approvals)}, exceptionForms(p, x)...),
		Foot: []templ.Component{panel.UnmaskDialog(p, x.Unmask)},
	})
}

// exceptionFacts is the money of an exception and what else is known of it.
func exceptionFacts(p *ui.Page, x ExceptionData) templ.Component {
	known, readable := wording.ExceptionFacts(p, x.Item)
	return panel.Body(
		p, "what-title", tWhatIsWrong, ui.FactList(p, x.facts(p, known)...),
		ui.If(!readable && len(x.Detail) > 0, ui.Code(string(x.Detail))),
		ui.If(x.OrderNo != "", itsCallbacks(p, x.OrderNo)),
	)
}

// facts are its money and what else is known of it; known are those of its detail.
func (x ExceptionData) facts(p *ui.Page, known []ui.Fact) []ui.Fact {
	facts := []ui.Fact{
		ui.MoneyFact(text.Amount, x.Amount, x.Currency),
		ui.IDFact(tHeldAs, x.HeldRef, ""),
		x.order(p),
		ui.IDFact(x.reference(), x.Subject, subjectLink(x)),
		ui.SupplierFact(p, x.Supplier),
		ui.MerchantFact(p, x.Merchant),
		ui.TextFact(text.End, "strong", p.T(wording.ExceptionOutcome(x.Outcome))).If(x.Outcome != ""),
		ui.IDFact(text.Proof, x.Item.Reference, "").Whole(),
		ui.LinkFact(tDecidedBy, "apr_"+strconv.FormatInt(x.DecidedBy, 10), link.Approval(x.DecidedBy)).If(x.DecidedBy != 0),
	}
	for _, f := range known {
		facts = append(facts, f.If(f.Text != x.Supplier && f.Text != x.Subject))
	}
	return facts
}

// order is its order, with a link where it is one of ours.
func (x ExceptionData) order(p *ui.Page) ui.Fact {
	switch {
	case x.OrderID != 0 || x.OrderNo != "" && x.Kind != exception.UnknownOrder:
		return ui.IDFact(text.Order, x.OrderNo, string(link.Order(x.OrderNo))).Whole()
	case x.OrderNo != "":
		return ui.IDFact(text.Order, x.OrderNo, "").Whole()
	}
	return ui.TextFact(text.Order, "", p.T(text.None))
}

// reference names what the exception's subject is.
func (x ExceptionData) reference() text.Text {
	switch x.Kind {
	case exception.DisputeOpened:
		return text.DisputeNo
	case exception.UnknownEvent:
		return text.EventType
	case exception.CompensationDead:
		return text.Compensation
	}
	return tReference
}

// open reports whether operators still work on it; else it may be opened again.
func (x ExceptionData) open() bool { return x.State.Open() }

// differing is a row that does not agree with the books.
type differing struct {
	Object string `json:"object"`
	ID     string `json:"id"`
}

// differingRows are the rows that an exception about the books is about.
func differingRows(p *ui.Page, facts []ui.Fact) templ.Component {
	return panel.Body(p, "rows-title", tDiffering, panel.Small(p.T(tDifferingHow)), ui.FactList(p, facts...))
}

// differing are the rows that an exception about the books names.
func (x ExceptionData) differing() (facts []ui.Fact) {
	var detail struct {
		Rows []differing `json:"rows"`
	}
	_ = json.Unmarshal(x.Detail, &detail) // what cannot be read names none
	for _, row := range detail.Rows {
		facts = append(facts, ui.IDFact(ui.TextFor(differingWords, row.Object), row.ID, row.link()).Whole())
	}
	return facts
}

// link leads to the row; "" = it has no page of its own.
func (d differing) link() string {
	switch d.Object {
	case verify.OfOrder:
		return string(link.Order(d.ID))
	case verify.OfTrade:
		return "/search?q=" + link.Query(d.ID)
	case verify.OfCallback:
		return "/callbacks/" + d.ID
	case verify.OfException:
		return "/exceptions/" + d.ID
	case verify.OfApproval:
		return "/approvals/" + d.ID
	case verify.OfPayout:
		return "/payouts/" + d.ID
	}
	return ""
}

// differingWords are what such rows are.
var differingWords = map[string]text.Text{
	verify.OfOrder:     text.Order,
	verify.OfTrade:     text.TradeNo,
	verify.OfAccount:   {ZH: "账户", EN: "Account"},
	verify.OfCallback:  {ZH: "回调", EN: "Callback"},
	verify.OfException: {ZH: "异常", EN: "Exception"},
	verify.OfApproval:  {ZH: "提议", EN: "Approval"},
	verify.OfEntry:     {ZH: "分录", EN: "Ledger entry"},
	verify.OfPayout:    {ZH: "出款", EN: "Payout"},
}

// paymentStates are what a supplier's message says of a payment.
var paymentStates = map[string]text.Text{
	"paid":     text.Paid,
	"failed":   text.Failed,
	"closed":   {ZH: "已关闭", EN: "Closed"},
	"refunded": {ZH: "已退款", EN: "Refunded"},
}

// happened is what an exception of each kind means: %[1]s is its money, %[2]s its number.
var happened = map[string]text.Text{
	exception.UnknownOrder: {
		ZH: "渠道收到付款 %[1]s，单号 %[2]s 没有对应的订单。",
		EN: "%[1]s was paid under the number %[2]s, which belongs to no order.",
	},
	exception.AmountMismatch:   {ZH: "买家支付了 %[1]s，与订单金额不符。", EN: "The buyer paid %[1]s, which is not the order's amount."},
	exception.CurrencyMismatch: {ZH: "买家支付了 %[1]s，与订单币种不符。", EN: "The buyer paid %[1]s, which is not in the order's currency."},
	exception.AccountMismatch:  {ZH: "%[1]s 付到了另一个收款账户。", EN: "%[1]s was paid to a different account than the order's."},
	exception.LatePayment:      {ZH: "订单结束之后才收到付款 %[1]s。", EN: "%[1]s was paid after the order had ended."},
	exception.DuplicatePayment: {
		ZH: "已支付的订单又收到一笔付款 %[1]s。",
		EN: "A second payment of %[1]s arrived for an order that is already paid.",
	},
	exception.UnknownRefund: {ZH: "渠道退款 %[1]s，我方没有发起。", EN: "The supplier refunded %[1]s, which nobody requested here."},
	exception.RefundFailed: {
		ZH: "退款 %[1]s 需要人工处理：详情写明渠道的说法，款项在有结果前保持冻结。",
		EN: "A refund of %[1]s needs a person; the detail says why. Its money stays held until the refund ends.",
	},
	exception.PayoutStuck: {
		ZH: "出款 %[1]s 没有结论：请核对渠道账单，由两人裁定成功或失败。在此之前款项不会移动。",
		EN: "A payout of %[1]s has no result. Check the supplier's statement; two people then decide whether it succeeded. Until then no money moves.",
	},
	exception.PayoutReturned: {
		ZH: "出款 %[1]s 成功后被退回：详情写明是否已入账。",
		EN: "A payout of %[1]s succeeded and was then returned; the detail says whether that was booked.",
	},
	exception.PayoutAfterReversal: {
		ZH: "出款 %[1]s 冲正之后又到账：详情写明经过，已再次扣减商户余额的请向商户说明。",
		EN: "A payout of %[1]s arrived after its reversal. If the merchant was debited again, explain why to the merchant.",
	},
	exception.SupplierShort: {
		ZH: "我方在渠道的账户余额不足，出款或退款 %[1]s 每 30 分钟重试，最多三天：请给账户充值。",
		EN: "Our account at the supplier has too little money for a payout or refund of %[1]s. Top it up; it is tried every 30 minutes for three days.",
	},
	exception.DisputeOpened: {ZH: "买家的银行要求退回 %[1]s。", EN: "The buyer's bank demands %[1]s back."},
	exception.Complaint: {
		ZH: "买家向渠道投诉：请在渠道的页面上回复。不记账。",
		EN: "A buyer complained to the supplier: answer it on the supplier's pages. Nothing is booked.",
	},
	exception.UnknownEvent:          {ZH: "渠道发来一种未处理的消息类型，消息本身真实。", EN: "An authentic message has a type that Backstop does not handle."},
	exception.DecryptFailed:         {ZH: "渠道消息真实，但无法解密。", EN: "An authentic message cannot be decrypted."},
	exception.Malformed:             {ZH: "渠道消息真实，但内容不完整。", EN: "An authentic message lacks required content."},
	exception.NotifyExhausted:       {ZH: "商户没有收到通知：重试已用尽。", EN: "The merchant was not notified: all attempts failed."},
	exception.SubscriptionExhausted: {ZH: "内部系统没有收到通知：重试已用尽。", EN: "One of your own systems was not notified: all attempts failed."},
	exception.StuckPaying:           {ZH: "多次查单，渠道一直没有给出结果。", EN: "The supplier was queried many times without a result."},
	exception.CompensationDead:      {ZH: "补偿任务重试用尽，没有完成。", EN: "A compensation ran out of tries."},
	"stock_short":                   {ZH: "订单已支付，但部分库存不足。", EN: "The order is paid, but part of its goods is out of stock."},
	"books_differ":                  {ZH: "巡检发现统计与记录不一致。", EN: "The sweep found figures that differ from their rows."},
}

// happenedText is what happened in one sentence.
func happenedText(p *ui.Page, x *console.Exception) string {
	w, ok := happened[x.Kind]
	switch {
	case !ok:
		return p.T(ui.KindText(x.Kind))
	case !exception.CarriesMoney(x.Kind):
		return p.T(w)
	}
	money := p.T(tSomeMoney)
	if x.Currency != "" {
		money = ui.MoneyText(x.Amount, x.Currency)
	}
	return p.T(w, money, x.OrderNo)
}

// subjectLink leads to what an exception is about beside its order; "" = nowhere.
func subjectLink(x ExceptionData) string {
	switch x.Kind {
	case exception.CompensationDead:
		return "/compensations/" + x.Subject
	case exception.NotifyExhausted:
		return "/notifications/" + x.Subject
	case exception.DisputeOpened:
		return wording.DisputeHref(x.Detail)
	}
	return ""
}

// nextText says what goes on from here.
func nextText(p *ui.Page, x ExceptionData) string {
	switch {
	case x.State == "proposed":
		return p.T(tExcProposed)
	case !x.open():
		return p.T(tExcOver)
	case p.Decisions != nil:
		return p.T(tExcDecide)
	}
	return p.T(text.WhyExceptionHow)
}

// Texts of this page.
var (
	tMsgReference = text.Text{ZH: "消息中的单号", EN: "Number in the message"}
	tMsgIdentity  = text.Text{ZH: "收款账户", EN: "Account"}
	tOurAccount   = text.Text{ZH: "我方账户", EN: "our own"}
	tSaidMessage  = text.Text{ZH: "渠道消息", EN: "The supplier's message"}
	tMsgGone      = text.Text{
		ZH: "消息内容已不可得（已超过保留期），因此不能关联到订单。",
		EN: "The content of the message is no longer available (past its retention), so it cannot be attached to an order.",
	}
	tMsgGoneRow = text.Text{
		ZH: "消息内容已不可得（已超过保留期）。确认入账时以本页所示的订单、渠道流水号和金额为准。",
		EN: "The content of the message is no longer available (past its retention). Accepting the payment confirms the order, trade number and amount shown above.",
	}
	tMsgPast = text.Text{
		ZH: "原始消息已超过保留期；以上内容在收到时留存。",
		EN: "The message itself is past its retention; this content was stored when it arrived.",
	}
	tMsgWhole    = text.Text{ZH: "查看这条回调", EN: "Open this callback"}
	tSomeMoney   = text.Text{ZH: "一笔款项", EN: "An amount"}
	tExcProposed = text.Text{ZH: "已提出处理方式，等待第二个人复核。", EN: "A decision was proposed and waits for a second person."}
	tExcOver     = text.Text{ZH: "已结束。", EN: "It has ended."}
	tExcDecide   = text.Text{ZH: "请核对后选择处理方式。", EN: "Check the facts, then choose a decision."}
	tRunDead     = text.Text{ZH: "重新执行", EN: "Run again"}
	tSendAgain   = text.Text{ZH: "在订单页补发通知", EN: "Send it again on the order's page"}
	tOnlyRoles   = text.Text{
		ZH: "涉及资金：只有 %s 可以提出处理方式，并由另一个人复核。",
		EN: "This is about money: only %s may propose a decision, and another person must approve it.",
	}
	tHeldAs       = text.Text{ZH: "挂账", EN: "In suspense"}
	tDiffering    = text.Text{ZH: "不一致的记录", EN: "Rows that differ"}
	tDifferingHow = text.Text{ZH: "最近一次检查发现的记录，最多 100 条。", EN: "From the latest check; at most 100."}
	tDecidedBy    = text.Text{ZH: "依据", EN: "Decided by"}
	tKept         = text.Text{ZH: "留存的回调", EN: "Kept callbacks"}
	tKeptCut      = text.Text{ZH: "正文共 %[2]s 字节，只留存前 %[1]s 字节。", EN: "The first %s of the body's %s bytes are kept."}
	tKeptHow      = text.Text{
		ZH: "原记录的保留期已到；异常未结，所以留存最早的 5 个。",
		EN: "The original records are past their retention. The five oldest are kept while the exception is open.",
	}
	tNoActivity    = text.Text{ZH: "暂无处理记录", EN: "No activity yet"}
	tNoActivityHow = text.Text{ZH: "备注、指派和处理结果都会记在这里。", EN: "Notes, assignments and the outcome appear here."}
	tPeopleSaid    = text.Text{ZH: "人工处理记录", EN: "Notes and acts"}
	tReference     = text.Text{ZH: "渠道流水号或通知编号", EN: "Supplier's number or notification"}
	tReopen        = text.Text{ZH: "重新打开", EN: "Reopen"}
	tReopenHow     = text.Text{
		ZH: "异常回到待处理并再次告警；之前的结果留在审计中。",
		EN: "The exception is open again and raises an alert; its previous outcome stays in the audit.",
	}
	tSeenN        = text.Text{ZH: "上报 %s 次", EN: "times reported: %s"}
	tWhatIsWrong  = text.Text{ZH: "问题", EN: "Problem"}
	tItsCallbacks = text.Text{ZH: "这个编号的全部回调", EN: "All callbacks of this number"}
)
