// Package calendar finds the moments that the clocks of a time zone show. A time that they skip,
// because they are put forward over it, is the first moment after the gap; of a time that comes
// twice it is the first one. time.Date and time.ParseInLocation promise neither: in a gap they
// may return a moment of the day before.
package calendar

import "time"

// At returns the moment at which the clocks of t's zone show a time, on the day of t or so many
// days later.
func At(t time.Time, days, hour, minute, second int) time.Time {
	year, month, day := t.Date()
	return in(t.Location(), time.Date(year, month, day+days, hour, minute, second, 0, time.UTC))
}

// DayStart returns the first moment of the day of t in t's zone, or of one so many days later. It
// is midnight, or 1:00 where clocks are put forward at midnight.
func DayStart(t time.Time, days int) time.Time { return At(t, days, 0, 0, 0) }

// AddDays returns the moment at the same time of day so many days later.
func AddDays(t time.Time, days int) time.Time { return in(t.Location(), wall(t).AddDate(0, 0, days)) }

// MonthEnd returns the first moment of the month after that of t.
func MonthEnd(t time.Time) time.Time {
	year, month, _ := t.Date()
	return in(t.Location(), time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC))
}

// ParseDay returns the first moment of a day such as 2026-11-23 in a zone.
func ParseDay(text string, zone *time.Location) (time.Time, error) {
	return Parse(time.DateOnly, text, zone)
}

// Parse is time.ParseInLocation.
func Parse(layout, text string, zone *time.Location) (time.Time, error) {
	shown, err := time.ParseInLocation(layout, text, time.UTC)
	if err != nil {
		return shown, err
	}
	elsewhere, err := time.ParseInLocation(layout, text, time.FixedZone("", 1))
	if err != nil || elsewhere.Equal(shown) { // the text has an offset of its own
		return shown.In(zone), err
	}
	return in(zone, shown), nil
}

// wall returns what the clocks show at a moment, as if they were in UTC.
func wall(t time.Time) time.Time {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	return time.Date(year, month, day, hour, minute, second, t.Nanosecond(), time.UTC)
}

// in returns the moment at which the clocks of a zone show what those in UTC show at a time.
func in(zone *time.Location, shown time.Time) time.Time {
	year, month, day := shown.Date()
	hour, minute, second := shown.Clock()
	at := time.Date(year, month, day, hour, minute, second, shown.Nanosecond(), zone)
	start, end := at.ZoneBounds()
	switch got := wall(at); {
	case got.Before(shown):
		return end
	case got.After(shown):
		return start
	case start.IsZero():
		return at
	}
	if earlier := at.Add(wall(start).Sub(wall(start.Add(-1))) - 1); earlier.Before(start) && wall(earlier).Equal(shown) {
		return earlier
	}
	return at
}
