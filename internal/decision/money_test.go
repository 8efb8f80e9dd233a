package decision_test

import (
	"fmt"
	"slices"

	"backstop/internal/exception"
	"backstop/internal/order"
)

func (r *rules) move(to order.Status) {
	r.order.status = to
	r.order.version++
	r.history = append(r.history, to)
	r.notices = append(r.notices, "order."+string(to))
}

// message processes a supplier's message that a trade was paid: a callback, or an answer to a
// query.
func (r *rules) message(trade string, answer bool) {
	if !answer && r.received[trade] {
		return
	}
	r.received[trade] = r.received[trade] || !answer
	o := r.order
	switch {
	case r.held[trade] && !r.inSuspense(trade) && !r.paidBy(trade): // decided: nothing is opened again
	case trade == tradeL:
		if x := r.issue(exception.UnknownOrder, trade); x == nil || x.state != exception.Resolved || !r.paidBy(trade) {
			r.report(exception.UnknownOrder, trade)
		}
	case o.status == order.Paid && o.trade == trade:
	case trade == tradeC:
		r.report(exception.AmountMismatch, trade)
	case o.status.Open():
		r.pay(trade)
	case r.surplus[trade] && answer:
	case o.status == order.Paid:
		r.surplus[trade] = true
		r.report(exception.DuplicatePayment, trade)
	default:
		r.surplus[trade] = true
		r.report(exception.LatePayment, trade)
	}
}

func (r *rules) paidBy(trade string) bool {
	return r.order.status == order.Paid && r.order.trade == trade
}

func (r *rules) issue(kind, trade string) *issue {
	for _, x := range r.issues {
		if x.kind == kind && x.trade == trade {
			return x
		}
	}
	return nil
}

// inSuspense reports whether the money of a trade is in suspense now.
func (r *rules) inSuspense(trade string) bool {
	return slices.ContainsFunc(r.issues, func(x *issue) bool { return x.trade == trade && x.held })
}

// report opens an exception or counts it again. Its money is booked once.
func (r *rules) report(kind, trade string) {
	there := r.inSuspense(trade)
	if !r.held[trade] && !r.paidBy(trade) {
		r.held[trade], there = true, true
		r.entries = append(r.entries, fmt.Sprintf("held %s %d", trade, amountOf(trade)))
	}
	x := r.issue(kind, trade)
	if x == nil {
		r.issues = append(r.issues, &issue{kind: kind, trade: trade, state: exception.Opened, version: 1, held: there})
		return
	}
	if x.state == exception.Resolved {
		x.state, x.by = exception.Opened, 0
		x.version++
	} else if there && !x.held {
		x.version++
	}
	x.held = x.held || there
}

// pay pays the order, from suspense if the trade is held there.
func (r *rules) pay(trade string) {
	r.move(order.Paid)
	r.order.trade, r.order.amount = trade, amountOf(trade)
	r.entries = append(r.entries, fmt.Sprintf("paid %s %d", trade, amountOf(trade)))
	r.free(trade)
}

func (r *rules) free(trade string) {
	for _, x := range r.issues {
		if x.trade == trade {
			x.held = false
		}
	}
}
