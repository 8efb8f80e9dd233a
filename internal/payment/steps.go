package payment

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	"backstop/internal/order"
)

// Steps are the waits between queries of a supplier about an order.
type Steps struct {
	Query []time.Duration // while it may be paid: the first from pay, each from the one before
	Close []time.Duration // while it is closing; the last one repeats until closeFor
}

const (
	// closeFor is how long after its timeout an order is closed by these steps.
	closeFor = 24 * time.Hour
	// Daily is how often an order without remaining steps is queried.
	Daily = 24 * time.Hour
	// spread is the fraction by which the waits of two orders may differ, up or down, so that
	// orders started together, or delayed by one outage, are not queried together.
	spread = 0.1
)

// spreadOf returns the factor for an order's waits, the same for all of them. The low bytes of
// the id, which differ between orders started together, are hashed first: the last byte hashed
// hardly affects the upper bits.
func spreadOf(orderID int64) float64 {
	h := fnv.New64a()
	var id [8]byte
	binary.LittleEndian.PutUint64(id[:], uint64(orderID))
	_, _ = h.Write(id[:])
	return 1 - spread + 2*spread*float64(h.Sum64()>>11)/(1<<53)
}

// firstClose returns the wait before the first attempt to close (µs).
func (s Steps) firstClose() int64 {
	if len(s.Close) == 0 {
		return 0
	}
	return s.Close[0].Microseconds()
}

// Next returns when a paying or closing order is next queried or moved, after QueryTries
// queries in its status, the last of them now. stuck = no step is left, and a person must look
// at it.
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
	return min(at, max(o.ExpiresAt, now)), stuck // from its timeout on it must be closed
}
