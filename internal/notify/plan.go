package notify

import (
	"time"

	"backstop/internal/merchant"
)

// ScheduleOf is the schedule by which a merchant's notifications are repeated; a
// merchant that is unknown or disabled has the default one, as in sending.
func ScheduleOf(m *merchant.Merchant) Schedule {
	if m == nil || m.Disabled {
		return Day()
	}
	return waitsOf(m.Settings)
}

// After is the wait after the given attempt of a delivery whose schedule counts
// from attempt scheduleFrom on; false means that the schedule is used up. What is
// sent and what people are told both come from here.
func (s Schedule) After(attempt, scheduleFrom int64) (time.Duration, bool) {
	return s.Wait(int(attempt - scheduleFrom))
}

// LastAt is about when the last attempt begins if all fail: the given attempt
// begins at the moment at (Unix µs), and how long attempts take is not known.
func (s Schedule) LastAt(at, attempt, scheduleFrom int64) int64 {
	for {
		wait, more := s.After(attempt, scheduleFrom)
		if !more {
			return at
		}
		at += wait.Microseconds()
		attempt++
	}
}
