package work

import (
	"container/heap"
	"time"

	"golang.org/x/time/rate"
)

// How many jobs of one lane may run at a time. The number starts at laneStart and grows by
// one with each job that succeeds, up to the gate's Max: a counterpart that hangs never holds
// more slots than it has earned.
const (
	laneStart = 5
	// maxEarned bounds what a lane can earn.
	maxEarned = 1000
	// laneIdle is the time without a job after which a lane loses what it has earned.
	laneIdle = 10 * time.Second
	// laneForget is the time without a job after which a lane is forgotten.
	laneForget = time.Minute
	// SlowAfter is how long a job may take before its lane counts as slow. A lane that uses
	// all of its slots for holdAfter while no job ends counts as slow too.
	SlowAfter = 3 * time.Second
	holdAfter = time.Second
	// quickAgain is how many consecutive jobs below SlowAfter make a lane quick again.
	quickAgain = 3
	// retryToken is the maximum time that a lane without a token waits before it tries again:
	// its rate, or this node's share of it, may have grown meanwhile.
	retryToken = time.Second
)

// lane is the queue of one counterpart's jobs on this node.
type lane struct {
	id       int64
	waiting  []*job // to be claimed
	claimed  []*job // ahead of a slot: these begin first
	ahead    int    // claimed, or about to be
	inFlight int
	inReady  bool
	early    bool // in Slots.early
	more     bool // rows may be due that are not in memory
	reading  bool // they are being read

	earned    int           // jobs that may run
	proven    bool          // the last job succeeded
	took      time.Duration // duration of the last job
	slow      bool
	quickRuns int   // consecutive, while slow
	usedAt    int64 // the last start or end of a job
	limiter   *rate.Limiter
	pausedTo  int64 // when its rate allows the next job; 0 = now
	probe     *job  // the last running probe
}

// lane returns a lane, created if it is new.
func (s *Slots) lane(now, id int64) *lane {
	l := s.lanes[id]
	if l == nil {
		l = &lane{id: id, earned: laneStart, usedAt: now}
		s.lanes[id] = l
	}
	return l
}

// limit is how many jobs of a lane may run now. While slots are scarce, a lane without a
// recent success gets one.
func (s *Slots) limit(l *lane, g Gate) int {
	if !l.proven && s.o.Size-s.inFlight <= s.o.Size/4 {
		return 1
	}
	return min(max(g.Max, 1), l.earned)
}

// ended updates the lane at the end of a job.
func (l *lane) ended(took time.Duration, ok bool) {
	l.proven, l.took = ok, took
	l.earned = min(l.earned+1, maxEarned)
	if !ok {
		l.earned = laneStart
	}
	switch {
	case took >= SlowAfter:
		l.slow, l.quickRuns = true, 0
	case l.slow:
		if l.quickRuns++; l.quickRuns >= quickAgain {
			l.slow, l.quickRuns = false, 0
		}
	}
}

// enqueue adds a job to its lane, or leaves it to its row if the lane is closed or full.
func (s *Slots) enqueue(now int64, j Job) {
	g := s.o.Gate(j.Lane)
	if !g.allows() || g.Only != 0 && g.Only != j.ID {
		delete(s.jobs, j.ID)
		return
	}
	l := s.lane(now, j.Lane)
	if len(l.waiting) >= PageSize {
		l.more = true
		delete(s.jobs, j.ID)
		return
	}
	w := &job{Job: j, state: isWaiting, lane: l}
	s.jobs[j.ID] = w
	l.waiting = append(l.waiting, w)
	s.makeReady(l, g)
}

// makeReady queues a lane if its pool may run one of its jobs, or if one may be claimed ahead.
func (s *Slots) makeReady(l *lane, g Gate) {
	limit, waits := s.limit(l, g), l.pausedTo == 0 && len(l.waiting) > 0
	if !l.inReady && l.inFlight < limit && (len(l.claimed) > 0 || waits && l.inFlight+l.ahead < limit) {
		l.inReady = true
		p := s.pool(l.slow)
		p.ready = append(p.ready, l)
	}
	if !l.early && waits && l.proven {
		l.early = true
		s.early = append(s.early, l)
	}
}

// take removes and returns the next job to be claimed.
func (l *lane) take() *job {
	j := l.waiting[0]
	l.waiting = l.waiting[1:]
	return j
}

// pool is a share of the node's slots with its own queue of lanes.
type pool struct {
	max, inFlight int
	ready         []*lane
}

// newPools divides the node's slots: slow lanes get at most two fifths and at least one tenth
// of them, so that neither kind can block the other.
func newPools(slots int) (quick, slow pool) {
	return pool{max: max(1, slots-slots/10)}, pool{max: max(1, slots*2/5)}
}

func (s *Slots) pool(slow bool) *pool {
	if slow {
		return &s.slow
	}
	return &s.quick
}

// next takes the lane whose turn it is in a pool with a free slot.
func (s *Slots) next(now int64, p *pool) (*lane, Gate) {
	for p.inFlight < p.max && len(p.ready) > 0 {
		l := p.ready[0]
		p.ready = p.ready[1:]
		l.inReady = false
		g := s.o.Gate(l.id)
		if s.pool(l.slow) != p {
			s.makeReady(l, g)
			continue
		}
		if s.mayNext(now, l, g) {
			return l, g
		}
	}
	return nil, Gate{}
}

// mayNext reports whether a lane's next job may run. If the lane has closed, it marks the
// jobs that were claimed ahead for release.
func (s *Slots) mayNext(now int64, l *lane, g Gate) bool {
	if !g.Open {
		for _, j := range l.claimed {
			j.state = isReserved
		}
		s.closed = append(s.closed, l.claimed...)
		l.claimed = nil
	}
	limit := s.limit(l, g)
	if len(l.claimed) > 0 {
		return l.inFlight < limit
	}
	return len(l.waiting) > 0 && l.inFlight+l.ahead < limit && s.mayStart(now, l, g)
}

// mayStart reports whether a lane's gate and rate allow the next job. The waiting jobs of a
// closed lane are left to their rows.
func (s *Slots) mayStart(now int64, l *lane, g Gate) bool {
	switch {
	case g.Open:
		return s.inRate(now, l, g)
	case l.probe != nil && (l.probe.leasing || g.Probe && l.probe.epoch == g.Epoch):
		return false // its end makes the lane ready
	case g.Probe || g.Lease:
		return g.Only == 0 || s.keepOnly(l, g.Only)
	}
	s.keepOnly(l, 0)
	return false
}

// keepOnly keeps one waiting job of a lane, if it is there, and leaves the others to their
// rows.
func (s *Slots) keepOnly(l *lane, wanted int64) (there bool) {
	waiting := l.waiting
	l.waiting = nil
	for _, j := range waiting {
		if j.ID == wanted {
			l.waiting, there = []*job{j}, true
		} else {
			delete(s.jobs, j.ID)
		}
	}
	return there
}

// rate returns how many jobs of a lane may begin per second on this node, and how many at
// once after a pause; 0 = no bound. Each node has its share of a rate. Together the nodes may
// begin one second's worth at once, or one job each if that is more: a bucket below one would
// let none through.
func (s *Slots) rate(g Gate) (perSecond float64, burst int) {
	perSecond, burst = g.NodeRate, 1
	if g.PerSecond > 0 {
		nodes := 1
		if s.o.Nodes != nil {
			nodes = max(1, s.o.Nodes())
		}
		if own := g.PerSecond / float64(nodes); perSecond == 0 || own < perSecond {
			perSecond, burst = own, max(1, int(own))
		}
	}
	return perSecond, burst
}

// inRate takes a token of the lane's bucket. Without one, the lane waits for the next token,
// but at most for retryToken.
func (s *Slots) inRate(now int64, l *lane, g Gate) bool {
	perSecond, burst := s.rate(g)
	if perSecond == 0 {
		l.limiter = nil
		return true
	}
	at := time.UnixMicro(now)
	if l.limiter == nil {
		l.limiter = rate.NewLimiter(rate.Limit(perSecond), burst)
	}
	l.limiter.SetLimitAt(at, rate.Limit(perSecond))
	l.limiter.SetBurstAt(at, burst)
	token := l.limiter.ReserveN(at, 1)
	wait := token.DelayFrom(at)
	if wait == 0 {
		return true
	}
	token.CancelAt(at)
	l.pausedTo = now + max(1, min(wait, retryToken).Microseconds())
	heap.Push(&s.paced, l)
	return false
}

// Age must be called about once a second. A lane that uses all of its slots while no job ends
// becomes slow; one without jobs loses what it has earned and is later forgotten.
func (s *Slots) Age(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, l := range s.lanes {
		idle := time.Duration(now-l.usedAt) * time.Microsecond
		if l.more && l.inFlight == 0 && len(l.waiting) == 0 { // no job will end and refill it
			g := s.o.Gate(id)
			l.more = g.allows() // More is called again when it opens
			s.thin = append(s.thin, l)
		}
		switch {
		case l.inFlight > 0 && len(l.waiting)+len(l.claimed) > 0 && idle > holdAfter && l.inFlight >= s.limit(l, s.o.Gate(id)):
			l.slow, l.quickRuns = true, 0
		case l.inFlight == 0 && l.ahead == 0 && len(l.waiting) == 0 && idle > laneForget && !l.reading && !l.more && l.pausedTo == 0:
			delete(s.lanes, id)
		case l.inFlight == 0 && idle > laneIdle:
			l.earned, l.proven = laneStart, false
		}
	}
}
