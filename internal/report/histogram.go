package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// bounds are the upper ends of a histogram's buckets; what is longer falls into
// one more. 10 s is the longest attempt; the rest is where people look.
var bounds = [...]time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// Histogram counts durations by bucket. It can be added up, which a percentile
// cannot.
type Histogram [len(bounds) + 1]int64

// Add counts one duration.
func (h *Histogram) Add(d time.Duration) {
	for i, bound := range bounds {
		if d <= bound {
			h[i]++
			return
		}
	}
	h[len(bounds)]++
}

func (h *Histogram) merge(o Histogram) {
	for i, n := range o {
		h[i] += n
	}
}

// Count is how many durations were counted.
func (h Histogram) Count() (n int64) {
	for _, b := range h {
		n += b
	}
	return n
}

// Quantile is the duration below which the part q of all lie, evenly spread
// within its bucket; false where nothing was counted. What is beyond the last
// bound is given as that bound.
func (h Histogram) Quantile(q float64) (time.Duration, bool) {
	total := h.Count()
	if total == 0 {
		return 0, false
	}
	rank, below := q*float64(total), int64(0)
	for i, bound := range bounds {
		if float64(below+h[i]) >= rank && h[i] > 0 {
			low := time.Duration(0)
			if i > 0 {
				low = bounds[i-1]
			}
			return low + time.Duration(float64(bound-low)*(rank-float64(below))/float64(h[i])), true
		}
		below += h[i]
	}
	return bounds[len(bounds)-1], true
}

// text is how a histogram stands in a row: its counts, without the zeros at the
// end.
func (h Histogram) text() string {
	var b strings.Builder
	for i, n := range h[:h.used()] {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.FormatInt(n, 10))
	}
	return b.String()
}

func (h Histogram) used() int {
	for i := len(h); i > 0; i-- {
		if h[i-1] != 0 {
			return i
		}
	}
	return 0
}

// parseHistogram reads text back.
func parseHistogram(text string) (h Histogram, err error) {
	fields := strings.Fields(text)
	if len(fields) > len(h) {
		return h, fmt.Errorf("histogram %q has more buckets than there are", text)
	}
	for i, f := range fields {
		if h[i], err = strconv.ParseInt(f, 10, 64); err != nil {
			return h, fmt.Errorf("histogram %q: %w", text, err)
		}
	}
	return h, nil
}
