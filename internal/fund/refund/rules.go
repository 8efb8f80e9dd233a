package refund

import (
	"time"

	"backstop/internal/fee"
	"backstop/internal/fund/booking"
	"backstop/internal/supplier"
)

// The rules of refunds: they read and write nothing.

// neverMade is what follows from answers that do not find a refund, or from a shortage of funds
// that lasts; no supplier says it.
const neverMade supplier.RefundState = "never_made"

// heard returns what a supplier's answer does to a refund; none = its status stays.
func heard(status Status, said supplier.RefundState) []Event {
	switch {
	case status == Succeeded && (said == supplier.RefundReturned || said == supplier.RefundFailed):
		return []Event{CameBack}
	case status != Submitted && status != Unknown:
		return nil
	}
	switch said {
	case supplier.RefundSucceeded:
		return []Event{Arrived}
	case supplier.RefundReturned:
		return []Event{Arrived, CameBack}
	case supplier.RefundFailed, neverMade:
		return []Event{Refused}
	case supplier.RefundShort, supplier.RefundProcessing:
		return nil
	}
	if status == Submitted {
		return []Event{Doubted}
	}
	return nil
}

// unsent returns the event that stops a refund that no supplier has.
func unsent(status Status) Event {
	if status == Requested {
		return Reject
	}
	return Refused
}

// repeats is what may be done about a refund that the supplier does not find. It is read before
// the supplier is queried.
type repeats struct {
	may       bool          // it may be sent again: there is one refund all the same
	early     time.Duration // how much longer to wait before the answer is relied on; 0 or less = none
	absent    bool          // it was not made and never will be
	shortOver bool          // our account has been short of funds for as long as that is waited for
	shortLast bool          // the last call was answered so; one that was not may have made it
	last      *int64        // the last call
	answered  *int64        // the call whose answer it is; nil = the answer to a query
}

// repeatsOf returns that of a refund. The supplier recognizes a number for so long (known) after
// the first call, and finds what it has made after a while (after); tells = what it does not find
// once it no longer recognizes the number was not made.
func repeatsOf(r *Refund, now int64, after, known time.Duration, tells bool) repeats {
	p := repeats{last: r.LastCallAt, shortLast: r.ShortLast, shortOver: r.ShortAt != nil && now-*r.ShortAt >= booking.ShortFor.Microseconds()}
	if r.LastCallAt != nil {
		p.early = time.Duration(*r.LastCallAt-now)*time.Microsecond + after
	}
	p.may = r.FirstCallAt == nil || known == supplier.Forever || now-*r.FirstCallAt < known.Microseconds()
	p.absent = !p.may && tells
	return p
}

// queried is what follows from the answer to a query: what the refund is taken for, or that the
// answer comes too early, or that the refund may be sent again.
func (p repeats) queried(said supplier.RefundState) (as supplier.RefundState, early, again bool) {
	switch {
	case said == supplier.RefundShort && p.shortOver && p.early <= 0:
		return neverMade, false, false
	case said != supplier.RefundNotFound:
		return said, false, false
	case p.early > 0:
		return said, true, false
	case p.absent, p.shortOver && p.shortLast:
		return neverMade, false, false
	case !p.may:
		return supplier.RefundUnknown, false, false
	}
	return said, false, true
}

// short notes an answer that our account is short of funds.
func (p repeats) short(r *Refund, now int64) {
	if r.ShortAt == nil {
		r.ShortAt = &now
	}
	r.ShortLast = r.ShortLast || p.answered != nil && r.LastCallAt != nil && *p.answered == *r.LastCallAt
}

// called notes a call before it is made.
func (r *Refund) called(now int64) { r.LastCallAt, r.ShortLast = &now, false }

// upToDate returns what is left of a conclusion when the refund is locked: a call that was made
// meanwhile may have made the refund.
func (p repeats) upToDate(as supplier.RefundState, last *int64) supplier.RefundState {
	if as == neverMade && (last == nil || p.last == nil || *last != *p.last) {
		return supplier.RefundUnknown
	}
	return as
}

// left returns how much of a payment can still be refunded; taken is what its refunds use up.
func left(paid, disputed, taken int64) int64 { return max(paid-disputed-taken, 0) }

// named is what follows from a message that names a refund; back = it says that money went to
// the buyer. ask = the supplier is queried about it, known = there is nothing to do. If neither, the
// refund had ended without money, but money moved: it is treated as made elsewhere.
func named(status Status, back bool) (query, known bool) {
	switch {
	case Moves.Of(status).Open && status != Requested, status == Succeeded && !back:
		return true, false
	}
	return false, status == Succeeded || status == Returned || !back
}

// feeBack returns the part of a fee that is returned with a refund; amounts and returned are
// the sums of the payment's other refunds that succeeded.
func feeBack(rule fee.Rule, paid, amount, amounts, returned int64) int64 {
	if !rule.Return {
		return 0
	}
	return fee.Returned(rule.Of(paid), paid, amounts+amount, returned)
}
