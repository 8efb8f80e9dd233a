package console

import (
	"context"
	"fmt"
	"strconv"

	"backstop/internal/act"
	"backstop/internal/comparison"
	"backstop/internal/list"
)

// ComparisonList declares the list of comparisons with another system, which are about all merchants.
var ComparisonList = list.New(list.Spec{
	Name:    "comparisons",
	Sources: []list.Source{{Table: "comparisons", Alias: "cm", Key: "id", MerchantColumn: list.NoMerchant}},
})

// DifferenceList declares the list of the orders of one comparison that differed.
var DifferenceList = list.New(list.Spec{
	Name: "differences", Of: "comparison", NoTimeFilter: true,
	Sources: []list.Source{{
		Table: "comparison_rows", Alias: "cr", Key: "id", MerchantColumn: list.NoMerchant,
		Columns: "cr.*, COALESCE(o.currency, '') AS currency, COALESCE(o.status, '') AS now_status," +
			" COALESCE(o.paid_amount, 0) AS now_paid, COALESCE(o.supplier_trade_no, '') AS now_trade_no",
		Joins: "LEFT JOIN orders AS o ON o.order_no = cr.order_no",
	}},
	Fields: []list.Field{
		{Name: "comparison", Column: "comparison_id", Indexed: true, Hidden: true, Check: list.ID},
		{Name: "side", Column: "side", Values: comparison.Sides},
	},
})

// Difference is an order that differed when it was compared, with what has become of it since.
type Difference struct {
	comparison.Row `bun:",extend"`

	Currency   string `bun:"currency,scanonly"` // "" = there is no such order here
	NowStatus  string `bun:"now_status,scanonly"`
	NowPaid    int64  `bun:"now_paid,scanonly"`
	NowTradeNo string `bun:"now_trade_no,scanonly"`
}

// Settled reports whether the order has become here what it had become in the other system.
func (d *Difference) Settled() bool {
	now := comparison.Outcome{Status: d.NowStatus, PaidAmount: d.NowPaid, TradeNo: d.NowTradeNo}
	return d.Side != comparison.Here && now.Agrees(d.There())
}

// Comparisons reads one page of comparisons, newest first.
func (b *Reader) Comparisons(ctx context.Context, q list.Query, s list.Slice) (list.Page[comparison.Comparison], error) {
	return list.Read(ctx, b.db, q, s, func(c *comparison.Comparison) int64 { return c.ID })
}

// Comparison reads one. Errors: act.ErrNotFound.
func (b *Reader) Comparison(ctx context.Context, id int64) (*comparison.Comparison, error) {
	var rows []comparison.Comparison
	if err := b.db.Read.NewSelect().Model(&rows).Where("id = ?", id).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read a comparison: %w", err)
	}
	if len(rows) == 0 {
		return nil, act.ErrNotFound
	}
	return &rows[0], nil
}

// Differences reads one page of the orders of a comparison that differed.
func (b *Reader) Differences(ctx context.Context, q list.Query, s list.Slice) (list.Page[Difference], error) {
	return list.Read(ctx, b.db, q, s, func(d *Difference) int64 { return d.ID })
}

// DifferencesOf restricts a query to one comparison.
func DifferencesOf(id int64) func(list.Query) list.Query {
	return func(q list.Query) list.Query { return q.With("comparison", strconv.FormatInt(id, 10)) }
}
