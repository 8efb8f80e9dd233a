package report

import (
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
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
	err := back.add(text(h.n[:]), text(h.long[:]))
	if err != nil || back != h {
		t.Errorf("%q and %q read back as %v, %v", text(h.n[:]), text(h.long[:]), back, err)
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

// Rows that an earlier version wrote have fewer bounds for long durations: they are read as
// they were, and report what is beyond their last bound as beyond it.
func TestRowsOfBeforeAreReadAndAddedUp(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := d.Now()
		minute := floor(now, time.Minute)
		insert := func(start int64, took, lag string) {
			t.Helper()
			for _, table := range []string{"report_minutes", "report_hours"} {
				exec(t, d, "INSERT INTO "+table+
					" (recipient_id, start, ok, retried, failed, took_us, took, lag) VALUES (0, ?, 3, 0, 0, 0, ?, ?)", start, took, lag)
			}
		}
		insert(minute-minute%(60*minuteUS), "0 0 0 0 0 0 0 0 0 3", "0 0 0 0 0 0 0 0 0 0 0 3") // of 2.5 to 5 s; over 10 s
		read := func() Point {
			t.Helper()
			points, err := Outcomes(t.Context(), d, 0, now, now, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			return Total(points)
		}
		p := read()
		if l, _ := p.Took.Quantile(.95); l.Over || l.D <= 2500*time.Millisecond || l.D > 5*time.Second {
			t.Errorf("answers of before: %v", l)
		}
		if l, _ := p.Lag.Quantile(.95); l != (Length{10 * time.Second, true}) {
			t.Errorf("a lag of before: %v, want more than 10 s", l)
		}
		x := NewDelta(now)
		for range 200 {
			x.Attempt(1, OK, time.Millisecond)
			x.Lag(1, 20*time.Second)
		}
		put(t, d, x)
		foldAll(t, d)
		p = read()
		if p.Took.Count() != 203 || p.Lag.Count() != 203 {
			t.Errorf("%d answers and %d lags, want 203", p.Took.Count(), p.Lag.Count())
		}
		if l, _ := p.Lag.Quantile(.95); l != (Length{10 * time.Second, true}) {
			t.Errorf("of a bucket in which some are not known: %v", l)
		}
		if l, _ := p.Took.Quantile(.95); l.D > 5*time.Millisecond {
			t.Errorf("answers: %v", l)
		}
		// An earlier version reads twelve counts.
		var took, lag string
		if err := d.NewRaw("SELECT took, lag FROM report_minutes WHERE recipient_id = 1").Scan(t.Context(), &took, &lag); err != nil ||
			took != "200" || lag != "0 0 0 0 0 0 0 0 0 0 0 200" {
			t.Errorf("the row holds %q and %q, %v", took, lag, err)
		}
	})
}
