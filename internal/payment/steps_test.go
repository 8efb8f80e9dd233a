package payment_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"backstop/internal/base/waittest"
	"backstop/internal/order"
	"backstop/internal/payment"
)

// contractSteps are the defaults of BACKSTOP_QUERY_STEPS and BACKSTOP_CLOSE_STEPS.
var contractSteps = payment.Steps{
	Query: []time.Duration{
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour,
		12 * time.Hour, 24 * time.Hour,
	},
	Close: []time.Duration{
		0, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
		30 * time.Minute,
	},
}

// The whole life by the clock of an order that its supplier never says anything about: each
// wait of the table in its turn, once a day after the last one, its timeout to the
// microsecond, then the table of closing, its last wait until a day after the timeout, and
// once a day from then on. All waits of an order have one spread.
func TestAnOrderIsAskedByTheClock(t *testing.T) {
	t.Parallel()
	for id := int64(1); id <= 20; id++ {
		synctest.Test(t, func(t *testing.T) {
			now := func() int64 { return time.Now().UnixMicro() }
			began := now()
			const expiry = 6 * 24 * time.Hour
			o := &order.Order{ID: id, Status: order.Paying, ExpiresAt: began + expiry.Microseconds()}
			factor := 0.0
			// wait sleeps until the next moment, and compares the wait with what it must be.
			wait := func(want time.Duration, spread, stuck bool) {
				t.Helper()
				at, is := contractSteps.Next(o, now())
				got := time.Duration(at-now()) * time.Microsecond
				if is != stuck {
					t.Fatalf("order %d, %s, try %d: stuck %t", id, o.Status, o.QueryTries, is)
				}
				f := 1.0
				if spread {
					if factor == 0 {
						factor = float64(got) / float64(want)
					}
					f = factor
				}
				if f < 0.9 || f > 1.1 || (got-time.Duration(f*float64(want))).Abs() > 10*time.Millisecond {
					t.Fatalf("order %d, %s, try %d: it waits %s, want %s × %f", id, o.Status, o.QueryTries, got, want, f)
				}
				waittest.Pass(got)
				o.QueryTries++
			}
			for _, want := range contractSteps.Query {
				wait(want, true, false)
			}
			for now()+payment.Daily.Microseconds() < o.ExpiresAt {
				wait(payment.Daily, false, true)
			}
			wait(time.Duration(o.ExpiresAt-now())*time.Microsecond, false, true)
			if now() != o.ExpiresAt {
				t.Fatalf("order %d is queried %d µs after its timeout", id, now()-o.ExpiresAt)
			}
			o.Status, o.QueryTries = order.Closing, 0
			queried := 0
			for i := 0; now() < o.ExpiresAt+(24*time.Hour).Microseconds(); i++ {
				want := contractSteps.Close[min(i, len(contractSteps.Close)-1)]
				wait(want, want > 0, false)
				queried++
			}
			// 48 min 40 s of the table, then half an hour again and again, ±10 %.
			if queried < 49 || queried > 60 {
				t.Errorf("order %d: %d attempts to close it in a day", id, queried)
			}
			for range 3 {
				wait(payment.Daily, false, true)
			}
		})
	}
}

// A thousand orders that were started together are spread over the whole width.
func TestOrdersStartedTogetherAreAskedApart(t *testing.T) {
	t.Parallel()
	tenths := make([]int, 10)
	for id := int64(383052520571797505); id < 383052520571797505+1000; id++ { // numbers in a row
		at, _ := contractSteps.Next(&order.Order{ID: id, Status: order.Paying, ExpiresAt: time.Hour.Microseconds()}, 0)
		tenths[min(9, max(0, int((float64(at)/60e6-0.9)/0.02)))]++
	}
	if slices.Min(tenths) < 50 {
		t.Errorf("by tenths of the spread: %v", tenths)
	}
}
