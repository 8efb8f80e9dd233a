package console

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/report"
)

// QueueFlow is how fast the rows of a kind of work come and go. Nothing of it is read from Redis.
type QueueFlow struct {
	Queue   string
	Waiting int64
	More    bool    // there are more than were counted
	In, Out float64 // a minute
	Cut     bool    // at least as many came as In says
}

const (
	// flowSpan is the time over which rates are measured, in whole minutes.
	flowSpan = 10 * time.Minute
	// flowRows bounds the rows that one rate counts.
	flowRows = 50_000
)

// Empty returns how long the queue takes to become empty at these rates; false = it does not, or
// that is unknown.
func (f QueueFlow) Empty() (time.Duration, bool) {
	if f.Waiting == 0 {
		return 0, true
	}
	if f.Out <= f.In || f.More || f.Cut {
		return 0, false
	}
	return time.Duration(float64(f.Waiting) / (f.Out - f.In) * float64(time.Minute)), true
}

// QueueFlows returns how fast notifications and compensations come and go. q is what waits.
func (b *Reader) QueueFlows(ctx context.Context, q *Queues) ([]QueueFlow, error) {
	now := b.db.Now()
	from := now - flowSpan.Microseconds()
	sent, comp := QueueFlow{Queue: string(queue.Live)}, QueueFlow{Queue: queue.CompensateQueue}
	for _, l := range q.Lanes {
		switch l.Name {
		case string(queue.Live), string(queue.Retry), string(queue.Slow):
			sent.Waiting, sent.More = sent.Waiting+l.Rows, sent.More || l.More
		case queue.CompensateQueue:
			comp.Waiting, comp.More = l.Rows, l.More
		}
	}
	points, err := report.Outcomes(ctx, b.db, 0, from, now, time.Minute)
	if err != nil {
		return nil, err
	}
	total := report.Total(points)
	perMinute := func(n int64) float64 { return float64(n) / flowSpan.Minutes() }
	sent.Out = perMinute(total.OK + total.Failed)
	for _, c := range []struct {
		to    *float64
		cut   *bool
		query string
		args  []any
	}{
		{&sent.In, &sent.Cut, "SELECT 1 AS one FROM deliveries WHERE id >= ?", []any{db.IDAt(from)}},
		{&comp.In, &comp.Cut, "SELECT 1 AS one FROM compensations WHERE id >= ?", []any{db.IDAt(from)}},
		{
			&comp.Out, new(bool),
			"SELECT DISTINCT t.compensation_id FROM compensation_tries AS t JOIN compensations AS c ON c.id = t.compensation_id WHERE t.id >= ? AND c.finished_at >= ?",
			[]any{db.IDAt(from), from},
		},
	} {
		var n int64
		if err := b.db.Read.NewRaw("SELECT count(*) FROM ("+c.query+" LIMIT ?) AS w", append(c.args, flowRows)...).Scan(ctx,
			&n); err != nil {
			return nil, fmt.Errorf("measure the rate of a queue: %w", err)
		}
		*c.to, *c.cut = perMinute(n), n >= flowRows
	}
	return []QueueFlow{sent, comp}, nil
}
