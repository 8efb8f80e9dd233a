package notify

import (
	"context"
	"log/slog"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/base/trace"
	"backstop/internal/base/work"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
)

// leaseMargin is added to the longest timeout: an attempt is over, and its result
// written, long before anybody else may claim the row.
const leaseMargin = 5 * time.Second

// Options of a Dispatcher.
type Options struct {
	DB          *db.DB
	Book        func() *merchant.Directory // the current snapshot
	Channels    map[string]Channel
	Nudger      *Nudger
	Breakers    *breaker.Cache
	Concurrency int           // attempts in flight on this node
	Timeout     time.Duration // the longest that any merchant's attempt may take
	Log         *slog.Logger
	Tracer      *trace.Tracer // nil = nothing is followed
	// LinkedOnly sends to merchants only who are connected to this process: it is one
	// without workers, and they cannot be notified by any other.
	LinkedOnly bool
}

// Dispatcher sends what is due from this node. It is put together here, and each part
// owns what it needs: the slots of the node (a lane is a merchant) and its worker, the
// rows of the deliveries, the sender of attempts, and the results.
type Dispatcher struct {
	o       Options
	links   links
	gates   *gates
	faults  *faults
	health  *health
	sender  *sender
	slots   *work.Slots
	worker  *work.Worker[*load, *outcome]
	results *results

	publishedSlow []int64 // slow merchants, as the other nodes know them
}

// NewDispatcher starts the node's dispatcher.
func NewDispatcher(o Options) *Dispatcher {
	d := &Dispatcher{o: o, links: newLinks(o), faults: newFaults(o.DB, o.Log), health: newHealth(o.DB, o.Log)}
	d.gates = &gates{&d.o, d.links}
	d.slots = work.NewSlots(work.SlotOptions{Size: o.Concurrency, Gate: d.gates.lane, Nodes: o.DB.Senders})
	d.sender = &sender{o: &d.o, gates: d.gates, faults: d.faults, health: d.health, forget: d.slots.Forget}
	d.results = &results{&d.o, d.health, d.Pull}
	d.worker = work.NewWorker(work.Options[*load, *outcome]{
		DB: o.DB, Slots: d.slots, Source: &source{&d.o, d.links, d.gates, d.faults}, Lease: o.Timeout + leaseMargin,
		Run: d.sender.run, Commit: d.results.commit, Written: d.results.written,
		Observe: metric.ObserveBatch("results"), Use: observeSlots, Log: o.Log,
	})
	return d
}

func observeSlots(s work.Stats) {
	metric.InFlight.WithLabelValues("quick").Set(float64(s.Quick))
	metric.InFlight.WithLabelValues("slow").Set(float64(s.Slow))
}

// Offer takes ids that are due now or at their time. It never blocks; what does
// not fit is left to its row.
func (d *Dispatcher) Offer(nudges []queue.Nudge) {
	jobs := make([]work.Job, len(nudges))
	for i, n := range nudges {
		jobs[i] = work.Job{ID: n.Delivery, Lane: n.Merchant, At: n.At}
	}
	d.worker.Offer(jobs...)
}

// Pull makes the dispatcher look at the merchants' due rows: the database tick's
// way in. It needs no Redis.
func (d *Dispatcher) Pull(merchants []int64) { d.worker.Pull(merchants...) }

// IsSlow says whether this node notifies a merchant in the slow pool.
func (d *Dispatcher) IsSlow(merchantID int64) bool { return d.slots.Lane(merchantID).Slow }

// HasWork says whether anything could be sent from here: a node without workers looks
// for rows only while somebody is connected to it.
func (d *Dispatcher) HasWork() bool { return d.links.any() }

// Lane is the lane of a merchant's nudges as this node knows it; none where its
// notifications are parked.
func (d *Dispatcher) Lane(merchantID int64) (queue.Lane, bool) {
	if g := d.gates.breaker(merchantID); g.Shut() {
		return "", false
	}
	if d.IsSlow(merchantID) {
		return queue.Slow, true
	}
	return "", true
}

// Close stops taking work, waits for running attempts until ctx ends, and then
// cuts them off; their results are written either way. Again it does nothing.
func (d *Dispatcher) Close(ctx context.Context) {
	d.worker.Close(ctx)
	d.health.close()
}

// creation is what this node claims of what a transaction creates.
type creation struct {
	d    *Dispatcher
	work *work.Creation[*load, *outcome]
}

// creation of no dispatcher claims nothing.
func (d *Dispatcher) creation(tx db.Tx) *creation {
	if d == nil {
		return nil
	}
	return &creation{d, d.worker.Creation(tx)}
}

// claim makes a delivery that is about to be created this node's claim, where it has a
// slot for it.
func (c *creation) claim(x *Delivery, body string) bool {
	if c == nil || c.d.faults.aside(x.kind()) || !c.d.links.mine(x.MerchantID, x.Channel) {
		return false // nobody's, or for another node
	}
	return c.work.Reserve(x.ID, x.MerchantID, func(l work.Lease) *load {
		x.Status, x.Attempts, x.LeaseOwner, x.NextAt = Sending, 1, l.Owner, &l.Until
		return &load{claimed: claimed{
			ID: x.ID, EventID: x.EventID, MerchantID: x.MerchantID, SubjectID: x.SubjectID, EventType: x.EventType,
			Channel: x.Channel, URL: x.URL, Endpoint: x.Endpoint, House: x.House, Shared: x.Shared, Counted: x.Counted, Attempts: x.Attempts,
			CreatedAt: x.CreatedAt, Currency: x.Currency, Amount: x.Amount, Body: body, Trace: x.Trace, Lease: l.Until,
		}}
	})
}
