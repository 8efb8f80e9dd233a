package orders

import (
	"slices"

	"backstop/internal/base/text"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// money is what the buyer paid, what was taken from it, and what is left.
func (s StoryData) money() []ui.Fact {
	o, m := s.Order, s.Money
	facts := []ui.Fact{
		ui.MoneyFact(text.Payable, o.Amount, o.Currency),
	}
	if got := s.Received(); got.Apart() {
		for _, sum := range got.Sums(o.Currency) {
			facts = append(facts, ui.MoneyFact(tReceived, sum.Minor, sum.Currency))
		}
		facts = append(facts, ui.MoneyFact(tInOrder, got.InOrder, o.Currency))
	} else {
		facts = append(facts, ui.MoneyFact(text.PaidSum, o.PaidAmount, o.Currency))
	}
	if o.PaidAmount == 0 {
		return facts
	}
	difference := "strong t-bad"
	if o.PaidAmount == o.Amount {
		difference = "strong t-ok"
	}
	return append(
		facts,
		ui.MoneyFact(text.Difference, o.PaidAmount-o.Amount, o.Currency).As(difference),
		ui.MoneyFact(text.Fee, -m.FeeAmount, o.Currency).If(m.FeeAmount != 0),
		ui.MoneyFact(text.FeeReturned, m.FeeReturned, o.Currency).If(m.FeeReturned != 0),
		ui.MoneyFact(tRefunded, -m.RefundedAmount, o.Currency).If(m.RefundedAmount != 0),
		ui.MoneyFact(tRefundsHeld, -m.RefundsHeld, o.Currency).If(m.RefundsHeld != 0),
		ui.MoneyFact(tDisputed, -m.Disputed, o.Currency).If(m.Disputed != 0),
		ui.MoneyFact(text.DisputeFee, -m.DisputeFees, o.Currency).If(m.DisputeFees != 0),
		ui.MoneyFact(tNetAmount, m.Net(), o.Currency).As("strong").If(m.Reduced() || len(s.Refunds) > 0 || len(s.Disputes) > 0),
	)
}

// ledgerColumns are those of what an order's transfers make of each account, and then of all.
var ledgerColumns = panel.SumColumns(tLedgerSum, func(s panel.AccountSum) panel.AccountSum { return s })

// asideItem is one of the newest rows of a list about an order.
type asideItem struct {
	icon  string
	body  templ.Component
	state ui.State
}

func (s StoryData) refundItems() (all []asideItem) {
	for _, r := range slices.Backward(s.Refunds[max(0, len(s.Refunds)-asideRows):]) {
		all = append(all, asideItem{"undo-2", moneyLink(link.Refund(r.RefundNo), r.Amount, r.Currency), ui.StateOf(ui.RefundStates, r.Status)})
	}
	return all
}

func (s StoryData) disputeItems() (all []asideItem) {
	for _, d := range slices.Backward(s.Disputes[max(0, len(s.Disputes)-asideRows):]) {
		all = append(all, asideItem{"scale", moneyLink(link.Dispute(d.DisputeNo), d.Amount, d.Currency), ui.StateOf(ui.DisputeStates, d.Status)})
	}
	return all
}

func (s StoryData) exceptionItems(p *ui.Page) (all []asideItem) {
	for _, x := range s.Exceptions[:min(len(s.Exceptions), asideRows)] {
		amount := ui.If(x.Currency != "" && x.Amount != 0, ui.Money(x.Amount, x.Currency))
		all = append(all, asideItem{wording.ExceptionIcon(x.Kind), panel.Spaced(exceptionLink(p, x), amount), ui.StateOf(ui.ExceptionStates, x.State)})
	}
	return all
}

func (s StoryData) deliveryItems(p *ui.Page) (all []asideItem) {
	for _, d := range s.Deliveries[:min(len(s.Deliveries), asideRows)] {
		kind := titled("", d.EventType, p.T(wording.EventType(d.EventType)))
		tries := ui.Styled("muted small", p.T(tAttemptsN, ui.Count(d.Attempts)))
		all = append(all, asideItem{"bell-ring", panel.Spaced(kind, tries), wording.DeliveryState(d.Status, s.Parked[d.ID])})
	}
	return all
}

// Texts of this page.
var (
	tExpires       = text.Text{ZH: "到期", EN: "Expires"}
	tMoneyCheck    = text.Text{ZH: "资金核对", EN: "Money check"}
	tReceived      = text.Text{ZH: "渠道实收", EN: "Received"}
	tInOrder       = text.Text{ZH: "计入订单", EN: "In the order"}
	tSuspenseTitle = text.Text{ZH: "挂账，未计入订单", EN: "Held in suspense, not in the order"}
	tHeldTitle     = text.Text{ZH: "渠道有、账上没有", EN: "At the supplier, not in the books"}
	tTakenTitle    = text.Text{ZH: "账上有、渠道已退或在争议", EN: "In the books, refunded or disputed at the supplier"}
	tItems         = text.Text{ZH: "商品", EN: "Items"}
	tCloseReason   = text.Text{ZH: "关闭原因", EN: "Close reason"}
	tAttemptsList  = text.Text{ZH: "通知", EN: "Notifications"}
	tLedgerNone    = text.Text{ZH: "这笔订单还没有记账。", EN: "Nothing is booked for this order."}
	tJournal       = text.Text{ZH: "凭证", EN: "Journal"}
	tTransfers     = text.Text{ZH: "分录明细（%s 笔）", EN: "Entries: %s"}
	tLedgerSum     = text.Text{ZH: "合计", EN: "Sum"}
)

// asideRows is how many rows the lists beside a story have.
const asideRows = 20
