// Package forecast estimates what a series of measurements will do next: whether a level reaches
// a limit, and how much volume to expect. It is arithmetic only: it reads no clock and no
// database, and knows nothing about payments. Unknown measurements are NaN.
package forecast

import (
	"math"
	"slices"
)

// Line is a robust trend through equally spaced measurements.
type Line struct {
	Slope     float64 // change per step: the median of the slopes of all pairs (Theil, 1950; Sen, 1968)
	Low, High float64 // confidence interval of the slope, see confidence
	Now       float64 // level of the line at the last measurement
	N         int     // measurements used
}

const (
	// minPoints is the number of measurements below which there is no trend.
	minPoints = 15
	// confidence is the two-sided 99 % quantile of the normal distribution.
	confidence = 2.576
	// maxInflation bounds the allowance for dependent measurements.
	maxInflation = 25
)

// Trend fits a line to measurements, one per step, the last one now. It returns false for fewer
// than 15 known ones. A few outliers do not move the line: up to 29 % of the measurements may be
// wrong by any amount. Levels that persist from step to step, such as backlogs, look like trends
// for a while; the interval is widened by the correlation of neighbouring residuals (Yue and
// Wang, 2004).
func Trend(values []float64) (Line, bool) {
	var at, known []float64
	for i, v := range values {
		if !math.IsNaN(v) {
			at, known = append(at, float64(i-len(values)+1)), append(known, v)
		}
	}
	n := len(known)
	if n < minPoints {
		return Line{}, false
	}
	slopes := make([]float64, 0, n*(n-1)/2)
	for i := range known {
		for j := range i {
			slopes = append(slopes, (known[i]-known[j])/(at[i]-at[j]))
		}
	}
	slices.Sort(slopes)
	l := Line{Slope: middle(slopes), N: n}
	levels := make([]float64, n)
	for i := range known {
		levels[i] = known[i] - l.Slope*at[i]
	}
	l.Now = Median(levels)
	for i := range levels {
		levels[i] -= l.Now
	}
	variance := float64(n*(n-1)*(2*n+5)) / 18 * inflation(levels)
	half := confidence * math.Sqrt(variance)
	pairs := float64(len(slopes))
	l.Low, l.High = rank(slopes, (pairs-half)/2-1, math.Inf(-1)), rank(slopes, (pairs+half)/2, math.Inf(1))
	return l, true
}

// rank returns the element at a rank, or otherwise if there is none.
func rank(sorted []float64, at, otherwise float64) float64 {
	if i := int(math.Round(at)); i >= 0 && i < len(sorted) {
		return sorted[i]
	}
	return otherwise
}

// inflation returns by how much the variance of a trend grows because neighbouring residuals are
// alike.
func inflation(residuals []float64) float64 {
	var same, all float64
	for i, r := range residuals {
		all += r * r
		if i > 0 {
			same += r * residuals[i-1]
		}
	}
	if all == 0 || same <= 0 {
		return 1
	}
	alike := same / all
	return min((1+alike)/max(1-alike, 1e-9), maxInflation)
}

// Rises reports whether the level rises, with 99.5 % confidence.
func (l Line) Rises() bool { return l.Low > 0 }

// Crossing says in how many steps a level reaches a limit.
type Crossing struct {
	Steps float64
	// Earliest and Latest are by the ends of the slope's interval; Latest is +Inf if the slow end
	// is close to level.
	Earliest, Latest float64
}

// Reaches returns when a rising line reaches a limit above it. It returns false if the line does
// not rise for certain, or is already there.
func (l Line) Reaches(limit float64) (Crossing, bool) {
	if !l.Rises() || l.Now >= limit {
		return Crossing{}, false
	}
	gap := limit - l.Now
	return Crossing{gap / l.Slope, gap / l.High, gap / l.Low}, true
}

// Leaves returns when a falling line falls below a limit. It returns false if the line does not
// fall for certain, or is already below.
func (l Line) Leaves(limit float64) (Crossing, bool) {
	return Line{Slope: -l.Slope, Low: -l.High, High: -l.Low, Now: -l.Now, N: l.N}.Reaches(-limit)
}

// Median returns the median of the known values; NaN if there is none. It does not change them.
func Median(values []float64) float64 {
	known := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	slices.Sort(known)
	return middle(known)
}

func middle(sorted []float64) float64 {
	n := len(sorted)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}
