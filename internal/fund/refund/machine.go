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
	return &Machine{booking.Books{DB: o.DB, Settings: o.Settings, Ledger: o.Ledger, Nudger: o.Nudger, Here: o.Here, Schedule: o.Schedule, Nudge: o.Nudge}, o}
}

// change is one change of a refund's status, or its creation.
type change struct {
	r      *Refund
	to     Status
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
}

func (m *Machine) begin(tx db.Tx) *write { return &write{m: m, tx: tx, w: tx.Writes()} }

// move changes a refund's status by compare-and-set on what was read. o is its order, locked;
// nil if it has none.
func (x *write) move(o *order.Order, c change) error {
	r := c.r
	if !Moves.Can(r.Status, c.to) {
		return fmt.Errorf("illegal status change of refund %s from %s to %s", r.RefundNo, r.Status, c.to)
	}
	now := x.m.o.DB.Now()
	from, version := r.Status, r.Version
	r.Status, r.Version = c.to, version+1
	if !Moves.Of(c.to).Open && r.FinishedAt == nil || c.to == Returned {
		r.FinishedAt = &now
	}
	x.note(c, from, now)
	if err := x.money(o, r, from); err != nil { // also sets the returned fees
		return err
	}
	x.w.Guard(x.tx.NewUpdate().Model(r).
		Column("status", "version", "supplier_refund_no", "fee_returned", "cost_returned", "approval_id", "first_call_at", "last_call_at", "finished_at").
		WherePK().Where("rf.version = ? AND rf.status = ?", version, from), 1)
	return nil
}

// note adds the history row.
func (x *write) note(c change, from Status, now int64) {
	x.w.Insert(&[]History{{
		ID: x.m.o.DB.NewID(), RefundID: c.r.ID, Version: c.r.Version, From: from, To: c.r.Status, Actor: c.actor, SourceKind: c.kind,
		SourceID: c.source, Detail: c.detail, CreatedAt: now,
	}}, "")
}

// insert adds a new refund with its history.
func (x *write) insert(r *Refund, actor, kind string, source int64) {
	x.w.Insert(&[]*Refund{r}, "")
	x.note(change{r: r, actor: actor, kind: kind, source: source}, "", r.CreatedAt)
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

// money adds the entries, the order's totals and the notification for the refund's new status.
func (x *write) money(o *order.Order, r *Refund, from Status) error {
	v, err := x.values(r)
	if err != nil {
		return err
	}
	switch r.Status {
	case Succeeded:
		fact := fund.RefundDone
		if r.Adopted != "" {
			fact = fund.RefundAdopted
		}
		x.entries.Add(fact, v)
		if err := x.fees(o, r, v); err != nil {
			return err
		}
		x.refunded(o, r.Amount)
	case Failed, Rejected, Cancelled:
		x.entries.Add(fund.RefundBack, v)
		x.heldAgain(r)
	case Returned:
		x.entries.Add(fund.RefundReturned, v)
		x.entries.Add(fund.RefundBack, v)
		x.heldAgain(r)
		x.feesAgain(r, v)
		x.refunded(o, -r.Amount)
	}
	x.tell(r)
	return nil
}

// refunded changes the order's refunded total by an amount, and its status accordingly.
func (x *write) refunded(o *order.Order, by int64) {
	if o == nil {
		return
	}
	x.w.Guard(x.tx.NewRaw("UPDATE orders SET refunded_amount = refunded_amount + ?, refund_status ="+
		" CASE WHEN refunded_amount + ? >= paid_amount THEN 'full' WHEN refunded_amount + ? > 0 THEN 'partial' ELSE 'none' END WHERE id = ? AND refunded_amount + ? >= 0",
		by, by, by, o.ID, by), 1)
}

// tell adds the notification if merchants are notified of this end.
func (x *write) tell(r *Refund) {
	kind := map[Status]string{Succeeded: "refund.succeeded", Failed: "refund.failed", Rejected: "refund.failed", Returned: "refund.failed"}[r.Status]
	if kind == "" || r.MerchantID == 0 {
		return
	}
	now := x.m.o.DB.Now()
	x.facts = append(x.facts, notify.Fact{
		MerchantID: r.MerchantID, SubjectID: r.ID, Type: kind, Version: r.Version, At: now,
		Routes: notify.Routes(x.m.o.Settings.Merchants(), r.MerchantID, kind, r.NotifyURL), Data: x.m.ViewOf(r),
	})
}

// send writes everything, and nudges after the commit.
func (x *write) send(ctx context.Context) error {
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
