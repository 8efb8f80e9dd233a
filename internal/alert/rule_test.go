package alert

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/report"
	"backstop/migrations"
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

// Rules saved with earlier limits can fire, and be saved again.
func TestSavedLimitsOfBeforeAreMadeExact(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for saved, want := range map[[2]int64][2]int64{
			{3000, 2000}: {3000, 2000}, {4500, 2200}: {5000, 2000}, {10_000, 9999}: {9000, 8000}, {2600, 2599}: {3000, 2500},
			{300, 100}: {500, 250}, {9001, 100}: {9000, 250},
		} {
			savedBefore(t, d, saved)
			rules, err := Rules(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rules {
				if err := r.check(); err != nil {
					t.Errorf("%v: %v", saved, err)
				}
				if r.Name == SlowMerchant && [2]int64{r.Fire, r.Clear} != want {
					t.Errorf("%v became %d and %d, want %v", saved, r.Fire, r.Clear, want)
				}
			}
		}
	})
}

// savedBefore stores limits as an earlier version did.
func savedBefore(t *testing.T, d *db.DB, slow [2]int64) {
	t.Helper()
	for name := ""; !strings.Contains(name, "_figures"); {
		var err error
		if name, err = d.Rollback(t.Context(), migrations.Files); err != nil || name == "" {
			t.Fatalf("rolled back to %q: %v", name, err)
		}
	}
	if _, err := d.NewRaw("DELETE FROM alert_rules").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.NewRaw(
		"INSERT INTO alert_rules (name, enabled, fire, clear, hold_s, quiet_s, updated_at) VALUES ('slow_merchant', TRUE, ?, ?, 30, 300, 0), ('answer_time', TRUE, 10000, 8000, 30, 300, 0)",
		slow[0], slow[1]).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Migrate(t.Context(), migrations.Files); err != nil {
		t.Fatal(err)
	}
}
