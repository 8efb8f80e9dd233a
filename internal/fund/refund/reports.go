package refund

import (
	"cmp"
	"context"
	"fmt"

	"backstop/internal/base/db"
	"backstop/internal/payment"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// report is one element of what suppliers reported about the refunds of a payment: a total, a
// number, or (neither of them) that all refunds were listed. Elements are never removed, and what
// is known of one only grows.
type report struct {
	bun.BaseModel `bun:"table:refund_reports,alias:rr"`

	AccountID  int64  `bun:"account_id"`
	TradeNo    string `bun:"trade_no"`
	Number     string `bun:"number"` // of the refund, the supplier's; "" = none
	Total      int64  `bun:"total"`  // supplier.UnknownTotal = some of the payment was refunded; 0 = none
	Amount     int64  `bun:"amount"` // of the refund
	Currency   string `bun:"currency"`
	Stage      stage  `bun:"stage"`
	ReceivedAt int64  `bun:"received_at"`
	NewsAt     int64  `bun:"news_at"`
	DatedFrom  int64  `bun:"dated_from"`
	DatedTo    int64  `bun:"dated_to"`
}

// onKnownReport adds what is new to an element that is stored.
const onKnownReport = "CONFLICT (trade_no, account_id, number, total) DO UPDATE SET" +
	" amount = CASE WHEN EXCLUDED.amount > rr.amount THEN EXCLUDED.amount ELSE rr.amount END," +
	" stage = CASE WHEN EXCLUDED.stage > rr.stage THEN EXCLUDED.stage ELSE rr.stage END," +
	" received_at = CASE WHEN EXCLUDED.received_at < rr.received_at THEN EXCLUDED.received_at ELSE rr.received_at END," +
	" news_at = CASE WHEN EXCLUDED.dated_to > rr.dated_to THEN EXCLUDED.news_at ELSE rr.news_at END," +
	" dated_from = CASE WHEN rr.dated_from = 0 OR EXCLUDED.dated_from <> 0 AND EXCLUDED.dated_from < rr.dated_from" +
	" THEN EXCLUDED.dated_from ELSE rr.dated_from END," +
	" dated_to = CASE WHEN EXCLUDED.dated_to > rr.dated_to THEN EXCLUDED.dated_to ELSE rr.dated_to END"

// merge is onKnownReport in memory.
func (r *report) merge(other report) {
	r.Amount, r.Stage, r.ReceivedAt = max(r.Amount, other.Amount), max(r.Stage, other.Stage), min(r.ReceivedAt, other.ReceivedAt)
	if other.DatedTo > r.DatedTo {
		r.NewsAt, r.DatedTo = other.NewsAt, other.DatedTo
	}
	if r.DatedFrom == 0 || other.DatedFrom != 0 && other.DatedFrom < r.DatedFrom {
		r.DatedFrom = other.DatedFrom
	}
}

// write stores elements, in one order.
func writeReports(w *db.Writes, all []report) {
	if len(all) > 0 {
		w.Insert(&all, onKnownReport)
	}
}

func readReports(ctx context.Context, q bun.IDB, t payment.Trade) (all []report, err error) {
	err = q.NewSelect().Model(&all).Where("rr.trade_no = ? AND rr.account_id = ?", t.No, t.AccountID).
		OrderExpr("rr.received_at, rr.number, rr.total").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what is reported about refunds: %w", err)
	}
	return all, nil
}

// reportOf returns the element of a message; false = it has none that could be kept. A refund of
// ours, which is known by its own row, is none.
func reportOf(n payment.RefundNotice) (r report, ok bool) {
	c := n.Content
	r = report{
		AccountID: n.Supplier.AccountID, TradeNo: c.TradeNo, Currency: c.Currency, ReceivedAt: n.ReceivedAt, NewsAt: n.ReceivedAt,
	}
	date, at := int64(0), c.OccurredAt
	if c.Status == supplier.Paid { // that of a payment is not the refund's
		at = c.TotalAt
	}
	if !at.IsZero() {
		date = at.UnixMicro()
	}
	said := c.Refund
	if c.Status == supplier.Refunded {
		said = supplier.RefundSucceeded
	}
	switch {
	case c.TradeNo == "":
		return r, false
	case c.RefundTotal != 0:
		r.Total, r.DatedFrom, r.DatedTo = c.RefundTotal, date, date
	case c.Status == supplier.Closed && c.Reverses:
		r.Total, r.Currency = wholePayment, "" // its amount may be anything
	case cmp.Or(c.RefundID, c.RefundNo) != "" && stageOf(said) != 0 && c.Amount > 0:
		r.Number, r.Amount, r.Stage = cmp.Or(c.RefundID, c.RefundNo), c.Amount, stageOf(said)
		if r.Stage == failed {
			r.DatedFrom, r.DatedTo = date, date
		}
	default:
		return r, false
	}
	return r, true
}

// learn adds elements to the facts. It returns the amount of what is in another currency than the
// payment, which the formula leaves out.
func (f *facts) learn(all []report, currency string) (foreign report) {
	for _, r := range all {
		switch {
		case r.Currency != "" && r.Currency != currency:
			foreign = r
		case r.Total == supplier.UnknownTotal:
			f.someAt = r.ReceivedAt
		case r.Total > 0:
			f.totals = append(f.totals, total{r.Total, r.ReceivedAt, r.NewsAt, r.DatedFrom, r.DatedTo})
		case r.Number != "":
			f.numbers = append(f.numbers, number{r.Number, r.Amount, r.Stage, r.ReceivedAt, r.DatedFrom})
		default:
			f.listedAt = max(f.listedAt, r.NewsAt)
		}
	}
	return foreign
}
