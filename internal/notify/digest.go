package notify

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"backstop/internal/base/db"
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

// digest is what goes in one message: whatever is due at one moment for the same
// addresses of a merchant.
type digest struct {
	merchant          int64
	channel, endpoint string
	types             []string // of events that go to the same addresses
	ticket            *ticket
}

// digests finds the digests that tickets of a batch are for, due or not, and the
// tickets of those. Only merchants with a digest cost a query.
func (d *Dispatcher) digests(ctx context.Context, batch []*ticket) (all []digest, of map[*ticket]bool, err error) {
	tickets := map[int64]*ticket{}
	var ids []int64
	for _, t := range batch {
		// A probe goes alone: if it fails, it costs one attempt.
		if !t.probe && !d.o.LinkedOnly && hasDigest(d.o.Book().ByID(t.lane.merchant)) {
			tickets[t.id], ids = t, append(ids, t.id)
		}
	}
	if len(ids) == 0 {
		return nil, nil, nil
	}
	var rows []claimed
	err = d.o.DB.Read.NewRaw("SELECT id, merchant_id, event_type, channel, endpoint FROM deliveries"+
		" WHERE id IN (?) AND channel = ? AND url = '' ORDER BY id", bun.List(ids), Email).Scan(ctx, &rows)
	if err != nil {
		return nil, nil, err
	}
	of = map[*ticket]bool{}
	for _, c := range rows {
		m := d.o.Book().ByID(c.MerchantID)
		if m == nil || !m.Digests(c.Channel, c.Endpoint, c.EventType) {
			continue
		}
		of[tickets[c.ID]] = true
		known := func(g digest) bool {
			return g.merchant == c.MerchantID && g.endpoint == c.Endpoint && slices.Contains(g.types, c.EventType)
		}
		if !slices.ContainsFunc(all, known) {
			all = append(all, digest{c.MerchantID, c.Channel, c.Endpoint, alike(m, c), tickets[c.ID]})
		}
	}
	return all, of, nil
}

func hasDigest(m *merchant.Merchant) bool {
	return m != nil && slices.ContainsFunc(m.Endpoints, func(e merchant.Endpoint) bool { return e.DigestMS > 0 })
}

// alike are the types of events that go to the same addresses as the delivery: any of
// these takes them all.
func alike(m *merchant.Merchant, c claimed) []string {
	same, _ := addresses(m, c.Channel, c.Endpoint, c.EventType)
	types := []string{c.EventType}
	for _, event := range Types {
		if to, _ := addresses(m, c.Channel, c.Endpoint, event); event != c.EventType && slices.Equal(to, same) {
			types = append(types, event)
		}
	}
	return types
}

// claimDigest takes all that is due for a digest, or nothing. All of it is due at
// the same moment on every node, and each of two that took a part would send a
// message of its own. On PostgreSQL the second one waits at the first row and finds
// all of them claimed.
func (d *Dispatcher) claimDigest(ctx context.Context, g digest) (*load, error) {
	now := d.o.DB.Now()
	lease := now + (d.o.Timeout + leaseMargin).Microseconds()
	due := d.o.DB.NewSelect().Table("deliveries").Column("id").
		Where("merchant_id = ? AND next_at <= ? AND channel = ? AND endpoint = ? AND url = '' AND "+claimable+" AND event_type IN (?)",
			g.merchant, now, g.channel, g.endpoint, bun.List(g.types)).
		OrderExpr("next_at, id").Limit(digestMost)
	var rows []claimed
	err := d.o.DB.AsyncCommitTx(ctx, func(ctx context.Context, q db.Session) error {
		return q.NewRaw("UPDATE deliveries SET status = ?, attempts = attempts + 1, lease_owner = ?, next_at = ?"+
			" WHERE id IN (?) AND next_at <= ? AND "+claimable+claimedColumns,
			Sending, d.o.DB.Boot(), lease, d.o.DB.ForUpdate(due), now).Scan(ctx, &rows)
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b claimed) int { return cmp.Compare(a.ID, b.ID) })
	return &load{ticket: g.ticket, claimed: rows[0], more: rows[1:]}, nil
}

// parts are what goes in a message beside its first event.
func parts(more []claimed) []Part {
	all := make([]Part, len(more))
	for i, c := range more {
		all[i] = Part{ID: c.publicID(), Type: c.EventType, Body: []byte(c.Body)}
	}
	return all
}

// writeGathered commits what one message came to for the others in it. It told
// the breaker and the address's health once already.
func (d *Dispatcher) writeGathered(all []claimed, p plan, start, end int64, res Result) {
	var wg sync.WaitGroup
	for _, c := range all {
		o := d.judge(c, p, start, end, res)
		o.generation, o.endpoint = noGeneration, ""
		wg.Go(func() { d.write(o) })
	}
	wg.Wait()
}

// noGeneration is of no breaker: its results count for none.
const noGeneration = -1
