package console

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"backstop/internal/act"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/fund/booking"
	"backstop/internal/fund/refund"
	"backstop/internal/list"
)

// RefundList declares the list of refunds.
var RefundList = fundList(
	"refunds", "rf", refund.Moves,
	list.Field{Name: "refund_no", Match: byNumber("rf.refund_no = ?")},
	list.Field{Name: "order_no", Match: byNumber("rf.order_id IN (SELECT o.id FROM orders AS o WHERE o.order_no = ?)")},
)

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
	History []booking.Change // oldest first
}

// RefundDetail reads a refund by its number. Errors: act.ErrNotFound.
func (b *Reader) RefundDetail(ctx context.Context, no string) (*RefundDetail, error) {
	d := new(RefundDetail)
	err := b.db.Read.NewRaw("SELECT "+fundColumns("rf")+" FROM refunds AS rf WHERE rf.refund_no = ?", no).Scan(ctx, &d.Refund)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, act.ErrNotFound
	} else if err != nil {
		return nil, fmt.Errorf("read a refund: %w", err)
	}
	d.Reason = MaskText(d.Reason)
	if d.History, err = booking.History(ctx, b.db.Read, booking.OfRefund, d.ID); err != nil {
		return nil, err
	}
	for i := range d.History {
		d.History[i].Detail = MaskText(d.History[i].Detail)
	}
	d.Behind, err = b.behind(ctx, behindOf{
		id: d.ID, no: d.RefundNo, kind: compensation.OfRefund, orderID: d.OrderID, supplier: d.Supplier, approval: d.ApprovalID,
		exceptions: []string{exception.RefundFailed, exception.SupplierShort}, refs: booking.Refs(booking.OfRefund, d.ID),
	})
	return d, err
}
