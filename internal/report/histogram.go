package report

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// bounds are the upper ends of a histogram's buckets; one more bucket counts longer durations.
// They must never change: stored rows keep them for the whole retention, and earlier versions
// of the program read what this one writes.
var bounds = [...]time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// longBounds split the buckets above one second: by the second up to the longest attempt, so
// that limits of alerts are bounds; up to an hour for backlogs. One more bucket counts longer
// durations.
var longBounds = [...]time.Duration{
	2 * time.Second, 2500 * time.Millisecond, 3 * time.Second, 4 * time.Second, 5 * time.Second,
	6 * time.Second, 7 * time.Second, 8 * time.Second, 9 * time.Second, 10 * time.Second,
	30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
}

// longFrom is the first bucket split by longBounds.
const longFrom = 8

// split gives the start and end of the parts of each bucket from longFrom on.
var split = [len(bounds) + 1 - longFrom][2]int{{0, 2}, {2, 5}, {5, 10}, {10, len(longBounds) + 1}}

// Bounds returns all bucket bounds.
func Bounds() []time.Duration { return append(bounds[:longFrom:longFrom], longBounds[:]...) }

// Histogram counts durations by bucket. Unlike percentiles, histograms can be added up.
type Histogram struct {
	n    [len(bounds) + 1]int64
	long [len(longBounds) + 1]int64 // the split of n from longFrom on; incomplete for counts by an earlier version
}

// Add counts one duration.
func (h *Histogram) Add(d time.Duration) {
	i := bucket(bounds[:], d)
	h.n[i]++
	if i >= longFrom {
		h.long[bucket(longBounds[:], d)]++
	}
}

// bucket returns the first bucket whose end is not below d.
func bucket(ends []time.Duration, d time.Duration) int {
	for i, end := range ends {
		if d <= end {
			return i
		}
	}
	return len(ends)
}

func (h *Histogram) merge(o *Histogram) {
	for i, n := range o.n {
		h.n[i] += n
	}
	for i, n := range o.long {
		h.long[i] += n
	}
}

func (h *Histogram) times(n int64) {
	for i := range h.n {
		h.n[i] *= n
	}
	for i := range h.long {
		h.long[i] *= n
	}
}

// Count returns how many durations were counted.
func (h Histogram) Count() int64 { return sum(h.n[:]) }

func sum(counts []int64) (n int64) {
	for _, c := range counts {
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
	i, below := find(h.n[:], rank)
	ends, counts, low := bounds[:], h.n[:], time.Duration(0)
	if i > 0 {
		low = bounds[i-1]
	}
	if i >= longFrom {
		at := split[i-longFrom]
		if parts := h.long[at[0]:at[1]]; sum(parts) == h.n[i] {
			j, more := find(parts, rank-below)
			ends, counts, below = longBounds[:], h.long[:], below+more
			if i = at[0] + j; j > 0 {
				low = longBounds[i-1]
			}
		}
	}
	if i == len(ends) {
		return Length{D: ends[i-1], Over: true}, true
	}
	return Length{D: low + time.Duration(float64(ends[i]-low)*(rank-below)/float64(counts[i]))}, true
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

// text returns counts in stored form, without trailing zeros.
func text(counts []int64) string { return string(appendCounts(nil, counts)) }

func appendCounts(b []byte, counts []int64) []byte {
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
func (h *Histogram) add(counts, long string) error {
	return cmp.Or(addText(h.n[:], counts), addText(h.long[:], long))
}

func addText(to []int64, text string) error {
	for i := 0; text != ""; i++ {
		var field string
		if field, text, _ = strings.Cut(text, " "); i == len(to) {
			return fmt.Errorf("a histogram of %d buckets has more in a row: it was written by a later version", len(to))
		}
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return fmt.Errorf("a histogram: %w", err)
		}
		to[i] += n
	}
	return nil
}

// Within returns how many durations were at most end, which must be one of Bounds.
func (h Histogram) Within(end time.Duration) (n int64) {
	fine := h.fine()
	for i, bound := range Bounds() {
		if bound > end {
			break
		}
		n += fine[i]
	}
	return n
}
