package refund

import (
	"context"
	"encoding/json"
	"fmt"

	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
	"backstop/internal/fund/booking"
	"backstop/internal/settings"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// Op is the operation of a refund in the payload of its compensation; NoticeOp is that of a
// supplier's message about refunds that may not be ours.
const (
	Op       = "refund"
	NoticeOp = "refund_notice"
)

// item returns the compensation that makes a refund's supplier calls; nothing else makes them.
func (m *Machine) item(r *Refund, cause compensation.Cause, by string) *compensation.Item {
	payload, _ := json.Marshal(replaycall.Payload{
		Supplier: m.SupplierName(r.SupplierID), Op: Op, Reference: r.RefundNo,
		Key: r.RefundNo,
	}) // strings only: cannot fail
	return &compensation.Item{
		Kind: compensation.ReplayCall, Cause: cause, SubjectKind: compensation.OfRefund, SubjectID: r.ID, OrderNo: r.OrderNo,
		MerchantID: r.MerchantID,
		SupplierID: r.SupplierID, Amount: r.Amount, Currency: r.Currency, Payload: payload, MadeBy: by,
	}
}

// Items returns new compensations for refunds that nothing moves on.
func Items(ctx context.Context, q bun.IDB, s *settings.Store, ids []int64) (items []*compensation.Item, err error) {
	var all []*Refund
	if err := q.NewSelect().Model(&all).Where("rf.id IN (?)", bun.List(ids)).OrderExpr("rf.id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read refunds: %w", err)
	}
	m := New(Options{Deps: booking.Deps{Settings: s}})
	for _, r := range all {
		items = append(items, m.item(r, compensation.SupplierUnknown, "sweep"))
	}
	return items, nil
}

// mayRepeat returns what may be done about a refund that the supplier does not find.
func (m *Machine) mayRepeat(r *Refund, s supplier.Entry) repeats {
	can := s.Can()
	known := can.RefundRepeat
	if s.RefundRepeat {
		known = supplier.Forever
	}
	return repeatsOf(r, m.DB.Now(), s.QueryAfter, known, can.RefundAbsent)
}
