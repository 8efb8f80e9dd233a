package waittest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"backstop/internal/base/waittest"
)

// recorder notes that a test was ended.
type recorder struct {
	testing.TB
	ended bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Fatalf(string, ...any) { r.ended = true }

func TestUntilEndsATestThatWaitsInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		for _, c := range []struct {
			after time.Duration
			ended bool
		}{{0, false}, {59 * time.Second, false}, {3 * time.Minute, true}} {
			r, from := &recorder{TB: t}, time.Now()
			waittest.Until(r, "it", func() bool { return time.Since(from) >= c.after })
			if r.ended != c.ended {
				t.Errorf("what holds after %s: ended %t", c.after, r.ended)
			}
		}
		if d := time.Since(begun); d > 121*time.Second {
			t.Errorf("waited %s", d)
		}
	})
}

func TestStaysEndsATestInWhichItChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			until time.Duration
			ended bool
		}{{time.Hour, false}, {99 * time.Millisecond, true}, {0, true}} {
			r, from := &recorder{TB: t}, time.Now()
			waittest.Stays(r, "it", 100*time.Millisecond, func() bool { return time.Since(from) < c.until })
			if r.ended != c.ended {
				t.Errorf("what holds for %s: ended %t", c.until, r.ended)
			}
		}
	})
}

func TestPassWaitsForTheBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ended bool
		go func() { <-time.After(time.Second); ended = true }()
		waittest.Pass(time.Second)
		if !ended {
			t.Error("the goroutine that ends at this time has not")
		}
	})
}
