package notify

import (
	"context"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/breaker"
	"backstop/internal/merchant"

	"golang.org/x/time/rate"
)

// How many attempts of one merchant may run at a time. It begins with laneStart,
// enough to open its breaker by one round of time-outs, and grows with what the
// merchant takes, up to its own cap: one that hangs without a word never holds
// more slots than it has earned.
const (
	laneStart = 5
	// laneIdle takes back what was earned and not used for so long.
	laneIdle = 10 * time.Second
	// laneForget is how long an idle merchant is remembered.
	laneForget = time.Minute
	// slowAfter is the answer time from which on a merchant is slow; so is one
	// that holds all it may hold for holdAfter without an answer.
	slowAfter = 3 * time.Second
	holdAfter = time.Second
	// quickAgain answers in a row below slowAfter make it quick again.
	quickAgain = 3
	// askAgain is how long a lane without a token waits at most before it asks
	// again: its rate, or its share of it, may have grown meanwhile.
	askAgain = time.Second
)

// lane is one merchant's line on this node. All of it belongs to d.mu.
type lane struct {
	merchant int64
	waiting  []int64
	inFlight int
	inReady  bool
	more     bool // rows may be due that nobody holds here
	pulling  bool

	limit   int  // attempts that may run, as earned
	proven  bool // the last answer was success
	slow    bool
	quick   int       // quick answers in a row, while slow
	used    time.Time // the last start or end of an attempt
	limiter *rate.Limiter
	paced   bool // a timer makes it ready again

	generation int64 // of the breaker, for the attempts that begin now
	probed     int64 // the generation whose probe has been sent
	leasing    bool
}

// Way is the lane for nudges of a merchant as this node knows it.
func (d *Dispatcher) Way(merchantID int64) (queue.Lane, bool) {
	if g := d.gate(merchantID); g.Shut() {
		return "", false
	}
	if d.IsSlow(merchantID) {
		return queue.Slow, true
	}
	return "", true
}

// gate is what a merchant's breaker allows; all, where it does not park. A merchant
// whose row cannot be read is let alone: what is for it waits in its rows.
func (d *Dispatcher) gate(merchantID int64) breaker.Gate {
	g := d.o.Breakers.Gate(merchantID)
	if d.o.Book().Broken(merchantID) {
		return breaker.Gate{Generation: g.Generation}
	}
	if !g.Flow && !IsParked(d.o.Breakers, d.o.Book(), merchantID) {
		return breaker.Gate{Flow: true, Generation: g.Generation}
	}
	return g
}

// ticket is a slot given to one delivery.
type ticket struct {
	id   int64
	lane *lane
	// slow says which pool the slot is counted in; under d.mu.
	slow       bool
	counted    bool // it holds one of the node's slots
	over       bool
	probe      bool
	generation int64
}

func (d *Dispatcher) lane(merchantID int64) *lane {
	l := d.lanes[merchantID]
	if l == nil {
		l = &lane{merchant: merchantID, limit: laneStart, used: time.Now()}
		d.lanes[merchantID] = l
	}
	return l
}

// settingsOf returns the merchant's settings; nil where it is gone.
func (d *Dispatcher) settingsOf(merchantID int64) *merchant.Settings {
	if m := d.o.Book().ByID(merchantID); m != nil {
		return &m.Settings
	}
	return nil
}

// limitOf is how many attempts of a merchant may run on this node now. Where
// slots are scarce, a merchant that proved nothing lately gets one.
func (d *Dispatcher) limitOf(l *lane) int {
	most := 1
	if s := d.settingsOf(l.merchant); s != nil && s.MaxInFlight > 0 {
		most = s.MaxInFlight
	}
	if !l.proven && d.o.Concurrency-d.inFlight <= d.o.Concurrency/4 {
		return 1
	}
	return min(most, l.limit)
}

// enqueue puts an id into its merchant's line, or leaves it to its row where the
// line is long enough or the breaker is open.
func (d *Dispatcher) enqueue(id int64, l *lane) {
	if g := d.gate(l.merchant); g.Shut() || g.Delivery != 0 && g.Delivery != id {
		return
	}
	if len(l.waiting) >= laneWaiting {
		l.more = true
		return
	}
	d.known[id] = false
	l.waiting = append(l.waiting, id)
	d.makeReady(l)
}

// makeReady puts a lane that waits and may run into its pool's turn.
func (d *Dispatcher) makeReady(l *lane) {
	if !l.inReady && !l.paced && len(l.waiting) > 0 && l.inFlight < d.limitOf(l) {
		l.inReady = true
		pool := d.pool(l.slow)
		pool.ready = append(pool.ready, l)
	}
}

// pool is a part of the node's slots with its own turn.
type pool struct {
	most, inFlight int
	ready          []*lane
}

// newPools divides the node's slots: slow merchants get two of five at most and
// one of ten at least, so that neither kind can keep the other from working.
func newPools(slots int) (quick, slow pool) {
	return pool{most: max(1, slots-slots/10)}, pool{most: max(1, slots*2/5)}
}

func (d *Dispatcher) pool(slow bool) *pool {
	if slow {
		return &d.slow
	}
	return &d.quick
}

// next takes the lane whose turn it is in a pool with a free slot. Called with
// d.mu held.
func (d *Dispatcher) next(slow bool) *lane {
	p := d.pool(slow)
	for p.inFlight < p.most && len(p.ready) > 0 {
		l := p.ready[0]
		p.ready = p.ready[1:]
		l.inReady = false
		if l.slow != slow {
			d.makeReady(l)
			continue
		}
		if len(l.waiting) > 0 && l.inFlight < d.limitOf(l) && d.mayStart(l) {
			return l
		}
	}
	return nil
}

// mayStart asks the merchant's breaker and its rate. What is parked is dropped
// here and stays in its rows.
func (d *Dispatcher) mayStart(l *lane) bool {
	g := d.gate(l.merchant)
	l.generation = g.Generation
	switch {
	case g.Flow:
		return d.inRate(l, g.Release)
	case g.Probe:
		return l.probed != g.Generation && (g.Delivery == 0 || d.only(l, g.Delivery))
	case g.Due && d.mayProbe(l.merchant):
		d.leaseProbe(l)
		return false
	}
	d.only(l, 0)
	return false
}

// only leaves one id in a lane, if it is there, and the others to their rows.
func (d *Dispatcher) only(l *lane, wanted int64) (there bool) {
	for _, id := range l.waiting {
		if id == wanted {
			there = true
		} else {
			delete(d.known, id)
		}
	}
	l.waiting = nil
	if there {
		l.waiting = []int64{wanted}
	}
	return there
}

// rateOf is how fast this node may tell a merchant, and how many at once after a
// pause; 0 = no bound. Each node that sends has its share of the merchant's rate:
// together they send one second's worth at once, or one each where that is more,
// as a bucket that holds less than one would never let any through.
func (d *Dispatcher) rateOf(l *lane, r breaker.Release) (perSecond float64, burst int) {
	perSecond, burst = r.PerSecond, 1
	if s := d.settingsOf(l.merchant); s != nil && s.RatePerSecond > 0 {
		if own := s.RatePerSecond / float64(d.o.DB.Senders()); perSecond == 0 || own < perSecond {
			perSecond, burst = own, max(1, int(own))
		}
	}
	return perSecond, burst
}

// inRate takes a token of the merchant's bucket. Without one the lane comes back
// when there will be, and asks on its way whether its rate is still the same.
func (d *Dispatcher) inRate(l *lane, r breaker.Release) bool {
	perSecond, burst := d.rateOf(l, r)
	if perSecond == 0 {
		l.limiter = nil
		return true
	}
	now := time.Now()
	if l.limiter == nil {
		l.limiter = rate.NewLimiter(rate.Limit(perSecond), burst)
	}
	l.limiter.SetLimitAt(now, rate.Limit(perSecond))
	l.limiter.SetBurstAt(now, burst)
	token := l.limiter.ReserveN(now, 1)
	wait := token.DelayFrom(now)
	if wait == 0 {
		return true
	}
	token.CancelAt(now)
	l.paced = true
	time.AfterFunc(min(wait, askAgain), func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		l.paced = false
		d.makeReady(l)
		d.pump()
	})
	return false
}

// leaseProbe asks for the right to try one notification of a merchant whose
// breaker has been open for long enough.
func (d *Dispatcher) leaseProbe(l *lane) {
	if l.leasing || d.closing {
		return
	}
	l.leasing = true
	d.calls.Go(func() {
		ctx, cancel := context.WithTimeout(d.ctx, claimTimeout)
		defer cancel()
		_, err := d.o.Breakers.LeaseProbe(ctx, l.merchant, d.o.Timeout)
		d.mu.Lock()
		defer d.mu.Unlock()
		l.leasing = false
		if err != nil {
			d.o.Log.Error("lease a probe", "merchant_id", l.merchant, "error", db.Explain(err))
			return // the tick comes again
		}
		d.makeReady(l)
		d.pump()
	})
}

// answered learns from an attempt that is over. Called with d.mu held.
func (d *Dispatcher) answered(t *ticket, ok bool, took time.Duration) {
	l := t.lane
	l.proven = ok
	switch {
	case ok:
		l.limit = min(l.limit+1, 1000)
	default:
		l.limit = laneStart
	}
	switch {
	case took >= slowAfter:
		l.slow, l.quick = true, 0
	case l.slow:
		if l.quick++; l.quick >= quickAgain {
			l.slow, l.quick = false, 0
		}
	}
}

// overdue makes a merchant slow while its attempt still runs, and counts the slot
// with the slow ones: those who answer need not wait for it to end.
func (d *Dispatcher) overdue(t *ticket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.over {
		return
	}
	t.lane.slow, t.lane.quick, t.lane.proven = true, 0, false
	d.count(t, -1)
	t.slow = true
	d.count(t, 1)
	d.pump()
}

// count adds a slot to the pool that it belongs to. Called with d.mu held.
func (d *Dispatcher) count(t *ticket, n int) {
	d.pool(t.slow).inFlight += n
	d.inFlight += n
}

// age looks at all lanes once a second: one that holds all that it may hold
// without an answer is slow, and what a merchant earned and does not use is taken
// back. Called with d.mu held.
func (d *Dispatcher) age(now time.Time) {
	d.forgetFaults(now)
	slow := 0
	for id, l := range d.lanes {
		idle := now.Sub(l.used)
		switch {
		case l.inFlight > 0 && l.inFlight >= d.limitOf(l) && len(l.waiting) > 0 && idle > holdAfter:
			l.slow, l.quick = true, 0
		case l.inFlight == 0 && len(l.waiting) == 0 && idle > laneForget && !l.pulling && !l.more && !l.paced && !l.leasing:
			delete(d.lanes, id)
			continue
		case l.inFlight == 0 && idle > laneIdle:
			l.limit, l.proven = laneStart, false
		}
		if l.slow {
			slow++
		}
	}
	metric.SlowMerchants.Set(float64(slow))
}
