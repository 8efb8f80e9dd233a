package notify

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/text"
	"backstop/internal/merchant"
)

// Schedule lists the waits after failed attempts: entry n-1 is the wait between the end of
// attempt n and the start of the next. When it is used up, the notification is exhausted. In
// settings it is a preset's name ("day") or a list of waits ("1s 3s 5s").
type Schedule []time.Duration

const (
	// MaxWaits bounds a schedule's length: more repeats only add load.
	MaxWaits = 50
	// MinWait keeps a list of tiny waits from flooding a merchant that is down.
	MinWait = 100 * time.Millisecond
	// MaxWait and MaxTotal end the repeats while the order still matters; suppliers themselves
	// give up after one to three days.
	MaxWait  = 24 * time.Hour
	MaxTotal = 7 * 24 * time.Hour
)

// ErrSchedule means that a schedule is neither a preset nor a usable list.
var ErrSchedule = errors.New("bad schedule")

// presets are the named schedules.
var presets = []struct {
	name  string
	waits Schedule
}{
	// day: quick at first, because most failures are restarts, then up to 23 hours in all, so
	// that an outage overnight needs no operator.
	{"day", Schedule{
		time.Second, 3 * time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute,
		30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 8 * time.Hour,
	}},
	{"quick", Schedule{time.Second, 3 * time.Second, 5 * time.Second}},
}

// Day is the default schedule.
func Day() Schedule { return slices.Clone(presets[0].waits) }

// ParseSchedule reads a preset's name or a list of waits, separated by commas,
// spaces or both ("1s, 3s, 5s"). Errors are ErrSchedule.
func ParseSchedule(text string) (Schedule, error) {
	text = strings.TrimSpace(text)
	for _, p := range presets {
		if text == p.name {
			return slices.Clone(p.waits), nil
		}
	}
	return parseWaits(strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' || c == '\t' }))
}

// parseWaits parses a schedule given as a list of waits. Errors are ErrSchedule.
func parseWaits(texts []string) (Schedule, error) {
	if len(texts) == 0 || len(texts) > MaxWaits {
		return nil, fmt.Errorf("%w: must be day, quick or 1 to %d waits", ErrSchedule, MaxWaits)
	}
	s := make(Schedule, 0, len(texts))
	var total time.Duration
	for _, entry := range texts {
		wait, err := time.ParseDuration(strings.TrimSpace(entry))
		if err != nil {
			return nil, fmt.Errorf("%w: %.40q is not a preset (day, quick) or a wait such as 30s", ErrSchedule, entry)
		}
		if wait < MinWait || wait > MaxWait {
			return nil, fmt.Errorf("%w: the wait %s must be %s to 24h", ErrSchedule, text.Duration(wait), MinWait)
		}
		total += wait
		s = append(s, wait)
	}
	if total > MaxTotal {
		return nil, fmt.Errorf("%w: all waits together must not exceed 168h", ErrSchedule)
	}
	return s, nil
}

// Wait returns how long after the end of the given attempt (1 is the first) the next one
// begins; false means that the schedule is used up. An attempt below 1 counts as the first:
// a wrong count must not exhaust a notification.
func (s Schedule) Wait(attempt int) (time.Duration, bool) {
	n := max(attempt, 1) - 1
	if n >= len(s) {
		return 0, false
	}
	return s[n], true
}

// Attempts returns how many attempts the schedule allows, including the first.
func (s Schedule) Attempts() int { return len(s) + 1 }

// String returns the preset's name, or the waits in the form that ParseSchedule accepts.
func (s Schedule) String() string {
	for _, p := range presets {
		if slices.Equal(s, p.waits) {
			return p.name
		}
	}
	texts := make([]string, len(s))
	for i, wait := range s {
		texts[i] = text.Duration(wait)
	}
	return strings.Join(texts, " ")
}

// UnmarshalYAML accepts a preset's name, a list in one string, or a list of strings.
func (s *Schedule) UnmarshalYAML(decode func(any) error) error {
	var texts []string
	if decode(&texts) == nil && texts != nil {
		parsed, err := parseWaits(texts)
		*s = parsed
		return err
	}
	var text string
	if decode(&text) != nil {
		return fmt.Errorf("%w: must be a preset (day, quick) or a list of waits such as [1s, 3s, 5s]", ErrSchedule)
	}
	parsed, err := ParseSchedule(text)
	*s = parsed
	return err
}

// After returns the wait after the given attempt of a delivery whose schedule counts from
// attempt scheduleFrom; false = the schedule is used up. Both the sender and the console use
// it.
func (s Schedule) After(attempt, scheduleFrom int64) (time.Duration, bool) {
	return s.Wait(int(attempt - scheduleFrom))
}

// LastAt returns roughly when the last attempt begins if all fail: the given attempt begins at
// the time at (Unix µs), and the duration of attempts is ignored.
func (s Schedule) LastAt(at, attempt, scheduleFrom int64) int64 {
	for {
		wait, more := s.After(attempt, scheduleFrom)
		if !more {
			return at
		}
		at += wait.Microseconds()
		attempt++
	}
}

// ScheduleOf returns the schedule of a recipient's notifications; the default one if the
// recipient is unknown or disabled, as in sending.
func ScheduleOf(m *merchant.Merchant) Schedule {
	if m == nil || m.Disabled || m.Broken {
		return Day()
	}
	return waitsOf(m.Settings)
}

func waitsOf(s merchant.Settings) Schedule {
	waits := make(Schedule, len(s.WaitsMS))
	for i, ms := range s.WaitsMS {
		waits[i] = time.Duration(ms) * time.Millisecond
	}
	return waits
}
