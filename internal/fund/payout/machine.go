package payout

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/exception"
	"backstop/internal/fund/booking"
	"backstop/internal/ledger/fact"
	"backstop/internal/suppliercall"
)

// Options of a Machine.
type Options struct {
	booking.Deps
	Calls *suppliercall.Caller // nil = this process calls no supplier
	// Propose proposes a payout for approval by operators; Recall withdraws the proposal.
	Propose func(context.Context, db.Tx, approval.Request) (*approval.Approval, error)
	Recall  func(ctx context.Context, tx db.Tx, approvalID int64, merchant string) error
	// CheckURL returns why notifications must not be sent to a URL; nil = they may.
	CheckURL    func(string) error
	CallbackURL func(supplier string) string
	Accounts    Accounts
	// Limits returns a merchant's limits; its day begins at midnight in Zone.
	Limits func(merchantID int64, currency string) Limits
	// Fee returns what the merchant pays for a payout, in minor units; 0 = nothing.
	Fee  func(merchantID, supplierID, amount int64, currency string) int64
	Zone *time.Location
}

// Machine is the only writer of payouts. Requests, submissions and answers each share their
// transactions.
type Machine struct {
	booking.Deps
	o         Options
	creations *db.Batcher[*creation, created]
	sends     *db.Batcher[*sending, sent]
	answers   *db.Batcher[*answered, settled]
}

// New starts a Machine.
func New(o Options) *Machine {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	m := &Machine{Deps: o.Deps, o: o}
	m.creations = db.NewBatcher(o.DB, db.BatchOptions[*creation, created]{
		Size: batchSize, Writers: 2, Queue: maxWaits, Wait: maxWait, Key: (*creation).key, Observe: metric.ObserveBatch("payout_requests"),
	}, m.createAll)
	m.sends = db.NewBatcher(o.DB, db.BatchOptions[*sending, sent]{
		Size: batchSize, Writers: 1, Queue: maxWaits, Wait: maxWait, Key: func(s *sending) string { return key(s.id) },
		Observe: metric.ObserveBatch("payouts"),
	}, m.sendAll)
	m.answers = db.NewBatcher(o.DB, db.BatchOptions[*answered, settled]{
		Size: batchSize, Writers: 2, Queue: maxWaits, Wait: maxWait, Key: func(a *answered) string { return key(a.id) },
		Observe: metric.ObserveBatch("payout_answers"),
	}, m.settleAll)
	return m
}

// Bounds of the transactions that payouts share.
const (
	batchSize = 128
	maxWaits  = 4096
	maxWait   = 20 * time.Second
)

// Close writes what waits for its transaction.
func (m *Machine) Close() {
	m.creations.Close()
	m.sends.Close()
	m.answers.Close()
}

// write collects what one transaction does to payouts.
type write struct {
	*booking.Write
	m    *Machine
	skip fact.Name // that stands in the ledger already; "" = none

	payouts []Payout
	steps   []Step
	// The changes of rows. A row that changes more than once has its changes in different turns.
	changes updateRounds[change]
	states  updateRounds[stepChange]
	reports []*exception.Item
	over    map[int64][]string // numbers by supplier, see settled
}

func (m *Machine) begin(tx db.Tx) *write {
	return &write{
		Write: m.Begin(tx), m: m, changes: updateRounds[change]{of: map[string]int{}}, states: updateRounds[stepChange]{of: map[string]int{}},
		over: map[int64][]string{},
	}
}

// updateRounds are changes of rows in the order in which they are sent.
type updateRounds[T any] struct {
	rows [][]T
	of   map[string]int // number of changes by row
}

func (t *updateRounds[T]) add(row string, x T) {
	n := t.of[row]
	t.of[row]++
	if n == len(t.rows) {
		t.rows = append(t.rows, nil)
	}
	t.rows[n] = append(t.rows[n], x)
}

// change is one compare-and-set on a payout.
type change struct {
	ID, FromVersion  int64
	FromStatus       Status
	Status           Status
	Version          int64
	Failure          string
	SupplierPayoutNo string
	ApprovalID       int64
	DebitedAt        *int64
	FirstCallAt      *int64
	LastCallAt       *int64
	ShortAt          *int64
	Short            bool
	FinishedAt       *int64
}

const changeQuery = "UPDATE payouts AS po SET status = _v.status, version = _v.version, failure = _v.failure, supplier_payout_no = _v.supplier_payout_no," +
	" approval_id = _v.approval_id, debited_at = _v.debited_at, first_call_at = _v.first_call_at, last_call_at = _v.last_call_at, short_at = _v.short_at," +
	" short = _v.short, finished_at = _v.finished_at FROM _v WHERE po.id = _v.id AND po.version = _v.from_version AND po.status = _v.from_status"

// stepChange is one compare-and-set on a step.
type stepChange struct {
	PayoutID         int64
	Step             string
	FromState, State StepState
	UpdatedAt        int64
}

const stepQuery = "UPDATE fund_steps AS fs SET state = _v.state, version = fs.version + 1, updated_at = _v.updated_at" +
	" FROM _v WHERE fs.payout_id = _v.payout_id AND fs.step = _v.step AND fs.state = _v.from_state"

// Send writes everything, see booking.Write.
func (x *write) Send(ctx context.Context) error {
	if len(x.payouts) > 0 {
		x.W.Insert(&x.payouts, "")
	}
	if len(x.steps) > 0 {
		x.W.Insert(&x.steps, "")
	}
	for _, rows := range x.changes.rows {
		x.W.GuardEach(&rows, changeQuery)
	}
	for _, rows := range x.states.rows {
		x.W.GuardEach(&rows, stepQuery)
	}
	for _, id := range slices.Sorted(maps.Keys(x.over)) {
		for _, kind := range []string{exception.PayoutStuck, exception.SupplierShort} {
			x.W.Add(exception.ResolveAt(x.Tx, x.m.DB, kind, id, x.over[id]...))
		}
	}
	exception.Open(x.Tx, x.W, x.m.DB, x.reports)
	return x.Write.Send(ctx)
}

// do applies events to a locked payout, in their order: status, steps, history, entries and
// notifications.
func (x *write) do(p *Payout, c booking.Cause, events ...Event) error {
	for _, e := range events {
		if err := x.apply(p, c, e); err != nil {
			return err
		}
	}
	return nil
}

func (x *write) apply(p *Payout, c booking.Cause, e Event) error {
	status, steps, move, err := Next(p.Status, p.Steps, e)
	if err != nil {
		return fmt.Errorf("payout %s: %w", p.PayoutNo, err)
	}
	now, from, version := x.m.DB.Now(), p.Status, p.Version
	was := p.Steps
	p.Status, p.Steps = status, steps
	x.move(p, was, now)
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
	x.notify(p, move.Notice)
	x.change(p, version, from)
	return nil
}

// update writes what was learned about a payout whose status stays as it is.
func (x *write) update(p *Payout) { x.change(p, p.Version, p.Status) }

// change writes a payout as it is now, if it is stored in this version and status.
func (x *write) change(p *Payout, version int64, from Status) {
	x.changes.add(p.key(), change{
		ID: p.ID, FromVersion: version, FromStatus: from, Status: p.Status, Version: p.Version, Failure: p.Failure,
		SupplierPayoutNo: p.SupplierPayoutNo,
		ApprovalID:       p.ApprovalID, DebitedAt: p.DebitedAt, FirstCallAt: p.FirstCallAt, LastCallAt: p.LastCallAt, ShortAt: p.ShortAt,
		Short: p.Short, FinishedAt: p.FinishedAt,
	})
}

// move writes the steps that differ from what they were.
func (x *write) move(p *Payout, was Steps, now int64) {
	for _, name := range []string{Debit, Credit, Reversal} {
		from, to := *was.at(name), *p.at(name)
		switch {
		case from == to:
		case from == None:
			x.steps = append(x.steps, Step{
				ID: x.m.DB.NewID(), PayoutID: p.ID, Step: name, Key: p.keyOf(name), State: to, Version: 1,
				UpdatedAt: now,
			})
		default:
			x.states.add(p.keyOf(name), stepChange{p.ID, name, from, to, now})
		}
	}
}

// insert adds a new payout with its first two steps and its history.
func (x *write) insert(p *Payout, c booking.Cause) {
	x.payouts = append(x.payouts, *p) // as it is now: it may move in the same transaction
	x.move(p, Steps{}, p.CreatedAt)
	x.note(p, c, "", p.CreatedAt)
}

// note adds a change to the history.
func (x *write) note(p *Payout, c booking.Cause, from Status, now int64) {
	x.Record(booking.Change{
		Subject: booking.OfPayout, SubjectID: p.ID, Version: p.Version, From: string(from), To: string(p.Status), Cause: c, CreatedAt: now,
	})
}

// values returns the values for the entries of a payout.
func (x *write) values(p *Payout) (v fact.Values, err error) {
	v = fact.Values{ID: p.key(), Amount: p.Amount, Currency: p.Currency}
	if v.Supplier, err = x.m.SupplierCode(x.Tx, p.SupplierID); err == nil {
		v.Merchant, err = x.m.MerchantCode(x.Tx, p.MerchantID)
	}
	return v, err
}

// book adds entries; those about the fee only if there is one.
func (x *write) book(p *Payout, facts []fact.Name) error {
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
		if f == fact.PayoutFee || f == fact.PayoutFeeBack {
			if one.Amount = p.FeeAmount; one.Amount == 0 {
				continue
			}
		}
		x.Entries.Add(f, one)
	}
	return nil
}

// notify adds a notification to the merchant; "" = none.
func (x *write) notify(p *Payout, kind string) {
	if kind != "" {
		x.Notify(kind, p.MerchantID, p.ID, p.Version, p.NotifyURL, x.m.ViewOf(p))
	}
}

// report opens an exception for a payout that needs a person.
func (x *write) report(p *Payout, kind, why, word string) {
	x.reports = append(x.reports, &exception.Item{
		Kind: kind, SupplierID: p.SupplierID, MerchantID: p.MerchantID, Subject: p.PayoutNo, Amount: p.Amount, Currency: p.Currency,
		Detail: exception.Detail(map[string]any{
			"payout_no": p.PayoutNo, "status": why, "word": word,
			"supplier": x.m.SupplierName(p.SupplierID),
		}),
	})
}

// settled resolves the exceptions that only waited for a payout's end.
func (x *write) settled(p *Payout) {
	x.over[p.SupplierID] = append(x.over[p.SupplierID], p.PayoutNo)
}
