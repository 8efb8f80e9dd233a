package calendar

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
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

// A time that clocks skip is the first moment after the gap, one that comes twice is the first.
func TestEachTimeOfDayIsOneMoment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, text, want string }{
		{"America/Santiago", "2026-09-05 00:30:00", "2026-09-05T00:30:00-04:00"},
		{"America/Santiago", "2026-09-06 00:00:00", "2026-09-06T01:00:00-03:00"},
		{"America/Santiago", "2026-09-06 00:30:00", "2026-09-06T01:00:00-03:00"},
		{"America/Santiago", "2026-09-06 01:00:00", "2026-09-06T01:00:00-03:00"},
		{"America/Santiago", "2026-09-06 01:30:00", "2026-09-06T01:30:00-03:00"},
		{"America/Havana", "2026-03-08 00:59:59", "2026-03-08T01:00:00-04:00"},
		{"America/Havana", "2026-11-01 00:30:00", "2026-11-01T00:30:00-04:00"}, // again at -05:00
		{"America/Santiago", "2026-04-04 23:30:00", "2026-04-04T23:30:00-03:00"},
		{"Europe/Berlin", "2026-03-29 02:30:00", "2026-03-29T03:00:00+02:00"},
		{"Europe/Berlin", "2026-10-25 02:30:00", "2026-10-25T02:30:00+02:00"},
		{"Europe/Berlin", "2026-10-25 03:30:00", "2026-10-25T03:30:00+01:00"},
		{"America/New_York", "2026-03-08 02:59:00", "2026-03-08T03:00:00-04:00"},
		{"Pacific/Apia", "2011-12-30 12:00:00", "2011-12-31T00:00:00+14:00"}, // that day did not exist
		{"Asia/Shanghai", "2026-11-23 03:30:00", "2026-11-23T03:30:00+08:00"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(time.DateTime, c.text, zone)
		if err != nil || got.Format(time.RFC3339) != c.want {
			t.Errorf("%s %s is %s, %v; want %s", c.zone, c.text, got.Format(time.RFC3339), err, c.want)
		}
	}
	zone := time.FixedZone("", 3600)
	if got, err := Parse(time.RFC3339, "2026-11-23T03:30:00Z", zone); err != nil || got.Unix() != 1795404600 {
		t.Errorf("a time with an offset is %s, %v", got, err)
	}
}

// time.Date, AddDate and ParseInLocation are right in UTC and in zones that never change their
// offset; with any other zone, this package is in between.
func TestNoLocalTimeIsMadeElsewhere(t *testing.T) {
	t.Parallel()
	made := regexp.MustCompile(`time\.Date\(|\.AddDate\(|ParseInLocation\(`)
	root := os.DirFS("../../..")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
			strings.HasPrefix(name, "internal/base/calendar/") || strings.Contains(name, "test/") {
			return err
		}
		text, err := fs.ReadFile(root, name)
		for i, line := range strings.Split(string(text), "\n") {
			if made.MatchString(line) && !strings.Contains(line, "time.UTC") && !strings.Contains(line, "beijing") {
				t.Errorf("%s:%d: %s", name, i+1, strings.TrimSpace(line))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
