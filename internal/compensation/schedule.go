package compensation

import (
	"math/rand/v2"
	"time"
)

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

// after returns when to retry an item whose try ended at the given time (Unix µs); false = that
// was the last try. If the settings have changed meanwhile, the remaining waits are the last
// ones.
func (s Schedule) after(x *Item, ended int64) (at int64, ok bool) {
	left := x.MaxAttempts - x.Attempts
	if left <= 0 {
		return 0, false
	}
	return ended + s.wait(s.tries()-left), true
}
