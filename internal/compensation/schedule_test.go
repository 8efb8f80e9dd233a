package compensation

import (
	"testing"
	"testing/synctest"
	"time"

	"backstop/internal/base/waittest"
)

var day = Schedule{
	time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour,
	8 * time.Hour,
}

// An item that never succeeds is tried after each wait of the table, and then no more; run
// again, it goes through the same table, with the first try due at once.
func TestAnItemIsTriedAfterEachWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := &Item{MaxAttempts: day.tries()}
		sleep := func(us int64) time.Duration {
			began := time.Now()
			waittest.Pass(time.Duration(us) * time.Microsecond)
			return time.Since(began)
		}
		near := func(what string, got, want time.Duration) {
			if got < want*9/10 || got > want*11/10 {
				t.Errorf("%s: it waited %s, want %s ±10 %%", what, got, want)
			}
		}
		for schedule := range 2 {
			if schedule == 0 {
				near("the first", sleep(day.wait(0)), day[0])
			}
			for n, want := range append(day[1:], -1) {
				x.Attempts++
				at, ok := day.after(x.MaxAttempts-x.Attempts, time.Now().UnixMicro())
				if ok != (want > 0) {
					t.Fatalf("schedule %d: after try %d there is a next one: %t", schedule, n+1, ok)
				}
				if ok {
					near("a later one", sleep(at-time.Now().UnixMicro()), want)
				}
			}
			x.MaxAttempts = x.Attempts + day.tries() // as it is run again
		}
		if x.Attempts != 20 {
			t.Errorf("%d tries", x.Attempts)
		}
	})
}

func TestWaitsAreSpread(t *testing.T) {
	t.Parallel()
	seen := map[int64]bool{}
	for range 100 {
		w := day.wait(9)
		if d := time.Duration(w) * time.Microsecond; d < 8*time.Hour*9/10 || d > 8*time.Hour*11/10 {
			t.Fatalf("it waits %s", d)
		}
		seen[w] = true
	}
	if len(seen) < 50 {
		t.Errorf("%d different waits of 100", len(seen))
	}
}

// A row with more remaining tries than the settings now have uses the last waits of the table;
// one of a longer table, its own.
func TestAScheduleThatWasChangedLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	short := Schedule{time.Second, time.Minute}
	for left, want := range map[int64]time.Duration{9: time.Second, 2: time.Second, 1: time.Minute} {
		at, ok := short.after(left, 0)
		if d := time.Duration(at) * time.Microsecond; !ok || d < want*9/10 || d > want*11/10 {
			t.Errorf("%d left: %s, %t; want %s", left, d, ok, want)
		}
	}
}

func TestMoneyOnItsWayWaitsByItsAge(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]time.Duration{
		0: 10 * time.Second, 3 * time.Second: 7 * time.Second, 10 * time.Second: 30 * time.Second, 39 * time.Second: time.Second,
		40 * time.Second: time.Minute,
	} {
		if got, last := WaitSince(age); got != want || last {
			t.Errorf("after %s it waits %s, %t; want %s", age, got, last, want)
		}
	}
	var all time.Duration
	for _, step := range moneySteps {
		all += step
	}
	if _, last := WaitSince(all - time.Second); last {
		t.Error("the last wait begins early")
	}
	if got, last := WaitSince(all); got != Daily || !last {
		t.Errorf("after all steps it waits %s, %t", got, last)
	}
}
