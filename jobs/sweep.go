package jobs

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/sweep"

	"github.com/go-co-op/gocron/v2"
	"github.com/hibiken/asynq"
)

const (
	// nightEvery is how often a node checks whether the sweep of a night was missed.
	nightEvery = time.Minute
	// sweepEvery is how often a node checks for a sweep that has stopped because its task was
	// lost or its node has ended.
	sweepEvery = 10 * time.Second
)

// scheduleSweeps starts the sweep of each night, and checks for a missed one, first when the
// process starts.
func (j *Jobs) scheduleSweeps() error {
	if j.o.Sweeps != nil {
		j.every(sweepEvery, "go on with the sweep", j.o.Sweeps.Continue)
	}
	if !j.o.Scheduler {
		return nil
	}
	j.every(nightEvery, "look for a missed sweep", j.night)
	task := func(ctx context.Context) { j.once(ctx, "sweep", j.night) }
	_, err := j.cron.NewJob(gocron.CronJob("", false), gocron.NewTask(task), gocron.WithCronImplementation(nights{j.o.Nights}),
		gocron.WithSingletonMode(gocron.LimitModeReschedule))
	if err != nil {
		return fmt.Errorf("schedule the sweep: %w", err)
	}
	return nil
}

// nights gives gocron the moments of the sweep. Its own daily jobs know no times that the clocks
// of a zone skip.
type nights struct{ sweep.Plan }

func (nights) IsValid(string, *time.Location, time.Time) error { return nil }

// electedFor is how long one node is elected to start sweeps.
const electedFor = time.Minute

// night starts the sweep of a night on the elected node and nudges a worker.
func (j *Jobs) night(ctx context.Context) error {
	mine, err := j.o.DB.Lease(ctx, "night", electedFor)
	if err != nil || !mine {
		return err
	}
	begun, err := j.o.Nights.Night(ctx, j.o.DB)
	if err != nil || !begun {
		return err
	}
	if err := j.o.Queue.Sweep(ctx); err != nil {
		j.o.Log.Debug("nudge the sweep", "error", err) // the next check finds it
	}
	return nil
}

// sweep continues the running sweep. Stop interrupts it: it is long, and its row records its
// progress.
func (j *Jobs) sweep(context.Context, *asynq.Task) error {
	return j.o.Sweeps.Continue(j.sweeping)
}
