package console

import (
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/compensation"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// Lane is one queue: its waiting rows in the database and its tasks in Redis.
type Lane struct {
	Name    string
	Kept    bool  // the database has rows for this queue
	Rows    int64 // waiting rows
	More    bool  // there are more than were counted
	Overdue time.Duration
	// Age is the age of the oldest row if rows are parked: they are not overdue, but waiting.
	Age     time.Duration
	InRedis int // tasks; rows are authoritative, tasks only wake workers
	Latency time.Duration
}

// Queues is the state of every queue. RedisDown means that Redis did not answer.
type Queues struct {
	Lanes     []Lane
	RedisDown bool
	// InFlight counts the notifications being sent now, on all nodes.
	InFlight     int64
	InFlightMore bool // there are more than were counted
	// Slow counts the merchants that any node lists as slow.
	Slow int
}

const (
	// laneRows bounds the count of one lane.
	laneRows = 2000
	// redisTime is how long the overview waits for Redis.
	redisTime = 300 * time.Millisecond
)

// Queues reads the length of every queue. sizes queries Redis; the page works without its
// answer.
func (b *Reader) Queues(ctx context.Context, sizes func(context.Context) (map[string]queue.Size, error)) (*Queues, error) {
	now := b.db.Now()
	slow, err := notify.SlowRecipients(ctx, b.db)
	if err != nil {
		return nil, err
	}
	rows, err := b.waiting(ctx, slow)
	if err != nil {
		return nil, err
	}
	q := &Queues{RedisDown: true, Slow: len(slow)}
	var held map[string]queue.Size
	if sizes != nil {
		asked, cancel := context.WithTimeout(ctx, redisTime)
		defer cancel()
		held, err = sizes(asked)
		q.RedisDown = err != nil
	}
	q.InFlight, q.InFlightMore = rows[inFlightRows].Count, rows[inFlightRows].Cut
	for _, name := range queue.Names {
		l := Lane{Name: name}
		if r, ok := rows[name]; ok {
			l.Kept, l.Rows, l.More = true, r.Count, r.Cut
			if name == string(queue.Delayed) && r.Count > 0 {
				l.Age = time.Duration(max(0, now-r.Made)) * time.Microsecond
			}
			if r.Oldest > 0 && r.Oldest < now {
				l.Overdue = time.Duration(now-r.Oldest) * time.Microsecond
			}
		}
		s := held[name]
		l.InRedis, l.Latency = s.Pending+s.Active+s.Scheduled+s.Retry, s.Latency
		q.Lanes = append(q.Lanes, l)
	}
	return q, nil
}

// laneCount counts waiting rows, with the due time of the first.
type laneCount struct {
	Status notify.Status
	Count  int64
	Oldest int64
	Made   int64 // when the oldest was created
	Cut    bool  // there may be more than were counted
}

// and combines two counts.
func (l laneCount) and(m laneCount) laneCount {
	if l.Count == 0 || m.Count > 0 && m.Oldest < l.Oldest {
		l.Oldest = m.Oldest
	}
	if l.Count == 0 || m.Count > 0 && m.Made < l.Made {
		l.Made = m.Made
	}
	l.Count, l.Cut = l.Count+m.Count, l.Cut || m.Cut
	return l
}

// inFlightRows is the lane of rows that are being sent; no queue holds them.
const inFlightRows = "in flight"

// waiting counts rows by the queue that processes them. slow and parked merchants have queues
// of their own.
func (b *Reader) waiting(ctx context.Context, slow []int64) (map[string]laneCount, error) {
	parked := notify.ParkedIDs(b.breakers, b.settings.Merchants())
	slow = slices.DeleteFunc(slices.Clone(slow), func(id int64) bool { return slices.Contains(parked, id) })
	lanes := map[string]laneCount{}
	rest, err := b.byStatus(ctx, "NOT IN", append(slices.Clone(parked), slow...))
	if err != nil {
		return nil, err
	}
	lanes[string(queue.Live)], lanes[string(queue.Retry)], lanes[inFlightRows] = rest[notify.Queued], rest[notify.RetryWait],
		rest[notify.Sending]
	of, err := b.byStatus(ctx, "IN", slow)
	if err != nil {
		return nil, err
	}
	lanes[string(queue.Slow)] = of[notify.Queued].and(of[notify.RetryWait])
	lanes[inFlightRows] = lanes[inFlightRows].and(of[notify.Sending])
	if of, err = b.byStatus(ctx, "IN", parked); err != nil {
		return nil, err
	}
	delayed := of[notify.Queued].and(of[notify.RetryWait]).and(of[notify.Sending])
	delayed.Oldest = 0 // they wait for their merchants and are not late
	lanes[string(queue.Delayed)] = delayed
	var due laneCount
	var read int64
	// Ended orders are read too, but not counted.
	err = b.db.Read.NewRaw("SELECT count(*) AS seen, count(CASE WHEN "+order.IsOpen("w")+" THEN 1 END) AS count, coalesce(min(CASE WHEN "+
		order.IsOpen("w")+" THEN next_at END), 0) AS oldest FROM"+
		" (SELECT next_at, status FROM orders WHERE next_at >= "+order.DueFrom+" ORDER BY next_at LIMIT ?) AS w", laneRows).Scan(ctx, &read,
		&due.Count, &due.Oldest)
	if err != nil {
		return nil, fmt.Errorf("count running orders: %w", err)
	}
	due.Cut = read >= laneRows
	lanes[queue.TimeoutQueue] = due
	stuck, err := compensation.Waits(ctx, b.db, laneRows)
	if err != nil {
		return nil, err
	}
	lanes[queue.CompensateQueue] = laneCount{Count: stuck.Rows, Oldest: stuck.Oldest, Cut: stuck.More}
	return lanes, nil
}

// byStatus counts by status what waits for the given merchants, or for all others.
func (b *Reader) byStatus(ctx context.Context, which string, merchants []int64) (map[notify.Status]laneCount, error) {
	of := map[notify.Status]laneCount{}
	open, err := report.OpenDeliveries(ctx, b.db.Read)
	if err != nil {
		return nil, err
	}
	sample := b.db.Read.NewSelect().TableExpr("(" + open +
		") AS d").ColumnExpr("status, coalesce(next_at, lease_until) AS next_at, created_at").Limit(laneRows)
	switch {
	case len(merchants) > 0:
		sample = sample.Where("recipient_id ? (?)", bun.Safe(which), bun.List(merchants))
	case which == "IN":
		return of, nil
	}
	var rows []laneCount
	err = b.db.Read.NewRaw(
		"SELECT status, count(*) AS count, min(next_at) AS oldest, min(created_at) AS made FROM (?) AS w GROUP BY status", sample).Scan(ctx,
		&rows)
	if err != nil {
		return nil, fmt.Errorf("count waiting notifications: %w", err)
	}
	var counted int64
	for _, r := range rows {
		of[r.Status] = r
		counted += r.Count
	}
	for _, s := range notify.Moves.Open() {
		l := of[s]
		l.Cut = counted >= laneRows
		of[s] = l
	}
	return of, nil
}

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
