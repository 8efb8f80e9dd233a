package app

import (
	"context"
	"time"

	"backstop/internal/alert"
	"backstop/internal/alert/shout"
	"backstop/internal/notify"
	"backstop/internal/queue"
	"backstop/jobs"
)

// alerts is what the watch looks at and whom it tells.
func (a *App) alerts() (jobs.Alerts, error) {
	c := a.o.Config
	urls := make([]string, len(c.AlertURLs))
	for i, u := range c.AlertURLs {
		urls[i] = u.Reveal()
	}
	targets, err := shout.Targets(urls)
	return jobs.Alerts{
		Targets: targets,
		Style:   alert.Style{Language: c.AlertLanguage, Zone: c.Timezone, Console: a.URL()},
		Here:    a.readHere, Shared: a.readShared,
	}, err
}

// down is a level of a thing that either works or does not.
func down(err error) int64 {
	if err != nil {
		return 100
	}
	return 0
}

// readHere reads what may be well at one node and ill at another. A database that
// is down is seen by the watch itself.
func (a *App) readHere(ctx context.Context) []alert.Reading {
	node := a.db.NodeName()
	redis := a.redis.Check(ctx)
	all := []alert.Reading{
		{Rule: alert.RedisDown, Subject: node, Value: down(redis)},
		{Rule: alert.ClockSkew, Subject: node + " – database", Value: a.db.Skew().Abs().Milliseconds()},
	}
	if redis != nil {
		return all
	}
	start := time.Now()
	at, err := a.redis.Client().Time(ctx).Result()
	if err == nil {
		middle := start.Add(time.Since(start) / 2)
		all = append(all, alert.Reading{Rule: alert.ClockSkew, Subject: node + " – Redis", Value: middle.Sub(at).Abs().Milliseconds()})
	}
	return all
}

// readShared reads what is the same from every node. What cannot be read now is
// left out: its alert neither fires nor ends.
func (a *App) readShared(ctx context.Context) []alert.Reading {
	var all []alert.Reading
	if due, err := notify.Overdue(ctx, a.db); err == nil {
		all = append(all, alert.Reading{Rule: alert.QueueLength, Subject: "due", Value: due.Count})
	}
	sizes, err := a.queue.Sizes(ctx)
	if err != nil {
		return all
	}
	for _, name := range queue.Names {
		// What is scheduled is not late: timeouts of the next hour stand there.
		all = append(all, alert.Reading{Rule: alert.QueueLength, Subject: name, Value: int64(sizes[name].Pending + sizes[name].Retry)})
	}
	return all
}
