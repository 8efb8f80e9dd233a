package jobs

import (
	"context"

	"backstop/internal/base/queue"
	"backstop/internal/compensation"

	"github.com/hibiken/asynq"
)

// tickLanes bounds the lanes of one tick; the next tick continues after them.
const tickLanes = 500

// compensate passes ids to the runner and returns.
func (j *Jobs) compensate(_ context.Context, t *asynq.Task) error {
	nudges, err := queue.DecodeNudges(t)
	if err == nil {
		j.o.Compensations.Offer(nudges)
	}
	return err
}

// compensations passes lanes with due compensations to the runner: compensations that have just
// become due, and those whose task was lost.
func (j *Jobs) compensations(ctx context.Context) error {
	lanes, last, err := compensation.DueLanes(ctx, j.o.DB, j.afterLane, tickLanes)
	if err == nil {
		j.afterLane = last
		j.o.Compensations.Pull(lanes)
	}
	return err
}

// batch passes the ids of batches to the runner and returns.
func (j *Jobs) batch(_ context.Context, t *asynq.Task) error {
	nudges, err := queue.DecodeNudges(t)
	for _, n := range nudges {
		j.o.Batches.Offer(n.Delivery)
	}
	return err
}
