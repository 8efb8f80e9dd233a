package refund

import (
	"context"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/fund/booking"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
)

// Verdict is the decision of two people about a refund for which the supplier has no clear
// answer.
type Verdict struct {
	Succeeded  bool // the buyer has the money; otherwise it was not made
	Actor      string
	ApprovalID int64
	MadeAt     int64 // when it was proposed: the supplier's statement is no newer
}

// Unresolved reports whether a refund may have reached its supplier and has no end yet.
func (r *Refund) Unresolved() bool { return r.Status == Submitted || r.Status == Unknown }

// sentSince reports whether a refund was sent after a statement was read, which then cannot say
// that it failed.
func (r *Refund) sentSince(at int64, succeeded bool) bool {
	return !succeeded && r.LastCallAt != nil && *r.LastCallAt >= at
}

// Live queries the supplier about a refund that is to be resolved. The decision must not
// contradict what it says: an end has only that end, and a refund that is not over at the supplier
// has none.
func (m *Machine) Live(ctx context.Context, r *Refund, succeeded bool) (*act.Live, error) {
	at, ok := m.Settings.Current().Suppliers.ByID(r.SupplierID)
	if !ok || at.Can().Refunder == nil || m.o.Calls == nil {
		return &act.Live{At: m.DB.Now()}, nil
	}
	answer, done, err := m.call(ctx, r, at, suppliercall.RefundQuery)
	if err != nil { // nothing was asked
		return &act.Live{Answer: string(supplier.RefundUnknown), At: m.DB.Now()}, nil
	}
	if err := m.o.Calls.Keep(ctx, done); err != nil {
		return nil, err
	}
	live := &act.Live{Answer: string(answer.State), Call: done.ID, At: m.DB.Now()}
	switch answer.State {
	case supplier.RefundSucceeded:
		live.Contradicts = !succeeded
	case supplier.RefundFailed, supplier.RefundReturned, supplier.RefundShort:
		live.Contradicts = succeeded
	case supplier.RefundProcessing, supplier.RefundAbnormal:
		live.Contradicts = true
	}
	return live, nil
}

// Lock locks a refund with its order, as everything that changes it does. Errors: ErrNotFound.
func (m *Machine) Lock(ctx context.Context, tx db.Tx, id int64) error {
	_, _, err := m.lock(ctx, tx, id)
	return err
}

// Resolve ends a refund as two people decided: its money goes to the supplier, or back to where
// it came from. Its compensation finds it over. Errors: act.ErrChanged.
func (m *Machine) Resolve(ctx context.Context, tx db.Tx, id int64, v Verdict) (*Refund, error) {
	o, r, err := m.lock(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	if !r.Unresolved() || r.sentSince(v.MadeAt, v.Succeeded) {
		return nil, act.ErrChanged
	}
	e := Refused
	if v.Succeeded {
		e = Arrived
	}
	x := m.begin(tx)
	if err := x.do(o, r, booking.Cause{Actor: v.Actor, SourceKind: booking.SourceApproval, SourceID: v.ApprovalID, Detail: "resolved"}, e); err != nil {
		return nil, err
	}
	x.settled(r)
	return r, x.Send(ctx)
}
