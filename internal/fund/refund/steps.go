package refund

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
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
	payload, _ := json.Marshal(replaycall.Payload{Supplier: m.SupplierName(r.SupplierID), Op: Op, Reference: r.RefundNo, Key: r.RefundNo}) // strings only: cannot fail
	return &compensation.Item{
		Kind: compensation.ReplayCall, Cause: cause, SubjectKind: compensation.OfRefund, SubjectID: r.ID, OrderNo: r.OrderNo, MerchantID: r.MerchantID,
		SupplierID: r.SupplierID, Amount: r.Amount, Currency: r.Currency, Payload: payload, MadeBy: by,
	}
}

// Items returns new compensations for refunds that nothing moves on.
func Items(ctx context.Context, q bun.IDB, s *settings.Store, ids []int64) (items []*compensation.Item, err error) {
	var all []*Refund
	if err := q.NewSelect().Model(&all).Where("rf.id IN (?)", bun.List(ids)).OrderExpr("rf.id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read refunds: %w", err)
	}
	m := New(Options{Settings: s})
	for _, r := range all {
		items = append(items, m.item(r, compensation.SupplierUnknown, "sweep"))
	}
	return items, nil
}

// mayRepeat reports whether a refund that the supplier does not find may be sent again, and how
// much longer to wait before relying on that answer (early). absent = the refund was never made
// and never will be.
func (m *Machine) mayRepeat(r *Refund, s supplier.Entry) (may bool, early time.Duration, absent bool) {
	now, can := m.o.DB.Now(), s.Can()
	if r.LastCallAt != nil {
		early = time.Duration(*r.LastCallAt-now)*time.Microsecond + s.QueryAfter
	}
	repeat := can.RefundRepeat
	if s.RefundRepeat {
		repeat = supplier.Forever
	}
	if r.FirstCallAt == nil || repeat == supplier.Forever {
		return true, early, false
	}
	over := now-*r.FirstCallAt >= repeat.Microseconds()
	return !over, early, over && can.RefundAbsent
}
