package app

import (
	"context"

	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/compensation"
	"backstop/internal/notify"
)

// maxBacklog bounds the count of compensations.
const maxBacklog = 10_000

// parked returns the ids of the recipients whose notifications are parked.
func (a *App) parked() []int64 { return notify.ParkedIDs(a.breakers, a.settings.Merchants()) }

// backlogs counts what waits in Redis and in the database. An unavailable Redis is left out;
// the database's figure is the authoritative one.
func (a *App) backlogs(ctx context.Context) []metric.Backlog {
	var all []metric.Backlog
	if due, err := notify.Overdue(ctx, a.db, a.parked()); err == nil {
		all = append(all, metric.Backlog{Queue: "due", Tasks: float64(due.Count), Oldest: due.Oldest})
	}
	parked := metric.Backlog{Queue: "parked"}
	for _, id := range a.parked() {
		due, err := notify.Parked(ctx, a.db, a.settings.Merchants().RecipientOf(id))
		if err != nil {
			return all
		}
		parked.Tasks += float64(due.Count)
		parked.Oldest = max(parked.Oldest, due.Oldest)
	}
	all = append(all, parked)
	if b, err := compensation.Waits(ctx, a.db, maxBacklog); err == nil {
		all = append(all, metric.Backlog{Queue: "stuck", Tasks: float64(b.Rows), Oldest: b.Overdue})
	}
	sizes, err := a.queue.Sizes(ctx)
	if err != nil {
		return all
	}
	for _, name := range queue.Names {
		s := sizes[name]
		all = append(all, metric.Backlog{Queue: name, Tasks: float64(s.Pending + s.Active + s.Scheduled + s.Retry), Oldest: s.Latency})
	}
	return all
}
