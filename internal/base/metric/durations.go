package metric

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Durations is a snapshot of a histogram.
type Durations struct {
	ends  []float64 // seconds
	below []uint64  // number of durations up to each end
	all   uint64
}

// answered has only the histogram of callbacks: gathering Registry would read every collector.
var answered = func() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(CallbackSeconds)
	return r
}()

// Answered returns how long this process has taken to answer callbacks so far.
func Answered() (d Durations) {
	families, err := answered.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 1 {
		return d
	}
	h := families[0].GetMetric()[0].GetHistogram()
	for _, b := range h.GetBucket() {
		d.ends, d.below = append(d.ends, b.GetUpperBound()), append(d.below, b.GetCumulativeCount())
	}
	d.all = h.GetSampleCount()
	return d
}

// Since returns what was added after an earlier snapshot of the same histogram.
func (d Durations) Since(earlier Durations) Durations {
	if len(earlier.ends) != len(d.ends) {
		return d
	}
	x := Durations{ends: d.ends, below: make([]uint64, len(d.below)), all: d.all - earlier.all}
	for i := range d.below {
		x.below[i] = d.below[i] - earlier.below[i]
	}
	return x
}

// Quantile returns the duration that the fraction q of all durations does not exceed, by
// linear interpolation within a bucket and at most the last bound; false if there are none.
func (d Durations) Quantile(q float64) (time.Duration, bool) {
	if d.all == 0 {
		return 0, false
	}
	rank, low, under := q*float64(d.all), 0.0, 0.0
	for i, end := range d.ends {
		if n := float64(d.below[i]); n >= rank {
			return time.Duration((low + (end-low)*(rank-under)/(n-under)) * float64(time.Second)), true
		}
		low, under = end, float64(d.below[i])
	}
	return time.Duration(low * float64(time.Second)), true
}
