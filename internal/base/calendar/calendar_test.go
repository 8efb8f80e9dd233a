package calendar

import (
	"testing"
	"time"
)

func TestDaysFollowEachOther(t *testing.T) {
	t.Parallel()
	for name, starts := range map[string][]string{
		"UTC":              {"2028-02-28T00:00:00Z", "2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z"},
		"Asia/Shanghai":    {"2026-12-31T00:00:00+08:00", "2027-01-01T00:00:00+08:00", "2027-01-02T00:00:00+08:00"},
		"Europe/Berlin":    {"2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"},
		"America/Santiago": {"2026-09-05T00:00:00-04:00", "2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00"}, // no midnight
		"America/Havana":   {"2026-03-07T00:00:00-05:00", "2026-03-08T01:00:00-04:00", "2026-03-09T00:00:00-04:00"},
		"Atlantic/Azores":  {"2026-03-28T00:00:00-01:00", "2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"},
		"Africa/Cairo":     {"2026-04-23T00:00:00+02:00", "2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"},
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range starts {
			first, err := time.Parse(time.RFC3339, starts[0])
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339, want)
			if err != nil {
				t.Fatal(err)
			}
			for _, hour := range []time.Duration{0, 12 * time.Hour, 22 * time.Hour} {
				for from, in := range map[int]time.Time{i: first, 0: at} {
					if got := DayStart(in.In(zone).Add(hour), from); !got.Equal(at) {
						t.Errorf("%s: the day begins %s, want %s", name, got.Format(time.RFC3339), want)
					}
				}
			}
			if got, err := ParseDay(at.In(zone).Format(time.DateOnly), zone); err != nil || !got.Equal(at) {
				t.Errorf("%s: %s, %v, want %s", name, got.Format(time.RFC3339), err, want)
			}
		}
	}
	for _, text := range []string{"", "2026-02-29", "2026-2-1", "today", "2026-11-23T00:00"} {
		if got, err := ParseDay(text, time.UTC); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}
