package compensation

import (
	"math/rand/v2"
	"time"
)

// Schedule is how long an item waits before each of its tries. After the last one it is
// dead.
type Schedule []time.Duration

// tries is how many tries a schedule has.
func (s Schedule) tries() int64 { return int64(len(s)) }

// wait is how long to wait (µs) after so many tries of a schedule, ±10 %: what broke together
// does not come back at once.
func (s Schedule) wait(tries int64) int64 {
	d := s[max(0, min(tries, s.tries()-1))]
	return int64(float64(d.Microseconds()) * (0.9 + 0.2*rand.Float64()))
}

// after is when to try an item again whose try ended at a moment (Unix µs); false = that was
// its last one. Where the settings have changed meanwhile, the waits that remain are the last
// ones.
func (s Schedule) after(x *Item, ended int64) (at int64, ok bool) {
	left := x.MaxAttempts - x.Attempts
	if left <= 0 {
		return 0, false
	}
	return ended + s.wait(s.tries()-left), true
}
