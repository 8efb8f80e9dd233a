// Package work runs deferred jobs: it decides which of the rows that are due run now on
// this node, so that one slow or dead counterpart does not delay the others.
//
// Slots decides by ids, lanes, gates and time alone. A Source hides the rows: where their
// due time is stored, and how they are claimed and released. A Worker connects both with the
// function that does the work. The row is the truth: whatever is forgotten in memory is read
// from it again.
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
	// maxAhead bounds the jobs that are claimed without a slot, and a fourth of it those of one
	// lane. It should exceed what a node runs in aheadTime: the jobs beyond it are claimed from
	// their rows, which costs most when there is most to do.
	maxAhead = 4096
	// aheadTime is how long a job that is claimed without a slot should wait for one at most.
	aheadTime = time.Second
)

// Job is one row that is due, or will be.
type Job struct {
	ID   int64
	Lane int64 // id of its counterpart: a lane is slow, or closed, as a whole
	At   int64 // not before, Unix µs by the clock of the rows; 0 = now
}

// Gate is what a lane may do now. The zero Gate is closed.
type Gate struct {
	Open  bool // jobs may run
	Probe bool // one job may run in this Epoch, to find out whether the others can
	// Lease allows a probe to be leased: the Source leases it when it claims the row, and
	// sets the slot's Epoch.
	Lease bool
	Only  int64 // the job that may run; 0 = any
	Max   int   // jobs at a time on this node; below 1 means 1
	// PerSecond is the rate of all nodes together, with one second's worth at once after a
	// pause. NodeRate is the rate of this node, without bursts. 0 = no bound.
	PerSecond, NodeRate float64
	// Epoch identifies the gate under which a job began; it is copied to the Slot.
	Epoch int64
}

// allows reports whether anything may run.
func (g Gate) allows() bool { return g.Open || g.Probe || g.Lease }

// Slot is the right to run one job now, or to claim it ahead of a free slot. Each ends with
// Done or Return.
type Slot struct {
	ID, Lane int64
	Probe    bool
	Ahead    bool // claim the job now, and run it when Next returns the slot again
	Claimed  bool // the job was claimed ahead
	Closed   bool // the job was claimed ahead and its lane has closed: release it
	Epoch    int64
	run      int64 // distinguishes the slots of the same job
}

// SlotOptions are the bounds of Slots.
type SlotOptions struct {
	Size int // jobs that may run on this node at a time
	// Gate is called with the lock of Slots held: it must be quick and must not call Slots.
	Gate  func(lane int64) Gate
	Nodes func() int // nodes that share the rates, this one included; nil = 1
}

// Slots gives the node's slots to lanes in turn. All times are parameters, in Unix µs by the
// clock of the rows. It starts no goroutine: call Next after each change.
type Slots struct {
	o SlotOptions

	mu          sync.Mutex
	lanes       map[int64]*lane
	jobs        map[int64]*job // all jobs in memory, by id
	held        byMoment[*job]
	paced       byMoment[*lane] // lanes that wait for a token
	quick, slow pool
	inFlight    int     // of both pools
	endedAt     int64   // when a slot last became free
	ahead       int     // jobs that are claimed, or about to be, and have no slot
	early       []*lane // lanes of which a waiting job may be claimed ahead
	closed      []*job  // jobs claimed ahead whose lanes have closed
	thin        []*lane // lanes that may have no waiting jobs left
	runs        int64   // slots given so far
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
	lane  *lane // nil while the job is held
	epoch int64
	probe bool
	slow  bool  // while it runs: the slow pool counts it
	run   int64 // of its slot
	// leasing is set until the lease of a probe has succeeded.
	leasing bool
}

// NewSlots returns Slots of which none is in use.
func NewSlots(o SlotOptions) *Slots {
	s := &Slots{o: o, lanes: map[int64]*lane{}, jobs: map[int64]*job{}}
	s.quick, s.slow = newPools(o.Size)
	return s
}

// Offer takes jobs that are due now or at their moment. A job that does not fit, or whose lane
// is closed, stays in its row.
func (s *Slots) Offer(now int64, jobs ...Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offer(now, jobs)
}

func (s *Slots) offer(now int64, jobs []Job) {
	for _, j := range jobs {
		// A held job may become due earlier, when an operator sends it again.
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

// Reserve reserves room for a job that is about to be created as claimed, if its lane has room
// and none of its jobs waits to be claimed. The job takes a slot of the node when it runs,
// after Committed.
func (s *Slots) Reserve(now, id, laneID int64) (Slot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, l := s.o.Gate(laneID), s.lane(now, laneID)
	switch {
	case s.jobs[id] != nil || !g.Open || g.PerSecond > 0 || g.NodeRate > 0:
		return Slot{}, false // jobs of a lane with a rate begin in turn
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

// mayClaimAhead reports whether a lane may have one more job claimed without a slot. A claim
// waits for its transaction, and a slot that waited with it could not run another job
// meanwhile. Claimed jobs are bound to this node, so a lane has no more of them than it runs
// in aheadTime, and none are claimed while no slot becomes free.
func (s *Slots) mayClaimAhead(now int64, l *lane, g Gate) bool {
	hangs := func(running bool, since int64) bool { return running && now-since > aheadTime.Microseconds() }
	if !l.proven || l.slow || hangs(l.inFlight > 0, l.usedAt) || hangs(!s.quickFree(), s.endedAt) {
		return false
	}
	return s.ahead < maxAhead && l.ahead < min(maxAhead/4, s.limit(l, g)*int(aheadTime/max(l.took, time.Millisecond)))
}

// Committed must be called once a job is claimed ahead. Next returns it as soon as there is a
// slot for it, before the jobs of its lane that are not claimed.
func (s *Slots) Committed(x Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.of(x); j != nil && j.state == isReserved {
		j.state = isClaimed
		j.lane.claimed = append(j.lane.claimed, j)
		s.makeReady(j.lane, s.o.Gate(j.Lane))
	}
}

// Next grants the free slots, one per lane in turn, and then the jobs that may be claimed
// ahead. refill are the lanes whose next jobs must be read from their rows, followed by a
// call of Refilled for each. wakeAt is when to call Next again if nothing happens before;
// 0 = no need.
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

// Refilled adds the jobs that were read for a lane; full means that there may be more rows.
func (s *Slots) Refilled(now, laneID int64, jobs []Job, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lane(now, laneID)
	l.reading = false
	if l.more { // set during the read, perhaps for rows that it missed
		s.thin = append(s.thin, l)
	}
	l.more = l.more || full
	s.offer(now, jobs)
}

// More marks lanes that may have due rows that are not in memory. Closed lanes are ignored.
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

// Late must be called when a job has been running for SlowAfter: its lane becomes slow, and
// the job counts in the slow pool, so that quick lanes need not wait for its end.
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

// Done frees a slot whose job has run. Its duration and success determine what the lane may
// do next.
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

// of returns the job that has the slot; nil if the slot was freed.
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

// release frees a job's slot or its room among the claimed, and queues its lane again.
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
