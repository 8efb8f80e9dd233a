package console

import (
	"cmp"
	"slices"

	"backstop/internal/breaker"
	"backstop/internal/notify"
)

// SpanKind is what happened during a span.
type SpanKind string

// Kinds of spans, in the order in which a payment passes them.
const (
	SpanVerify  SpanKind = "verify"  // the callback was received and verified
	SpanCommit  SpanKind = "commit"  // from verified to committed
	SpanQueue   SpanKind = "queue"   // from created to the start of the first attempt
	SpanAttempt SpanKind = "attempt" // one attempt to notify the merchant
	SpanWait    SpanKind = "wait"    // the schedule's wait before the next attempt
	SpanBreaker SpanKind = "breaker" // the merchant's breaker was open or half open
)

// Span is a measured part of a history, in Unix µs.
type Span struct {
	Kind     SpanKind
	From, To int64
	Number   int // number of the callback or attempt
	OK       bool
	Planned  bool // it ends in the future
}

// Idle reports whether the span is a wait.
func (s Span) Idle() bool { return s.Kind == SpanQueue || s.Kind == SpanWait || s.Kind == SpanBreaker }

// Spans returns the measured parts of the history by start time. A span that was not measured
// has length 0.
func (s *Story) Spans() (spans []Span) {
	written := map[int64]int64{} // by callback
	for _, i := range s.Items {
		if i.Move != nil && i.Move.SourceID != 0 {
			written[i.Move.SourceID] = i.Move.CreatedAt
		}
	}
	callbacks := 0
	for _, i := range s.Items {
		c := i.Callback
		if c == nil {
			continue
		}
		callbacks++
		verified := c.ReceivedAt
		for _, step := range c.Steps {
			verified += step.TookUS
		}
		spans = append(spans, Span{Kind: SpanVerify, From: c.ReceivedAt, To: verified, Number: callbacks, OK: true})
		if at := written[c.ID]; at > verified {
			spans = append(spans, Span{Kind: SpanCommit, From: verified, To: at, Number: callbacks, OK: true})
		}
	}
	for i := range s.Deliveries {
		spans = append(spans, s.deliverySpans(&s.Deliveries[i])...)
	}
	spans = append(spans, s.breakerSpans()...)
	slices.SortStableFunc(spans, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	return spans
}

// deliverySpans returns the spans of one delivery, from its creation to its end or next
// attempt.
func (s *Story) deliverySpans(d *notify.Delivery) (spans []Span) {
	idle := Span{Kind: SpanQueue, From: d.CreatedAt, Number: 1, OK: true}
	for _, i := range s.Items {
		a := i.Attempt
		if a == nil || a.DeliveryID != d.ID {
			continue
		}
		if idle.To = a.StartedAt; idle.To > idle.From {
			spans = append(spans, idle)
		}
		end := a.StartedAt + a.TookUS
		spans = append(spans, Span{Kind: SpanAttempt, From: a.StartedAt, To: end, Number: int(a.Number), OK: a.Class == notify.OK})
		idle = Span{Kind: SpanWait, From: end, Number: int(a.Number) + 1, OK: true}
	}
	// While a breaker is open the schedule does not apply.
	if d.NextAt != nil && d.Status != notify.Sending && *d.NextAt > idle.From && s.Why.Breaker == nil {
		idle.To, idle.Planned = *d.NextAt, s.Why.Rule != WhyOverdue
		spans = append(spans, idle)
	}
	return spans
}

// breakerSpans returns the times when the breaker was not closed; the last one may still be in
// progress.
func (s *Story) breakerSpans() (spans []Span) {
	var open *Span
	for _, i := range s.Items {
		switch {
		case i.Breaker == nil:
		case i.Breaker.To == breaker.Closed && open != nil:
			open.To = i.At
			spans = append(spans, *open)
			open = nil
		case i.Breaker.To != breaker.Closed && open == nil:
			open = &Span{Kind: SpanBreaker, From: i.At, Number: len(spans) + 1}
		}
	}
	if open != nil && s.Why.Rule == WhyBreaker && s.Why.At > open.From {
		open.To, open.Planned = s.Why.At, true
		spans = append(spans, *open)
	}
	return spans
}
