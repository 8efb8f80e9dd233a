package jobs

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
)

func quietJobs() *Jobs {
	return &Jobs{o: Options{Log: slog.New(slog.DiscardHandler), Ticks: new(Ticks)}}
}

// The work that an earlier run left is found when the program starts, not a second later: a
// program that crashes every second would otherwise never do it.
func TestTicksBeginAtTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ticks, beats atomic.Int32
		count := func(n *atomic.Int32) func(context.Context) error {
			return func(context.Context) error { n.Add(1); return nil }
		}
		j := quietJobs()
		j.every(tickEvery, "tick", count(&ticks))
		j.every(beatEvery, "beat", count(&beats))
		j.startPace(t.Context())
		waittest.Pass(tickEvery / 2)
		if ticks.Load() != 1 || beats.Load() != 0 {
			t.Errorf("after half a second: %d ticks, %d beats", ticks.Load(), beats.Load())
		}
		waittest.Pass(2 * tickEvery)
		if ticks.Load() != 3 {
			t.Errorf("after 2.5 s: %d ticks", ticks.Load())
		}
		j.stopPace()
		j.pacing.Wait()
	})
}

// A tick that hangs is seen by its age, and is not started a second time.
func TestATickThatHangsGetsOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, started := quietJobs(), 0
		j.every(tickEvery, "healthy", func(context.Context) error { return nil })
		j.every(tickEvery, "stuck", func(ctx context.Context) error { started++; <-ctx.Done(); return nil })
		j.startPace(t.Context())
		waittest.Pass(31 * time.Second)
		if name, age := j.o.Ticks.Oldest(); name != "stuck" || age != 31*time.Second || started != 1 {
			t.Errorf("the oldest tick is %q, %s old, started %d times", name, age, started)
		}
		j.stopPace()
		j.pacing.Wait()
	})
}

// steps are by how much tests set the wall clock.
var steps = []time.Duration{20 * time.Second, 10 * time.Minute, time.Hour}

// Setting the wall clock neither stops nor hurries periodic work; it is alerted, and the
// database's clock is measured again within a second.
func TestSettingTheWallClockStopsNoWork(t *testing.T) {
	t.Parallel()
	for _, size := range steps {
		for _, step := range []time.Duration{-size, size} {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				j := quietJobs()
				j.o.DB = d
				var runs atomic.Int64
				seen := make(chan struct{}, 1)
				j.every(tickEvery, "compare the clocks", func(ctx context.Context) error {
					err := j.clocks(ctx)
					runs.Add(1)
					select {
					case seen <- struct{}{}:
					default:
					}
					return err
				})
				j.startPace(t.Context())
				defer j.pacing.Wait()
				defer j.stopPace()
				<-seen
				was, before, begun := d.Skew(), d.Now(), time.Now()
				d.SetWall(step)
				waittest.Until(t, "the step is alerted", func() bool {
					var n int
					err := d.Read.NewRaw("SELECT count(*) FROM alerts WHERE rule = ?", alert.ClockStep).Scan(t.Context(), &n)
					return err == nil && n == 1
				})
				ran := runs.Load()
				waittest.Until(t, "the work goes on", func() bool { return runs.Load() > ran+1 })
				skewed, moved := d.Skew()-was, time.Duration(d.Now()-before)*time.Microsecond-time.Since(begun)
				if d.IsPostgres() && ((skewed-step).Abs() > time.Second || moved.Abs() > time.Second) {
					t.Errorf("after a step of %s the node is %s off, and the database's time moved by %s", step, skewed, moved)
				}
				if !d.IsPostgres() && ((moved-step).Abs() > time.Second || skewed != 0) { // this node's clock is the only one
					t.Errorf("after a step of %s the time moved by %s", step, moved)
				}
			})
		}
	}
}
