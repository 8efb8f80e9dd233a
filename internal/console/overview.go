package console

import (
	"context"
	"fmt"

	"backstop/internal/callback"
	"backstop/internal/compensation"

	"github.com/uptrace/bun"
)

// riskRows bounds what one part of the overview counts; beyond it the page says
// "+". Counters that the writing transactions keep would lift the bound.
const riskRows = 5000

// Amount is money of one currency and how many orders it is.
type Amount struct {
	Currency string `bun:"currency"`
	Minor    int64  `bun:"minor"`
	Orders   int64  `bun:"orders"`
}

// Risk is one of the disjoint parts of the money at risk.
type Risk struct {
	Amounts []Amount // per currency: currencies are never added up
	Cut     bool     // there is more than was counted
}

// Orders is how many orders the part has.
func (r Risk) Orders() (n int64) {
	for _, a := range r.Amounts {
		n += a.Orders
	}
	return n
}

// Overview is what needs to be seen first.
type Overview struct {
	Untold       Risk // paid, and the merchant does not know yet
	GivenUp      Risk // paid, and all attempts to tell the merchant are used up
	Stuck        Risk // should have gone on by itself
	Mismatch     Risk // the money does not fit the order
	Waiting      int64
	Overdue      int64
	OldestDue    int64 // Unix µs, 0 = nothing waits
	WaitingMore  bool  // there is more than was counted
	Exceptions   []compensation.Item
	Callbacks    []callback.Row
	HasMerchants bool
	HasOrders    bool
}

// overviewRows is how many exceptions and callbacks the overview shows.
const overviewRows = 8

// mismatches are exceptions about money that does not fit.
var mismatches = []string{
	compensation.AmountMismatch, compensation.CurrencyMismatch, compensation.AccountMismatch,
	compensation.LatePayment, compensation.DuplicatePayment, compensation.UnknownOrder,
}

// Overview reads the overview.
func (b *Book) Overview(ctx context.Context) (*Overview, error) {
	o, late := new(Overview), b.db.Now()-overdueAfter.Microseconds()
	var err error
	for _, part := range []struct {
		into  *Risk
		query string
		args  []any
	}{
		{&o.Untold, "SELECT o.currency, o.amount FROM deliveries AS d JOIN orders AS o ON o.id = d.subject_id" +
			" WHERE d.next_at IS NOT NULL AND d.event_type = 'order.paid'", nil},
		{&o.GivenUp, "SELECT x.currency, x.amount FROM exceptions AS x JOIN orders AS o ON o.order_no = x.order_no" +
			" WHERE x.kind = 'notify_exhausted' AND x.state IN (?) AND o.status = 'paid'", []any{bun.List(stillOpen)}},
		{&o.Stuck, "SELECT currency, amount FROM orders WHERE next_at IS NOT NULL AND next_at < ?", []any{late}},
		{&o.Mismatch, "SELECT currency, amount FROM exceptions WHERE kind IN (?) AND state IN (?)", []any{bun.List(mismatches), bun.List(stillOpen)}},
	} {
		if *part.into, err = b.risk(ctx, part.query, part.args); err != nil {
			return nil, err
		}
	}
	var due struct {
		Waiting, Overdue, Oldest int64
	}
	err = b.db.Read.NewRaw("SELECT count(*) AS waiting, COALESCE(sum(CASE WHEN next_at < ? THEN 1 ELSE 0 END), 0) AS overdue,"+
		" COALESCE(min(next_at), 0) AS oldest FROM (SELECT next_at FROM deliveries WHERE next_at IS NOT NULL LIMIT ?) AS w",
		late, riskRows).Scan(ctx, &due)
	if err != nil {
		return nil, fmt.Errorf("count what waits: %w", err)
	}
	o.Waiting, o.Overdue, o.OldestDue, o.WaitingMore = due.Waiting, due.Overdue, due.Oldest, due.Waiting == riskRows
	if o.Exceptions, _, err = compensation.List(ctx, b.db.Read, compensation.Query{State: compensation.Opened, Limit: overviewRows}); err != nil {
		return nil, err
	}
	if o.Callbacks, _, err = callback.List(ctx, b.db.Read, callback.Query{Refused: true, Limit: overviewRows}); err != nil {
		return nil, err
	}
	o.HasMerchants = b.settings.Merchants().Len() > 0
	var any []int64
	if err := b.db.Read.NewRaw("SELECT id FROM orders ORDER BY id DESC LIMIT 1").Scan(ctx, &any); err != nil {
		return nil, fmt.Errorf("look for orders: %w", err)
	}
	o.HasOrders = len(any) > 0
	return o, nil
}

// stillOpen are the states in which money of an exception is at risk.
var stillOpen = []string{"open", "assigned", "proposed", "approved", "executing"}

func (b *Book) risk(ctx context.Context, query string, args []any) (Risk, error) {
	var r Risk
	err := b.db.Read.NewRaw("SELECT currency, count(*) AS orders, CAST(sum(amount) AS BIGINT) AS minor FROM ("+query+" LIMIT ?) AS w"+
		" GROUP BY currency ORDER BY orders DESC, currency", append(args, riskRows)...).Scan(ctx, &r.Amounts)
	if err != nil {
		return r, fmt.Errorf("sum up money at risk: %w", err)
	}
	r.Cut = r.Orders() >= riskRows
	return r, nil
}
