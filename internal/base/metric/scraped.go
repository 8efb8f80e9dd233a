package metric

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// collectTimeout bounds the reads of one scrape.
const collectTimeout = 2 * time.Second

// collector reads its gauges at each scrape: nothing runs between scrapes.
type collector struct {
	descs []*prometheus.Desc
	read  func(ctx context.Context, gauge func(d *prometheus.Desc, value float64, labels ...string))
}

// replacing makes the two steps of register one: several apps may open in one process.
var replacing sync.Mutex

// register registers a collector in place of an earlier one with the same descriptions.
func register(c prometheus.Collector) {
	replacing.Lock()
	defer replacing.Unlock()
	Registry.Unregister(c)
	Registry.MustRegister(c)
}

// Describe is part of prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

// Collect is part of prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	c.read(ctx, func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	})
}

var (
	queueTasks = prometheus.NewDesc("backstop_queue_tasks",
		"Waiting tasks per queue; \"stuck\" counts stuck compensations in the database, up to 10,000; \"due\" overdue notifications in the database, up to 10,000; \"parked\" notifications that wait for a breaker, up to 10,000 per merchant.", []string{"queue"}, nil)
	queueOldest = prometheus.NewDesc("backstop_queue_oldest_seconds", "Age of the oldest waiting task per queue.", []string{"queue"}, nil)

	atRiskOrders = prometheus.NewDesc("backstop_at_risk_orders",
		"Orders with money at risk by part (untold, compensated, stuck, mismatch) and currency.", []string{"part", "currency"}, nil)
	atRiskMinor = prometheus.NewDesc("backstop_at_risk_minor_units", "Money at risk in minor units, by part and currency.",
		[]string{"part", "currency"}, nil)
	alertsFiring = prometheus.NewDesc("backstop_alerts_firing", "Alerts that are firing.", nil, nil)
	ordersRaised = prometheus.NewDesc("backstop_orders_raised",
		"Paid orders whose notification was raised within the window and that the merchant must get.", []string{"window"}, nil)
	ordersNotified = prometheus.NewDesc("backstop_orders_notified",
		"Orders of backstop_orders_raised whose notification has been delivered by now.", []string{"window"}, nil)
	untriedOrders = prometheus.NewDesc("backstop_notify_untried",
		"Orders whose merchant has had no notification attempt yet, up to 10,000.", nil, nil)
	untriedOldest = prometheus.NewDesc("backstop_notify_untried_oldest_seconds", "Age of the oldest of backstop_notify_untried.", nil, nil)
	compensations = prometheus.NewDesc("backstop_compensations",
		"Compensations that wait, run or are dead, by state and kind, up to 100,000 of each state.", []string{"state", "kind"}, nil)
	clockSkew = prometheus.NewDesc("backstop_clock_skew_seconds", "How far this node's clock is ahead of another (negative = behind): database, redis.",
		[]string{"of"}, nil)
	tickAge = prometheus.NewDesc("backstop_tick_age_seconds",
		"Time since the last run of the tick of this node that has not run for the longest time, by the monotonic clock.", nil, nil)
)

// Backlog is the waiting work in one queue of Redis or, for Queue "due" and "parked", in the
// database.
type Backlog struct {
	Queue  string
	Tasks  float64
	Oldest time.Duration // age of the oldest
}

// RegisterBacklogs exports the result of read at each scrape. It replaces an earlier call.
func RegisterBacklogs(read func(context.Context) []Backlog) {
	register(&collector{
		descs: []*prometheus.Desc{queueTasks, queueOldest},
		read: func(ctx context.Context, gauge func(*prometheus.Desc, float64, ...string)) {
			for _, b := range read(ctx) {
				gauge(queueTasks, b.Tasks, b.Queue)
				gauge(queueOldest, b.Oldest.Seconds(), b.Queue)
			}
		},
	})
}

// RegisterPools exports the pools of connections to the database, by what they are for. It replaces an
// earlier call.
func RegisterPools(pools map[string]*sql.DB) {
	for name, pool := range pools {
		register(collectors.NewDBStatsCollector(pool, name))
	}
}

// Snapshot is the state of the installation at one moment, as the console shows it.
// Unknown parts are left out.
type Snapshot struct {
	AtRisk       []AtRisk
	FiringAlerts *float64
	Orders       *OrdersNotified
	Untried      *Untried
	// Compensations are the open and the dead ones.
	Compensations []Compensations
	Skew          map[string]time.Duration // how far this node's clock is ahead of "database" and "redis"
	TickAge       time.Duration            // of the oldest tick
}

// Compensations is the number of compensations of one state and kind.
type Compensations struct {
	State, Kind string
	Count       float64
}

// AtRisk is money of one currency in one part of the money at risk.
type AtRisk struct {
	Part, Currency string
	Orders, Minor  float64
}

// OrdersNotified counts the orders whose notifications were raised within the last hour,
// and how many of them have been delivered by now.
type OrdersNotified struct{ Raised, Notified float64 }

// Untried counts the orders whose merchant has had no notification attempt yet.
type Untried struct {
	Orders float64
	Oldest time.Duration
}

// RegisterSnapshot exports the result of read at each scrape. It replaces an earlier call.
func RegisterSnapshot(read func(context.Context) Snapshot) {
	register(&collector{
		descs: []*prometheus.Desc{
			atRiskOrders, atRiskMinor, alertsFiring, ordersRaised, ordersNotified, untriedOrders, untriedOldest,
			compensations, clockSkew, tickAge,
		},
		read: func(ctx context.Context, gauge func(*prometheus.Desc, float64, ...string)) {
			s := read(ctx)
			for _, r := range s.AtRisk {
				gauge(atRiskOrders, r.Orders, r.Part, r.Currency)
				gauge(atRiskMinor, r.Minor, r.Part, r.Currency)
			}
			if s.FiringAlerts != nil {
				gauge(alertsFiring, *s.FiringAlerts)
			}
			if s.Orders != nil {
				gauge(ordersRaised, s.Orders.Raised, "1h")
				gauge(ordersNotified, s.Orders.Notified, "1h")
			}
			if s.Untried != nil {
				gauge(untriedOrders, s.Untried.Orders)
				gauge(untriedOldest, s.Untried.Oldest.Seconds())
			}
			for _, c := range s.Compensations {
				gauge(compensations, c.Count, c.State, c.Kind)
			}
			for of, skew := range s.Skew {
				gauge(clockSkew, skew.Seconds(), of)
			}
			gauge(tickAge, s.TickAge.Seconds())
		},
	})
}
