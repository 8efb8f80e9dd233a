package refund

import (
	"cmp"
	"math"
	"slices"

	"backstop/internal/supplier"
)

// The formula of the refunds of one payment: how much of it was refunded at the supplier, outside
// of Backstop. It reads and writes nothing, and depends on what was reported, not on its order.

// wholePayment is the total of a reversal: all of the payment, however much that is.
const wholePayment = math.MaxInt64

// stage is how far a refund with a number of the supplier has come. It never goes back: a refund
// that failed after it was made stays failed.
type stage int64

// Stages of a number.
const (
	pending stage = 1
	done    stage = 2
	failed  stage = 3
)

// stageOf translates what a supplier says about a refund of its own.
func stageOf(said supplier.RefundState) stage {
	switch said {
	case supplier.RefundSucceeded:
		return done
	case supplier.RefundFailed, supplier.RefundReturned:
		return failed
	case supplier.RefundProcessing, supplier.RefundAbnormal, supplier.RefundShort:
		return pending
	}
	return 0
}

// total is a sum of a payment's refunds so far, as one or more messages reported it.
type total struct {
	amount      int64 // wholePayment = all of it
	firstAt     int64 // first receipt, by our clock
	newsAt      int64 // receipt of the first message, or of the last one with a later date
	from, until int64 // first and last date by the supplier's clock; 0 = none
}

// number is a refund of the supplier's own, known by its number.
type number struct {
	no      string
	amount  int64
	stage   stage
	firstAt int64 // first receipt
	failed  int64 // when it failed, by the supplier's clock; 0 = not known
}

// facts are everything that is known about the refunds of one payment.
type facts struct {
	totals  []total
	numbers []number
	ours    []*Refund // refunds made by Backstop
	// someAt is when a message first said that some of the payment was refunded, and not how much.
	someAt int64
	// listedAt is when the supplier last listed all refunds; totals received before say nothing
	// more.
	listedAt int64

	booked    int64 // what the payment came with, for an order or in suspense
	disputed  int64
	elsewhere int64 // of it what people settled as refunded outside of Backstop
}

// conclusion is what follows from the facts.
type conclusion struct {
	made    int64 // refunded at the supplier, to be booked
	exceeds int64 // refunded as well, but more than there is
	doubt   int64 // perhaps refunded as well: nobody can tell from the messages
}

// sent reports whether a refund of ours may be in a total received at a time: it was called
// before, and the supplier did not refuse it.
func (r *Refund) sent(before int64) bool {
	if r.FirstCallAt == nil || *r.FirstCallAt >= before {
		return false
	}
	return r.Status == Submitted || r.Status == Unknown || r.Status == Succeeded || r.Status == Returned ||
		r.Status == Failed && r.AcceptedAt != nil
}

// uses reports whether a refund takes its amount from the payment.
func (r *Refund) uses() bool {
	return r.Status == Submitted || r.Status == Unknown || r.Status == Succeeded
}

// known reports whether a number of the supplier is that of a refund of ours, which its own row
// accounts for.
func (f facts) known(no string) bool {
	return slices.ContainsFunc(f.ours, func(r *Refund) bool {
		return (r.SupplierRefundNo == no || r.RefundNo == no) && r.sent(math.MaxInt64)
	})
}

// others returns the numbers of the supplier's own in one stage, and their sum.
func (f facts) others(s stage) (all []number, sum int64) {
	for _, n := range f.numbers {
		if n.stage == s && !f.known(n.no) {
			all, sum = append(all, n), sum+n.amount
		}
	}
	slices.SortFunc(all, func(a, b number) int {
		return cmp.Or(cmp.Compare(a.firstAt, b.firstAt), cmp.Compare(a.no, b.no))
	})
	return all, sum
}

// rest returns what a total leaves after the refunds of ours that are in it.
func (f facts) rest(t total) int64 {
	amount := t.amount
	if amount == wholePayment {
		amount = f.booked
	}
	for _, r := range f.ours {
		if r.sent(t.firstAt) {
			amount -= r.Amount
		}
	}
	return amount
}

// left returns what of the payment is neither disputed nor refunded by us.
func (f facts) left() int64 {
	left := f.booked - f.disputed
	for _, r := range f.ours {
		if r.uses() {
			left -= r.Amount
		}
	}
	return max(left, 0)
}

// conclude applies the formula: made = min(left, max(N, T - F)), where N and F are the sums of the
// numbers that were made and that failed, and T is the highest total without our own refunds.
func (f facts) conclude() conclusion {
	_, made := f.others(done)
	_, back := f.others(failed)
	_, open := f.others(pending)
	want := made
	for _, t := range f.totals {
		rest := f.rest(t) - back
		if t.newsAt <= f.listedAt { // the list has all of it by number
			rest = min(rest, made+open)
		}
		want = max(want, rest)
	}
	want = max(want-f.elsewhere, 0)
	left := f.left()
	c := conclusion{made: min(left, want)}
	c.exceeds = want - c.made
	for _, t := range f.totals {
		if t.newsAt > f.listedAt && f.doubtful(t) {
			c.doubt = max(c.doubt, min(left, f.rest(t)-f.elsewhere)-c.made)
		}
	}
	if f.someAt > f.listedAt && !f.someKnown() {
		c.doubt = max(c.doubt, left)
	}
	return c
}

// someKnown reports whether some refund is known that a message without an amount may mean.
func (f facts) someKnown() bool {
	return len(f.totals) > 0 || len(f.numbers) > 0 || f.elsewhere > 0 ||
		slices.ContainsFunc(f.ours, func(r *Refund) bool { return r.sent(f.someAt) })
}

// doubtful reports whether a total may be without the refunds that failed before it. It is with
// them as long as each refund raises it; one that was reported after a failure and is not above
// what there had been before is without, or says nothing new.
func (f facts) doubtful(t total) bool {
	numbers, _ := f.others(failed)
	slices.SortFunc(numbers, func(a, b number) int { return cmp.Compare(a.failed, b.failed) })
	var before, sum int64
	for _, n := range numbers {
		if n.failed == 0 || t.until <= n.failed {
			continue
		}
		sum += n.amount
		before = max(before, sum)
		for _, u := range f.totals {
			if u.from < n.failed {
				before = max(before, u.amount)
			}
		}
	}
	return t.amount <= before
}
