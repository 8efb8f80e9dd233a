package orders

import (
	"net/url"
	"slices"
	"strconv"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/internal/report"
	"backstop/views/panel"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// orderPath is a path below an order's.
func orderPath(no, act string) templ.SafeURL {
	return templ.URL("/orders/" + url.PathEscape(no) + "/" + act)
}

// phasePath is the story, or a part of it, with the events of one phase.
func phasePath(s StoryData, part string, phase console.Phase) templ.SafeURL {
	path := "/orders/" + url.PathEscape(s.Order.OrderNo) + part
	if phase != "" {
		path += "?phase=" + url.QueryEscape(string(phase))
	}
	return templ.URL(path)
}

// phaseLink is an ordinary link, so that it works without scripts.
func phaseLink(p *ui.Page, s StoryData, phase console.Phase, label text.Text, n int64) templ.Component {
	page := phasePath(s, "", phase)
	more := templ.Attributes{"id": "phase-" + string(phase)}
	if s.Unmask.Until == 0 {
		more["hx-get"], more["hx-target"] = string(phasePath(s, "/_story", phase)), "#story"
		more["hx-swap"], more["hx-push-url"] = "outerHTML", string(page)
	}
	if phase == s.Phase {
		more["aria-current"] = "true"
	}
	return panel.Linked(page, more, panel.Text(p.T(label)+" "+ui.Count(n)))
}

// stepLink leads to one event; where it is filtered out, to the whole story.
func stepLink(s StoryData, i int) templ.SafeURL {
	anchor := "#s-" + strconv.Itoa(i+1)
	if s.Phase == "" || s.Items[i].Phase == s.Phase {
		return templ.URL(anchor)
	}
	return phasePath(s, "", "") + templ.SafeURL(anchor)
}

func diffPath(no string, a, b *console.Callback) templ.SafeURL {
	return orderPath(no, "_diff?a="+strconv.FormatInt(a.ID, 36)+"&b="+strconv.FormatInt(b.ID, 36))
}

func rawPath(no string, c *console.Callback) templ.SafeURL {
	return orderPath(no, "events/"+strconv.FormatInt(c.ID, 36)+"/_raw")
}

// takenBack are the open exceptions by which the supplier gave back, or may have to, what is in the
// books.
func takenBack(s *console.Story) (all []exception.Item) {
	for _, x := range s.Exceptions {
		if exception.CarriesMoney(x.Kind) && !exception.IsHeld(x.Kind) && x.State.Open() && x.Currency != "" && x.Amount != 0 {
			all = append(all, x)
		}
	}
	return all
}

// total is how many events of a kind the order has: those that were read, and those
// between them.
func total(s StoryData, kind console.ItemKind, read int) console.LeftCount {
	c := s.Left.Events[kind]
	c.N += int64(read)
	return c
}

// sumsOf adds up exceptions by currency.
func sumsOf(all []exception.Item) []report.Sum {
	var s report.Standing
	for _, x := range all {
		s.Add(report.Sum{Currency: x.Currency, Orders: 1, Minor: x.Amount})
	}
	return s.Sums
}

// ledgerSums adds up both sides of the order's transfers by account, and then all of each currency.
func ledgerSums(s *console.Story) []panel.AccountSum {
	var sums, totals []panel.AccountSum
	add := func(to *[]panel.AccountSum, account, currency string, debit, credit int64) {
		i := slices.IndexFunc(*to, func(x panel.AccountSum) bool { return x.Account == account && x.Currency == currency })
		if i < 0 {
			i, *to = len(*to), append(*to, panel.AccountSum{Account: account, Currency: currency})
		}
		(*to)[i].Debit += debit
		(*to)[i].Credit += credit
	}
	for _, t := range s.Transfers {
		add(&sums, t.Debit, t.Currency, t.Amount, 0)
		add(&sums, t.Credit, t.Currency, 0, t.Amount)
		add(&totals, "", t.Currency, t.Amount, t.Amount)
	}
	return append(sums, totals...)
}

// takenLater are the kinds of lines that change what the merchant has of a payment.
var takenLater = []fact.Kind{fact.KindFee, fact.KindRefund, fact.KindRefundFailed, fact.KindDispute, fact.KindDisputeWon}

// ledgerState compares the entries with what was received: what the merchant was credited, without
// fees, refunds and disputes, and what is held.
func ledgerState(s *console.Story) ui.State {
	var credited int64
	own := ledger.MerchantAccount(s.Merchant.Code)
	for _, t := range s.Transfers {
		row, _, ok := fact.Of(t.Ref, false)
		switch {
		case ok && slices.Contains(takenLater, row.Kind), t.Currency != s.Order.Currency:
		case t.Credit == own:
			credited += t.Amount
		case t.Debit == own:
			credited -= t.Amount
		}
	}
	got := s.Received()
	right := credited == got.InOrder && !slices.ContainsFunc(got.Held, func(x exception.Item) bool {
		return !slices.ContainsFunc(s.Transfers, func(t ledger.Line) bool {
			return t.Ref == x.HeldRef && t.Amount == x.Amount && t.Currency == x.Currency
		})
	})
	switch {
	case !right:
		return ui.State{Kind: "bad", Icon: "scale", Label: tLedgerWrong}
	case len(got.Held) > 0:
		return ui.State{Kind: "ok", Icon: "check", Label: tLedgerHeld}
	}
	return ui.State{Kind: "ok", Icon: "check", Label: tLedgerRight}
}

// Texts of this page.
var (
	tLedgerRight = text.Text{ZH: "等于实付", EN: "Equals the amount paid"}
	tLedgerHeld  = text.Text{ZH: "与实收一致", EN: "Equals what was received"}
	tRefundsHeld = text.Text{ZH: "退款冻结中", EN: "Held for refunds"}
	tLedgerWrong = text.Text{ZH: "与实收不符", EN: "Differs from what was received"}
)
