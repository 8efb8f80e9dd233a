package notify

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

func TestPresetsAreWhatIsPromised(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]string{
		"day":   "1s 3s 5s 30s 2m 10m 30m 1h 2h 4h 8h 8h",
		"quick": "1s, 3s, 5s",
	} {
		preset, err := ParseSchedule(name)
		if err != nil {
			t.Fatal(err)
		}
		list, err := ParseSchedule(waits)
		if err != nil || !slices.Equal(preset, list) {
			t.Errorf("%s = %v, %v; want %s", name, []time.Duration(preset), err, waits)
		}
		if got := list.String(); got != name {
			t.Errorf("%s is written as %q", waits, got)
		}
	}
	if got := Day().Attempts(); got != 13 {
		t.Errorf("day allows %d attempts, want 13: the first and one after each wait", got)
	}
}

func TestPresetsCannotBeChangedFromOutside(t *testing.T) {
	t.Parallel()
	Day()[0] = time.Hour
	parsed, _ := ParseSchedule("day")
	parsed[1] = time.Hour
	if got := Day(); got[0] != time.Second || got[1] != 3*time.Second {
		t.Errorf("day is now %v", []time.Duration(got))
	}
}

func TestWaitEndsWithTheSchedule(t *testing.T) {
	t.Parallel()
	quick, _ := ParseSchedule("quick")
	for attempt, want := range map[int]time.Duration{
		-1: time.Second, 0: time.Second, 1: time.Second, 2: 3 * time.Second,
		3: 5 * time.Second,
	} {
		if got, ok := quick.Wait(attempt); got != want || !ok {
			t.Errorf("after attempt %d: %v, %v; want %v", attempt, got, ok, want)
		}
	}
	for _, attempt := range []int{4, 5, 1 << 40} {
		if got, ok := quick.Wait(attempt); ok || got != 0 {
			t.Errorf("after attempt %d: %v, %v; want exhausted", attempt, got, ok)
		}
	}
	if _, ok := Schedule(nil).Wait(1); ok {
		t.Error("an empty schedule has no second attempt")
	}
}

func TestUnusableSchedulesAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "  ", ",", "Day", "daily", "1", "0", "0s", "-1s", "99ms", "24h1s", "1s 0s", "1s;3s", "1s,x",
		"9999999999999h", "NaN", strings.Repeat("1s ", MaxWaits+1), strings.Repeat("24h ", 8),
	} {
		if s, err := ParseSchedule(text); !errors.Is(err, ErrSchedule) || s != nil {
			t.Errorf("%q = %v, %v; want ErrSchedule", text, s, err)
		}
	}
	for _, text := range []string{"100ms", "24h", strings.Repeat("1s ", MaxWaits), strings.Repeat("24h,", 7)} {
		if _, err := ParseSchedule(text); err != nil {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func TestScheduleReadsPresetsAndLists(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"s: day", "s: [1s, 3s, 5s]", "s: 1s 3s 5s", "s:\n  - 2m\n  - 90s"} {
		var y struct{ S Schedule }
		if err := yaml.Unmarshal([]byte(text), &y); err != nil || len(y.S) == 0 {
			t.Errorf("yaml %q: %v, %v", text, y.S, err)
		}
	}
	for _, text := range []string{"s: []", `s: ""`, "s: {a: 1s}", "s: 7", "s: [1]", "s: [day]", "s: weekly", "s: [1s, [3s]]"} {
		var y struct{ S Schedule }
		if err := yaml.Unmarshal([]byte(text), &y); !errors.Is(err, ErrSchedule) {
			t.Errorf("yaml %q = %v, %v; want ErrSchedule", text, y.S, err)
		}
	}
}

func genSchedule(t *rapid.T) Schedule {
	waits := rapid.SliceOfN(rapid.Int64Range(int64(MinWait), int64(3*time.Hour)), 1, MaxWaits).Draw(t, "waits")
	s := make(Schedule, len(waits))
	for i, w := range waits {
		s[i] = time.Duration(w)
	}
	return s
}

func TestSchedulesSurviveWritingAndReading(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := genSchedule(t)
		if got, err := ParseSchedule(s.String()); err != nil || !slices.Equal(got, s) {
			t.Fatalf("%s -> %v, %v", s, got, err)
		}
	})
}

func TestWalkingAScheduleTakesEachWaitOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := genSchedule(t)
		var walked []time.Duration
		attempt := 1
		for wait, ok := s.Wait(attempt); ok; wait, ok = s.Wait(attempt) {
			walked = append(walked, wait)
			attempt++
		}
		if !slices.Equal(walked, s) || attempt != s.Attempts() {
			t.Fatalf("%s: walked %v in %d attempts", s, walked, attempt)
		}
	})
}

func FuzzParseSchedule(f *testing.F) {
	for _, text := range []string{"day", "quick", "1s, 3s, 5s", "1h30m 0.5s", "1e9h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchedule(text)
		if err != nil {
			if !errors.Is(err, ErrSchedule) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		var total time.Duration
		for _, wait := range s {
			if wait < MinWait || wait > MaxWait {
				t.Fatalf("%q contains %s", text, wait)
			}
			total += wait
		}
		if len(s) == 0 || len(s) > MaxWaits || total > MaxTotal {
			t.Fatalf("%q = %d waits, %s in all", text, len(s), total)
		}
	})
}
