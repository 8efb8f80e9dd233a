package notify

import (
	"context"
	"slices"
	"sync"
	"time"

	"backstop/internal/db"
	"backstop/internal/merchant"

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

// load is what one attempt sends: a delivery, and those claimed with it that go in
// the same message.
type load struct {
	ticket *ticket
	claimed
	more []claimed
}

// loads joins what one claim took for the same digest. Each of them apart would be
// a message of its own, as gather finds only what nobody has claimed. The slots of
// those that join another are free again. Called with d.mu held.
func (d *Dispatcher) loads(batch []*ticket, got map[int64]claimed) []*load {
	type address struct {
		merchant          int64
		channel, endpoint string
	}
	digests := map[address]*load{}
	var all []*load
	for _, t := range batch {
		c, ok := got[t.id]
		if !ok {
			continue
		}
		l := &load{ticket: t, claimed: c}
		if d.gathers(t, c) {
			to := address{c.MerchantID, c.Channel, c.Endpoint}
			if first := digests[to]; first != nil {
				first.more = append(first.more, c)
				d.release(t)
				continue
			}
			digests[to] = l
		}
		all = append(all, l)
	}
	return all
}

// gathers says whether a delivery is for a digest, whichever of its addresses it
// goes to.
func (d *Dispatcher) gathers(t *ticket, c claimed) bool {
	m := d.o.Book().ByID(c.MerchantID)
	if c.Channel != Email || c.URL != "" || t.probe || m == nil {
		return false
	}
	_, usable := addresses(m, c.Channel, c.Endpoint, c.EventType)
	return len(usable) > 0 && !slices.ContainsFunc(usable, func(e *merchant.Endpoint) bool { return e.DigestMS == 0 })
}

// gather claims what else is due for the same address of the same merchant, to go
// with the delivery in one message. Whoever claims it at the same moment sends it
// apart, which is as good. A probe goes alone: if it fails, it costs one attempt.
func (d *Dispatcher) gather(t *ticket, c claimed, p *plan, more []claimed) []claimed {
	alone := len(p.gathers) == 0 || p.refused != nil || t.probe
	more, others := p.takes(more, alone)
	d.giveBack(others)
	if alone {
		return nil
	}
	for _, m := range more {
		p.gather(m)
	}
	ctx, cancel := context.WithTimeout(d.ctx, claimTimeout)
	defer cancel()
	now := d.o.DB.Now()
	lease := now + (d.o.Timeout + leaseMargin).Microseconds()
	due := d.o.DB.NewSelect().Table("deliveries").Column("id").
		Where("merchant_id = ? AND next_at <= ? AND channel = ? AND endpoint = ? AND url = '' AND status IN (?, ?) AND event_type IN (?)",
			c.MerchantID, now, c.Channel, c.Endpoint, Queued, RetryWait, bun.List(p.gathers)).
		OrderExpr("next_at").Limit(int64(digestMost - 1 - len(more)))
	var rows []claimed
	err := d.o.DB.Relaxed(ctx, func(ctx context.Context, q bun.IDB) error {
		return q.NewRaw("UPDATE deliveries SET status = ?, attempts = attempts + 1, lease_owner = ?, next_at = ?"+
			" WHERE id IN (?) AND next_at <= ? AND status IN (?, ?)"+claimedColumns,
			Sending, d.o.DB.Boot(), lease, due, now, Queued, RetryWait).Scan(ctx, &rows)
	})
	if err != nil {
		d.o.Log.Error("gather a digest", "error", db.Explain(err))
		return more // the others are sent apart
	}
	for _, r := range rows {
		p.gather(r)
	}
	return append(more, rows...)
}

// takes tells what may go in the plan's message from what may not.
func (p *plan) takes(all []claimed, alone bool) (some, others []claimed) {
	for _, c := range all {
		if !alone && slices.Contains(p.gathers, c.EventType) {
			some = append(some, c)
		} else {
			others = append(others, c)
		}
	}
	return some, others
}

func (p *plan) gather(c claimed) {
	p.msg.More = append(p.msg.More, Part{ID: PublicID(c.EventID), Type: c.EventType, Body: []byte(c.Body)})
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
