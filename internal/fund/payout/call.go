package payout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/textlimit"
	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
	"backstop/internal/exception"
	"backstop/internal/fund/booking"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/internal/settings"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"

	"github.com/uptrace/bun"
)

// Op is the operation of a payout in the payload of its compensation.
const Op = "payout"

const (
	// queryAfter is supplier.Entry.PayoutQueryAfter where the settings have none.
	queryAfter = 30 * time.Minute
	// repeatAfter bounds how old the last call must be before a payout that the supplier does not
	// find is sent again. The supplier knows its number for life, so that a call which arrives late
	// cannot pay twice; "not found" need not be as certain as where it ends something (QueryAfter).
	repeatAfter = 10 * time.Second
	// watch is how long a payout is queried daily after its reversal.
	watch = 7 * 24 * time.Hour
)

// item returns the compensation that makes a payout's supplier calls; nothing else makes them.
func (m *Machine) item(p *Payout, cause compensation.Cause, by string) *compensation.Item {
	payload, _ := json.Marshal(replaycall.Payload{
		Supplier: m.SupplierName(p.SupplierID), Op: Op, Reference: p.PayoutNo,
		Key: p.PayoutNo,
	}) // strings only: cannot fail
	return &compensation.Item{
		Kind: compensation.ReplayCall, Cause: cause, SubjectKind: compensation.OfPayout, SubjectID: p.ID, MerchantID: p.MerchantID,
		SupplierID: p.SupplierID, Amount: p.Amount, Currency: p.Currency, Payload: payload, MadeBy: by,
	}
}

// Items returns new compensations for payouts that nothing moves on.
func Items(ctx context.Context, q bun.IDB, s *settings.Store, ids []int64) (items []*compensation.Item, err error) {
	var all []*Payout
	if err := q.NewSelect().Model(&all).Where("po.id IN (?)", bun.List(ids)).OrderExpr("po.id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read payouts: %w", err)
	}
	m := &Machine{Deps: booking.Deps{Settings: s}}
	for _, p := range all {
		items = append(items, m.item(p, compensation.SupplierUnknown, "sweep"))
	}
	return items, nil
}

// Subject makes the supplier calls of payouts for compensations.
func (m *Machine) Subject() replaycall.Subject { return subject{m} }

type subject struct{ m *Machine }

// Query queries the supplier about a payout. One that was never sent cannot have arrived.
func (s subject) Query(ctx context.Context, x compensation.Item, _ replaycall.Payload) (compensation.Result, bool) {
	m := s.m
	p, at, result, ok := m.load(ctx, x)
	if !ok {
		return result, true
	}
	if p.FirstCallAt == nil {
		return compensation.Result{}, false
	}
	answer, done, err := m.call(ctx, p, at, suppliercall.PayoutQuery, nil)
	if err != nil {
		return m.uncalled(x, p, err), true
	}
	now := m.DB.Now()
	absent := answer.State == supplier.PayoutNotFound || answer.State == supplier.PayoutShort && p.Short &&
		since(p.ShortAt, now) < booking.ShortFor
	if may, wait := mayRepeat(p, at, now); absent && may {
		if wait > 0 {
			return m.keep(ctx, done, compensation.Later(compensation.SupplierUnknown,
				"the supplier does not have it yet, and it is too early to rely on that").Again(wait)), true
		}
		if result = m.keep(ctx, done, compensation.Result{}); result.Class == "" {
			return result, false
		}
		return result, true
	}
	return m.settle(ctx, x, p, answer, done, true), true
}

// MayRepeat leaves the decision to Call, which makes it while the payout is locked.
func (s subject) MayRepeat(context.Context, compensation.Item, replaycall.Payload) (bool, error) {
	return true, nil
}

// Call sends the payout to the supplier, always under the same number and with the same content.
// Before the call it commits that the payout may have been sent.
func (s subject) Call(ctx context.Context, x compensation.Item, _ replaycall.Payload) compensation.Result {
	m := s.m
	at, ok := m.Settings.Current().Suppliers.ByID(x.SupplierID)
	if !ok || at.Can().Payouter == nil {
		return m.noPayouter(x, nil)
	}
	// Nothing is sent, so the payout is not marked as sent.
	if err := m.o.Calls.Shadow(); err != nil {
		return m.uncalled(x, nil, err)
	}
	if m.o.Calls.Down(at.ID) {
		return m.uncalled(x, nil, suppliercall.ErrDown)
	}
	out, err := m.submit(ctx, x.SubjectID, at)
	if errors.Is(err, db.ErrStale) {
		return compensation.Later(compensation.SupplierUnknown, "the supplier does not have it, and it must not be sent now")
	}
	if err != nil {
		return compensation.Failed(err)
	}
	failpoint.Hit("payout_submitted")
	answer, done, err := m.call(ctx, out.p, at, suppliercall.Payout, out.call)
	if err != nil {
		return m.unsent(ctx, x, out.p, &out.before, err)
	}
	failpoint.Hit("payout_called")
	return m.settle(ctx, x, out.p, answer, done, false)
}

// mayRepeat reports whether a payout that the supplier does not find may be sent, and how much
// longer to wait before relying on that answer. Once it was sent it is repeated only if its
// number is known for life, or if the last call was refused because our account was short.
func mayRepeat(p *Payout, s supplier.Entry, now int64) (may bool, wait time.Duration) {
	switch {
	case p.Status != Crediting && p.Status != Unknown && p.Status != Stuck, p.Reversal != None, p.Failure != "":
		return false, 0
	case p.FirstCallAt == nil:
		return true, 0
	case p.Short:
		return true, booking.ShortWait - since(p.LastCallAt, now)
	}
	return s.PayoutRepeat || s.Can().PayoutRepeat, min(s.QueryAfter, repeatAfter) - since(p.LastCallAt, now)
}

// since returns how long ago a moment was.
func since(at *int64, now int64) time.Duration {
	if at == nil {
		return 0
	}
	return time.Duration(now-*at) * time.Microsecond
}

// load finds an item's payout and its supplier, and debits or reverses one that stopped before
// that; false = nothing is to be asked, for the reason in the result.
func (m *Machine) load(ctx context.Context, x compensation.Item) (*Payout, supplier.Entry, compensation.Result, bool) {
	p, err := byID(ctx, m.DB, m.DB, x.SubjectID)
	none := supplier.Entry{}
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, none, compensation.DeadLetter(compensation.Payload, err.Error()), false
	case err != nil:
		return nil, none, compensation.Failed(err), false
	}
	switch p.Status {
	case Approved, Debiting, Reversing:
		if p, err = m.goOn(ctx, p.ID); err != nil {
			return nil, none, compensation.Failed(err), false
		}
	}
	watched := p.Status == Reversed && (p.Credit == Failure && m.watched(p) || x.FromVersion != 0)
	switch {
	case p.Status == Created:
		return nil, none, compensation.AlreadyDone("the payout is not approved"), false
	// One that succeeded is queried again only if the supplier reports a change.
	case !Moves.Of(p.Status).Open && !watched && (p.Status != Succeeded || x.FromVersion == 0):
		return nil, none, compensation.AlreadyDone("the payout is " + string(p.Status)), false
	}
	at, ok := m.Settings.Current().Suppliers.ByID(p.SupplierID)
	if !ok || at.Can().Payouter == nil {
		return nil, at, m.noPayouter(x, p), false
	}
	return p, at, compensation.Result{}, true
}

// waitFor returns when to query a payout again; last = an operator must look at it. nil = it was
// not read, and was not called about.
func (m *Machine) waitFor(p *Payout, x compensation.Item) (d time.Duration, last bool) {
	now := m.DB.Now()
	if p == nil {
		return compensation.WaitSince(x.Age(now))
	}
	calls := booking.Calls{First: p.FirstCallAt, Last: p.LastCallAt, Short: p.ShortAt}
	return compensation.WaitSince(calls.Age(x, Moves.Of(p.Status).Open, now))
}

// watched reports whether a reversed payout may still arrive.
func (m *Machine) watched(p *Payout) bool {
	return p.FinishedAt != nil && since(p.FinishedAt, m.DB.Now()) < watch
}

// goOn finishes a local step that stopped half-way.
func (m *Machine) goOn(ctx context.Context, id int64) (p *Payout, err error) {
	err = m.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		if p, err = m.lock(ctx, tx, id); err != nil {
			return err
		}
		x, c := m.begin(tx), booking.Cause{Actor: "backstop"}
		switch p.Status {
		case Approved, Debiting:
			err = x.debit(ctx, p, c)
		case Reversing:
			err = x.reverse(ctx, p, c, false)
		}
		if err != nil {
			return err
		}
		return x.Send(ctx)
	})
	return p, err
}

// reverse books a payout back. If another entry stands under the key of its reversal, two people
// must look at it; accept = they have, and that entry counts.
func (x *write) reverse(ctx context.Context, p *Payout, c booking.Cause, accept bool) error {
	v, err := x.values(p)
	if err != nil {
		return err
	}
	lines, err := ledger.Lines(ctx, x.Tx, []string{fact.Ref(fact.PayoutReversal, v)})
	if err != nil {
		return err
	}
	if len(lines) > 0 {
		ours := fact.Entry(fact.PayoutReversal, v)
		if l := lines[0]; !accept && (l.Debit != ours.Debit || l.Credit != ours.Credit || l.Amount != ours.Amount ||
			l.Currency != ours.Currency) {
			x.report(p, exception.PayoutStuck, "another entry has the reference of its reversal", "")
			return x.do(p, c, Unbooked)
		}
		x.skip = fact.PayoutReversal
		defer func() { x.skip = "" }()
	}
	failpoint.Hit("payout_reversing")
	return x.do(p, c, Booked)
}

// sending is a payout whose call waits for the transaction that records it.
type sending struct {
	id int64
	at supplier.Entry
}

// sent is a payout that may reach the supplier from now on. An error is about it alone.
type sent struct {
	p      *Payout
	before Payout
	call   *suppliercall.Done
	err    error
}

// submit records, before the call, that a payout may reach the supplier from now on.
func (m *Machine) submit(ctx context.Context, id int64, at supplier.Entry) (sent, error) {
	// Not cancelled with ctx: what is recorded must be called, or taken back.
	out, err := m.sends.Do(context.WithoutCancel(ctx), &sending{id, at})
	return out, errors.Join(err, out.err)
}

// sendAll is submit for payouts that share a transaction.
func (m *Machine) sendAll(ctx context.Context, tx db.Tx, all []*sending) ([]sent, error) {
	ids := make([]int64, len(all))
	for i, s := range all {
		ids[i] = s.id
	}
	rows, err := m.lockAll(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	x, now, outs := m.begin(tx), m.DB.Now(), make([]sent, len(all))
	var calls []suppliercall.Call
	var of []*sent
	for i, s := range all {
		p, out := rows[s.id], &outs[i]
		if p == nil {
			out.err = ErrNotFound
			continue
		}
		if may, wait := mayRepeat(p, s.at, now); !may || wait > 0 {
			out.err = db.ErrStale
			continue
		}
		out.p, out.before = p, *p
		if p.LastCallAt = &now; p.FirstCallAt == nil {
			p.FirstCallAt = &now
		}
		p.Short = false
		if p.Credit != Init {
			x.update(p)
		} else if err := x.do(p, booking.Cause{Actor: "backstop"}, Sent); err != nil {
			return nil, err
		}
		calls, of = append(calls, callOf(p, s.at, suppliercall.Payout)), append(of, out)
	}
	if len(calls) == 0 {
		return outs, nil
	}
	for i, begun := range m.o.Calls.Begin(x.W, calls...) {
		of[i].call = begun
	}
	return outs, x.Send(ctx)
}

func callOf(p *Payout, at supplier.Entry, op suppliercall.Op) suppliercall.Call {
	return suppliercall.Call{To: at, Op: op, Reference: p.PayoutNo, Key: p.PayoutNo}
}

// call makes one call about a payout. Its account is opened for the call alone. begun is the
// call's row if it is written already.
func (m *Machine) call(ctx context.Context, p *Payout, at supplier.Entry, op suppliercall.Op, begun *suppliercall.Done) (answer supplier.PayoutAnswer,
	done *suppliercall.Done, err error,
) {
	can := at.Can()
	call := can.PayoutQuery
	if op == suppliercall.Payout {
		call = can.Payout
	}
	what := supplier.Payout{No: p.PayoutNo, SupplierNo: p.SupplierPayoutNo, Amount: p.Amount, Currency: p.Currency}
	if what.Payee, err = m.o.Accounts.Payee(ctx, m.DB.Read, p.PayoutAccountID); err != nil {
		if begun != nil {
			m.o.Calls.Drop(ctx, begun)
		}
		return answer, nil, fmt.Errorf("open the payout's account: %w", err)
	}
	if m.o.CallbackURL != nil {
		what.NotifyURL = m.o.CallbackURL(at.Code)
	}
	to := callOf(p, at, op)
	to.Begun = begun
	done, err = m.o.Calls.Do(ctx, to,
		func(ctx context.Context) (suppliercall.Said, error) {
			answer, err = call(ctx, what)
			return suppliercall.Said{Exchange: answer.Exchange, Status: string(answer.State)}, err
		})
	if err == nil && answer.State == "" { // a failure of the adapter
		answer = supplier.PayoutAnswer{State: supplier.PayoutUnknown}
	}
	return answer, done, err
}

// unsent takes back that a payout may have been sent: the call was certainly not made. If the
// supplier's protocol cannot express the payout, it never will be.
func (m *Machine) unsent(ctx context.Context, x compensation.Item, p, before *Payout, cause error) compensation.Result {
	field, never := errors.AsType[*supplier.FieldError](cause)
	if never = never && before.FirstCallAt == nil; never {
		cause = field
	}
	var result compensation.Result
	err := m.DB.Tx(context.WithoutCancel(ctx), func(ctx context.Context, tx db.Tx) error {
		now, err := m.lock(ctx, tx, p.ID)
		if err != nil || now.Version != p.Version || now.LastCallAt == nil || *now.LastCallAt != *p.LastCallAt {
			return errors.Join(db.ErrStale, err)
		}
		now.FirstCallAt, now.LastCallAt, now.Short = before.FirstCallAt, before.LastCallAt, before.Short
		w := m.begin(tx)
		w.update(now)
		if err := w.Send(ctx); err != nil || !never {
			return err
		}
		w = m.begin(tx)
		now.Failure = textlimit.Clip(textlimit.Storable(field.Error()), maxWord)
		result, err = w.fail(ctx, now, booking.Cause{Actor: "backstop", Detail: now.Failure})
		if err == nil {
			err = w.Send(ctx)
		}
		return err
	})
	switch {
	case err != nil:
		return compensation.Failed(err)
	case never:
		return result
	}
	return m.uncalled(x, before, cause)
}

// noPayouter returns the result for an item whose supplier can no longer make payouts.
func (m *Machine) noPayouter(x compensation.Item, p *Payout) compensation.Result {
	d, _ := m.waitFor(p, x)
	return compensation.Later(compensation.NotQueryable, "its supplier cannot make payouts: check the supplier's settings").Again(d)
}

// uncalled returns the result of a call that was not made.
func (m *Machine) uncalled(x compensation.Item, p *Payout, err error) compensation.Result {
	d, _ := m.waitFor(p, x)
	if errors.Is(err, suppliercall.ErrDown) || errors.Is(err, suppliercall.ErrShadow) {
		return compensation.Later(compensation.SupplierTimeout, err.Error()).Again(min(d, time.Minute))
	}
	if field, ok := errors.AsType[*supplier.FieldError](err); ok {
		return compensation.Later(compensation.NotQueryable, field.Error()).Again(d)
	}
	return compensation.Later(compensation.Database, db.ErrorText(err)).Again(d)
}

// keep stores a call that changes nothing about the payout.
func (m *Machine) keep(ctx context.Context, done *suppliercall.Done, result compensation.Result) compensation.Result {
	if err := m.o.Calls.Keep(ctx, done); err != nil {
		return compensation.Failed(err)
	}
	return result.WithCall(done.ID)
}
