// Package analytics reads what the analytics page shows: how notifications, payments and
// exceptions went over a time, and what is expected next. It reads sums that package report
// maintains, and rows of exceptions within bounds; it writes nothing.
package analytics

import (
	"context"
	"sort"
	"time"

	"backstop/internal/base/calendar"
	"backstop/internal/base/db"
	"backstop/internal/report"
)

// Range is a time to look at, in steps.
type Range struct {
	Name string // in the URL
	Step time.Duration
	N    int // steps
	// LastWeek reports whether the range is compared with the same one a week before.
	LastWeek bool
}

// day is the length of a step of days, of which each begins at midnight.
const day = 24 * time.Hour

// Ranges are all ranges. The last one is as long as figures are kept.
var Ranges = []Range{
	{"24h", 30 * time.Minute, 48, true},
	{"7d", 4 * time.Hour, 42, true},
	{"30d", day, 30, true},
	{"90d", day, 90, true},
	{"400d", 10 * day, 40, false},
}

// RangeOf returns the range with this name; the default is a day.
func RangeOf(name string) Range {
	for _, r := range Ranges {
		if r.Name == name {
			return r
		}
	}
	return Ranges[0]
}

// span is the length of the rows that a range is read from.
func (r Range) span() time.Duration {
	switch {
	case r.Step >= day:
		return day
	case r.Step >= time.Hour:
		return time.Hour
	}
	return report.Fine
}

// Days reports whether the steps are days of the installation's time zone, or several of them.
func (r Range) Days() bool { return r.Step >= day }

// starts returns the first moments of the steps (Unix µs), the last of which contains now, and
// back days before.
func (r Range) starts(now int64, zone *time.Location, back int) []int64 {
	all := make([]int64, r.N)
	for i := range all {
		ago := r.N - 1 - i
		if r.Days() {
			all[i] = calendar.DayStart(time.UnixMicro(now).In(zone), 1-(ago+1)*int(r.Step/day)-back).UnixMicro()
			continue
		}
		step := r.Step.Microseconds()
		all[i] = now - now%step - int64(ago)*step - int64(back)*day.Microseconds()
	}
	return all
}

// at returns the step that contains a time; false = before the first one.
func at(starts []int64, us int64) (int, bool) {
	i := sort.Search(len(starts), func(i int) bool { return starts[i] > us })
	return i - 1, i > 0
}

// Notified counts the orders of one step of which merchants had to be notified, and have been.
type Notified struct{ Raised, Notified, RaisedAmount, NotifiedAmount int64 }

func (n *Notified) add(o Notified) {
	n.Raised, n.Notified = n.Raised+o.Raised, n.Notified+o.Notified
	n.RaisedAmount, n.NotifiedAmount = n.RaisedAmount+o.RaisedAmount, n.NotifiedAmount+o.NotifiedAmount
}

// Rate returns the share of orders of which merchants have been notified; false = none had to be.
func (n Notified) Rate() (float64, bool) { return share(n.Notified, n.Raised) }

// MoneyRate returns the same share by money.
func (n Notified) MoneyRate() (float64, bool) { return share(n.NotifiedAmount, n.RaisedAmount) }

func share(part, of int64) (float64, bool) {
	if of <= 0 {
		return 0, false
	}
	return float64(part) / float64(of), true
}

// Budget is how much of what an objective (0 to 1) allows to fail has failed: 1 = all of it.
// Orders that still wait have not been notified yet and count as failed.
func (n Notified) Budget(objective float64) (float64, bool) {
	if n.Raised <= 0 {
		return 0, false
	}
	return float64(n.Raised-n.Notified) / (float64(n.Raised) * (1 - objective)), true
}

// Cause counts the failed attempts of one cause.
type Cause struct {
	Class    string
	Steps    []int64 // attempts by step
	Attempts int64
	Before   int64 // attempts a week before
	// Orders and Sums are those whose first attempt failed for this cause.
	Orders int64
	Sums   []report.Sum
	// NewSince is when the cause first appeared (Unix µs), if it did within the last seven days;
	// 0 = known before.
	NewSince int64
}

// Flow is the orders of one merchant or supplier.
type Flow struct {
	ID                    int64
	Code, Name            string
	Created, Paid, Before int64 // Before: created a week before
	PaidBefore            int64 // of these
	Sums                  []report.Sum
}

// Conversion returns the share of created orders that have been paid; false = none created.
func (f Flow) Conversion() (float64, bool) { return share(f.Paid, f.Created) }

// ConversionBefore returns the same of a week before.
func (f Flow) ConversionBefore() (float64, bool) { return share(f.PaidBefore, f.Before) }

// Page is what the analytics page shows.
type Page struct {
	Range  Range
	At     int64 // Unix µs
	Zone   *time.Location
	Starts []int64
	// First is when the oldest figures begin (Unix µs); 0 = there are none.
	First int64

	// Notified and LastWeek count by step, over all currencies; Money in Currency, the one with
	// the most orders.
	Notified, LastWeek []Notified
	Money              []Notified
	Currency           string
	Total              Notified
	Currencies         []Currency

	// Waits and WaitsBefore are how long after the payment orders were notified, by step.
	Waits, WaitsBefore []report.Histogram

	Causes []Cause // most attempts first
	// FailedBefore counts the failed attempts of all causes a week before, by step.
	FailedBefore []int64

	Merchants []Flow // most orders first
	Suppliers []Flow

	Exceptions Exceptions
}

// Currency is the total of one currency.
type Currency struct {
	Code string
	Notified
}

// Read reads the page for a range. Days are those of the zone.
func Read(ctx context.Context, d *db.DB, zone *time.Location, r Range) (*Page, error) {
	p := &Page{Range: r, At: d.Now(), Zone: zone}
	p.Starts = r.starts(p.At, zone, 0)
	q := reader{d: d, p: p, before: r.starts(p.At, zone, 7)}
	if !r.LastWeek {
		q.before = nil
	}
	if err := q.figures(ctx); err != nil {
		return nil, err
	}
	return p, q.exceptions(ctx)
}

// ReadDay reads the figures of one day of the zone that has ended, without its exceptions: the
// day is one step, compared with the same day a week before. start is the day's first moment
// (Unix µs).
func ReadDay(ctx context.Context, d *db.DB, zone *time.Location, start int64) (*Page, error) {
	t := time.UnixMicro(start).In(zone)
	midnight := func(days int) int64 {
		return calendar.DayStart(t, days).UnixMicro()
	}
	p := &Page{Range: Range{"day", day, 1, true}, At: midnight(1) - 1, Zone: zone, Starts: []int64{midnight(0)}}
	q := reader{d: d, p: p, before: []int64{midnight(-7)}}
	return p, q.figures(ctx)
}
