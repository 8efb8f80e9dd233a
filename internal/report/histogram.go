package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// bounds are the upper ends of a histogram's buckets: above one second, by the second up to the
// longest attempt, so that limits of alerts are bounds; up to an hour for backlogs. One more bucket
// counts longer durations. They must never change: stored rows keep them for the whole retention.
var bounds = [...]time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second,
	2 * time.Second, 2500 * time.Millisecond, 3 * time.Second, 4 * time.Second, 5 * time.Second,
	6 * time.Second, 7 * time.Second, 8 * time.Second, 9 * time.Second, 10 * time.Second,
	30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
}

// Bounds returns all bucket bounds.
func Bounds() []time.Duration { return bounds[:] }

// Histogram counts durations by the buckets of Bounds, and with one more those that are longer.
// Unlike percentiles, histograms can be added up.
type Histogram [len(bounds) + 1]int64

// Add counts one duration.
func (h *Histogram) Add(d time.Duration) { h[bucket(d)]++ }

// bucket returns the first bucket whose end is not below d.
func bucket(d time.Duration) int {
	for i, end := range bounds {
		if d <= end {
			return i
		}
	}
	return len(bounds)
}

func (h *Histogram) merge(o *Histogram) {
	for i, n := range o {
		h[i] += n
	}
}

func (h *Histogram) times(n int64) {
	for i := range h {
		h[i] *= n
	}
}

// Count returns how many durations were counted.
func (h Histogram) Count() (n int64) {
	for _, c := range h {
		n += c
	}
	return n
}

// Length is a duration with a histogram's precision.
type Length struct {
	D    time.Duration
	Over bool // longer than D, which is the last bound
}

// Milliseconds rounds up, so that a value above a limit stays above it.
func (l Length) Milliseconds() int64 {
	ms := (l.D + time.Millisecond - 1).Milliseconds()
	if l.Over {
		ms++
	}
	return ms
}

// Quantile returns the q-quantile, by linear interpolation within a bucket; it is above a bound
// exactly if the true one is. It returns false if nothing was counted.
func (h Histogram) Quantile(q float64) (Length, bool) {
	total := h.Count()
	if total == 0 {
		return Length{}, false
	}
	rank := q * float64(total)
	i, below := find(h[:], rank)
	if i == len(bounds) {
		return Length{D: bounds[i-1], Over: true}, true
	}
	low := time.Duration(0)
	if i > 0 {
		low = bounds[i-1]
	}
	return Length{D: low + time.Duration(float64(bounds[i]-low)*(rank-below)/float64(h[i]))}, true
}

// find returns the bucket that contains the rank, and the count below it.
func find(counts []int64, rank float64) (i int, below float64) {
	last := 0
	for i, n := range counts {
		if n == 0 {
			continue
		}
		if last = i; below+float64(n) >= rank {
			return i, below
		}
		below += float64(n)
	}
	return last, below - float64(counts[last])
}

// text returns the histogram in stored form: its counts without trailing zeros.
func (h *Histogram) text() string { return string(h.append(nil)) }

func (h *Histogram) append(b []byte) []byte {
	counts := h[:]
	for len(counts) > 0 && counts[len(counts)-1] == 0 {
		counts = counts[:len(counts)-1]
	}
	for i, n := range counts {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return b
}

// add adds a histogram in stored form.
func (h *Histogram) add(text string) error {
	for i := 0; text != ""; i++ {
		var field string
		if field, text, _ = strings.Cut(text, " "); i == len(h) {
			return fmt.Errorf("a histogram of %d buckets has more in a row: it was written by a later version", len(h))
		}
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return fmt.Errorf("a histogram: %w", err)
		}
		h[i] += n
	}
	return nil
}

// Within returns how many durations were at most end, which must be one of Bounds.
func (h Histogram) Within(end time.Duration) (n int64) {
	for i, bound := range bounds {
		if bound > end {
			break
		}
		n += h[i]
	}
	return n
}
