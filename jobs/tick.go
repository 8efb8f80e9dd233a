package jobs

import (
	"context"
	"time"

	"backstop/internal/notify"
)

// The tick is the safety net for Redis: every second it looks for rows that are due and not
// claimed. Each node has its own tick. There is no leader and so no gap when a node fails; the
// claim of a row decides which node works on it.
const (
	// tickMerchants bounds the merchants of one tick; the next tick continues after them.
	tickMerchants = 500
	// timeoutSlack is how late a timeout may be before the tick closes the order instead of the
	// task of its second.
	timeoutSlack = 500 * time.Millisecond
)

// deliveries passes merchants with due deliveries to the dispatcher.
func (j *Jobs) deliveries(ctx context.Context) error {
	if !j.o.Dispatcher.HasWork() {
		return nil
	}
	recipients, last, err := notify.DueRecipients(ctx, j.o.DB, j.after, tickMerchants)
	if err != nil {
		return err
	}
	j.after = last
	j.o.Dispatcher.Pull(recipients)
	return nil
}

// timeouts closes orders whose task was lost, or that never had a task because they expired too
// far in the future.
func (j *Jobs) timeouts(ctx context.Context) error {
	_, err := j.o.Processor.ExpireLate(ctx, timeoutSlack)
	return err
}
