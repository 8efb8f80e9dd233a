package app

import (
	"context"
	"strconv"
	"time"

	"backstop/internal/alert"
	"backstop/internal/alert/shout"
	"backstop/internal/notify"
	"backstop/internal/queue"
	"backstop/internal/report"
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
		Merchant: a.merchantName,
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
	if due, err := notify.Overdue(ctx, a.db, a.breakers); err == nil {
		all = append(all, alert.Reading{Rule: alert.QueueLength, Subject: "due", Value: due.Count})
	}
	all = append(all, a.readAttempts(ctx)...)
	all = append(all, a.readSuppliers(ctx)...)
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

const (
	// attemptsSpan is the window of rates and answer times.
	attemptsSpan = 5 * time.Minute
	// attemptsLeast and flowLeast keep a few unlucky attempts from being a rate.
	attemptsLeast = 20
	merchantLeast = 5
	flowLeast     = 20
	// flowSpan is the window in which a supplier should have called.
	flowSpan = 10 * time.Minute
)

// readAttempts reads what came of attempts lately, of all and of each merchant.
func (a *App) readAttempts(ctx context.Context) []alert.Reading {
	since := a.db.Now() - attemptsSpan.Microseconds()
	points, err := report.Outcomes(ctx, a.db, 0, since, a.db.Now(), time.Minute)
	if err != nil {
		return nil
	}
	var all []alert.Reading
	if t := report.Total(points); t.Attempts() >= attemptsLeast {
		all = append(all,
			alert.Reading{Rule: alert.SuccessRate, Subject: "all", Value: t.OK * 10_000 / t.Attempts()},
			alert.Reading{Rule: alert.AnswerTime, Subject: "all", Value: t.TookUS / t.Attempts() / 1000})
		if over := t.OK + t.Failed; over > 0 {
			all = append(all, alert.Reading{Rule: alert.ErrorRate, Subject: "all", Value: t.Failed * 10_000 / over})
		}
	}
	merchants, err := report.Merchants(ctx, a.db, since, merchantsWatched)
	if err != nil {
		return all
	}
	for _, m := range merchants {
		if p95, ok := m.Took.Quantile(.95); ok && m.Attempts() >= merchantLeast {
			all = append(all, alert.Reading{Rule: alert.SlowMerchant, Subject: a.merchantName(m.Merchant), Value: p95.Milliseconds()})
		}
	}
	return all
}

// merchantsWatched bounds one look; those that do worst come first.
const merchantsWatched = 1000

func (a *App) merchantName(id int64) string {
	if m := a.settings.Merchants().ByID(id); m != nil {
		return m.Code
	}
	return strconv.FormatInt(id, 10)
}

// readSuppliers compares what suppliers sent lately with what is usual at this
// hour.
func (a *App) readSuppliers(ctx context.Context) []alert.Reading {
	flows, err := report.Flows(ctx, a.db, flowSpan)
	if err != nil {
		return nil
	}
	var all []alert.Reading
	for _, f := range flows {
		s, ok := a.settings.Current().Suppliers.ByID(f.Supplier)
		if !ok || !s.Enabled || f.Usual < flowLeast {
			continue
		}
		all = append(all, alert.Reading{Rule: alert.SupplierSilent, Subject: s.Code, Value: int64(float64(f.Now) * 100 / f.Usual)})
	}
	return all
}
