package sweep

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// at is a plan for some time ago.
func (f *fixture) at(ago time.Duration) Plan {
	at := f.DB.NowTime().Add(-ago).In(time.UTC)
	return Plan{Hour: at.Hour(), Minute: at.Minute(), Zone: time.UTC, Days: 3}
}

func (f *fixture) night(p Plan, want bool) {
	f.t.Helper()
	if begun, err := p.Night(f.t.Context(), f.DB); err != nil || begun != want {
		f.t.Fatalf("begun %v, %v, want %v", begun, err, want)
	}
}

// all is the sweeps as "state night", oldest first.
func (f *fixture) all() (all []string) {
	f.t.Helper()
	rows, err := List(f.t.Context(), f.DB, 0, 100)
	if err != nil {
		f.t.Fatal(err)
	}
	slices.Reverse(rows)
	for _, s := range rows {
		night := "no"
		if s.Night != 0 {
			night = fmt.Sprint(s.Night)
		}
		all = append(all, string(s.State)+" "+night)
	}
	return all
}

func TestANightIsSweptOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		p := f.at(30 * time.Second)
		f.night(p, false) // an installation begins with its next night
		f.exec("UPDATE settings SET value = ? WHERE name = 'sweep_night'", Number(p.last(f.DB.NowTime()).AddDate(0, 0, -1)))
		f.night(p, true)
		f.night(p, false)
		if all, want := f.all(), []string{fmt.Sprint("running ", Number(p.last(f.DB.NowTime())))}; !slices.Equal(all, want) {
			t.Errorf("%v, want %v", all, want)
		}
	})
}

func TestAMissedNightIsMadeUpOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		p := f.at(2 * time.Hour)
		last := p.last(f.DB.NowTime())
		f.exec("INSERT INTO settings (name, value) VALUES ('sweep_night', ?)", Number(last.AddDate(0, 0, -2)))
		f.night(p, true)
		f.night(p, false)
		want := []string{fmt.Sprint("missed ", Number(last)), fmt.Sprint("missed ", Number(last.AddDate(0, 0, -1))), "running no"}
		if all := f.all(); !slices.Equal(all, want) {
			t.Errorf("%v, want %v", all, want)
		}
		if err := f.r.Continue(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.night(p, false)
		want[2] = "done no"
		if all := f.all(); !slices.Equal(all, want) {
			t.Errorf("%v, want %v", all, want)
		}
	})
}

func TestASweepThatRunsAtNightIsThatOfTheNight(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		p := f.at(0)
		last := Number(p.last(f.DB.NowTime()))
		f.exec("INSERT INTO settings (name, value) VALUES ('sweep_night', ?)", last-1)
		f.begin()
		f.night(p, true)
		if all, want := f.all(), []string{fmt.Sprint("running ", last)}; !slices.Equal(all, want) {
			t.Errorf("%v, want %v", all, want)
		}
	})
}

func TestTheNightBeginsAtItsTimeInItsZone(t *testing.T) {
	t.Parallel()
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	p := Plan{Hour: 3, Minute: 30, Zone: shanghai}
	for now, want := range map[string]int64{
		"2026-11-22T19:29:59Z": 20261122, "2026-11-22T19:30:00Z": 20261123, "2026-11-23T12:00:00Z": 20261123,
		"2026-12-31T20:00:00Z": 20270101,
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := Number(p.last(at)); got != want {
			t.Errorf("at %s it is the night of %d, want %d", now, got, want)
		}
	}
}
