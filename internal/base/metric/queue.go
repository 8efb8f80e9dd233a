package metric

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Backlog is what waits: in one queue of Redis, or (Queue "due") in the database.
type Backlog struct {
	Queue  string
	Tasks  float64
	Oldest time.Duration // age of the oldest
}

// collectTimeout bounds one scrape's questions.
const collectTimeout = 2 * time.Second

// backlogs asks at each scrape: nothing runs between scrapes.
type backlogs struct {
	ask    func(context.Context) []Backlog
	tasks  *prometheus.Desc
	oldest *prometheus.Desc
}

// RegisterBacklogs shows what ask returns at each scrape. It replaces what an
// earlier call of this process registered.
func RegisterBacklogs(ask func(context.Context) []Backlog) {
	c := &backlogs{
		ask:    ask,
		tasks:  prometheus.NewDesc("backstop_queue_tasks", "Tasks that wait per queue; \"due\" counts notifications overdue in the database, up to 10,000; \"parked\" those that wait for a breaker, up to 10,000 per merchant.", []string{"queue"}, nil),
		oldest: prometheus.NewDesc("backstop_queue_oldest_seconds", "Age of the oldest that waits per queue.", []string{"queue"}, nil),
	}
	Registry.Unregister(c)
	Registry.MustRegister(c)
}

// Describe is part of prometheus.Collector.
func (c *backlogs) Describe(out chan<- *prometheus.Desc) {
	out <- c.tasks
	out <- c.oldest
}

// Collect is part of prometheus.Collector.
func (c *backlogs) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	for _, b := range c.ask(ctx) {
		out <- prometheus.MustNewConstMetric(c.tasks, prometheus.GaugeValue, b.Tasks, b.Queue)
		out <- prometheus.MustNewConstMetric(c.oldest, prometheus.GaugeValue, b.Oldest.Seconds(), b.Queue)
	}
}
