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

// beginCounters shows every counter with 0 for all that it can count: one that appears
// with its first event did not grow by it, and the rule that waits for that stays
// silent. Those of group commit begin with their writers.
func beginCounters() {
	// What else is opened on the exception desk does not come by a callback.
	byCallback := slices.DeleteFunc(slices.Clone(exception.Kinds), func(kind string) bool {
		return kind == exception.NotifyExhausted || kind == exception.SubscriptionExhausted || kind == exception.StuckPaying || kind == exception.CompensationDead || kind == exception.StockShort || kind == exception.BooksDiffer
	})
	metric.Begin(metric.Callbacks, slices.Concat(callback.Refused, payment.Outcomes, byCallback)...)
	metric.Begin(metric.Attempts, notify.Classes...)
	metric.Begin(metric.Notifications, notify.Delivered, notify.RetryWait, notify.Exhausted)
	metric.Begin(metric.BreakerChanges, breaker.Closed, breaker.Open, breaker.HalfOpen)
	metric.Begin(metric.OrdersMoved, order.Statuses[1:]...) // the first is that of a new order
	metric.Begin(metric.Exceptions, exception.Kinds...)
	metric.Begin(metric.Nudges, metric.NudgeSent, metric.NudgeDropped)
	for _, op := range call.Ops {
		metric.Begin(metric.SupplierCalls.MustCurryWith(prometheus.Labels{"op": string(op)}), supplier.Classes...)
	}
	metric.Begin(metric.Alerts, alert.Names...)
	metric.Begin(metric.AlertMessages, alert.Tries...)
}
