package forecast

import (
	"math"
	"slices"
)

const (
	// weeks is how many earlier weeks the usual volume is the median of.
	weeks = 4
	// weeksNeeded is below which history there is no forecast.
	weeksNeeded = 2
	// halfLife is the age, in parts of a week, at which a step counts half in the level: one hour.
	halfLife = 1.0 / (7 * 24)
	// maxLevel bounds the level: it follows a busy day, not a burst.
	maxLevel = 4
	// spread converts a median absolute deviation to a standard deviation of a normal
	// distribution, width makes it a band for 95 of 100 values.
	spread, width = 1.4826, 1.96
)

// Expected is the volume expected in one step, with the band that 95 of 100 values fall into.
type Expected struct{ Value, Low, High float64 }

// Volume is a forecast of volume per step.
type Volume struct {
	Ahead []Expected
	// Level is how the last hours compare with the same hours of earlier weeks; 1 = the same.
	Level float64
	// Error is last week's: the mean absolute error of forecasts made one hour ahead, as a share
	// of the volume (WAPE). NaN if there was no volume.
	Error float64
	// Inside is the share of last week's values within their bands.
	Inside float64
	Weeks  int // earlier weeks used, 2 to 4
	// Outside: the whole last quarter of an hour is outside of the band. Something has changed of
	// which the past says nothing.
	Outside bool
}

// Next forecasts the volume of the next steps from the history, which ends with the last complete
// step; perWeek is the number of steps per week. The usual volume of a step is the median of the
// same step of the last four weeks and of its neighbours; it is multiplied by the level of the last hours, the ratio of
// the exponentially weighted actual and usual volumes. The band comes from the median absolute
// deviation of last week's forecasts, relative to the root of the volume. It returns false for
// less than 14 days of history.
func Next(history []float64, perWeek, ahead int) (Volume, bool) {
	n := len(history)
	if perWeek < 1 || n < weeksNeeded*perWeek {
		return Volume{}, false
	}
	known := 0
	for _, v := range history[n-weeksNeeded*perWeek:] {
		if !math.IsNaN(v) {
			known++
		}
	}
	if known < weeksNeeded*perWeek*9/10 {
		return Volume{}, false
	}
	v := Volume{Weeks: min(weeks, n/perWeek)}
	decay := math.Exp2(-1 / (halfLife * float64(perWeek)))
	hour := max(1, int(math.Round(float64(perWeek)/(7*24))))
	// One pass over last week: what the forecast said an hour before each step, and the level at
	// its end.
	var actual, usual float64
	levels := make([]float64, 0, perWeek)
	var scaled, absolute []float64
	var off, all float64
	for t := n - perWeek; t < n; t++ {
		usually := usualAt(history, t, perWeek)
		if i := len(levels) - hour; i >= 0 && !math.IsNaN(history[t]) && !math.IsNaN(usually) {
			said := usually * levels[i]
			scaled = append(scaled, math.Abs(history[t]-said)/root(said))
			absolute = append(absolute, said)
			off, all = off+math.Abs(history[t]-said), all+history[t]
		}
		if !math.IsNaN(history[t]) && !math.IsNaN(usually) {
			actual, usual = actual*decay+history[t], usual*decay+usually
		}
		levels = append(levels, level(actual, usual))
	}
	v.Level, v.Error = levels[len(levels)-1], math.NaN()
	if all > 0 {
		v.Error = off / all
	}
	// Counts vary by at least the root of their mean.
	deviation := max(spread*Median(scaled), 1)
	if math.IsNaN(deviation) {
		deviation = 1
	}
	inside := 0
	for i := range scaled {
		if scaled[i] <= width*deviation || absolute[i] == 0 && scaled[i] == 0 {
			inside++
		}
	}
	recent := scaled[max(0, len(scaled)-max(1, hour/4)):]
	v.Outside = len(recent) > 0 && slices.Min(recent) > width*deviation
	if len(scaled) > 0 {
		v.Inside = float64(inside) / float64(len(scaled))
	}
	for t := n; t < n+ahead; t++ {
		e := Expected{Value: usualAt(history, t, perWeek) * v.Level}
		half := width * deviation * root(e.Value)
		e.Low, e.High = max(0, e.Value-half), e.Value+half
		v.Ahead = append(v.Ahead, e)
	}
	return v, true
}

// usualAt returns the median of the same step, and of those just before and after it, of the
// last weeks before a step: four counts alone would be mostly noise.
func usualAt(history []float64, t, perWeek int) float64 {
	same := make([]float64, 0, 3*weeks)
	for week := 1; week <= weeks && t-week*perWeek >= 0; week++ {
		for i := t - week*perWeek - 1; i <= t-week*perWeek+1; i++ {
			if 0 <= i && i < min(t, len(history)) {
				same = append(same, history[i])
			}
		}
	}
	return Median(same)
}

func level(actual, usual float64) float64 {
	if usual <= 0 {
		return 1
	}
	return min(actual/usual, maxLevel)
}

func root(v float64) float64 { return math.Sqrt(max(v, 1)) }
