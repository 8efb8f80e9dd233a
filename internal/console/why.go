package console

import (
	"slices"
	"time"

	"backstop/internal/compensation"
	"backstop/internal/notify"
	"backstop/internal/order"
)

// Rule names the one sentence that says where an order stands and why.
type Rule string

// Rules, from what needs a person to what is done.
const (
	WhyException Rule = "exception" // an exception waits for a decision
	WhyExhausted Rule = "exhausted" // the merchant was not told, and all attempts are used up
	WhyOverdue   Rule = "overdue"   // something should have happened by itself and has not
	WhyRetrying  Rule = "retrying"  // the merchant did not take the notification yet
	WhySending   Rule = "sending"   // the merchant is being told now
	WhyPending   Rule = "pending"   // nobody has paid yet
	WhyPaying    Rule = "paying"    // a payment was started
	WhyClosing   Rule = "closing"   // closes unless money comes
	WhyNoAddress Rule = "no_address"
	WhyDone      Rule = "done"
)

// overdueAfter is how late something may be before a person should look: ticks
// come each second, and a merchant's line may be full for a while.
const overdueAfter = 30 * time.Second

// Why is that sentence with what it says.
type Why struct {
	Rule      Rule
	Exception *compensation.Item
	Delivery  *notify.Delivery
	At        int64 // when it goes on by itself, or should have; 0 = never
	Attempts  int   // that the merchant's schedule allows in all
	LastAt    int64 // about when the last attempt comes if all fail
}

// Plan is what will happen by itself.
type Plan struct {
	Kind   PlanKind
	Number int // of the attempt
	Of     int // attempts that the schedule allows
}

// PlanKind is a kind of plan.
type PlanKind string

// Kinds of plans.
const (
	PlanAttempt PlanKind = "attempt"
	PlanExpire  PlanKind = "expire"  // the order's time runs out
	PlanClose   PlanKind = "close"   // closing ends
	PlanReclaim PlanKind = "reclaim" // an attempt that never ends is taken over
)

// explain computes the plans and the sentence from the same rows and the same
// schedule by which the workers go on, so that they cannot disagree.
func (b *Book) explain(s *Story) {
	now := b.db.Now()
	s.Why = b.whyOrder(s, now)
	for i := range s.Deliveries {
		d := &s.Deliveries[i]
		if d.NextAt == nil {
			continue
		}
		p := Plan{Kind: PlanAttempt, Number: int(d.Attempts) + 1, Of: b.attemptsOf(d)}
		if d.Status == notify.Sending {
			p.Kind, p.Number = PlanReclaim, int(d.Attempts)
		}
		s.Items = append(s.Items, Item{At: *d.NextAt, Phase: PlanPhase, Plan: &p})
	}
	if next := s.Order.NextAt; next != nil {
		kind := PlanExpire
		if s.Order.Status == order.Closing {
			kind = PlanClose
		}
		s.Items = append(s.Items, Item{At: *next, Phase: PlanPhase, Plan: &Plan{Kind: kind}})
	}
	byTime(s.Items)
}

func (b *Book) scheduleOf(d *notify.Delivery) notify.Schedule {
	return notify.ScheduleOf(b.settings.Merchants().ByID(d.MerchantID))
}

// attemptsOf is how many attempts the notification gets in all.
func (b *Book) attemptsOf(d *notify.Delivery) int {
	return int(d.ScheduleFrom) + b.scheduleOf(d).Attempts()
}

func (b *Book) whyOrder(s *Story, now int64) Why {
	for i := range s.Exceptions {
		if x := &s.Exceptions[i]; slices.Contains(stillOpen, x.State) && x.Kind != compensation.NotifyExhausted {
			return Why{Rule: WhyException, Exception: x}
		}
	}
	for i := range s.Deliveries {
		if s.Deliveries[i].House {
			continue // the merchant's order does not wait for the house
		}
		if w := b.whyDelivery(&s.Deliveries[i], now); w.Rule != "" {
			return w
		}
	}
	rule := map[order.Status]Rule{order.Pending: WhyPending, order.Paying: WhyPaying, order.Closing: WhyClosing}[s.Order.Status]
	switch {
	case rule == "" && s.Told == "none":
		return Why{Rule: WhyNoAddress}
	case rule == "":
		return Why{Rule: WhyDone}
	case s.Order.NextAt == nil:
		return Why{Rule: rule}
	case now-*s.Order.NextAt > overdueAfter.Microseconds():
		return Why{Rule: WhyOverdue, At: *s.Order.NextAt}
	}
	return Why{Rule: rule, At: *s.Order.NextAt}
}

// whyDelivery says what is open with a notification; nothing where it is over and
// the merchant knows.
func (b *Book) whyDelivery(d *notify.Delivery, now int64) Why {
	w := Why{Delivery: d, Attempts: b.attemptsOf(d)}
	switch {
	case d.Status == notify.Exhausted:
		w.Rule = WhyExhausted
		return w
	case d.NextAt == nil:
		return Why{}
	}
	w.At, w.Rule = *d.NextAt, WhySending
	if now-w.At > overdueAfter.Microseconds() {
		w.Rule = WhyOverdue
		return w
	}
	if d.Status == notify.RetryWait {
		w.Rule, w.LastAt = WhyRetrying, w.At
		for n := int(d.Attempts-d.ScheduleFrom) + 1; ; n++ {
			wait, more := b.scheduleOf(d).Wait(n)
			if !more {
				break
			}
			w.LastAt += wait.Microseconds()
		}
	}
	return w
}

// stillOpen are the states in which an exception waits for its end.
var stillOpen = []string{"open", "assigned", "proposed", "approved", "executing"}
