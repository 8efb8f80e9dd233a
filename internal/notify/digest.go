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

// maxDigest bounds the events of one message; what is more makes another one.
const maxDigest = 100

// nextDigest is the end of the span of time that now lies in. Spans begin at
// whole multiples of their length, so that all nodes gather alike.
func nextDigest(now int64, every time.Duration) int64 {
	us := every.Microseconds()
	return (now/us + 1) * us
}

// digest is what goes in one message: whatever is due at one moment for the same
// addresses of a merchant.
type digest struct {
	merchant          int64
	channel, endpoint string
	types             []string // of events that go to the same addresses
	slot              work.Slot
}

// digests finds the digests that slots of a batch are for, due or not, and says of
// which slots these are. Only merchants with a digest cost a query.
func (s *source) digests(ctx context.Context, slots []work.Slot) (all []digest, gathered map[int64]bool, err error) {
	of := map[int64]work.Slot{}
	var ids []int64
	for _, x := range slots {
		// A probe goes alone: if it fails, it costs one attempt.
		if !x.Probe && !s.o.LinkedOnly && hasDigest(s.o.Book().ByID(x.Lane)) {
			of[x.ID], ids = x, append(ids, x.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil, nil
	}
	var found []claimed
	err = s.o.DB.Read.NewRaw("SELECT id, merchant_id, event_type, channel, endpoint FROM deliveries"+
		" WHERE id IN (?) AND channel = ? AND url = '' ORDER BY id", bun.List(ids), Email).Scan(ctx, &found)
	if err != nil {
		return nil, nil, err
	}
	gathered = map[int64]bool{}
	for _, c := range found {
		m := s.o.Book().ByID(c.MerchantID)
		if m == nil || !m.Digests(c.Channel, c.Endpoint, c.EventType) {
			continue
		}
		gathered[c.ID] = true
		known := func(g digest) bool {
			return g.merchant == c.MerchantID && g.endpoint == c.Endpoint && slices.Contains(g.types, c.EventType)
		}
		if !slices.ContainsFunc(all, known) {
			all = append(all, digest{c.MerchantID, c.Channel, c.Endpoint, alike(m, c), of[c.ID]})
		}
	}
	return all, gathered, nil
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
func (s *source) claimDigest(ctx context.Context, g digest, l work.Lease) (*load, error) {
	now := s.o.DB.Now()
	due := s.o.DB.NewSelect().Table("deliveries").Column("id").
		Where("merchant_id = ? AND next_at <= ? AND channel = ? AND endpoint = ? AND url = '' AND "+claimable+" AND event_type IN (?)",
			g.merchant, now, g.channel, g.endpoint, bun.List(g.types)).
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

// parts are what goes in a message beside its first event.
func parts(more []claimed) []Part {
	all := make([]Part, len(more))
	for i, c := range more {
		all[i] = Part{ID: c.publicID(), Type: c.EventType, Body: []byte(c.Body)}
	}
	return all
}

// noGeneration is of no breaker: its results count for none.
const noGeneration = -1
