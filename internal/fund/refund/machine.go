package refund

import (
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/fund/booking"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/suppliercall"
)

// Limits are what a merchant may refund without approval, in minor units of one currency.
type Limits struct {
	Auto      int64 // one refund; 0 = none
	AutoDay   int64 // the total of one day
	Overdraft int64 // how far its balance may go below zero
}

// Options of a Machine.
type Options struct {
	booking.Deps
	Calls *suppliercall.Caller // nil = this process calls no supplier
	// Propose proposes a refund for approval by operators; Recall withdraws the proposal.
	Propose func(context.Context, db.Tx, approval.Request) (*approval.Approval, error)
	Recall  func(ctx context.Context, tx db.Tx, approvalID int64, merchant string) error
	// CheckURL returns why notifications must not be sent to a URL; nil = they may.
	CheckURL    func(string) error
	CallbackURL func(supplier string) string
	// Query asks the supplier about an order; nil = nobody can. Best effort.
	Query func(ctx context.Context, orderNo string)
	// Limits and Window return a merchant's limits and refund window; its day begins at midnight
	// in Zone.
	Limits func(merchantID int64, currency string) Limits
	Window func(merchantID int64) time.Duration
	Zone   *time.Location
}

// Machine is the only writer of refunds.
type Machine struct {
	booking.Deps
	o Options
}

// New returns a Machine.
func New(o Options) *Machine {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	return &Machine{Deps: o.Deps, o: o}
}

// write collects what one transaction does to refunds.
type write struct {
	*booking.Write
	m       *Machine
	changed []payment.Trade // payments of whose refunds of ours one has changed
}

func (m *Machine) begin(tx db.Tx) *write { return &write{Write: m.Begin(tx), m: m} }

// do applies events to a refund, each by compare-and-set on what was read. o is its order,
// locked; nil if it has none.
func (x *write) do(o *order.Order, r *Refund, c booking.Cause, events ...Event) error {
	for _, e := range events {
		m, err := Next(r.Status, e)
		if err != nil {
			return fmt.Errorf("refund %s: %w", r.RefundNo, err)
		}
		now := x.m.DB.Now()
		from, version := r.Status, r.Version
		r.Status, r.Version = m.To, version+1
		if !Moves.Of(m.To).Open {
			r.FinishedAt = &now
		}
		x.note(r, c, from, now)
		if err := x.apply(o, r, m); err != nil { // also sets the returned fees
			return err
		}
		if r.Adopted == "" && r.TradeNo != "" {
			x.changed = append(x.changed, payment.Trade{AccountID: r.AccountID, No: r.TradeNo})
		}
		x.W.Guard(x.Tx.NewUpdate().Model(r).
			Column("status", "version", "supplier_refund_no", "fee_returned", "cost_returned", "approval_id", "short_at", "short_last", "first_call_at",
				"last_call_at", "accepted_at", "finished_at").
			WherePK().Where("rf.version = ? AND rf.status = ?", version, from), 1)
	}
	return nil
}

// note adds a change to the history.
func (x *write) note(r *Refund, c booking.Cause, from Status, now int64) {
	x.Record(booking.Change{
		Subject: booking.OfRefund, SubjectID: r.ID, Version: r.Version, From: string(from), To: string(r.Status), Cause: c, CreatedAt: now,
	})
}

// insert adds a new refund with its history.
func (x *write) insert(r *Refund, c booking.Cause) {
	x.W.Insert(&[]*Refund{r}, "")
	x.note(r, c, "", r.CreatedAt)
}

// values returns the values for the entries of a refund.
func (x *write) values(r *Refund) (fact.Values, error) {
	v := fact.Values{ID: r.key(), Amount: r.Amount, Currency: r.Currency}
	s, err := x.m.SupplierCode(x.Tx, r.SupplierID)
	if err != nil {
		return v, err
	}
	v.Supplier = s
	v.From = ledger.SuspenseAccount(s)
	if r.HeldRef == "" {
		if v.Merchant, err = x.m.MerchantCode(x.Tx, r.MerchantID); err != nil {
			return v, err
		}
		v.From = ledger.MerchantAccount(v.Merchant)
	}
	v.To = v.From
	return v, nil
}

// apply adds the entries, the order's totals and the notification of a move. Money without an
// order that was not refunded is held again.
func (x *write) apply(o *order.Order, r *Refund, m Move) error {
	v, err := x.values(r)
	if err != nil {
		return err
	}
	for _, f := range m.Facts {
		x.Entries.Add(f, v)
		if f == fact.RefundBack {
			x.heldAgain(r)
		}
	}
	switch m.Counts {
	case 1:
		if err := x.fees(o, r, v); err != nil {
			return err
		}
	case -1:
		x.feesAgain(r, v)
	}
	x.refunded(o, m.Counts*r.Amount)
	x.notify(r, m.Notice)
	return nil
}

// refunded changes the order's refunded total by an amount, and its status accordingly.
func (x *write) refunded(o *order.Order, by int64) {
	if o == nil || by == 0 {
		return
	}
	x.W.Guard(x.Tx.NewRaw("UPDATE orders SET refunded_amount = refunded_amount + ?, refund_status ="+
		" CASE WHEN refunded_amount + ? >= paid_amount THEN 'full' WHEN refunded_amount + ? > 0 THEN 'partial' ELSE 'none' END WHERE id = ? AND refunded_amount + ? >= 0",
		by, by, by, o.ID, by), 1)
}

// notify adds a notification of this type; "" = none.
func (x *write) notify(r *Refund, kind string) {
	if kind != "" && r.MerchantID != 0 {
		x.Notify(kind, r.MerchantID, r.ID, r.Version, r.NotifyURL, x.m.ViewOf(r))
	}
}

// Send writes everything, and books what follows for refunds made at the supplier.
func (x *write) Send(ctx context.Context) error {
	if err := x.Write.Send(ctx); err != nil {
		return err
	}
	return x.m.Settle(ctx, x.Tx, slices.Compact(x.changed)...)
}
