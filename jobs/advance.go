package jobs

import (
	"context"

	"backstop/internal/base/queue"

	"github.com/hibiken/asynq"
)

// advance passes the ids of orders to the worker that queries suppliers, and returns: the task
// does not wait for an answer.
func (j *Jobs) advance(_ context.Context, t *asynq.Task) error {
	nudges, err := queue.DecodeNudges(t)
	if err != nil {
		return err
	}
	j.o.Advance.OfferIDs(nudges)
	return nil
}
