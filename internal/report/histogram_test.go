package report

import (
	"testing"
	"time"
)

func TestQuantileLiesWithinItsBucket(t *testing.T) {
	t.Parallel()
	var h Histogram
	if _, ok := h.Quantile(0.95); ok {
		t.Error("nothing has a percentile")
	}
	for range 90 {
		h.Add(8 * time.Millisecond)
	}
	for range 10 {
		h.Add(2200 * time.Millisecond)
	}
	for q, want := range map[float64][2]time.Duration{
		0.5:  {5 * time.Millisecond, 10 * time.Millisecond},
		0.95: {2 * time.Second, 2500 * time.Millisecond},
	} {
		if got, ok := h.Quantile(q); !ok || got.Over || got.D < want[0] || got.D > want[1] {
			t.Errorf("quantile %v = %v, want within %v", q, got, want)
		}
	}
	h.Add(40 * time.Minute)
	if got, _ := h.Quantile(1); got.Over || got.D <= 30*time.Minute || got.D > time.Hour {
		t.Errorf("40 minutes are %v", got)
	}
	h.Add(2 * time.Hour)
	if got, _ := h.Quantile(1); got != (Length{time.Hour, true}) {
		t.Errorf("two hours are %v, want more than the last bound", got)
	}
	var back Histogram
	if err := back.add(h.text()); err != nil || back != h {
		t.Errorf("%q read back as %v, %v", h.text(), back, err)
	}
}

// Whatever is counted, a percentile is above a bound exactly where the counted
// duration is: limits of alerts are bounds.
func TestAPercentileIsAboveABoundOnlyWhereTheDurationIs(t *testing.T) {
	t.Parallel()
	for _, bound := range Bounds() {
		for _, off := range []time.Duration{-time.Millisecond, 0, time.Millisecond} {
			var h Histogram
			for range 20 {
				h.Add(bound + off)
			}
			if l, _ := h.Quantile(.95); (l.Milliseconds() > bound.Milliseconds()) != (off > 0) {
				t.Errorf("20 of %s are %d ms at the 95th of a hundred", bound+off, l.Milliseconds())
			}
		}
	}
}
