package alert

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/report"
)

// Each default rule can fire, and can end again.
func TestEveryDefaultLimitCanBePassed(t *testing.T) {
	t.Parallel()
	for _, r := range defaults {
		if r.Fire == r.Clear {
			continue // is about events
		}
		lowest, highest := int64(0), r.measure.highest
		if !r.beyond(lowest) && !r.beyond(highest) {
			t.Errorf("%s fires at %d; there are levels from %d to %d", r.Name, r.Fire, lowest, highest)
		}
		if !r.back(lowest) && !r.back(highest) {
			t.Errorf("%s ends at %d; there are levels from %d to %d", r.Name, r.Clear, lowest, highest)
		}
		if err := r.check(); err != nil {
			t.Error(err)
		}
		if all := Limits(r.Name); all != nil && !slices.Contains(all, r.Fire) {
			t.Errorf("%s fires at %d, which its histogram is not exact about", r.Name, r.Fire)
		}
	}
	field, _ := reflect.TypeFor[config.Config]().FieldByName("NotifyTimeout")
	if most, err := time.ParseDuration(field.Tag.Get("max")); err != nil || most != longestAttempt {
		t.Errorf("an attempt may take %s, the rules assume %s (%v)", most, longestAttempt, err)
	}
}

func TestALimitThatNothingPassesIsNotKept(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, c := range []struct {
			rule        string
			fire, clear int64
			kept        bool
		}{
			{AnswerTime, 10_000, 8000, false},
			{AnswerTime, 9999, 8000, true},
			{SuccessRate, 0, 100, false},
			{ErrorRate, 10_000, 300, false},
			{SlowMerchant, 10_000, 2000, false},
			{SlowMerchant, 3500, 2000, false}, // between two bounds
			{SlowMerchant, 4000, 2600, false},
			{SlowMerchant, 4000, 2500, true},
		} {
			rules, err := Rules(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			r, err := find(rules, c.rule)
			if err != nil {
				t.Fatal(err)
			}
			r.Fire, r.Clear = c.fire, c.clear
			if err := Save(t.Context(), d, d, r); (err == nil) != c.kept || err != nil && !errors.Is(err, ErrRule) {
				t.Errorf("%s at %d and %d: %v, want kept %t", c.rule, c.fire, c.clear, err, c.kept)
			}
		}
	})
}

// Every selectable limit of a percentile is exact.
func TestLimitsOfAPercentileAreBounds(t *testing.T) {
	t.Parallel()
	for _, limit := range Limits(SlowMerchant) {
		for _, off := range []int64{0, 1} {
			var h report.Histogram
			for range 20 {
				h.Add(time.Duration(limit+off) * time.Millisecond)
			}
			if l, _ := h.Quantile(.95); (l.Milliseconds() > limit) != (off > 0) {
				t.Errorf("20 answers of %d ms are read as %d", limit+off, l.Milliseconds())
			}
		}
	}
}
