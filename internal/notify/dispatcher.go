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

// leaseMargin is added to the longest timeout, so that an attempt is over and its result
// written long before another node may claim the row.
const leaseMargin = 5 * time.Second

// Options of a Dispatcher.
type Options struct {
	DB          *db.DB
	Directory   func() *merchant.Directory // returns the current snapshot
	Channels    map[string]Channel
	Nudger      *Nudger
	Breakers    *breaker.Cache
	Concurrency int           // attempts in flight on this node
	Timeout     time.Duration // the longest timeout of any merchant
	Log         *slog.Logger
	Tracer      *trace.Tracer // nil = no tracing
	Acks        *Acks         // nil = a killed node sends again what was acknowledged and not committed
	// LinkedOnly is for a process without workers: it sends only to merchants connected to it,
	// which no other process can notify.
	LinkedOnly bool
	// Unmetered leaves the gauges of the process to another Dispatcher.
	Unmetered bool
	// Paused reports whether nothing may be sent now because an operator has paused it; nil =
	// never.
	Paused func() bool
}

func (o *Options) paused() bool { return o.Directory().Shadow || o.Paused != nil && o.Paused() }

// Dispatcher sends from this node what is due. It joins the node's slots (a lane is a
// recipient's id), the worker, the rows of deliveries, the sender of attempts, and the results.
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
	lost    *lostClaims

	slow published // recipients in the slow pool
}

// NewDispatcher starts the node's dispatcher.
func NewDispatcher(o Options) *Dispatcher {
	d := &Dispatcher{o: o, links: newLinks(o), faults: newFaults(o.Log), health: newHealth(&o)}
	d.gates = &gates{&d.o, d.links}
	d.slots = work.NewSlots(work.SlotOptions{Size: o.Concurrency, Gate: d.gates.lane, Nodes: o.DB.Senders})
	d.sender = &sender{o: &d.o, gates: d.gates, faults: d.faults, health: d.health, forget: d.slots.Forget}
	d.lost = &lostClaims{db: o.DB, after: o.Timeout + leaseMargin}
	d.results = &results{&d.o, d.health, d.Pull}
	d.worker = work.NewWorker(work.Options[*load, *outcome]{
		DB: o.DB, Slots: d.slots, Source: &source{&d.o, d.links, d.gates, d.faults}, Lease: o.Timeout + leaseMargin,
		Run: d.sender.run, Commit: d.results.commit, Written: d.results.written,
		Observe: metric.ObserveBatch("results"), Use: d.observeSlots, Log: o.Log,
	})
	return d
}

func (d *Dispatcher) observeSlots(s work.Stats) {
	if d.o.Unmetered {
		return
	}
	metric.InFlight.WithLabelValues("quick").Set(float64(s.Quick))
	metric.InFlight.WithLabelValues("slow").Set(float64(s.Slow))
}

// Offer takes ids that are due now or later. It never blocks; what does not fit stays in its
// row.
func (d *Dispatcher) Offer(nudges []queue.Nudge) {
	jobs := make([]work.Job, len(nudges))
	for i, n := range nudges {
		jobs[i] = work.Job{ID: n.Delivery, Lane: n.Recipient, At: n.At}
	}
	d.worker.Offer(jobs...)
}

// Pull makes the dispatcher read the due rows of recipients by id. It needs no Redis.
func (d *Dispatcher) Pull(ids []int64) { d.worker.Pull(ids...) }

// HasWork reports whether this node could send anything: a node without workers reads rows only
// while a merchant is connected to it.
func (d *Dispatcher) HasWork() bool { return d.links.any() }

// Lane is a LaneRouter based on what this node has observed.
func (d *Dispatcher) Lane(id int64) (queue.Lane, bool) {
	if d.o.paused() || d.gates.breaker(d.o.Directory().RecipientOf(id)).Shut() {
		return "", false
	}
	if d.slots.Lane(id).Slow {
		return queue.Slow, true
	}
	return "", true
}

// Close accepts no more work, waits for running attempts until ctx ends, and then cancels them;
// their results are written either way. A second call does nothing.
func (d *Dispatcher) Close(ctx context.Context) {
	d.worker.Close(ctx)
	d.health.stop()
}

// creation claims deliveries for this node in the transaction that creates them.
type creation struct {
	d    *Dispatcher
	work *work.Creation[*load, *outcome]
}

// creation starts one; a nil Dispatcher's claims nothing.
func (d *Dispatcher) creation(tx db.Tx) *creation {
	if d == nil {
		return nil
	}
	return &creation{d, d.worker.Creation(tx)}
}

// claim makes a delivery that is about to be created this node's claim, if there is a slot for
// it. One whose address asks us to wait becomes due after that.
func (c *creation) claim(x *Delivery, body string) bool {
	if c == nil || c.d.faults.skips(x.kind()) || !c.d.links.mine(x.Recipient(), x.Channel) {
		return false // for another node
	}
	if until := c.d.health.waitOf(c.d.o.Directory().ByID(x.RecipientID), x, c.d.o.DB.Now()); until > 0 {
		x.NextAt = &until
		return false
	}
	return c.work.Reserve(x.ID, x.RecipientID, func(l work.Lease) *load {
		x.Status, x.Attempts, x.LeaseOwner, x.NextAt, x.LeaseUntil = Sending, 1, l.Owner, nil, &l.Until
		c := claimed{Delivery: *x, Lease: l.Until}
		c.Body = body
		return &load{claimed: c}
	})
}
