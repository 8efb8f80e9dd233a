package refund

import (
	"encoding/json"
	"time"

	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
	"backstop/internal/supplier"
)

// Op is the operation of a refund in the payload of its compensation; NoticeOp is that of a
// supplier's message about refunds that may not be ours.
const (
	Op       = "refund"
	NoticeOp = "refund_notice"
)

// steps are the waits between queries about a refund. After the last one it is queried daily,
// and an operator must look at it.
var steps = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour,
}

const (
	daily = 24 * time.Hour
	// If our account at the supplier has insufficient funds, the refund is tried for days: the
	// next payments fill the account again.
	shortWait = 30 * time.Minute
	shortFor  = 72 * time.Hour
)

// waitAfter returns how long to wait after so many tries; last = the steps are used up.
func waitAfter(tries int64) (d time.Duration, last bool) {
	if tries > int64(len(steps)) {
		return daily, true
	}
	return steps[max(tries, 1)-1], false
}

// item returns the compensation that makes a refund's supplier calls; nothing else makes them.
func (m *Machine) item(r *Refund, cause compensation.Cause, by string) *compensation.Item {
	payload, _ := json.Marshal(replaycall.Payload{Supplier: m.supplierName(r.SupplierID), Op: Op, Reference: r.RefundNo, Key: r.RefundNo}) // strings only: cannot fail
	return &compensation.Item{
		Kind: compensation.ReplayCall, Cause: cause, SubjectKind: compensation.OfRefund, SubjectID: r.ID, OrderNo: r.OrderNo, MerchantID: r.MerchantID,
		SupplierID: r.SupplierID, Amount: r.Amount, Currency: r.Currency, Payload: payload, MadeBy: by,
	}
}

// supplierName returns a supplier's code; "?" if this node does not have the supplier.
func (m *Machine) supplierName(id int64) string {
	if e, ok := m.o.Settings.Current().Suppliers.ByID(id); ok {
		return e.Code
	}
	return "?"
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
