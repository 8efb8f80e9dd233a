package notify

import (
	"container/heap"
	"context"
	"log/slog"
	"sync"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/base/trace"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
)

// Limits of one node's dispatcher.
const (
	// claimBatch is the most rows of one claim.
	claimBatch = 64
	// laneWaiting is how many ids of one merchant wait in memory; what is more
	// stays in its row and is pulled when a slot is free.
	laneWaiting = 256
	// heldMost bounds the ids that are held until their moment.
	heldMost = 50_000
	// unwrittenMost bounds attempts whose result is not committed yet: a slow
	// database slows sending down instead of filling memory.
	unwrittenMost = 1024
	// leaseMargin is added to the longest timeout: an attempt is over, and its
	// result written, long before anybody else may claim the row.
	leaseMargin = 5 * time.Second
)

// Options of a Dispatcher.
type Options struct {
	DB          *db.DB
	Book        func() *merchant.Book // the current snapshot
	Channels    map[string]Channel
	Nudger      *Nudger
	Breakers    *breaker.Book
	Concurrency int           // attempts in flight on this node
	Timeout     time.Duration // the longest that any merchant's attempt may take
	Log         *slog.Logger
	Tracer      *trace.Tracer // nil = nothing is followed
	// LinkedOnly sends to merchants only who are connected to this process: it is one
	// without workers, and they cannot be told by any other.
	LinkedOnly bool
}

// Dispatcher sends what is due, one merchant's cap and the node's cap in mind.
//
// A delivery passes three gates in this order: a slot of its merchant, the claim
// of its row (or its birth as one, see hand), the call. The claim is a compare-and-set in SQL and the only thing
// that decides who sends, so it does not matter how often, or by whom, an id is
// offered. What finds no slot is dropped here and stays in its row.
type Dispatcher struct {
	o Options

	mu       sync.Mutex
	wake     *sync.Cond // something to claim, or the end
	lanes    map[int64]*lane
	quick    pool
	slow     pool
	toClaim  []*ticket
	pledged  int            // slots promised to what is about to be created
	toSend   []taken        // created, claimed, and not sent yet
	known    map[int64]bool // ids that wait or are being claimed here; true = are held
	held     holdHeap
	inFlight int // of both pools
	sent     int // attempts that are over but not written yet
	closing  bool

	told []int64 // slow merchants, as the other nodes know them
	// What this node could not send through a fault of ours, and addresses that it
	// passes over for that while there are others.
	faults     map[faultKind]fault
	unusable   map[address]time.Time
	toldFaults string
	health     *health
	results    *db.Batcher[*outcome, *breaker.Folded]
	holdNow    chan struct{}
	ctx        context.Context // ends attempts that outlast the shutdown
	cancel     context.CancelFunc
	workers    sync.WaitGroup
	calls      sync.WaitGroup
}

// NewDispatcher starts the node's dispatcher.
func NewDispatcher(o Options) *Dispatcher {
	d := &Dispatcher{
		o: o, lanes: map[int64]*lane{}, known: map[int64]bool{}, holdNow: make(chan struct{}, 1),
		faults: map[faultKind]fault{}, unusable: map[address]time.Time{},
	}
	d.health = newHealth(o.DB, o.Log)
	d.quick, d.slow = newPools(o.Concurrency)
	d.wake = sync.NewCond(&d.mu)
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.results = db.NewBatcher(o.DB, db.BatchOptions[*outcome, *breaker.Folded]{
		Size: claimBatch, Writers: 2, Queue: unwrittenMost * 2, Wait: resultWait, Observe: metric.ObserveBatch("results"),
	}, d.writeResults)
	claimers := 1
	if o.DB.IsPostgres() {
		claimers = 2
	}
	for range claimers {
		d.workers.Go(d.claimLoop)
	}
	d.workers.Go(d.holdLoop)
	return d
}

// Offer takes ids that are due now or at their time. It never blocks; what does
// not fit is left to its row.
func (d *Dispatcher) Offer(nudges []queue.Nudge) {
	now := d.o.DB.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return
	}
	for _, n := range nudges {
		// What is held may have become due earlier: somebody sends it again.
		if held, ok := d.known[n.Delivery]; ok && (!held || n.At > now) {
			continue
		}
		if n.At > now {
			d.hold(n)
			continue
		}
		d.enqueue(n.Delivery, d.lane(n.Merchant))
	}
	d.pump()
}

// Pull makes the dispatcher look at the merchants' due rows: the database tick's
// way in. It needs no Redis.
func (d *Dispatcher) Pull(merchants []int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.age(time.Now())
	for _, id := range merchants {
		if g := d.gate(id); g.Shut() || d.o.LinkedOnly && !d.mine(id, Websocket) {
			continue
		}
		l := d.lane(id)
		l.more = true
		d.pull(l)
		d.makeReady(l)
	}
	d.pump()
}

// IsSlow says whether this node tells a merchant in the slow pool.
func (d *Dispatcher) IsSlow(merchantID int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lanes[merchantID]
	return l != nil && l.slow
}

// Close stops taking work, waits for running attempts until ctx ends, and then
// cuts them off; their results are written either way. Again it does nothing.
func (d *Dispatcher) Close(ctx context.Context) {
	d.mu.Lock()
	if d.closing {
		d.mu.Unlock()
		return
	}
	d.closing = true
	d.wake.Broadcast()
	d.sendTaken()
	d.mu.Unlock()
	close(d.holdNow)
	d.workers.Wait()
	stop := context.AfterFunc(ctx, d.cancel)
	d.calls.Wait()
	stop()
	d.cancel()
	d.results.Close()
	d.health.close()
}

// free says that one more attempt may run on this node.
func (d *Dispatcher) free() bool {
	return d.sent < unwrittenMost && d.inFlight < d.o.Concurrency
}

// pump hands out free slots, one per merchant in turn. Called with d.mu held.
func (d *Dispatcher) pump() {
	d.sendTaken()
	for !d.closing && d.free() {
		l := d.next(false)
		if l == nil {
			l = d.next(true)
		}
		if l == nil {
			break
		}
		d.start(l)
	}
	metric.InFlight.WithLabelValues("quick").Set(float64(d.quick.inFlight))
	metric.InFlight.WithLabelValues("slow").Set(float64(d.slow.inFlight))
}

// start gives a slot to the next id of a lane. Called with d.mu held.
func (d *Dispatcher) start(l *lane) {
	t := &ticket{id: l.waiting[0], lane: l, slow: l.slow, generation: l.generation}
	l.waiting = l.waiting[1:]
	if t.probe = d.gate(l.merchant).Probe; t.probe {
		l.probed = l.generation
	}
	l.inFlight++
	l.used = time.Now()
	t.counted = true
	d.count(t, 1)
	d.toClaim = append(d.toClaim, t)
	d.makeReady(l)
	d.wake.Signal()
}

// release gives a slot back and pulls the merchant's next rows where its line
// has run out. Called with d.mu held.
func (d *Dispatcher) release(t *ticket) {
	delete(d.known, t.id)
	t.over = true
	t.lane.inFlight--
	t.lane.used = time.Now()
	if t.counted {
		d.count(t, -1)
	}
	d.makeReady(t.lane)
	d.pull(t.lane)
	d.pump()
}

// claimLoop claims what pump gave a slot to, as many as wait.
func (d *Dispatcher) claimLoop() {
	for {
		d.mu.Lock()
		for len(d.toClaim) == 0 && !d.closing {
			d.wake.Wait()
		}
		if len(d.toClaim) == 0 {
			d.mu.Unlock()
			return
		}
		n := min(len(d.toClaim), claimBatch)
		batch := append([]*ticket(nil), d.toClaim[:n]...)
		d.toClaim = append(d.toClaim[:0], d.toClaim[n:]...)
		d.mu.Unlock()

		loads, err := d.claim(batch)
		if err != nil {
			d.o.Log.Error("claim deliveries", "error", db.Explain(err))
		}
		used := make(map[*ticket]bool, len(loads))
		for _, l := range loads {
			used[l.ticket] = true
		}
		d.mu.Lock()
		for _, t := range batch {
			if used[t] {
				continue
			}
			if t.probe {
				t.lane.probed = 0 // nothing was tried
			}
			d.release(t)
		}
		d.mu.Unlock()
		for _, l := range loads {
			d.calls.Go(func() { d.deliver(l.ticket, l.claimed, l.more...) })
		}
	}
}

// hold keeps an id until its moment. Called with d.mu held.
func (d *Dispatcher) hold(n queue.Nudge) {
	if len(d.held) >= heldMost {
		return // the tick finds it
	}
	d.known[n.Delivery] = true
	heap.Push(&d.held, n)
	if d.held[0].Delivery == n.Delivery {
		select {
		case d.holdNow <- struct{}{}:
		default:
		}
	}
}

// holdLoop moves held ids into their lanes at their moment.
func (d *Dispatcher) holdLoop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		d.mu.Lock()
		now := d.o.DB.Now()
		for len(d.held) > 0 && d.held[0].At <= now {
			n := heap.Pop(&d.held).(queue.Nudge)
			if !d.known[n.Delivery] {
				continue // it did not wait for its moment
			}
			delete(d.known, n.Delivery)
			d.enqueue(n.Delivery, d.lane(n.Merchant))
		}
		d.pump()
		wait := time.Hour
		if len(d.held) > 0 {
			wait = time.Duration(d.held[0].At-now) * time.Microsecond
		}
		d.mu.Unlock()
		timer.Reset(wait)
		select {
		case _, open := <-d.holdNow:
			if !open {
				return
			}
		case <-timer.C:
		}
	}
}

// holdHeap orders held nudges by their moment.
type holdHeap []queue.Nudge

func (h holdHeap) Len() int           { return len(h) }
func (h holdHeap) Less(i, j int) bool { return h[i].At < h[j].At }
func (h holdHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *holdHeap) Push(x any)        { *h = append(*h, x.(queue.Nudge)) }
func (h *holdHeap) Pop() any {
	old := *h
	n := old[len(old)-1]
	*h = old[:len(old)-1]
	return n
}
