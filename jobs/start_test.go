package jobs

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
)

// On a machine that is slow to schedule, the moment of a job's first run has passed when the job is
// added: the program starts all the same, and the job runs.
func TestAJobWhoseFirstMomentHasPassedRuns(t *testing.T) {
	t.Parallel()
	cron, err := gocron.NewScheduler()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cron.Shutdown() }()
	j, ran := &Jobs{o: Options{Log: slog.New(slog.DiscardHandler)}, cron: cron}, make(chan struct{}, 100)
	const earlier = -10 // a number whose moment is in the past
	if err := j.every(earlier, tickEvery, "tick", func(context.Context) error { ran <- struct{}{}; return nil }); err != nil {
		t.Fatal(err)
	}
	cron.Start()
	for range 2 {
		select {
		case <-ran:
		case <-time.After(time.Minute):
			t.Fatal("it does not run")
		}
	}
}
