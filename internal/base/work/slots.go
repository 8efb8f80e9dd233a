// Package work runs deferred jobs: it decides which of the rows that are due run now on
// this node, so that one slow or dead counterpart does not delay the others.
//
// Slots decides, by ids, lanes, gates and time alone. A Source hides the rows: where the
// moment is stored, how one is claimed and released. A Worker joins both with what is to
// be done. The row is the truth: whatever is forgotten here is read there again.
package work

import (
	"slices"
	"sync"
	"time"
)

const (
	// PageSize is how many jobs of one lane wait in memory, and how many are read at a
	// time; the others stay in their rows.
	PageSize = 256
	// maxHeld bounds the jobs that are held until their moment.
	maxHeld = 50_000
	// maxAhead bounds the jobs that are claimed without a slot.
	maxAhead = 1024
	// aheadTime is how long a job that is claimed without a slot should wait for one.
	aheadTime = time.Second
)

// Job is one row that is due, or will be.
type Job struct {
	ID   int64
	Lane int64 // its counterpart: a lane is slow, or closed, as a whole
	At   int64 // not before, Unix µs by the clock of the rows; 0 = now
}

// Gate is what a lane may do now. The zero Gate is closed.
type Gate struct {
	Open  bool // jobs may run
	Probe bool // one may run in this Epoch, to find out whether the others can
	// Lease allows a probe to be leased: the Source does so as it claims, and sets the
	// slot's Epoch.
	Lease bool
	Only  int64 // the job that may run; 0 = any
	Max   int   // jobs at a time on this node; below 1 means 1
	// PerSecond is the rate of all nodes together, one second's worth at once after a
	// pause; NodeRate that of this node, one by one. 0 = no bound.
	PerSecond, NodeRate float64
	// Epoch identifies the gate under which a job began; it is copied to the Slot.
	Epoch int64
}

// allows reports whether anything may run.
func (g Gate) allows() bool { return g.Open || g.Probe || g.Lease }

// Slot is the right to run one job now, or to claim it ahead. Each ends by Done or by Return.
type Slot struct {
	ID, Lane int64
	Probe    bool
	Ahead    bool // to be claimed now, and run once Next returns it again
	Claimed  bool // it was claimed ahead
	Closed   bool // it was claimed ahead, and its lane has closed: to be released
	Epoch    int64
	run      int64 // differs from that of any other slot of the same job
}

// SlotOptions are the bounds of Slots.
type SlotOptions struct {
	Size int // jobs that may run on this node at a time
	// Gate is called under the lock of the Slots: it must be quick, and not call them.
	Gate  func(lane int64) Gate
	Nodes func() int // that share the rates, this one included; nil = 1
}

// Slots gives the node's slots to lanes in turn. All times are parameters, in Unix µs by the
// clock of the rows. It starts no goroutine: Next is to be called after each change.
type Slots struct {
	o SlotOptions

	mu          sync.Mutex
	lanes       map[int64]*lane
	jobs        map[int64]*job // all that are in memory, by id
	held        byMoment[*job]
	paced       byMoment[*lane] // lanes that wait for a token
	quick, slow pool
	inFlight    int     // of both pools
	endedAt     int64   // when a slot became free
	ahead       int     // jobs that are claimed, or about to be, and have no slot
	early       []*lane // of which a waiting job may be claimed ahead
	closed      []*job  // claimed ahead, of lanes that have closed
	thin        []*lane // whose line may be empty
	runs        int64   // slots so far
}

// state is where a job is.
type state int

const (
	isHeld state = iota
	isWaiting
	isReserved // about to be claimed ahead, or released
	isClaimed  // ahead
	isRunning
)

type job struct {
	Job
	state state
	lane  *lane // nil while it is held
	epoch int64
	probe bool
	slow  bool  // while it runs: in which pool it is counted
	run   int64 // of its slot
	// leasing is set until the lease of a probe has succeeded.
	leasing bool
}

// NewSlots makes Slots of which none is in use.
func NewSlots(o SlotOptions) *Slots {
	s := &Slots{o: o, lanes: map[int64]*lane{}, jobs: map[int64]*job{}}
	s.quick, s.slow = newPools(o.Size)
	return s
}

// Offer takes jobs that are due now or at their moment. What does not fit, or belongs to a
// closed lane, stays in its row.
func (s *Slots) Offer(now int64, jobs ...Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offer(now, jobs)
}

func (s *Slots) offer(now int64, jobs []Job) {
	for _, j := range jobs {
		// What is held may have become due earlier: it was sent again by an operator.
		if known := s.jobs[j.ID]; known != nil && (known.state != isHeld || j.At > now) {
			continue
		}
		if j.At > now {
			s.hold(j)
		} else {
			s.enqueue(now, j)
		}
	}
}

// Reserve reserves the place of a job that is about to be created as claimed, if its lane
// may have one more and no other job waits to be claimed. It takes a slot of the node once
// it runs, after Committed.
func (s *Slots) Reserve(now, id, laneID int64) (Slot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, l := s.o.Gate(laneID), s.lane(now, laneID)
	switch {
	case s.jobs[id] != nil || !g.Open || g.PerSecond > 0 || g.NodeRate > 0:
		return Slot{}, false // a lane with a rate has a line
	case l.slow || l.more || l.reading || len(l.waiting) > 0:
		return Slot{}, false
	}
	if s.quickFree() && l.inFlight+l.ahead < s.limit(l, g) || s.mayClaimAhead(now, l, g) {
		return s.reserve(&job{Job: Job{ID: id, Lane: laneID}, lane: l}), true
	}
	return Slot{}, false
}

func (s *Slots) reserve(j *job) Slot {
	s.runs++
	j.state, j.run = isReserved, s.runs
	s.jobs[j.ID] = j
	j.lane.ahead++
	s.ahead++
	x := j.slot()
	x.Ahead = true
	return x
}

func (s *Slots) quickFree() bool { return s.inFlight < s.o.Size && s.quick.inFlight < s.quick.max }

// mayClaimAhead reports whether a lane may have one more job claimed without a slot: a claim
// waits for its transaction, and slots that wait with it are missing for jobs that could
// run. What is claimed is bound to this node, so it is no more than the lane runs in
// aheadTime, and nothing while no slot becomes free.
func (s *Slots) mayClaimAhead(now int64, l *lane, g Gate) bool {
	hangs := func(running bool, since int64) bool { return running && now-since > aheadTime.Microseconds() }
	if !l.proven || l.slow || hangs(l.inFlight > 0, l.usedAt) || hangs(!s.quickFree(), s.endedAt) {
		return false
	}
	return s.ahead < maxAhead && l.ahead < min(PageSize, s.limit(l, g)*int(aheadTime/max(l.took, time.Millisecond)))
}

// Committed is called once a job is claimed ahead: Next returns it as soon as there is a slot
// for it, before those of its lane that are not claimed.
func (s *Slots) Committed(x Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.of(x); j != nil && j.state == isReserved {
		j.state = isClaimed
		j.lane.claimed = append(j.lane.claimed, j)
		s.makeReady(j.lane, s.o.Gate(j.Lane))
	}
}

// Next grants the free slots, one per lane in turn, and then what may be claimed ahead.
// refill are lanes whose next jobs are to be read from their rows, each followed by Refilled.
// wakeAt is when to call it again if nothing happens before; 0 = no need.
func (s *Slots) Next(now int64) (grant []Slot, refill []int64, wakeAt int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due(now)
	for s.inFlight < s.o.Size {
		l, g := s.next(now, &s.quick)
		if l == nil {
			l, g = s.next(now, &s.slow)
		}
		if l == nil {
			break
		}
		grant = append(grant, s.start(now, l, g))
	}
	for len(s.early) > 0 && s.ahead < maxAhead {
		l := s.early[0]
		s.early = s.early[1:]
		l.early = false
		g := s.o.Gate(l.id)
		if len(l.waiting) > 0 && l.pausedTo == 0 && g.Open && s.mayClaimAhead(now, l, g) && s.inRate(now, l, g) {
			grant = append(grant, s.reserve(l.take()))
			s.makeReady(l, g)
		}
	}
	for _, j := range s.closed {
		x := j.slot()
		x.Closed = true
		grant = append(grant, x)
	}
	s.closed = nil
	for _, l := range s.thin {
		if l.more && !l.reading && len(l.waiting) == 0 {
			l.more, l.reading = false, true
			refill = append(refill, l.id)
		}
	}
	s.thin = s.thin[:0]
	return grant, refill, s.wakeAt()
}

// Refilled adds what was read of a lane; full means that there may be more rows.
func (s *Slots) Refilled(now, laneID int64, jobs []Job, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lane(now, laneID)
	l.reading = false
	if l.more { // set meanwhile, perhaps for rows that were not read
		s.thin = append(s.thin, l)
	}
	l.more = l.more || full
	s.offer(now, jobs)
}

// More marks lanes of which rows may be due that are not in memory. Closed lanes are left
// out.
func (s *Slots) More(now int64, lanes ...int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range lanes {
		if g := s.o.Gate(id); g.allows() {
			l := s.lane(now, id)
			l.more = true
			s.thin = append(s.thin, l)
			s.makeReady(l, g)
		}
	}
}

// Forget leaves the waiting jobs of a lane to their rows.
func (s *Slots) Forget(laneID int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lanes[laneID]; l != nil {
		s.keepOnly(l, 0)
	}
}

// Late is called for a job that has been running for SlowAfter: its lane is slow from now on,
// and the job counts in the slow pool, so that quick lanes need not wait for its end.
func (s *Slots) Late(x Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.of(x)
	if j == nil || j.state != isRunning {
		return
	}
	j.lane.slow, j.lane.quickRuns, j.lane.proven = true, 0, false
	s.count(j, -1)
	j.slow = true
	s.count(j, 1)
}

// Began sets the Epoch of a probe that was leased.
func (s *Slots) Began(x Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.of(x); j != nil {
		j.leasing, j.epoch = false, x.Epoch
	}
}

// Done frees a slot whose job has run. How long it took, and whether it succeeded, change
// what the lane may do.
func (s *Slots) Done(now int64, x Slot, took time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.of(x); j != nil && j.state == isRunning {
		j.lane.ended(took, ok)
		s.release(now, j)
	}
}

// Return frees a slot whose job was not tried. again means that its row is due again.
func (s *Slots) Return(now int64, x Slot, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.of(x); j != nil {
		j.lane.more = j.lane.more || again
		s.release(now, j)
	}
}

// of is the job that has the slot; nil where the slot was freed.
func (s *Slots) of(x Slot) *job {
	if j := s.jobs[x.ID]; j != nil && j.run == x.run && x.run != 0 {
		return j
	}
	return nil
}

// start grants a slot to the next job of a lane.
func (s *Slots) start(now int64, l *lane, g Gate) Slot {
	var j *job
	claimed := len(l.claimed) > 0
	if claimed {
		j, l.claimed = l.claimed[0], l.claimed[1:]
		l.ahead--
		s.ahead--
	} else {
		j = l.take()
		s.runs++
		j.probe, j.run = !g.Open, s.runs
	}
	if j.probe {
		j.leasing, l.probe = !g.Probe, j
	}
	j.state, j.epoch, j.slow = isRunning, g.Epoch, l.slow
	l.inFlight++
	l.usedAt = now
	s.count(j, 1)
	x := j.slot()
	x.Claimed = claimed
	s.makeReady(l, g)
	return x
}

func (j *job) slot() Slot {
	return Slot{ID: j.ID, Lane: j.Lane, Probe: j.probe, Epoch: j.epoch, run: j.run}
}

// release frees what a job had, and queues its lane again.
func (s *Slots) release(now int64, j *job) {
	delete(s.jobs, j.ID)
	l := j.lane
	if j.state == isRunning {
		s.count(j, -1)
		l.inFlight--
		l.usedAt, s.endedAt = now, now
	} else {
		l.ahead--
		s.ahead--
		l.claimed = slices.DeleteFunc(l.claimed, func(x *job) bool { return x == j })
	}
	if l.probe == j {
		l.probe = nil
	}
	s.makeReady(l, s.o.Gate(l.id))
	s.thin = append(s.thin, l)
}

// count adds a slot to the pool that its job belongs to.
func (s *Slots) count(j *job, n int) {
	s.pool(j.slow).inFlight += n
	s.inFlight += n
}
