package sweep

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"backstop/internal/base/db"
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

// In some zones there is no midnight on one day a year: its night begins at the first moment
// after the gap, and no day has two nights or none.
func TestANightInAGapBeginsAfterIt(t *testing.T) {
	t.Parallel()
	for zone, gap := range map[string]string{"America/Santiago": "2026-09-06T01:00:00-03:00", "America/Havana": "2026-03-08T01:00:00-04:00"} {
		place, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		begin, err := time.Parse(time.RFC3339, gap)
		if err != nil {
			t.Fatal(err)
		}
		for minute := range 60 {
			p := Plan{Minute: minute, Zone: place}
			if got := p.Next(begin.Add(-12 * time.Hour)); !got.Equal(begin) {
				t.Errorf("%s 00:%02d: it begins %s, want %s", zone, minute, got, gap)
			}
			at, nights := begin.Add(-60*time.Hour), map[int64]time.Time{}
			for now := at; now.Before(begin.Add(60 * time.Hour)); now = now.Add(time.Minute) {
				last := p.last(now)
				if was, ok := nights[Number(last)]; last.After(now) || ok && !was.Equal(last) {
					t.Fatalf("%s 00:%02d: at %s the last night is %s and %s", zone, minute, now.In(place), was, last)
				}
				nights[Number(last)] = last
			}
			for day := begin.Add(-36 * time.Hour); day.Before(begin.Add(48 * time.Hour)); day = day.Add(24 * time.Hour) {
				if _, ok := nights[Number(day.In(place))]; !ok {
					t.Errorf("%s 00:%02d: no night of %s", zone, minute, day.In(place).Format(time.DateOnly))
				}
			}
		}
	}
}

func TestANightInAGapIsSwept(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		santiago, err := time.LoadLocation("America/Santiago")
		if err != nil {
			t.Fatal(err)
		}
		p := Plan{Minute: 30, Zone: santiago, Days: 3}
		last := time.Date(2026, 9, 7, 0, 30, 0, 0, santiago)
		err = f.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error { return p.missed(ctx, tx, f.DB, 20260904, last) })
		if err != nil {
			t.Fatal(err)
		}
		if all, want := f.all(), []string{"missed 20260907", "missed 20260906", "missed 20260905"}; !slices.Equal(all, want) {
			t.Errorf("%v, want %v", all, want)
		}
	})
}
