package metric

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// AtRisk is money of one currency in one part of the money at risk.
type AtRisk struct {
	Part, Currency string
	Orders, Minor  float64
}

// OrdersNotified is the orders whose notifications were raised within the last
// hour, and how many of them have been delivered by now.
type OrdersNotified struct{ Raised, Notified float64 }

// Untried is the orders of which no attempt was made to notify the merchant yet.
type Untried struct {
	Orders float64
	Oldest time.Duration
}

// Standing is how things stand, as the console shows it. What cannot be known now
// is left out.
type Standing struct {
	AtRisk       []AtRisk
	FiringAlerts *float64
	Orders       *OrdersNotified
	Untried      *Untried
	Skew         map[string]time.Duration // by how much this node's clock is ahead, of "database" and "redis"
}

// standings asks at each scrape.
type standings struct {
	ask                          func(context.Context) Standing
	orders, minor, firing, clock *prometheus.Desc
	raised, notified             *prometheus.Desc
	untried, untriedOldest       *prometheus.Desc
}

// RegisterStanding shows what ask returns at each scrape. It replaces what an
// earlier call of this process registered.
func RegisterStanding(ask func(context.Context) Standing) {
	c := &standings{
		ask:           ask,
		orders:        prometheus.NewDesc("backstop_at_risk_orders", "Orders with money at risk by part (untold, compensated, stuck, mismatch) and currency.", []string{"part", "currency"}, nil),
		minor:         prometheus.NewDesc("backstop_at_risk_minor_units", "Money at risk in minor units, by part and currency.", []string{"part", "currency"}, nil),
		firing:        prometheus.NewDesc("backstop_alerts_firing", "Alerts that fire now.", nil, nil),
		raised:        prometheus.NewDesc("backstop_orders_raised", "Paid orders whose notification was raised within the window and that the merchant must get.", []string{"window"}, nil),
		notified:      prometheus.NewDesc("backstop_orders_notified", "Those of backstop_orders_raised that have been delivered by now.", []string{"window"}, nil),
		untried:       prometheus.NewDesc("backstop_notify_untried", "Orders of which no attempt was made to notify the merchant yet, up to 10,000.", nil, nil),
		untriedOldest: prometheus.NewDesc("backstop_notify_untried_oldest_seconds", "Age of the oldest of backstop_notify_untried.", nil, nil),
		clock:         prometheus.NewDesc("backstop_clock_skew_seconds", "How far this node's clock is ahead of another: database, redis.", []string{"of"}, nil),
	}
	Registry.Unregister(c)
	Registry.MustRegister(c)
}

// Describe is part of prometheus.Collector.
func (c *standings) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.orders, c.minor, c.firing, c.clock, c.raised, c.notified, c.untried, c.untriedOldest} {
		out <- d
	}
}

// Collect is part of prometheus.Collector.
func (c *standings) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	s := c.ask(ctx)
	for _, r := range s.AtRisk {
		out <- prometheus.MustNewConstMetric(c.orders, prometheus.GaugeValue, r.Orders, r.Part, r.Currency)
		out <- prometheus.MustNewConstMetric(c.minor, prometheus.GaugeValue, r.Minor, r.Part, r.Currency)
	}
	if s.FiringAlerts != nil {
		out <- prometheus.MustNewConstMetric(c.firing, prometheus.GaugeValue, *s.FiringAlerts)
	}
	if s.Orders != nil {
		out <- prometheus.MustNewConstMetric(c.raised, prometheus.GaugeValue, s.Orders.Raised, "1h")
		out <- prometheus.MustNewConstMetric(c.notified, prometheus.GaugeValue, s.Orders.Notified, "1h")
	}
	if s.Untried != nil {
		out <- prometheus.MustNewConstMetric(c.untried, prometheus.GaugeValue, s.Untried.Orders)
		out <- prometheus.MustNewConstMetric(c.untriedOldest, prometheus.GaugeValue, s.Untried.Oldest.Seconds())
	}
	for of, skew := range s.Skew {
		out <- prometheus.MustNewConstMetric(c.clock, prometheus.GaugeValue, skew.Seconds(), of)
	}
}
