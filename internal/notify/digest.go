package notify

import (
	"cmp"
	"context"
	"slices"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/work"
	"backstop/internal/merchant"

	"github.com/uptrace/bun"
)

// maxDigest bounds the events of one message; more events make another message.
const maxDigest = 100

// nextDigest returns the end of the current period. Periods begin at whole multiples of their
// length, so that they are the same on all nodes.
func nextDigest(now int64, every time.Duration) int64 {
	us := every.Microseconds()
	return (now/us + 1) * us
}

// digest is one message for everything due at one time for the same endpoints of a recipient.
type digest struct {
	recipientID       int64
	channel, endpoint string
	types             []string // of events for the same endpoints
	slot              work.Slot
}

// digests returns the digests that a batch's slots belong to, due or not, and the ids of their
// deliveries. Only recipients with a digest cost a query.
func (s *source) digests(ctx context.Context, slots []work.Slot) (all []digest, gathered map[int64]bool, err error) {
	of := map[int64]work.Slot{}
	var ids []int64
	for _, x := range slots {
		// A probe is sent alone: if it fails, it costs one attempt.
		if !x.Probe && !s.o.LinkedOnly && hasDigest(s.o.Directory().ByID(x.Lane)) {
			of[x.ID], ids = x, append(ids, x.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil, nil
	}
	var found []claimed
	err = s.o.DB.Read.NewRaw("SELECT id, recipient_id, event_type, channel, endpoint FROM deliveries"+
		" WHERE id IN (?) AND channel = ? AND url = '' ORDER BY id", bun.List(ids), Email).Scan(ctx, &found)
	if err != nil {
		return nil, nil, err
	}
	gathered = map[int64]bool{}
	for _, c := range found {
		m := s.o.Directory().ByID(c.RecipientID)
		if m == nil || !m.Digests(c.Channel, c.Endpoint, c.EventType) {
			continue
		}
		gathered[c.ID] = true
		known := func(g digest) bool {
			return g.recipientID == c.RecipientID && g.endpoint == c.Endpoint && slices.Contains(g.types, c.EventType)
		}
		if !slices.ContainsFunc(all, known) {
			all = append(all, digest{c.RecipientID, c.Channel, c.Endpoint, sameEndpoints(m, c), of[c.ID]})
		}
	}
	return all, gathered, nil
}

func hasDigest(m *merchant.Merchant) bool {
	return m != nil && slices.ContainsFunc(m.Endpoints, func(e merchant.Endpoint) bool { return e.DigestMS > 0 })
}

// sameEndpoints returns the types of events that go to the same endpoints as the delivery.
func sameEndpoints(m *merchant.Merchant, c claimed) []string {
	same, _ := endpointsFor(m, c.Channel, c.Endpoint, c.EventType)
	types := []string{c.EventType}
	for _, event := range Types {
		if to, _ := endpointsFor(m, c.Channel, c.Endpoint, event); event != c.EventType && slices.Equal(to, same) {
			types = append(types, event)
		}
	}
	return types
}

// claimDigest claims everything due for a digest, or nothing. Everything is due at the same
// time on every node; if two nodes claimed a part each, they would send two messages. On
// PostgreSQL the second one waits at the first row and finds all of them claimed.
func (s *source) claimDigest(ctx context.Context, g digest, l work.Lease) (*load, error) {
	now := s.o.DB.Now()
	due := s.o.DB.NewSelect().Table("deliveries").Column("id").
		Where("recipient_id = ? AND next_at <= ? AND channel = ? AND endpoint = ? AND url = '' AND "+claimable+" AND event_type IN (?)",
			g.recipientID, now, g.channel, g.endpoint, bun.List(g.types)).
		OrderExpr("next_at, id").Limit(maxDigest)
	var got []claimed
	err := s.o.DB.AsyncCommitTx(ctx, func(ctx context.Context, q db.Session) error {
		return q.NewRaw("UPDATE deliveries SET status = ?, attempts = attempts + 1, lease_owner = ?, next_at = ?"+
			" WHERE id IN (?) AND next_at <= ? AND "+claimable+claimedColumns,
			Sending, l.Owner, l.Until, s.o.DB.ForUpdate(due), now).Scan(ctx, &got)
	})
	if err != nil || len(got) == 0 {
		return nil, err
	}
	slices.SortFunc(got, func(a, b claimed) int { return cmp.Compare(a.ID, b.ID) })
	return &load{got[0], got[1:]}, nil
}

// parts returns the events of a message after the first.
func parts(more []claimed) []Part {
	all := make([]Part, len(more))
	for i, c := range more {
		all[i] = Part{ID: c.PublicID(), Type: c.EventType, Body: []byte(c.Body)}
	}
	return all
}

// noGeneration marks results that no breaker counts.
const noGeneration = -1
