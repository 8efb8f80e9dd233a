package console

import (
	"context"

	"backstop/internal/fund/refund"
	"backstop/internal/list"
)

// RefundList declares the list of refunds.
var RefundList = &list.Spec{
	Name: "refunds",
	Sources: []list.Source{{
		Table: "refunds", Alias: "rf", Key: "id", MerchantColumn: "rf.merchant_id",
		Columns: "rf.*, COALESCE((SELECT su.code FROM suppliers AS su WHERE su.id = rf.supplier_id), '') AS supplier",
	}},
	Fields: []list.Field{
		{Word: "refund_no", Match: func(_ context.Context, _ list.Lookup, no string) (list.Match, error) {
			return list.Match{Where: "rf.refund_no = ?", Args: []any{no}, Indexed: true, Ageless: true}, nil
		}},
		{Word: "order_no", Match: func(_ context.Context, _ list.Lookup, no string) (list.Match, error) {
			return list.Match{Where: "rf.order_id IN (SELECT o.id FROM orders AS o WHERE o.order_no = ?)", Args: []any{no}, Indexed: true, Ageless: true}, nil
		}},
		{Word: "merchant", Match: coded("merchants", "rf.merchant_id"), Suggest: codes("merchants", "name")},
		{Word: "supplier", Match: coded("suppliers", "rf.supplier_id"), Suggest: codes("suppliers", "kind")},
		{Word: "state", Column: "status", Values: refund.Moves.Words()},
	},
}

// Refund is a refund in the list.
type Refund struct {
	refund.Refund `bun:",extend"`

	Supplier string `bun:"supplier,scanonly"` // code
}

// Refunds returns one page of refunds.
func (b *Reader) Refunds(ctx context.Context, q list.Query, s list.Slice) (list.Page[Refund], error) {
	return list.Read(ctx, b.db, q, s, func(r *Refund) int64 { return r.ID })
}
