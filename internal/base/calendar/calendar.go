// Package calendar finds where the days of a time zone begin.
package calendar

import "time"

// DayStart returns the first moment of the day of t in t's zone, or of one so many days later. It
// is midnight, except where clocks are put forward at midnight: there the day begins at 1:00, and
// time.Date would return a moment of the day before.
func DayStart(t time.Time, days int) time.Time {
	year, month, day := t.Date()
	start := time.Date(year, month, day+days, 0, 0, 0, 0, t.Location())
	if start.Hour() > 12 {
		_, start = start.ZoneBounds()
	}
	return start
}

// ParseDay returns the first moment of a day such as 2026-11-23 in a zone.
func ParseDay(text string, zone *time.Location) (time.Time, error) {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return day, err
	}
	return DayStart(time.Date(day.Year(), day.Month(), day.Day(), 12, 0, 0, 0, zone), 0), nil
}
