package jobs

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"backstop/internal/base/waittest"

	"github.com/go-co-op/gocron/v2"
)

// The work that an earlier run left is found when the program starts, not a second later: a
// program that crashes every second would otherwise never do it.
func TestTicksBeginAtTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cron, err := gocron.NewScheduler()
		if err != nil {
			t.Fatal(err)
		}
		var ticks, beats atomic.Int32
		count := func(n *atomic.Int32) func(context.Context) error {
			return func(context.Context) error { n.Add(1); return nil }
		}
		j := &Jobs{o: Options{Log: slog.New(slog.DiscardHandler)}, cron: cron}
		if err := j.every(0, tickEvery, "tick", count(&ticks)); err != nil {
			t.Fatal(err)
		}
		if err := j.every(1, beatEvery, "beat", count(&beats)); err != nil {
			t.Fatal(err)
		}
		cron.Start()
		waittest.Pass(tickEvery / 2)
		if ticks.Load() != 1 || beats.Load() != 0 {
			t.Errorf("after half a second: %d ticks, %d beats", ticks.Load(), beats.Load())
		}
		waittest.Pass(2 * tickEvery)
		if ticks.Load() != 3 {
			t.Errorf("after 2.5 s: %d ticks", ticks.Load())
		}
		if err := cron.Shutdown(); err != nil {
			t.Error(err)
		}
	})
}
