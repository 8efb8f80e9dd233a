package refund

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"backstop/internal/fund/booking"

	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/call"
	"backstop/internal/compensation"
	"backstop/internal/fund"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/settings"
)

// Limits are what a merchant may refund without approval, in minor units of one currency.
type Limits struct {
	Auto      int64 // one refund; 0 = none
	AutoDay   int64 // the total of one day
	Overdraft int64 // how far its balance may go below zero
}

// Options of a Machine.
type Options struct {
	DB       *db.DB
	Settings *settings.Store
	Ledger   *ledger.Ledger
	Calls    *call.Caller // nil = this process calls no supplier
	Nudger   *notify.Nudger
	Here     *notify.Dispatcher // of this process; nil = none
	Schedule compensation.Schedule
	// Nudge makes compensations run soon; best effort.
	Nudge func([]queue.Nudge)
	// Ask proposes a refund for approval by operators; Recall withdraws the proposal.
	Ask    func(context.Context, db.Tx, approval.Request) (*approval.Approval, error)
	Recall func(ctx context.Context, tx db.Tx, approvalID int64, merchant string) error
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
	Log    *slog.Logger
}

// Machine is the only writer of refunds.
type Machine struct {
	booking.Books
	o Options
}

// New returns a Machine.
func New(o Options) *Machine {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	return &Machine{booking.Books{
		DB: o.DB, Settings: o.Settings, Ledger: o.Ledger, Nudger: o.Nudger, Here: o.Here, Schedule: o.Schedule,
		Nudge: o.Nudge,
	}, o}
}

// by is who or what caused a change.
type by struct {
	actor  string
	kind   string // of the source
	source int64
	detail string
}

// write collects what one transaction does to refunds, and sends it.
type write struct {
	m       *Machine
	tx      db.Tx
	w       *db.Writes
	entries fund.Entries
	facts   []notify.Fact
	items   []*compensation.Item
	changed []payment.Trade // payments of whose refunds of ours one has changed
}

func (m *Machine) begin(tx db.Tx) *write { return &write{m: m, tx: tx, w: tx.Writes()} }

// do applies events to a refund, each by compare-and-set on what was read. o is its order,
// locked; nil if it has none.
func (x *write) do(o *order.Order, r *Refund, c by, events ...Event) error {
	for _, e := range events {
		m, err := Next(r.Status, e)
		if err != nil {
			return fmt.Errorf("refund %s: %w", r.RefundNo, err)
		}
		now := x.m.o.DB.Now()
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
		x.w.Guard(x.tx.NewUpdate().Model(r).
			Column("status", "version", "supplier_refund_no", "fee_returned", "cost_returned", "approval_id", "short_at", "short_last", "first_call_at",
				"last_call_at", "accepted_at", "finished_at").
			WherePK().Where("rf.version = ? AND rf.status = ?", version, from), 1)
	}
	return nil
}

// note adds the history row.
func (x *write) note(r *Refund, c by, from Status, now int64) {
	x.w.Insert(&[]History{{
		ID: x.m.o.DB.NewID(), RefundID: r.ID, Version: r.Version, From: from, To: r.Status, Actor: c.actor, SourceKind: c.kind,
		SourceID: c.source, Detail: c.detail, CreatedAt: now,
	}}, "")
}

// insert adds a new refund with its history.
func (x *write) insert(r *Refund, c by) {
	x.w.Insert(&[]*Refund{r}, "")
	x.note(r, c, "", r.CreatedAt)
}

// values returns the values for the entries of a refund.
func (x *write) values(r *Refund) (fund.Values, error) {
	v := fund.Values{ID: r.key(), Amount: r.Amount, Currency: r.Currency}
	s, err := x.m.SupplierCode(x.tx, r.SupplierID)
	if err != nil {
		return v, err
	}
	v.Supplier = s
	v.From = ledger.SuspenseAccount(s)
	if r.HeldRef == "" {
		if v.Merchant, err = x.m.MerchantCode(x.tx, r.MerchantID); err != nil {
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
		x.entries.Add(f, v)
		if f == fund.RefundBack {
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
	x.tell(r, m.Notice)
	return nil
}

// refunded changes the order's refunded total by an amount, and its status accordingly.
func (x *write) refunded(o *order.Order, by int64) {
	if o == nil || by == 0 {
		return
	}
	x.w.Guard(x.tx.NewRaw("UPDATE orders SET refunded_amount = refunded_amount + ?, refund_status ="+
		" CASE WHEN refunded_amount + ? >= paid_amount THEN 'full' WHEN refunded_amount + ? > 0 THEN 'partial' ELSE 'none' END WHERE id = ? AND refunded_amount + ? >= 0",
		by, by, by, o.ID, by), 1)
}

// tell adds a notification of this type; "" = none.
func (x *write) tell(r *Refund, kind string) {
	if kind == "" || r.MerchantID == 0 {
		return
	}
	now := x.m.o.DB.Now()
	x.facts = append(x.facts, notify.Fact{
		MerchantID: r.MerchantID, SubjectID: r.ID, Type: kind, Version: r.Version, At: now,
		Routes: notify.Routes(x.m.o.Settings.Merchants(), r.MerchantID, kind, r.NotifyURL), Data: x.m.ViewOf(r),
	})
}

// send writes everything, books what follows for refunds made at the supplier, and nudges after
// the commit.
func (x *write) send(ctx context.Context) error {
	if err := x.sendAlone(ctx); err != nil {
		return err
	}
	return x.m.Settle(ctx, x.tx, slices.Compact(x.changed)...)
}

// sendAlone is send for a part of what follows.
func (x *write) sendAlone(ctx context.Context) error {
	m := x.m
	if err := m.o.Ledger.Post(ctx, x.tx, x.w, x.entries); err != nil {
		return err
	}
	x.entries = nil
	return x.sendPosted(ctx)
}

// sendPosted is send for entries that are already posted.
func (x *write) sendPosted(ctx context.Context) error {
	m := x.m
	nudges, err := notify.Create(ctx, x.w, m.o.DB, m.o.Here, x.facts)
	if err != nil {
		return err
	}
	m.o.Schedule.OpenDue(x.w, m.o.DB, x.items...)
	if err := x.w.Exec(ctx); err != nil {
		return fmt.Errorf("write a refund: %w", err)
	}
	items := x.items
	x.tx.OnEnd(func(err error) {
		if err != nil {
			return
		}
		m.o.Nudger.Now(slices.Concat(nudges...))
		m.Wake(items...)
	})
	return nil
}
