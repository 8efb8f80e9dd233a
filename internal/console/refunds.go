package console

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"backstop/internal/act"
	"backstop/internal/base/moves"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/fund/refund"
	"backstop/internal/list"

	"github.com/uptrace/bun"
)

// RefundList declares the list of refunds.
var RefundList = &list.Spec{
	Name: "refunds",
	Sources: []list.Source{{
		Table: "refunds", Alias: "rf", Key: "id", MerchantColumn: "rf.merchant_id",
		Money: list.Money{Minor: "rf.amount", Currency: "rf.currency"}, Columns: refundColumns,
	}},
	Fields: []list.Field{
		{Word: "refund_no", Match: func(_ context.Context, _ list.Lookup, no string) (list.Match, error) {
			return list.Match{Where: "rf.refund_no = ?", Args: []any{no}, Indexed: true, Ageless: true}, nil
		}},
		{Word: "order_no", Match: func(_ context.Context, _ list.Lookup, no string) (list.Match, error) {
			return list.Match{Where: "rf.order_id IN (SELECT o.id FROM orders AS o WHERE o.order_no = ?)", Args: []any{no}, Indexed: true, Ageless: true}, nil
		}},
		{Word: "state", Match: matchRefunds, Values: append([]string{OpenRefunds}, refund.Moves.Words()...), Check: oneOf(append([]string{OpenRefunds}, refund.Moves.Words()...))},
		{Word: "merchant", Match: alone("merchants", "rf.merchant_id"), Suggest: codes("merchants", "name")},
		{Word: "supplier", Match: alone("suppliers", "rf.supplier_id"), Suggest: codes("suppliers", "kind")},
		amountField,
	},
}

// OpenRefunds stands for every status in which a refund's money is held.
const OpenRefunds = "open"

const refundColumns = "rf.*, COALESCE((SELECT su.code FROM suppliers AS su WHERE su.id = rf.supplier_id), '') AS supplier," +
	" COALESCE((SELECT m.code FROM merchants AS m WHERE m.id = rf.merchant_id), '') AS merchant"

func matchRefunds(_ context.Context, in list.Lookup, state string) (list.Match, error) {
	where := moves.In("rf.status", refund.Status(state))
	if state == OpenRefunds {
		where = moves.In("rf.status", refund.Moves.Open()...)
	}
	return list.Match{Where: where, Indexed: len(in.Query.Terms) == 1, Few: func(context.Context, bun.IDB) (string, error) {
		return "SELECT * FROM refunds AS rf WHERE " + where, nil
	}}, nil
}

// Refund is a refund in the list.
type Refund struct {
	refund.Refund `bun:",extend"`

	Supplier string `bun:"supplier,scanonly"` // code
	Merchant string `bun:"merchant,scanonly"` // code; "" = money without an order
}

// Refunds returns one page of refunds.
func (b *Reader) Refunds(ctx context.Context, q list.Query, s list.Slice) (list.Page[Refund], error) {
	page, err := list.Read(ctx, b.db, q, s, func(r *Refund) int64 { return r.ID })
	for i := range page.Rows {
		page.Rows[i].Reason = MaskText(page.Rows[i].Reason)
	}
	return page, err
}

// RefundDetail is one refund with everything that happened to it. Texts from outside are masked.
type RefundDetail struct {
	Refund
	Behind
	History []refund.History // oldest first
}

// RefundDetail reads a refund by its number. Errors: act.ErrNotFound.
func (b *Reader) RefundDetail(ctx context.Context, no string) (*RefundDetail, error) {
	d := new(RefundDetail)
	err := b.db.Read.NewRaw("SELECT "+refundColumns+" FROM refunds AS rf WHERE rf.refund_no = ?", no).Scan(ctx, &d.Refund)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, act.ErrNotFound
	} else if err != nil {
		return nil, fmt.Errorf("read a refund: %w", err)
	}
	d.Reason = MaskText(d.Reason)
	if d.History, err = refund.HistoryOf(ctx, b.db.Read, []int64{d.ID}); err != nil {
		return nil, err
	}
	for i := range d.History {
		d.History[i].Detail = MaskText(d.History[i].Detail)
	}
	d.Behind, err = b.behind(ctx, behindOf{
		id: d.ID, no: d.RefundNo, kind: compensation.OfRefund, orderID: d.OrderID, supplier: d.Supplier, approval: d.ApprovalID,
		exceptions: []string{exception.RefundFailed}, refs: refund.Refs(d.ID),
	})
	return d, err
}
