package jobs

import (
	"context"
	"time"

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
		if err := j.every(0, sweepEvery, "go on with the sweep", j.o.Sweeps.Continue); err != nil {
			return err
		}
	}
	if !j.o.Scheduler {
		return nil
	}
	at := gocron.NewAtTime(uint(j.o.Nights.Hour), uint(j.o.Nights.Minute), 0)
	if err := j.add(gocron.DailyJob(1, gocron.NewAtTimes(at)), "sweep", j.night); err != nil {
		return err
	}
	return j.add(gocron.DurationJob(nightEvery), "look for a missed sweep", j.night, gocron.WithStartAt(gocron.WithStartImmediately()))
}

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
