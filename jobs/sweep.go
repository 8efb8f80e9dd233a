package jobs

import (
	"context"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/hibiken/asynq"
)

const (
	// nightEvery is how often a node looks whether the sweep of a night was missed.
	nightEvery = time.Minute
	// sweepEvery is how often it looks for a sweep that nobody goes on with: its task was
	// lost, or its node has ended.
	sweepEvery = 10 * time.Second
)

// scheduleSweeps begins the sweep of each night, and looks for one that was missed: at the
// start at once.
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

// electedFor is for how long one node alone begins sweeps.
const electedFor = time.Minute

// night begins the sweep of a night on the node that is elected, and nudges a worker.
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
		j.o.Log.Debug("nudge the sweep", "error", err) // the tick finds it
	}
	return nil
}

// sweep goes on with the sweep that is running. Stop interrupts it: it is long, and its row
// says how far it is.
func (j *Jobs) sweep(context.Context, *asynq.Task) error {
	return j.o.Sweeps.Continue(j.sweeping)
}
