// Package metric declares every metric that /metrics shows. Label sets are bounded: no label
// is an id, a URL or a merchant. A supplier is one that is declared.
package metric

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Registry is what /metrics serves.
var Registry = prometheus.NewRegistry()

var factory = promauto.With(Registry)

// seconds are buckets from half a millisecond to the longest timeout.
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// The figures.
var (
	Callbacks = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "backstop_callbacks_total", Help: "Supplier callbacks by outcome.",
	}, []string{"outcome"})
	SupplierCallbacks = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "backstop_supplier_callbacks_total", Help: "Callbacks of each declared supplier by outcome.",
	}, []string{"supplier", "outcome"})
	CallbackSeconds = factory.NewHistogram(prometheus.HistogramOpts{
		Name: "backstop_callback_seconds", Help: "Time from a callback's last byte to its answer.", Buckets: seconds,
	})
	Attempts = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "backstop_notify_attempts_total", Help: "Notification attempts by class of result.",
	}, []string{"class"})
	AttemptSeconds = factory.NewHistogram(prometheus.HistogramOpts{
		Name: "backstop_notify_attempt_seconds", Help: "Time that merchants take to answer.", Buckets: seconds,
	})
	FirstSeconds = factory.NewHistogram(prometheus.HistogramOpts{
		Name: "backstop_notify_first_attempt_seconds", Help: "Time from the payment's commit to the first attempt to notify its merchant.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 600, 1800, 3600},
	})
	Notifications = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "backstop_notifications_total", Help: "Notifications by result of an attempt: delivered, retry_wait, exhausted.",
	}, []string{"result"})
	InFlight = factory.NewGaugeVec(prometheus.GaugeOpts{
		Name: "backstop_notify_in_flight", Help: "Notification attempts running on this node by pool: quick, slow.",
	}, []string{"pool"})
	SlowMerchants = factory.NewGauge(prometheus.GaugeOpts{
		Name: "backstop_notify_slow_merchants", Help: "Merchants that this node notifies in the slow pool.",
	})
	Breakers = factory.NewGaugeVec(prometheus.GaugeOpts{
		Name: "backstop_breakers", Help: "Merchants whose breaker is not closed, by its state in this node's copy.",
	}, []string{"state"})
	BreakerChanges = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "backstop_breaker_changes_total", Help: "Changes of merchants' breakers by the new state.",
	}, []string{"to"})
	BatchItems = factory.NewHistogramVec(prometheus.HistogramOpts{
		Name: "backstop_commit_batch_items", Help: "Items of one transaction of group commit.",
		Buckets: []float64{1, 2, 4, 8, 16, 32, 64},
	}, []string{"batch"})
	BatchSeconds = factory.NewHistogramVec(prometheus.HistogramOpts{
		Name: "backstop_commit_batch_seconds", Help: "Duration of one transaction of group commit.", Buckets: seconds,
	}, []string{"batch"})
	BatchErrors = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "backstop_commit_batch_errors_total", Help: "Transactions of group commit that were rolled back or whose outcome is unknown.",
	}, []string{"batch"})
	OrdersMoved = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "backstop_orders_moved_total", Help: "Changes of an order's status by the new status.",
	}, []string{"status"})
	Exceptions = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "backstop_exceptions_total", Help: "Exceptions reported by kind.",
	}, []string{"kind"})
	ClockSteps = factory.NewCounter(prometheus.CounterOpts{
		Name: "backstop_clock_steps_total", Help: "How often this node's wall clock was set by more than 2 s.",
	})
	Statements = factory.NewCounter(prometheus.CounterOpts{
		Name: "backstop_db_statements_total", Help: "Statements sent to the database, with BEGIN and COMMIT.",
	})
	RoundTrips = factory.NewCounter(prometheus.CounterOpts{
		Name: "backstop_db_round_trips_total", Help: "Round trips to the database: statements that are sent together are one.",
	})
	Nudges = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "backstop_nudges_total", Help: "Nudges by result: sent, dropped (the database tick finds those).",
	}, []string{"result"})
	SupplierCalls = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "backstop_supplier_calls_total", Help: "Calls to suppliers by operation and class of result.",
	}, []string{"op", "class"})
	SupplierCallsMade = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "backstop_supplier_calls_made_total", Help: "Calls to each supplier by class of result.",
	}, []string{"supplier", "class"})
	SupplierCallSeconds = factory.NewHistogram(prometheus.HistogramOpts{
		Name: "backstop_supplier_call_seconds", Help: "Duration of calls to suppliers.", Buckets: seconds,
	})
	Alerts = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "backstop_alerts_total", Help: "Alerts opened by rule.",
	}, []string{"rule"})
	LogLinesDropped = factory.NewCounter(prometheus.CounterOpts{
		Name: "backstop_log_lines_dropped_total", Help: "Lines of the log that were dropped because it was not read in time.",
	})
	buildInfo = factory.NewGaugeVec(prometheus.GaugeOpts{
		Name: "backstop_build_info", Help: "What runs: 1, with version, commit and Go version as labels.",
	}, []string{"version", "commit", "go"})
	AlertMessages = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "backstop_alert_messages_total", Help: "Messages about alerts by result of a try: sent, retry, failed.",
	}, []string{"result"})
)

// Results of a nudge.
const (
	NudgeSent    = "sent"
	NudgeDropped = "dropped"
)

// Begin initialises a counter to 0 for each value of its label, so that it is exported before
// its first event.
func Begin[Value ~string](c *prometheus.CounterVec, values ...Value) {
	for _, v := range values {
		c.WithLabelValues(string(v))
	}
}

// SetBuild says which program runs.
func SetBuild(version, commit string) {
	buildInfo.Reset()
	buildInfo.WithLabelValues(version, commit, runtime.Version()).Set(1)
}

func init() {
	Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// ObserveBatch returns the hook for the transactions of group commit.
func ObserveBatch(name string) func(items int, took time.Duration, err error) {
	itemsOf, secondsOf, errorsOf := BatchItems.WithLabelValues(name), BatchSeconds.WithLabelValues(name), BatchErrors.WithLabelValues(name)
	return func(items int, took time.Duration, err error) {
		itemsOf.Observe(float64(items))
		secondsOf.Observe(took.Seconds())
		if err != nil {
			errorsOf.Inc()
		}
	}
}
