package refund

import (
	"context"
	"errors"
	"testing"
	"time"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

const openShort = "SELECT count(*) FROM exceptions WHERE kind = 'supplier_short' AND state = 'open' AND subject = ?"

// Three days are counted from the first answer that our account is short of funds, not from the
// first call; then a query must not find the refund.
func TestAShortageCountsFromItsFirstAnswer(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		r := k.mustCreate(k.paid(), 700)
		fault := paymenttest.RefundDeaf
		k.fake.OnRefund(func(supplier.Refund) paymenttest.RefundFault { return fault })
		k.run(r)
		k.later(r, 80*time.Hour) // nobody answered for days
		fault = paymenttest.RefundShort
		k.run(r)
		k.is("the first time", r, Unknown, 0, "")
		k.Want(t, 1, openShort, r.RefundNo)
		for range 2 {
			k.later(r, 31*time.Hour)
			k.run(r)
		}
		k.is("after 62 hours", r, Unknown, 0, "")
		k.Want(t, 0, "SELECT count(*) FROM exceptions WHERE kind = 'refund_failed'")
		k.later(r, 31*time.Hour)
		k.run(r)
		k.is("after three days", r, Failed, 0, "refund.failed")
		k.balances("after three days", 1999, 0, -1999)
		k.Want(t, 0, openShort, r.RefundNo)
		if got := k.fake.RefundOf(r.RefundNo); got.Calls != 3 {
			t.Errorf("sent although the time is over: %+v", got)
		}

		r = k.mustCreate(k.paid(), 700)
		k.run(r)
		k.Want(t, 1, openShort, r.RefundNo)
		k.fake.OnRefund(nil)
		k.later(r, 31*time.Minute)
		k.run(r)
		k.is("topped up", r, Succeeded, 1, "refund.succeeded")
		k.Want(t, 0, openShort, r.RefundNo)
	})
}

// A message about a refund that came back is delivered late or again: it is not another refund.
func TestAReturnedRefundIsNotAdopted(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		o := k.paid()
		r := k.at(Returned, o)
		for name, change := range map[string]func(*supplier.Callback){
			"by its number": func(c *supplier.Callback) { c.RefundNo = r.RefundNo },
			"by a total":    func(c *supplier.Callback) { c.RefundTotal = c.Amount },
		} {
			k.says(o, name, 700, change)
			k.notices()
			k.Want(t, 0, "SELECT count(*) FROM refunds WHERE adopted <> ''")
		}
		k.is("returned", r, Returned, 1, "both")
		k.balances("returned", 1999, 0, -1999)
	})
}

// Operators decide by a statement that a refund was not made, and it is sent again before the
// second one approves: the statement no longer counts.
func TestAStatementOlderThanTheLastCallIsNotBelieved(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		r := k.at(Unknown, k.paid())
		resolve := func(succeeded bool, at int64) error {
			return k.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				_, err := k.m.Resolve(ctx, tx, r.ID, Verdict{Succeeded: succeeded, Actor: "lead", ApprovalID: 1, MadeAt: at})
				return err
			})
		}
		read := k.DB.Now()
		if _, err := k.m.submit(t.Context(), r.ID, k.Entry(t, "f1")); err != nil {
			t.Fatal(err)
		}
		if err := resolve(false, read); !errors.Is(err, act.ErrChanged) {
			t.Errorf("an old statement: %v", err)
		}
		k.is("an old statement", r, Unknown, 0, "")
		if err := resolve(false, k.DB.Now()+1); err != nil {
			t.Error(err)
		}
		k.is("a new one", r, Failed, 0, "refund.failed")
	})
}

// A node that stood still between a query and its conclusion, while another one sent the refund.
func TestAConclusionIsDroppedWhenTheRefundWasSentMeanwhile(t *testing.T) {
	t.Parallel()
	last, later := int64(1), int64(2)
	p := repeats{last: &last}
	for _, c := range []struct {
		as   supplier.RefundState
		last *int64
		want supplier.RefundState
	}{
		{neverMade, &last, neverMade},
		{neverMade, &later, supplier.RefundUnknown},
		{neverMade, nil, supplier.RefundUnknown},
		{supplier.RefundFailed, &later, supplier.RefundFailed},
	} {
		if got := p.upToDate(c.as, c.last); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
