package analytics

import (
	"context"
	"fmt"
	"math"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/forecast"
	"backstop/internal/report"
)

const (
	// trendSpan is the time that trends are measured over, by the minute.
	trendSpan = 30 * time.Minute
	// minAttempts keeps a minute with hardly any attempts from counting as a rate.
	minAttempts = 5
	// Horizon is how far a trend is extended: beyond it, a limit counts as not reached.
	Horizon = 6 * time.Hour
	// VolumeStep is the time between two expected volumes.
	VolumeStep = report.Fine
	// volumeAhead and VolumeBehind are the expected steps, and the past ones beside them.
	volumeAhead, volumeBehind = 36, 72
)

// Outlook is the trend of a level that has a limit.
type Outlook struct {
	Values []float64 // by the minute, the last one complete and now; NaN = unknown
	Held   []float64 // of a backlog: what is held for breakers and not among Values
	Share  bool      // the values are shares, 0 to 1
	Limit  float64
	Line   forecast.Line
	Known  bool // there is enough to tell a trend
	// Beyond: the level is beyond its limit now. An alert about the level itself fires for that.
	Beyond bool
	// At is when the limit will be reached, if it will within Horizon, and Earliest and Latest the
	// interval of it: minutes from now. Latest is at most Horizon.
	At, Earliest, Latest time.Duration
	Reached              bool
	// Unsure: the line would cross the limit within Horizon, but the level may as well be flat.
	Unsure bool
}

// Minutes returns in how many minutes the limit will be reached, Horizon if it will not. It
// returns false if that is unknown or unsure, or the level is beyond the limit already.
func (o Outlook) Minutes() (int64, bool) {
	switch {
	case !o.Known || o.Beyond || o.Unsure:
		return 0, false
	case o.Reached:
		return int64(math.Ceil(o.At.Minutes())), true
	}
	return int64(Horizon / time.Minute), true
}

// Any reports whether any value is known.
func (o Outlook) Any() bool { return !math.IsNaN(forecast.Median(o.Values)) }

// LineAt returns the trend some minutes after now; it ends where the level can go no further.
func (o Outlook) LineAt(minutes float64) float64 {
	v := max(0, o.Line.Now+o.Line.Slope*minutes)
	if o.Share {
		return min(v, 1)
	}
	return v
}

// PerHour returns by how much the level changes within an hour if the trend goes on.
func (o Outlook) PerHour() float64 {
	if o.Share {
		return o.LineAt(60) - o.LineAt(0)
	}
	return o.Line.Slope * 60
}

func (o *Outlook) set(c forecast.Crossing, ok bool) {
	steps := (o.Limit - o.Line.Now) / o.Line.Slope
	o.Unsure = !ok && !o.Beyond && steps > 0 && steps < Horizon.Minutes()
	minutes := func(v float64) time.Duration {
		return time.Duration(min(v, Horizon.Minutes()) * float64(time.Minute))
	}
	if o.Reached = ok && c.Steps < Horizon.Minutes(); o.Reached {
		o.At, o.Earliest, o.Latest = minutes(c.Steps), minutes(c.Earliest), minutes(c.Latest)
	}
}

// OutlookOfBacklog returns when rising values, one per minute, reach their limit.
func OutlookOfBacklog(values []float64, limit float64) Outlook {
	o := Outlook{Values: values, Limit: limit}
	if o.Line, o.Known = forecast.Trend(values); o.Known {
		o.Beyond = o.Line.Now >= limit
		o.set(o.Line.Reaches(limit))
	}
	return o
}

// OutlookOfRate returns when falling values, one per minute, fall below their limit.
func OutlookOfRate(values []float64, limit float64) Outlook {
	o := Outlook{Values: values, Limit: limit, Share: true}
	if o.Line, o.Known = forecast.Trend(values); o.Known {
		o.Beyond = o.Line.Now < limit
		o.set(o.Line.Leaves(limit))
	}
	return o
}

// minutesBefore returns the whole minutes of the trend: the first one, and the first after it.
func minutesBefore(now int64) (from, to int64) {
	to = now - now%time.Minute.Microseconds()
	return to - trendSpan.Microseconds(), to
}

// Backlog returns when the deliveries that are due reach a limit, and how many more are held.
func Backlog(ctx context.Context, d *db.DB, limit float64) (Outlook, error) {
	// The level of the current minute is complete: it was measured at one moment.
	from, to := minutesBefore(d.Now())
	var rows []struct{ Start, Due, Held int64 }
	if err := d.Read.NewRaw("SELECT start, due, held FROM report_backlog WHERE start >= ? AND start <= ?", from, to).Scan(ctx,
		&rows); err != nil {
		return Outlook{}, fmt.Errorf("read the backlog: %w", err)
	}
	values := unknown(int((to-from)/time.Minute.Microseconds()) + 1)
	held := unknown(len(values))
	for _, r := range rows {
		i := (r.Start - from) / time.Minute.Microseconds()
		values[i], held[i] = float64(r.Due), float64(r.Held)
	}
	o := OutlookOfBacklog(values, limit)
	o.Held = held
	return o, nil
}

// SuccessRate returns when the share of attempts that merchants acknowledge falls below a limit.
func SuccessRate(ctx context.Context, d *db.DB, limit float64) (Outlook, error) {
	from, to := minutesBefore(d.Now())
	points, err := report.Outcomes(ctx, d, 0, from, to-1, time.Minute)
	if err != nil {
		return Outlook{}, err
	}
	values := unknown(len(points))
	for i, p := range points {
		if r, ok := p.Rate(); ok && p.Attempts() >= minAttempts {
			values[i] = r
		}
	}
	return OutlookOfRate(values, limit), nil
}

func unknown(n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = math.NaN()
	}
	return all
}

// Expected is the expected volume of orders to notify, by VolumeStep.
type Expected struct {
	forecast.Volume
	Known  bool
	Behind []int64 // of the last hours
	From   int64   // when Behind begins, Unix µs
	Days   int     // of data; 14 are needed
}

// NeededDays is how many days of data a forecast of volume needs.
const NeededDays = 14

// Volume forecasts the orders of which merchants must be notified.
func Volume(ctx context.Context, d *db.DB) (*Expected, error) {
	step := VolumeStep.Microseconds()
	now := d.Now()
	end := now - now%step
	n := int(report.VolumeKept/VolumeStep) - int(day/VolumeStep) // the oldest day may be cleaned up already
	from := end - int64(n)*step
	var rows []struct{ At, N int64 }
	err := d.Read.NewRaw(
		"SELECT start AS at, CAST(sum(raised) AS BIGINT) AS n FROM report_orders WHERE span_s = ? AND start >= ? AND start < ? GROUP BY 1 ORDER BY 1",
		int64(VolumeStep/time.Second), from, end).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the volume of the last weeks: %w", err)
	}
	e := &Expected{From: end - volumeBehind*step, Behind: make([]int64, volumeBehind)}
	if len(rows) == 0 {
		return e, nil
	}
	// A step without a row had no orders, from the first row on.
	history := make([]float64, (end-rows[0].At)/step)
	for _, r := range rows {
		history[(r.At-rows[0].At)/step] = float64(r.N)
		if i := (r.At - e.From) / step; i >= 0 {
			e.Behind[i] = r.N
		}
	}
	e.Days = int(time.Duration(len(history)) * VolumeStep / day)
	e.Volume, e.Known = forecast.Next(history, int(7*day/VolumeStep), volumeAhead)
	if e.Outside {
		e.Ahead = nil
	}
	return e, nil
}
