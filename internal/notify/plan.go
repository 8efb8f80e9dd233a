package notify

import "backstop/internal/merchant"

// ScheduleOf is the schedule by which a merchant's notifications are repeated; a
// merchant that is unknown or disabled has the default one, as in sending.
func ScheduleOf(m *merchant.Merchant) Schedule {
	if m == nil || m.Disabled {
		return Day()
	}
	return waitsOf(m.Settings)
}
