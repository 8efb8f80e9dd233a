package app

import (
	"context"

	"backstop/internal/bulk"
)

// openBatches creates the batches and, with workers, their runner.
func (a *App) openBatches() {
	a.batches = bulk.New(bulk.Options{
		DB: a.db, Audit: a.audit, Policy: newPolicy(), Rules: a.settings.Rules, Rate: int64(a.o.Config.BatchRate),
		Down: a.calls.Down, Nudge: a.nudgeBatch, Log: a.o.Log,
	}, a.batchActions()...)
	if a.o.Roles.Worker {
		a.batchRunner = bulk.NewRunner(a.batches)
	}
}

// nudgeBatch wakes a batch: in this process, or in the first worker that gets the task.
func (a *App) nudgeBatch(id int64) {
	if a.batchRunner != nil {
		a.batchRunner.Offer(id)
		return
	}
	go func() {
		if err := a.queue.Batch(context.Background(), id); err != nil {
			a.o.Log.Debug("nudge a batch", "error", err) // the tick finds it
		}
	}()
}
