package refund

import (
	"testing"
	"time"

	"backstop/internal/fund/booking"
	"backstop/internal/supplier"
)

// Our account was short of funds for days, then the answer to a call was lost, and the supplier
// does not find the refund yet: that call may have made it.
func TestALostAnswerIsNoLackOfFunds(t *testing.T) {
	t.Parallel()
	const start = 1_700_000_000_000_000
	later := func(d time.Duration) int64 { return start + d.Microseconds() }
	first, second := later(0), later(booking.ShortFor-time.Hour)
	r := &Refund{Status: Submitted, FirstCallAt: &first}
	r.called(first)
	repeats{answered: &first}.short(r, first)
	said := func(now int64) (supplier.RefundState, bool) {
		p := repeatsOf(r, now, 2*time.Minute, supplier.Forever, false)
		as, early, again := p.queried(supplier.RefundNotFound)
		if early {
			t.Fatal("it is too early")
		}
		return p.upToDate(as, r.LastCallAt), again
	}
	if as, again := said(later(booking.ShortFor)); as != neverMade || again {
		t.Errorf("after the last call was short of funds: %s, again %t", as, again)
	}
	r.called(second) // its answer is lost
	if as, again := said(later(booking.ShortFor)); as == neverMade || !again {
		t.Errorf("after a lost answer: %s, again %t; it is sent again under its number", as, again)
	}
	repeats{answered: &second}.short(r, second)
	if as, _ := said(later(booking.ShortFor)); as != neverMade {
		t.Errorf("after its repeat was short of funds: %s", as)
	}
}
