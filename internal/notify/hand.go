package notify

import (
	"context"

	"backstop/internal/db"
)

// hand is what a node takes for itself of what it creates: with a free slot for the
// merchant, a delivery is born as the node's claim, in the transaction of its fact,
// and sent when that is committed. Neither the queue nor a claim of its own is
// needed then. What finds no slot goes the usual way, and so does what is left of a
// node that dies: the row is like that of any other claim.
type hand struct {
	d     *Dispatcher
	lease int64
	taken []taken
}

type taken struct {
	ticket  *ticket
	claimed claimed
}

// open begins a hand that the end of the context's transaction plays; nil where
// nothing can be taken.
func (d *Dispatcher) open(ctx context.Context) *hand {
	if d == nil {
		return nil
	}
	h := &hand{d: d, lease: d.o.DB.Now() + (d.o.Timeout + leaseMargin).Microseconds()}
	if !db.OnEnd(ctx, h.end) {
		return nil
	}
	return h
}

// take makes a new delivery this node's, where it has a slot for it.
func (h *hand) take(x *Delivery, body string) bool {
	if h == nil {
		return false
	}
	t := h.d.reserve(x)
	if t == nil {
		return false
	}
	x.Status, x.Attempts, x.LeaseOwner, x.NextAt = Sending, 1, h.d.o.DB.Boot(), &h.lease
	h.taken = append(h.taken, taken{t, claimed{
		ID: x.ID, EventID: x.EventID, MerchantID: x.MerchantID, SubjectID: x.SubjectID, EventType: x.EventType,
		Channel: x.Channel, URL: x.URL, Endpoint: x.Endpoint, House: x.House, Shared: x.Shared, Attempts: x.Attempts,
		CreatedAt: x.CreatedAt, Currency: x.Currency, Amount: x.Amount, Body: body, Trace: x.Trace, Lease: h.lease,
	}})
	return true
}

// end sends what was taken, or gives the slots back. Where it is not known whether
// the transaction was committed, its rows wait for the end of their lease.
func (h *hand) end(err error) {
	for _, x := range h.taken {
		if err == nil {
			go func() {
				defer h.d.calls.Done()
				h.d.deliver(x.ticket, x.claimed)
			}()
			continue
		}
		h.d.mu.Lock()
		h.d.release(x.ticket)
		h.d.mu.Unlock()
		h.d.calls.Done()
	}
}

// reserve gives a slot to a delivery that is about to be created, if the merchant
// may have one and nobody waits for it. calls counts it until it is over.
func (d *Dispatcher) reserve(x *Delivery) *ticket {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing || d.sent >= unwrittenMost || d.inFlight >= d.o.Concurrency || d.quick.inFlight >= d.quick.most || len(d.quick.ready) > 0 {
		return nil
	}
	l, g, s := d.lane(x.MerchantID), d.gate(x.MerchantID), d.settingsOf(x.MerchantID)
	switch {
	case !g.Flow || g.Release.PerSecond > 0 || s != nil && s.RatePerSecond > 0:
		return nil // what is rationed stands in line
	case l.slow || l.more || l.pulling || len(l.waiting) > 0 || l.inFlight >= d.limitOf(l):
		return nil
	case x.Channel == Websocket && len(d.linked([]int64{x.MerchantID})) < 2:
		return nil
	}
	t := &ticket{id: x.ID, lane: l, generation: g.Generation}
	l.generation = g.Generation
	d.occupy(t)
	d.known[x.ID] = struct{}{}
	d.calls.Add(1)
	return t
}
