package jobs

import (
	"context"
	"time"

	"backstop/internal/notify"
)

// ticker is the net below Redis: every second it looks for rows that are due and
// that nobody works on. Each node ticks for itself. There is no leader, hence no
// gap when one dies; the claim of the row decides who works.
type ticker struct {
	o     Options
	after int64 // the merchant at which the last look stopped
}

const (
	// tickMerchants bounds the merchants of one look; the next one goes on.
	tickMerchants = 500
	// timeoutSlack is how late a timeout may be before the tick takes it over
	// from the task of its second.
	timeoutSlack = 500 * time.Millisecond
)

// deliveries lets the dispatcher look at every merchant that has something due.
func (t *ticker) deliveries(ctx context.Context) error {
	if !t.o.Dispatcher.HasWork() {
		return nil
	}
	ids, last, err := notify.DueRecipients(ctx, t.o.DB, t.after, tickMerchants)
	if err != nil {
		return err
	}
	t.after = last
	t.o.Dispatcher.Pull(ids)
	return nil
}

// pings sends those of merchants who are connected to this node.
func (t *ticker) pings(ctx context.Context) error { return t.o.Dispatcher.SendPings(ctx) }

// timeouts closes orders whose task was lost, or that run out so far ahead that
// they never had one.
func (t *ticker) timeouts(ctx context.Context) error {
	at, err := t.o.Processor.NextDue(ctx)
	if err != nil || at == 0 || at > t.o.DB.Now()-timeoutSlack.Microseconds() {
		return err
	}
	_, err = t.o.Processor.Expire(ctx)
	return err
}
