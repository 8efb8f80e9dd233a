package payment

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	"backstop/internal/order"
)

// Steps are the waits after which a supplier is asked about an order.
type Steps struct {
	Query []time.Duration // while it may be paid: the first from pay, each from the one before
	Close []time.Duration // once it is to be closed; the last one repeats until closeFor
}

const (
	// closeFor is how long after its timeout an order is tried to be closed by its steps.
	closeFor = 24 * time.Hour
	// Daily is how often a supplier is asked about an order for which no step is left.
	Daily = 24 * time.Hour
	// spread is by what part the waits of two orders may differ, up or down: orders that
	// were started together, or that an outage held up, are not asked about together.
	spread = 0.1
)

// spreadOf is the factor of an order's waits, the same for all of them. What differs between
// orders that were started together, the end of their ids, is hashed first: the last byte
// hardly changes the upper bits.
func spreadOf(orderID int64) float64 {
	h := fnv.New64a()
	var id [8]byte
	binary.LittleEndian.PutUint64(id[:], uint64(orderID))
	_, _ = h.Write(id[:])
	return 1 - spread + 2*spread*float64(h.Sum64()>>11)/(1<<53)
}

// firstClose is the wait before the first try to close (µs).
func (s Steps) firstClose() int64 {
	if len(s.Close) == 0 {
		return 0
	}
	return s.Close[0].Microseconds()
}

// Next is the moment at which an order that is paying or closing is asked about, or moved,
// after it was asked QueryTries times in its status, now for the last time. stuck: no step is
// left, and a person must look at it.
func (s Steps) Next(o *order.Order, now int64) (at int64, stuck bool) {
	after := func(wait time.Duration) int64 { return now + int64(float64(wait.Microseconds())*spreadOf(o.ID)) }
	n := int(o.QueryTries)
	if o.Status == order.Closing {
		switch {
		case now >= o.ExpiresAt+closeFor.Microseconds() || len(s.Close) == 0:
			return now + Daily.Microseconds(), true
		case n < len(s.Close):
			return after(s.Close[n]), false
		}
		return after(max(s.Close[len(s.Close)-1], time.Second)), false
	}
	if n < len(s.Query) {
		at = after(s.Query[n])
	} else {
		at, stuck = now+Daily.Microseconds(), true
	}
	return min(at, max(o.ExpiresAt, now)), stuck // from its timeout on it is to be closed
}
