package notify

import (
	"context"
	"sync"
	"time"

	"backstop/internal/db"

	"github.com/uptrace/bun"
)

// digestMost bounds the events of one message; what is more makes another one.
const digestMost = 100

// nextDigest is the end of the span of time that now lies in. Spans begin at
// whole multiples of their length, so that all nodes gather alike.
func nextDigest(now int64, every time.Duration) int64 {
	us := every.Microseconds()
	return (now/us + 1) * us
}

// gather claims what else is due for the same address of the same merchant, to go
// with the delivery in one message. Whoever claims it at the same moment sends it
// apart, which is as good. A probe goes alone: if it fails, it costs one attempt.
func (d *Dispatcher) gather(t *ticket, c claimed, p *plan) []claimed {
	if len(p.gathers) == 0 || p.refused != nil || t.probe {
		return nil
	}
	ctx, cancel := context.WithTimeout(d.ctx, claimTimeout)
	defer cancel()
	now := d.o.DB.Now()
	lease := now + (d.o.Timeout + leaseMargin).Microseconds()
	due := d.o.DB.NewSelect().Table("deliveries").Column("id").
		Where("merchant_id = ? AND next_at <= ? AND channel = ? AND endpoint = ? AND url = '' AND status IN (?, ?) AND event_type IN (?)",
			c.MerchantID, now, c.Channel, c.Endpoint, Queued, RetryWait, bun.List(p.gathers)).
		OrderExpr("next_at").Limit(digestMost - 1)
	var rows []claimed
	err := d.o.DB.Relaxed(ctx, func(ctx context.Context, q bun.IDB) error {
		return q.NewRaw("UPDATE deliveries SET status = ?, attempts = attempts + 1, lease_owner = ?, next_at = ?"+
			" WHERE id IN (?) AND next_at <= ? AND status IN (?, ?)"+claimedColumns,
			Sending, d.o.DB.Boot(), lease, due, now, Queued, RetryWait).Scan(ctx, &rows)
	})
	if err != nil {
		d.o.Log.Error("gather a digest", "error", db.Explain(err))
		return nil // they are sent apart
	}
	for _, r := range rows {
		p.msg.More = append(p.msg.More, Part{ID: PublicID(r.EventID), Type: r.EventType, Body: []byte(r.Body)})
	}
	return rows
}

// writeGathered commits what one message came to for the others in it. It told
// the breaker and the address's health once already.
func (d *Dispatcher) writeGathered(all []claimed, p plan, start int64, res Result) {
	var wg sync.WaitGroup
	for _, c := range all {
		o := d.judge(c, p, start, res)
		o.generation, o.endpoint = noGeneration, ""
		wg.Go(func() { d.write(o) })
	}
	wg.Wait()
}

// noGeneration is of no breaker: its results count for none.
const noGeneration = -1
