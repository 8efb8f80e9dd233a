package console

import (
	"backstop/internal/notify"
	"backstop/internal/order"
)

// Plan is something that will happen automatically.
type Plan struct {
	Kind   PlanKind
	Number int // of the attempt
	Of     int // total attempts in the schedule
}

// PlanKind is a kind of Plan.
type PlanKind string

// Kinds of plans.
const (
	PlanAttempt PlanKind = "attempt"
	PlanLast    PlanKind = "last"    // approximate time of the last attempt, if all fail
	PlanExpire  PlanKind = "expire"  // the order expires
	PlanClose   PlanKind = "close"   // closing ends
	PlanAsk     PlanKind = "ask"     // the supplier is queried again
	PlanProbe   PlanKind = "probe"   // the breaker lets one notification through as a probe
	PlanReclaim PlanKind = "reclaim" // an unfinished attempt is taken over
)

// plans reads the order's future from the rows that determine it.
func (b *Reader) plans(s *Story) (items []Item) {
	add := func(at int64, p Plan) {
		items = append(items, Item{At: at, Phase: PlanPhase, Plan: &p})
	}
	for i := range s.Deliveries {
		d := &s.Deliveries[i]
		due := d.Due()
		if due == nil {
			continue
		}
		if d.Status == notify.Sending {
			add(*due, Plan{Kind: PlanReclaim, Number: int(d.Attempts)})
			continue
		}
		if b.isParked(d.Recipient()) || b.faultOf(d, b.db.Now()) != "" {
			continue
		}
		next, of := d.Attempts+1, b.attemptsOf(d)
		add(*due, Plan{Kind: PlanAttempt, Number: int(next), Of: of})
		if last := b.scheduleOf(d).LastAt(*due, next, d.ScheduleFrom); last > *due {
			add(last, Plan{Kind: PlanLast, Number: of, Of: of})
		}
	}
	if s.Why.Rule == WhyBreaker && s.Why.At > 0 {
		add(s.Why.At, Plan{Kind: PlanProbe})
	}
	if next := s.Order.NextAt; next != nil && s.Order.Status.Open() {
		kind := PlanExpire
		switch {
		case s.Asking != nil && *next != s.Order.ExpiresAt:
			kind = PlanAsk
			if s.Order.Status == order.Paying {
				add(s.Order.ExpiresAt, Plan{Kind: PlanExpire})
			}
		case s.Order.Status == order.Closing:
			kind = PlanClose
		}
		add(*next, Plan{Kind: kind})
	}
	byTime(items)
	return items
}
