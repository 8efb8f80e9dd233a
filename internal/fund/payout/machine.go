package payout

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/call"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/fund"
	"backstop/internal/fund/booking"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/settings"
)

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
	// Ask proposes a payout for approval by operators; Recall withdraws the proposal.
	Ask    func(context.Context, db.Tx, approval.Request) (*approval.Approval, error)
	Recall func(ctx context.Context, tx db.Tx, approvalID int64, merchant string) error
	// CheckURL returns why notifications must not be sent to a URL; nil = they may.
	CheckURL    func(string) error
	CallbackURL func(supplier string) string
	Accounts    Accounts
	// Limits returns a merchant's limits; its day begins at midnight in Zone.
	Limits func(merchantID int64, currency string) Limits
	// Fee returns what the merchant pays for a payout, in minor units; 0 = nothing.
	Fee  func(merchantID, supplierID, amount int64, currency string) int64
	Zone *time.Location
	Log  *slog.Logger
}

// Machine is the only writer of payouts.
type Machine struct {
	o Options
	*booking.Books
}

// New returns a Machine.
func New(o Options) *Machine {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	return &Machine{o, &booking.Books{DB: o.DB, Settings: o.Settings, Ledger: o.Ledger, Nudger: o.Nudger, Here: o.Here, Schedule: o.Schedule, Nudge: o.Nudge}}
}

// by is who or what caused a change.
type by struct {
	actor  string
	kind   string // of the source
	source int64
	detail string
}

// write collects what one transaction does to payouts, and sends it.
type write struct {
	*booking.Write
	m    *Machine
	skip fund.Fact // that stands in the ledger already; "" = none
}

func (m *Machine) begin(tx db.Tx) *write { return &write{Write: m.Begin(tx), m: m} }

// do applies events to a locked payout, in their order: status, steps, history, entries and
// notifications.
func (x *write) do(p *Payout, c by, events ...Event) error {
	for _, e := range events {
		if err := x.apply(p, c, e); err != nil {
			return err
		}
	}
	return nil
}

func (x *write) apply(p *Payout, c by, e Event) error {
	status, steps, move, err := Next(p.Status, p.Steps, e)
	if err != nil {
		return fmt.Errorf("payout %s: %w", p.PayoutNo, err)
	}
	now, from, version := x.m.DB.Now(), p.Status, p.Version
	was := p.Steps
	p.Status, p.Steps = status, steps
	x.steps(p, was, now)
	if e != Sent { // it changes a step alone
		p.Version++
		x.note(p, c, from, now)
	}
	if !Moves.Of(status).Open && (from != status || e == Late) {
		p.FinishedAt = &now
	}
	if e == Debited {
		p.DebitedAt = &now
	}
	if err := x.book(p, move.Facts); err != nil {
		return err
	}
	x.tell(p, move.Notice)
	x.W.Guard(x.Tx.NewUpdate().Model(p).
		Column("status", "version", "failure", "supplier_payout_no", "approval_id", "debited_at", "first_call_at", "last_call_at", "short_at", "short", "finished_at").
		WherePK().Where("po.version = ? AND po.status = ?", version, from), 1)
	return nil
}

// keep writes what was learned about a payout whose status stays as it is.
func (x *write) keep(p *Payout) {
	x.W.Guard(x.Tx.NewUpdate().Model(p).Column("failure", "supplier_payout_no", "first_call_at", "last_call_at", "short_at", "short").
		WherePK().Where("po.version = ? AND po.status = ?", p.Version, p.Status), 1)
}

// steps writes the steps that differ from what they were.
func (x *write) steps(p *Payout, was Steps, now int64) {
	for _, name := range []string{Debit, Credit, Reversal} {
		from, to := *was.at(name), *p.at(name)
		switch {
		case from == to:
		case from == None:
			x.W.Insert(&[]Step{{ID: x.m.DB.NewID(), PayoutID: p.ID, Step: name, Key: p.keyOf(name), State: to, Version: 1, UpdatedAt: now}}, "")
		default:
			x.W.Guard(x.Tx.NewRaw("UPDATE fund_steps SET state = ?, version = version + 1, updated_at = ? WHERE payout_id = ? AND step = ? AND state = ?",
				to, now, p.ID, name, from), 1)
		}
	}
}

// insert adds a new payout with its first two steps and its history.
func (x *write) insert(p *Payout, c by) {
	x.W.Add(x.Tx.NewInsert().Model(p)) // as it is now: it may move in the same transaction
	x.steps(p, Steps{}, p.CreatedAt)
	x.note(p, c, "", p.CreatedAt)
}

// note adds the history row.
func (x *write) note(p *Payout, c by, from Status, now int64) {
	x.W.Insert(&[]History{{
		ID: x.m.DB.NewID(), PayoutID: p.ID, Version: p.Version, From: from, To: p.Status, Actor: c.actor, SourceKind: c.kind,
		SourceID: c.source, Detail: c.detail, CreatedAt: now,
	}}, "")
}

// values returns the values for the entries of a payout.
func (x *write) values(p *Payout) (v fund.Values, err error) {
	v = fund.Values{ID: p.key(), Amount: p.Amount, Currency: p.Currency}
	if v.Supplier, err = x.m.SupplierCode(x.Tx, p.SupplierID); err == nil {
		v.Merchant, err = x.m.MerchantCode(x.Tx, p.MerchantID)
	}
	return v, err
}

// book adds entries; those about the fee only if there is one.
func (x *write) book(p *Payout, facts []fund.Fact) error {
	if len(facts) == 0 {
		return nil
	}
	v, err := x.values(p)
	if err != nil {
		return err
	}
	for _, f := range facts {
		if f == x.skip {
			continue
		}
		one := v
		if f == fund.PayoutFee || f == fund.PayoutFeeBack {
			if one.Amount = p.FeeAmount; one.Amount == 0 {
				continue
			}
		}
		x.Entries.Add(f, one)
	}
	return nil
}

// tell adds a notification to the merchant.
func (x *write) tell(p *Payout, kind string) {
	if kind == "" {
		return
	}
	x.Facts = append(x.Facts, notify.Fact{
		MerchantID: p.MerchantID, SubjectID: p.ID, Type: kind, Version: p.Version, At: x.m.DB.Now(),
		Routes: notify.Routes(x.m.Settings.Merchants(), p.MerchantID, kind, p.NotifyURL), Data: x.m.ViewOf(p),
	})
}

// report opens an exception for a payout that needs a person.
func (x *write) report(p *Payout, kind, why, word string) {
	exception.Open(x.Tx, x.W, x.m.DB, []*exception.Item{{
		Kind: kind, SupplierID: p.SupplierID, MerchantID: p.MerchantID, Subject: p.PayoutNo, Amount: p.Amount, Currency: p.Currency,
		Detail: exception.Detail(map[string]any{"payout_no": p.PayoutNo, "status": why, "word": word, "supplier": x.m.SupplierName(p.SupplierID)}),
	}})
}

// settled resolves the exceptions that only waited for a payout's end.
func (x *write) settled(p *Payout) {
	for _, kind := range []string{exception.PayoutStuck, exception.SupplierShort} {
		x.W.Add(exception.ResolveAt(x.Tx, x.m.DB, kind, p.SupplierID, p.PayoutNo))
	}
}
