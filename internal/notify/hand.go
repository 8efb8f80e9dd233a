package notify

import (
	"time"

	"backstop/internal/base/db"
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

// open begins a hand that the end of the transaction plays; nil where nothing can be
// taken.
func (d *Dispatcher) open(tx db.Tx) *hand {
	if d == nil {
		return nil
	}
	h := &hand{d: d, lease: d.o.DB.Now() + (d.o.Timeout + leaseMargin).Microseconds()}
	tx.OnEnd(h.end)
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
		Channel: x.Channel, URL: x.URL, Endpoint: x.Endpoint, House: x.House, Shared: x.Shared, Counted: x.Counted, Attempts: x.Attempts,
		CreatedAt: x.CreatedAt, Currency: x.Currency, Amount: x.Amount, Body: body, Trace: x.Trace, Lease: h.lease,
	}})
	return true
}

// end sends what was taken as soon as there are slots, or forgets it. Where it is not
// known whether the transaction was committed, its rows wait for the end of their
// lease.
func (h *hand) end(err error) {
	if len(h.taken) == 0 {
		return
	}
	d := h.d
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pledged -= len(h.taken)
	if err == nil {
		d.toSend = append(d.toSend, h.taken...)
	} else {
		for _, x := range h.taken {
			d.release(x.ticket)
			d.calls.Done()
		}
	}
	d.pump()
}

// sendTaken gives the node's slots to what was born claimed: it has waited for its
// commit, and its lease runs. At the end of the process it is given back. Called with
// d.mu held.
func (d *Dispatcher) sendTaken() {
	for len(d.toSend) > 0 && (d.closing || d.free() && d.quick.inFlight < d.quick.most) {
		x := d.toSend[0]
		d.toSend = d.toSend[1:]
		if d.closing {
			go func() {
				defer d.calls.Done()
				d.handBack(x.ticket, x.claimed)
			}()
			continue
		}
		x.ticket.counted = true
		d.count(x.ticket, 1)
		go func() {
			defer d.calls.Done()
			d.deliver(x.ticket, x.claimed)
		}()
	}
}

// handBack makes a claim due again, for anybody.
func (d *Dispatcher) handBack(t *ticket, all ...claimed) {
	d.giveBack(d.o.DB.Now(), all...)
	d.mu.Lock()
	defer d.mu.Unlock()
	t.lane.more = true
	d.release(t)
}

// reserve promises a slot to a delivery that is about to be created, if its merchant
// may have one and nobody waits for it. It counts as the merchant's from now on, and
// as the node's when it is sent; calls counts it until it is over.
func (d *Dispatcher) reserve(x *Delivery) *ticket {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing || !d.free() || d.quick.inFlight >= d.quick.most || len(d.quick.ready) > 0 || d.pledged+len(d.toSend) >= d.o.Concurrency {
		return nil
	}
	l, g, s := d.lane(x.MerchantID), d.gate(x.MerchantID), d.settingsOf(x.MerchantID)
	switch {
	case !g.Flow || g.Release.PerSecond > 0 || s != nil && s.RatePerSecond > 0:
		return nil // what is rationed stands in line
	case l.slow || l.more || l.pulling || len(l.waiting) > 0 || l.inFlight >= d.limitOf(l):
		return nil
	case len(d.faults) > 0 && d.aside(x.kind()):
		return nil // for another node
	case !d.mine(x.MerchantID, x.Channel):
		return nil
	}
	t := &ticket{id: x.ID, lane: l, generation: g.Generation}
	l.generation = g.Generation
	l.inFlight++
	l.used = time.Now()
	d.pledged++
	d.known[x.ID] = false
	d.calls.Add(1)
	return t
}
