package app

import (
	"slices"

	"backstop/internal/alert"
	"backstop/internal/base/metric"
	"backstop/internal/breaker"
	"backstop/internal/call"
	"backstop/internal/callback"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/supplier"

	"github.com/prometheus/client_golang/prometheus"
)

// beginCounters initializes every counter to 0 for all its labels: a counter that first appears
// with its first event shows no increase, and an alert rule on the increase stays silent. The
// counters of group commit are initialized by their writers.
func beginCounters() {
	// Other kinds of exceptions are not opened by callbacks.
	byCallback := slices.DeleteFunc(slices.Clone(exception.Kinds), func(kind string) bool {
		return kind == exception.NotifyExhausted || kind == exception.SubscriptionExhausted || kind == exception.StuckPaying ||
			kind == exception.CompensationDead || kind == exception.StockShort || kind == exception.BooksDiffer
	})
	metric.Begin(metric.Callbacks, slices.Concat(callback.Refused, payment.Outcomes, byCallback)...)
	metric.Begin(metric.Attempts, notify.Classes...)
	metric.Begin(metric.Notifications, notify.Delivered, notify.RetryWait, notify.Exhausted)
	metric.Begin(metric.BreakerChanges, breaker.Closed, breaker.Open, breaker.HalfOpen)
	metric.Begin(metric.OrdersMoved, order.Statuses[1:]...) // new orders have the first status
	metric.Begin(metric.Exceptions, exception.Kinds...)
	metric.Begin(metric.Nudges, metric.NudgeSent, metric.NudgeDropped)
	for _, op := range call.Ops {
		metric.Begin(metric.SupplierCalls.MustCurryWith(prometheus.Labels{"op": string(op)}), supplier.Classes...)
	}
	metric.Begin(metric.Alerts, alert.Names...)
	metric.Begin(metric.AlertMessages, alert.Tries...)
}
