package web

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"backstop/internal/base/waittest"
)

func TestAHangingCheckIsBoundedAndStartedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var started, healthy atomic.Int64
		r := NewReadiness([]Check{
			{Name: "deaf", Run: func(context.Context) error { started.Add(1); <-release; return nil }},
			{Name: "healthy", Run: func(context.Context) error { healthy.Add(1); return nil }},
		})
		begin := time.Now()
		for range 3 {
			results := r.Ask()
			if results[0].OK || !results[1].OK {
				t.Errorf("results %+v", results)
			}
			waittest.Pass(checkAge)
		}
		if took := time.Since(begin); took != checkTime+3*checkAge {
			t.Errorf("three answers took %s", took)
		}
		if started.Load() != 1 || healthy.Load() != 3 {
			t.Errorf("the hanging check was started %d times, the other %d", started.Load(), healthy.Load())
		}
		close(release)
		synctest.Wait()
		if results := r.Ask(); !results[0].OK {
			t.Errorf("after it answered: %+v", results)
		}
	})
}

func TestProbesAreNoLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		r := NewReadiness([]Check{{Name: "database", Run: func(context.Context) error { asked.Add(1); return nil }}})
		for range 1000 {
			r.Ask()
			waittest.Pass(time.Millisecond)
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("1000 probes in a second made %d checks", n)
		}
	})
}

// Since is the beginning of the failure, however often it was checked meanwhile.
func TestAFailureBeginsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var failed error
		r := NewReadiness([]Check{{Name: "redis", Degrades: true, Run: func(context.Context) error { return failed }}})
		r.Ask()
		for range 2 {
			waittest.Pass(time.Second)
			failed = errors.New("away")
			begun := time.Now()
			for range 5 {
				if got := r.Ask()[0]; got.OK || !got.since.Equal(begun) {
					t.Errorf("it failed since %s, want %s", got.since, begun)
				}
				waittest.Pass(time.Second)
			}
			failed = nil
			if got := r.Ask()[0]; !got.OK {
				t.Errorf("it still fails: %+v", got)
			}
		}
	})
}
