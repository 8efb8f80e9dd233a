package compensation

import (
	"math/rand/v2"
	"time"
)

// moneySteps are the waits between queries about money on its way. After the last one it is
// queried daily.
var moneySteps = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour,
	12 * time.Hour,
}

// Daily is the wait after the last step, and that of items which no further try can help but
// nothing can replace.
const Daily = 24 * time.Hour

// WaitSince returns how long to wait before the supplier is queried again about money that has
// been on its way for so long; last = the steps are over, and an operator must look at it. It
// counts time and not tries: how often a person or a callback had it queried, and how often a
// node was killed meanwhile, says nothing about the supplier.
func WaitSince(age time.Duration) (d time.Duration, last bool) {
	var due time.Duration
	for _, step := range moneySteps {
		if due += step; age < due {
			return due - age, false
		}
	}
	return Daily, true
}

// Schedule lists the waits before each try of an item. After the last try it is dead.
type Schedule []time.Duration

// tries returns the number of tries.
func (s Schedule) tries() int64 { return int64(len(s)) }

// wait returns the wait (µs) after the given number of tries, ±10 %, so that what failed
// together does not return at once.
func (s Schedule) wait(tries int64) int64 {
	d := s[max(0, min(tries, s.tries()-1))]
	return int64(float64(d.Microseconds()) * (0.9 + 0.2*rand.Float64()))
}

// after returns when to retry an item with so many tries left, whose try ended at the given time
// (Unix µs); false = that was the last try. If the settings have changed meanwhile, the remaining
// waits are the last ones.
func (s Schedule) after(left, ended int64) (at int64, ok bool) {
	if left <= 0 {
		return 0, false
	}
	return ended + s.wait(s.tries()-left), true
}
