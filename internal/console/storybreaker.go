package console

import (
	"context"
	"fmt"

	"backstop/internal/breaker"
)

// addBreaker reads what the merchant's breaker did while the order's notifications
// were on their way. Ids grow with time, so that they bound the read.
func (b *Reader) addBreaker(ctx context.Context, s *Story) error {
	if len(s.Deliveries) == 0 {
		return nil
	}
	from, until := s.Deliveries[len(s.Deliveries)-1].ID, int64(0)
	for _, d := range s.Deliveries {
		if d.FinishedAt == nil {
			until = b.db.Now()
			break
		}
		until = max(until, *d.FinishedAt)
	}
	var rows []breaker.Change
	err := b.db.Read.NewSelect().Model(&rows).Where("bh.merchant_id = ?", s.Order.MerchantID).Where("bh.id > ?", from).
		OrderExpr("bh.id").Limit(storyRows).Scan(ctx)
	if err != nil {
		return fmt.Errorf("read what the breaker did: %w", err)
	}
	for i := range rows {
		if rows[i].At <= until {
			s.Items = append(s.Items, Item{At: rows[i].At, Phase: DeliveryPhase, Breaker: &rows[i]})
		}
	}
	return nil
}

// breakerSpans are the times in which the breaker held notifications back; the
// last one may go on.
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
