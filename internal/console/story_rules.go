package console

import (
	"fmt"
	"time"

	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
)

// Rule identifies the sentence that explains the state of an order.
type Rule string

// Rules, from what needs an operator to what is done.
const (
	WhyException Rule = "exception" // an exception is open
	WhyDead      Rule = "dead"      // a compensation ran out of tries
	WhyExhausted Rule = "exhausted" // the merchant was not notified, and all attempts are used up
	WhyOverdue   Rule = "overdue"   // something should have happened automatically and did not
	WhyDisabled  Rule = "disabled"  // the merchant is disabled: attempts fail until it is enabled
	WhyNoURL     Rule = "no_url"    // the merchant has no usable endpoint: attempts fail likewise
	WhyOurFault  Rule = "our_fault" // no node can send it, by a fault of ours: no attempt is counted
	WhyBreaker   Rule = "breaker"   // parked: the merchant's breaker is not closed
	WhyByHand    Rule = "by_hand"   // parked: an operator opened the breaker
	WhyRetrying  Rule = "retrying"  // the merchant has not accepted the notification yet
	WhyQueued    Rule = "queued"    // the first attempt has not begun
	WhySending   Rule = "sending"   // the merchant is being notified now
	WhyPending   Rule = "pending"   // no payment was started
	WhyPaying    Rule = "paying"    // a payment was started
	WhyClosing   Rule = "closing"   // closes unless money comes
	WhyNoAddress Rule = "no_address"
	// For orders whose supplier can be queried.
	WhyAsking        Rule = "asking"         // the supplier is queried again
	WhyUnknownAnswer Rule = "unknown_answer" // the last answer was inconclusive
	WhySupplierDown  Rule = "supplier_down"  // the supplier's breaker is open, so it is not queried
	WhyPastKept      Rule = "past_kept"      // over, and its notifications are past their retention
	WhyDone          Rule = "done"
)

// Rules lists all rules.
var Rules = []Rule{
	WhyException, WhyDead, WhyExhausted, WhyOverdue, WhyDisabled, WhyNoURL, WhyOurFault, WhyBreaker, WhyByHand, WhyRetrying, WhyQueued,
	WhySending,
	WhyPending, WhyPaying, WhyClosing, WhyAsking, WhyUnknownAnswer, WhySupplierDown, WhyNoAddress, WhyPastKept, WhyDone,
}

// overdueAfter is how late something may be before an operator should look: ticks come every
// second, and a merchant's lane may be full for a while.
const overdueAfter = 30 * time.Second

// Why is the explanation with its arguments.
type Why struct {
	Rule      Rule
	Exception *exception.Item
	Proposal  *Decision // about the exception, waiting for a second person; nil = none
	Delivery  *notify.Delivery
	At        int64 // when it continues automatically, or should have; 0 = never
	Attempts  int   // total attempts in the merchant's schedule
	LastAt    int64 // approximate time of the last attempt, if all fail
	Fault     notify.Class
	Breaker   *breaker.Row // the merchant's; for WhySupplierDown, the supplier's
	Supplier  string       // code of the queried supplier
	Dead      *compensation.Item
	// Fired is the rule in terms of the configuration; "" = none.
	Fired string
	// Evidence lists the events that prove it, as indexes into Items.
	Evidence []int
}

// explain computes the explanation and the plans from the same rows and schedule that the
// workers use, so that they cannot disagree.
func (b *Reader) explain(s *Story) {
	byTime(s.Items)
	s.Why = b.whyOrder(s, b.db.Now())
	s.Why.Evidence = evidenceOf(s)
	s.Items = append(s.Items, b.plans(s)...)
}

func (b *Reader) scheduleOf(d *notify.Delivery) notify.Schedule {
	return notify.ScheduleOf(b.settings.Merchants().ByID(d.RecipientID))
}

// attemptsOf returns the total number of attempts for the notification.
func (b *Reader) attemptsOf(d *notify.Delivery) int {
	return int(d.ScheduleFrom) + b.scheduleOf(d).Attempts()
}

func (b *Reader) whyOrder(s *Story, now int64) Why {
	// Rerunning is of no use once the order is over.
	dead := s.Dead != nil && (s.Order.Status.Open() || s.Dead.Kind != compensation.Rerun)
	for i := range s.Exceptions {
		if x := &s.Exceptions[i]; x.State.Open() && x.Kind != exception.NotifyExhausted && (x.Kind != exception.CompensationDead || !dead) {
			return Why{Rule: WhyException, Exception: x, Proposal: s.waitingAbout(x), Fired: firedBy[x.Kind]}
		}
	}
	if dead {
		return Why{Rule: WhyDead, Dead: s.Dead, Fired: "BACKSTOP_COMPENSATE_STEPS"}
	}
	for i := range s.Deliveries {
		if s.Deliveries[i].ToSubscriber {
			continue // the merchant's order does not wait for subscribers
		}
		if w := b.whyDelivery(&s.Deliveries[i], now); w.Rule != "" {
			return w
		}
	}
	w := Why{Rule: WhyDone}
	switch s.Order.Status {
	case order.Pending:
		w.Rule, w.Fired = WhyPending, "expires_at"
	case order.Paying:
		w.Rule, w.Fired = WhyPaying, "expires_at"
	case order.Closing:
		w.Rule, w.Fired = WhyClosing, "BACKSTOP_CLOSING_GRACE"
	default:
		switch {
		case len(s.Deliveries) == 0 && s.Order.ID < s.NotifiedSince:
			w.Rule, w.Fired = WhyPastKept, "BACKSTOP_RETENTION_NOTIFICATIONS"
		case s.NotifyStatus == "none":
			w.Rule = WhyNoAddress
		}
		return w
	}
	if s.Order.NextAt == nil {
		return w
	}
	w.At = *s.Order.NextAt
	if s.Order.CloseTries > 0 { // closing failed and is being retried
		w.At = min(w.At, s.Order.ExpiresAt)
	}
	if s.Asking != nil {
		return s.Asking.why(w, now)
	}
	if late(now, w.At) {
		w.Rule = WhyOverdue
	}
	return w
}

// why explains an order whose supplier is queried; w.At is when that is due.
func (a *Asking) why(w Why, now int64) Why {
	w.Fired, w.Supplier = "BACKSTOP_QUERY_STEPS", a.Supplier
	if w.Rule == WhyClosing {
		w.Fired = "BACKSTOP_CLOSE_STEPS"
	}
	switch {
	case a.Breaker.Tripped():
		w.Rule, w.Fired, w.Breaker = WhySupplierDown, fmt.Sprintf("breaker: %s, %d", a.Breaker.Cause, a.Breaker.Failures), a.Breaker
		w.At = max(w.At, a.Breaker.OpenUntil, a.Breaker.ProbeUntil)
	case late(now, w.At):
		w.Rule = WhyOverdue
	case a.Last != nil && a.Last.Status == string(supplier.AnswerUnknown):
		w.Rule = WhyUnknownAnswer
	default:
		w.Rule = WhyAsking
	}
	return w
}

func late(now, at int64) bool { return now-at > overdueAfter.Microseconds() }

// firedBy are the checks behind exceptions, as the core performs them.
var firedBy = map[string]string{
	exception.AmountMismatch:   "callback.amount ≠ order.amount",
	exception.CurrencyMismatch: "callback.currency ≠ order.currency",
	exception.AccountMismatch:  "callback.account ≠ supplier.account",
	exception.LatePayment:      "order.status ∈ {closed, failed}",
	exception.DuplicatePayment: "order.status = paid",
}

// whyDelivery explains what is open about a delivery; the zero Why = nothing.
func (b *Reader) whyDelivery(d *notify.Delivery, now int64) Why {
	schedule := b.scheduleOf(d)
	w := Why{Delivery: d, Attempts: b.attemptsOf(d), Fired: "notify.schedule = " + schedule.String()}
	switch {
	case d.Status == notify.Exhausted:
		w.Rule = WhyExhausted
		w.Fired += fmt.Sprintf("; attempts = %d", w.Attempts)
		return w
	case d.Due() == nil:
		return Why{}
	}
	w.At = *d.Due()
	if d.Status == notify.Sending {
		w.LastAt = w.At
	} else {
		w.LastAt = schedule.LastAt(w.At, d.Attempts+1, d.ScheduleFrom)
	}
	w.Fault = b.faultOf(d, now)
	m := b.settings.Merchants().ByID(d.RecipientID)
	if r := b.breakers.Of(d.Recipient()); r.Tripped() && d.Status != notify.Sending && b.isParked(d.Recipient()) {
		return b.whyParked(w, r, now)
	}
	if w.Fault != "" {
		// When it continues does not depend on anything stored.
		w.Rule, w.Fired, w.At, w.LastAt = WhyOurFault, "last_class = "+string(w.Fault), 0, 0
		return w
	}
	switch {
	case late(now, w.At):
		w.Rule, w.Fired = WhyOverdue, "next_at"
	case m != nil && m.Disabled:
		w.Rule, w.Fired = WhyDisabled, "merchant.disabled"
	case m != nil && !notify.Reachable(m, d):
		w.Rule, w.Fired = WhyNoURL, "notify.urls, notify.endpoints"
	case d.Status == notify.Queued:
		w.Rule = WhyQueued
	case d.Status == notify.Sending:
		w.Rule, w.Fired = WhySending, "notify.timeout"
	default:
		w.Rule = WhyRetrying
		if wait, ok := schedule.After(d.Attempts, d.ScheduleFrom); ok && d.Attempts > d.ScheduleFrom {
			w.Fired += fmt.Sprintf("; wait %d = %s", d.Attempts-d.ScheduleFrom, wait)
		}
	}
	return w
}

// faultOf returns the fault of ours for which a due delivery waits; "" = none.
func (b *Reader) faultOf(d *notify.Delivery, now int64) notify.Class {
	if d.Status == notify.Sending || d.NextAt == nil || *d.NextAt > now {
		return ""
	}
	return notify.FaultOf(b.settings.Merchants().ByID(d.RecipientID), d)
}

// whyParked explains why a delivery is parked. A probe waits for a node to take it, but not for
// long.
func (b *Reader) whyParked(w Why, r *breaker.Row, now int64) Why {
	w.Breaker, w.LastAt = r, 0
	w.Rule, w.Fired, w.At = WhyBreaker, fmt.Sprintf("breaker: %s, %d", r.Cause, r.Failures), max(r.OpenUntil, r.ProbeUntil)
	switch {
	case r.ByHand:
		w.Rule, w.Fired, w.At = WhyByHand, "breaker: "+r.Cause, 0
	case w.At > 0 && late(now, w.At):
		w.Rule = WhyOverdue
	}
	return w
}

// evidenceOf finds the events that prove the explanation.
func evidenceOf(s *Story) (at []int) {
	w := &s.Why
	for i, item := range s.Items {
		proves := false
		switch {
		case w.Exception != nil:
			proves = item.Exception == w.Exception ||
				item.Callback != nil && item.Callback.Outcome == w.Exception.Kind &&
					(item.Callback.TradeNo == w.Exception.Subject || w.Exception.Kind == exception.DisputeOpened)
		case w.Dead != nil:
			proves = item.Exception != nil && item.Exception.Kind == exception.CompensationDead && item.Exception.State.Open()
		case w.Breaker != nil && item.Breaker != nil:
			proves = item.Breaker.Generation <= w.Breaker.Generation
		case w.Delivery != nil && item.Attempt != nil:
			proves = item.Attempt.DeliveryID == w.Delivery.ID && item.Attempt.Class != notify.OK &&
				item.Attempt.Number > w.Delivery.ScheduleFrom
		case w.Delivery != nil && item.Queued != nil:
			proves = item.Queued.ID == w.Delivery.ID && w.Delivery.Attempts == 0
		case w.Rule == WhyExhausted && item.Exception != nil:
			proves = item.Exception.Subject == w.Delivery.PublicID()
		case w.Supplier != "" && item.Call != nil:
			proves = item.Call.Op != suppliercall.Pay
		case w.Delivery == nil && item.Move != nil:
			proves = item.Move.Version == s.Order.Version
		}
		if w.Rule == WhyDone {
			proves = item.Attempt != nil && item.Attempt.Class == notify.OK
		}
		if proves {
			at = append(at, i)
		}
	}
	return at[max(0, len(at)-mostEvidence):]
}

// mostEvidence bounds the list: the newest events suffice.
const mostEvidence = 5
