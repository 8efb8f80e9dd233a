package payout

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/textlimit"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/fund/booking"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
)

// maxWord bounds a supplier's word, in bytes.
const maxWord = 200

// supplierAnswer is a supplier's answer about a payout.
type supplierAnswer struct {
	supplier.PayoutAnswer
	queried bool          // the answer is to a query, not to the payout itself
	believe time.Duration // the age of the last call from which a query that denies the payout is believed
}

// answered is an answer that waits for the transaction that applies it.
type answered struct {
	id    int64
	heard supplierAnswer
	cause compensation.Cause
	item  compensation.Item
	done  *suppliercall.Done
}

// settled is what an answer led to.
type settled struct {
	result    compensation.Result
	committed func()
}

// settle applies an answer to a payout and stores the finished call in the same transaction.
func (m *Machine) settle(ctx context.Context, item compensation.Item, p *Payout, answer supplier.PayoutAnswer, done *suppliercall.Done,
	queried bool,
) compensation.Result {
	at, _ := m.Settings.Current().Suppliers.ByID(p.SupplierID)
	h := supplierAnswer{answer, queried, cmp.Or(at.PayoutQueryAfter, queryAfter)}
	h.Word = textlimit.Clip(textlimit.Storable(h.Word), maxWord)
	out, err := m.answers.Do(ctx, &answered{p.ID, h, booking.CauseOf(done.Class), item, done})
	if err != nil {
		return compensation.Failed(err)
	}
	out.committed()
	failpoint.Hit("payout_settled")
	return out.result.WithCall(done.ID)
}

// settleAll applies answers, each to a payout of its own.
func (m *Machine) settleAll(ctx context.Context, tx db.Tx, all []*answered) ([]settled, error) {
	ids, calls := make([]int64, len(all)), make([]*suppliercall.Done, len(all))
	for i, a := range all {
		ids[i], calls[i] = a.id, a.done
	}
	rows, err := m.lockAll(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	x, outs := m.begin(tx), make([]settled, len(all))
	for i, a := range all {
		p := rows[a.id]
		if p == nil {
			return nil, ErrNotFound
		}
		c := booking.Cause{Actor: "supplier:" + m.SupplierName(p.SupplierID), SourceKind: booking.SourceCall, SourceID: a.done.ID, Detail: a.heard.Word}
		if outs[i].result, err = x.decide(ctx, p, c, a.heard, a.cause, a.item); err != nil {
			return nil, err
		}
	}
	if err := x.Send(ctx); err != nil {
		return nil, err
	}
	committed, err := m.o.Calls.End(ctx, tx, calls...)
	if err != nil {
		return nil, err
	}
	once := sync.OnceFunc(committed)
	for i := range outs {
		outs[i].committed = once
	}
	failpoint.Hit("payout_settling")
	return outs, nil
}

// decide adds what an answer causes to a locked payout. Everything except success, a return and
// a failure that is certain leaves the money where it is.
func (x *write) decide(ctx context.Context, p *Payout, c booking.Cause, h supplierAnswer, cause compensation.Cause,
	item compensation.Item,
) (compensation.Result, error) {
	p.SupplierPayoutNo = cmp.Or(p.SupplierPayoutNo, h.SupplierNo)
	later := func(text string, d time.Duration) (compensation.Result, error) {
		x.update(p)
		return compensation.Later(cause, text).Again(d), nil
	}
	switch p.Status {
	case Succeeded:
		return x.after(ctx, p, c, h)
	case Reversed:
		return x.late(p, c, h, item)
	case Crediting, Unknown, Stuck:
	default:
		return compensation.AlreadyDone("the payout is " + string(p.Status)), nil
	}
	now := x.m.DB.Now()
	age := since(p.LastCallAt, now)
	again, last := x.m.waitFor(p, item)
	switch h.State {
	case supplier.PayoutSucceeded, supplier.PayoutReturned:
		if p.Credit == CameBack { // it had been returned, but its reversal could not be booked
			return later("two people must decide: the reversal could not be booked", booking.Daily)
		}
		p.Failure = ""
		x.settled(p)
		if err := x.do(p, c, Arrived); err != nil || h.State == supplier.PayoutSucceeded {
			return compensation.Succeeded("the payout is " + string(p.Status)), err
		}
		return x.after(ctx, p, c, h)
	case supplier.PayoutShort:
		p.Short = true
		if p.ShortAt == nil {
			p.ShortAt = &now
		}
		if since(p.ShortAt, now) < booking.ShortFor {
			x.report(p, exception.SupplierShort, "short_of_funds", h.Word)
			return later("the supplier says that our account has insufficient funds", max(booking.ShortWait-age, time.Second))
		}
		p.Failure = cmp.Or(p.Failure, h.Word, string(supplier.PayoutShort))
	case supplier.PayoutFailed:
		p.Failure = cmp.Or(p.Failure, h.Word, string(supplier.PayoutFailed))
	}
	denied := h.State == supplier.PayoutFailed || h.State == supplier.PayoutShort || h.State == supplier.PayoutNotFound
	switch {
	case p.Reversal != None: // its reversal could not be booked
		return later("two people must decide: the reversal could not be booked", booking.Daily)
	case denied && p.Failure != "" && h.queried && age >= h.believe:
		return x.fail(ctx, p, c)
	case denied && p.Failure != "":
		return later("the supplier says that it failed, which counts if a later query says so too", max(h.believe-age, time.Second))
	case h.State == supplier.PayoutProcessing:
		if last {
			x.report(p, exception.PayoutStuck, "processing", h.Word)
		}
		return later("the supplier is processing it", again)
	}
	return x.doubt(p, c, h, cause, again, last)
}

// doubt is for an answer that says nothing: nothing moves. After the last step two people must
// decide.
func (x *write) doubt(
	p *Payout, c booking.Cause, h supplierAnswer, cause compensation.Cause, again time.Duration, last bool,
) (compensation.Result, error) {
	text := h.Reason.Error()
	if text == "" {
		text = fmt.Sprintf("the supplier gave no clear answer (%s)", h.State)
	}
	result := compensation.Later(cause, text).Again(again)
	switch {
	case last && p.Status != Stuck:
		x.report(p, exception.PayoutStuck, "unknown", h.Word)
		return result, x.do(p, c, GaveUp)
	case p.Status == Crediting:
		return result, x.do(p, c, Doubted)
	}
	x.update(p)
	return result, nil
}

// fail books back a payout that failed for certain. The supplier is queried daily for some time
// afterwards.
func (x *write) fail(ctx context.Context, p *Payout, c booking.Cause) (compensation.Result, error) {
	if err := x.do(p, c, Refused); err != nil {
		return compensation.Result{}, err
	}
	if err := x.reverse(ctx, p, c, false); err != nil {
		return compensation.Result{}, err
	}
	if p.Status == Stuck {
		return compensation.Later(compensation.SupplierRefused,
			"the reversal could not be booked: two people must decide").Again(booking.Daily), nil
	}
	x.settled(p)
	return compensation.Later(compensation.SupplierRefused,
		"the payout is reversed, and is queried daily in case it arrives").Again(booking.Daily), nil
}

// after handles news about a payout that succeeded.
func (x *write) after(ctx context.Context, p *Payout, c booking.Cause, h supplierAnswer) (compensation.Result, error) {
	switch h.State {
	case supplier.PayoutReturned:
		x.report(p, exception.PayoutReturned, "returned", h.Word)
		if err := x.do(p, c, Returned); err != nil {
			return compensation.Result{}, err
		}
		return compensation.Succeeded("the payout was returned, and its money is back"), x.reverse(ctx, p, c, false)
	case supplier.PayoutFailed: // it cannot be both
		x.report(p, exception.PayoutReturned, "failed after it had succeeded: nothing was booked", h.Word)
	}
	x.update(p)
	return compensation.AlreadyDone("the payout is " + string(p.Status) + ", and the supplier says " + string(h.State)), nil
}

// late handles news about a reversed payout: one that arrived is debited again.
func (x *write) late(p *Payout, c booking.Cause, h supplierAnswer, item compensation.Item) (compensation.Result, error) {
	if h.State == supplier.PayoutSucceeded && p.Credit != Success {
		x.report(p, exception.PayoutAfterReversal, "it arrived after its reversal", h.Word)
		if p.Credit == Failure {
			return compensation.Succeeded("the payout arrived after its reversal, and is debited again"), x.do(p, c, Late)
		}
	}
	x.update(p)
	if p.Credit == Failure && x.m.watched(p) && item.FromVersion == 0 {
		return compensation.Later(compensation.SupplierRefused,
			"the payout is reversed, and is queried daily in case it arrives").Again(booking.Daily), nil
	}
	return compensation.AlreadyDone("the payout is reversed, and the supplier says " + string(h.State)), nil
}
