// Package work runs deferred jobs: which of the rows that are due runs now, on this
// node, without one slow or dead counterpart holding up the others.
//
// Slots decides, and knows nothing but ids, lanes, gates and time. A Source hides the
// rows: where the moment is stored, how one is claimed and released. A Worker joins the
// two with what is to be done. The row is the truth: whatever is forgotten here is
// found there again.
package work

import (
	"container/heap"
	"slices"
	"sync"
	"time"
)

const (
	// PageSize is how many jobs of one lane wait in memory, and how many are read at
	// a time; what is more stays in its row until there is a slot.
	PageSize = 256
	// maxHeld bounds the jobs that are held until their moment.
	maxHeld = 50_000
)

// Job is one row that is due, or will be.
type Job struct {
	ID   int64
	Lane int64 // whom it concerns: what is slow or shut is so for a lane
	At   int64 // not before, Unix µs by the clock of the rows; 0 = now
}

// Gate is what a lane may do now. Its owner answers, from memory; the zero Gate is
// closed.
type Gate struct {
	Open  bool // jobs may run
	Probe bool // one may in this Epoch, to find out whether the others can
	// Ask says that a probe may be asked for: the Source does so as it claims, and
	// says in the slot in which Epoch it runs.
	Ask  bool
	Only int64 // the one that may; 0 = any
	Max  int   // jobs at a time on this node; below 1 means 1
	// PerSecond is the rate of all nodes together, one second's worth at once after a
	// pause; Trickle that of this node, one by one. 0 = no bound.
	PerSecond, Trickle float64
	// Epoch comes back in the Slot: under which gate its job began.
	Epoch int64
}

// allows says whether anything may run.
func (g Gate) allows() bool { return g.Open || g.Probe || g.Ask }

// Slot is the right to run one job now. Each ends by Done or by Return.
type Slot struct {
	ID, Lane int64
	Probe    bool
	Created  bool // by Reserve: its row was created as claimed
	Epoch    int64
	run      int64 // tells it from another slot of the same job
}

// SlotOptions are the bounds of Slots.
type SlotOptions struct {
	Size int // jobs that may run on this node at a time
	// Gate is asked under the lock of the Slots: it must be quick, and not call them.
	Gate  func(lane int64) Gate
	Nodes func() int // those which share the rates, this one included; nil = it is alone
}

// Slots hands the node's slots to lanes in turn. All times are given in, in Unix µs by
// the clock of the rows. It starts no goroutine: whoever changes something calls Next
// after it.
type Slots struct {
	o SlotOptions

	mu          sync.Mutex
	lanes       map[int64]*lane
	jobs        map[int64]*job // all that is known here, by id
	held        jobHeap
	paced       laneHeap
	quick, slow pool
	inFlight    int     // of both pools
	reserved    int     // promised to what is about to be created
	created     []*job  // reserved, committed, and not begun
	thin        []*lane // whose line may have run out
	runs        int64   // slots so far
}

// state is where a job is.
type state int

const (
	isHeld state = iota
	isWaiting
	isReserved
	isCreated
	isRunning
)

type job struct {
	Job
	state state
	lane  *lane // nil while it is held
	epoch int64
	probe bool
	asks  bool  // its probe has not been claimed yet
	slow  bool  // while it runs: which pool it is counted in
	run   int64 // of its slot
}

// NewSlots makes Slots of which none is in use.
func NewSlots(o SlotOptions) *Slots {
	s := &Slots{o: o, lanes: map[int64]*lane{}, jobs: map[int64]*job{}}
	s.quick, s.slow = newPools(o.Size)
	return s
}

// Offer takes jobs that are due now or at their moment. What does not fit, or is of a
// closed lane, stays in its row.
func (s *Slots) Offer(now int64, jobs ...Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offer(now, jobs)
}

func (s *Slots) offer(now int64, jobs []Job) {
	for _, j := range jobs {
		// What is held may have become due earlier: somebody sends it again.
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

// Reserve promises a slot to a job that is about to be created, if its lane may have
// one and nobody waits for it. It counts as the lane's from now on, and as the node's
// once it is begun, after Committed.
func (s *Slots) Reserve(now, id, laneID int64) (Slot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.quickFree() || len(s.quick.ready) > 0 || s.reserved+len(s.created) >= s.o.Size || s.jobs[id] != nil {
		return Slot{}, false
	}
	g, l := s.o.Gate(laneID), s.lane(now, laneID)
	switch {
	case !g.Open || g.PerSecond > 0 || g.Trickle > 0:
		return Slot{}, false // what is rationed stands in line
	case l.slow || l.more || l.reading || len(l.waiting) > 0 || l.inFlight >= s.limit(l, g):
		return Slot{}, false
	}
	s.runs++
	j := &job{Job: Job{ID: id, Lane: laneID}, state: isReserved, lane: l, epoch: g.Epoch, run: s.runs}
	s.jobs[id] = j
	l.inFlight++
	l.usedAt = now
	s.reserved++
	return j.slot(true), true
}

// Committed says that the row of a reserved slot is there: Next hands it out as soon as
// the node has room, before all others, as its lease runs.
func (s *Slots) Committed(x Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.of(x); j != nil && j.state == isReserved {
		j.state = isCreated
		s.reserved--
		s.created = append(s.created, j)
	}
}

// Next hands out the slots that are free, one per lane in turn. refill are lanes whose
// next jobs are to be read from their rows, each to be answered by Refilled. wakeAt is
// when to come again if nothing happens before; 0 = no need.
func (s *Slots) Next(now int64) (grant []Slot, refill []int64, wakeAt int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due(now)
	for len(s.created) > 0 && s.quickFree() {
		j := s.created[0]
		s.created = s.created[1:]
		grant = append(grant, s.begin(j, true))
	}
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
	for _, l := range s.thin {
		if l.more && !l.reading && len(l.waiting) == 0 {
			l.more, l.reading = false, true
			refill = append(refill, l.id)
		}
	}
	s.thin = s.thin[:0]
	return grant, refill, s.wakeAt()
}

// Refilled brings what was read of a lane; full says that there may be more behind it.
func (s *Slots) Refilled(now, laneID int64, jobs []Job, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lane(now, laneID)
	l.reading = false
	if l.more { // said meanwhile, of rows that were not seen perhaps
		s.thin = append(s.thin, l)
	}
	l.more = l.more || full
	s.offer(now, jobs)
}

// More says that rows of the lanes may be due that nobody holds here. Closed lanes are
// passed over.
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

// Forget leaves what waits in a lane to its rows.
func (s *Slots) Forget(laneID int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lanes[laneID]; l != nil {
		s.keepOnly(l, 0)
	}
}

// Late says of a job that it has been running for SlowAfter: its lane is slow from now
// on, and the job counts with the slow ones, so that others need not wait for its end.
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

// Began says in which Epoch a probe runs that was asked for.
func (s *Slots) Began(x Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.of(x); j != nil {
		j.asks, j.epoch = false, x.Epoch
	}
}

// Done gives a slot back. The lane learns from how the job went: whether it did, and
// how long it took.
func (s *Slots) Done(now int64, x Slot, took time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.of(x); j != nil && j.state == isRunning {
		j.lane.learn(took, ok)
		s.release(now, j)
	}
}

// Return gives a slot back of which nothing was tried. again says that the job is due
// again in its row.
func (s *Slots) Return(now int64, x Slot, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.of(x); j != nil {
		j.lane.more = j.lane.more || again
		s.release(now, j)
	}
}

// of is the job that has the slot; nil where it has been given back.
func (s *Slots) of(x Slot) *job {
	if j := s.jobs[x.ID]; j != nil && j.run == x.run && x.run != 0 {
		return j
	}
	return nil
}

// start gives a slot to the next job of a lane.
func (s *Slots) start(now int64, l *lane, g Gate) Slot {
	j := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.inFlight++
	l.usedAt = now
	s.runs++
	j.epoch, j.probe, j.run = g.Epoch, !g.Open, s.runs
	if j.probe {
		j.asks, l.probe = !g.Probe, j
	}
	j.slow = l.slow
	x := s.begin(j, false)
	s.makeReady(l, g)
	return x
}

// begin counts a job as one that runs.
func (s *Slots) begin(j *job, created bool) Slot {
	j.state = isRunning
	s.count(j, 1)
	return j.slot(created)
}

func (j *job) slot(created bool) Slot {
	return Slot{ID: j.ID, Lane: j.Lane, Probe: j.probe, Created: created, Epoch: j.epoch, run: j.run}
}

// release ends what a job had, and looks whether its lane has more.
func (s *Slots) release(now int64, j *job) {
	delete(s.jobs, j.ID)
	l := j.lane
	l.inFlight--
	l.usedAt = now
	switch j.state {
	case isRunning:
		s.count(j, -1)
	case isReserved:
		s.reserved--
	case isCreated:
		s.created = slices.DeleteFunc(s.created, func(x *job) bool { return x == j })
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

func (s *Slots) quickFree() bool { return s.inFlight < s.o.Size && s.quick.inFlight < s.quick.max }

// hold keeps a job until its moment.
func (s *Slots) hold(j Job) {
	if len(s.held) >= maxHeld {
		return // its row is found when it is due
	}
	h := &job{Job: j, state: isHeld}
	s.jobs[j.ID] = h
	heap.Push(&s.held, h)
}

// due moves held jobs into their lanes at their moment, and lets lanes go on whose rate
// allows one more.
func (s *Slots) due(now int64) {
	for len(s.held) > 0 && s.held[0].At <= now {
		j := heap.Pop(&s.held).(*job)
		if s.jobs[j.ID] == j && j.state == isHeld { // else it did not wait for its moment
			delete(s.jobs, j.ID)
			s.enqueue(now, j.Job)
		}
	}
	for len(s.paced) > 0 && s.paced[0].goesOn <= now {
		l := heap.Pop(&s.paced).(*lane)
		l.goesOn = 0
		s.makeReady(l, s.o.Gate(l.id))
	}
}

func (s *Slots) wakeAt() (at int64) {
	if len(s.held) > 0 {
		at = s.held[0].At
	}
	if len(s.paced) > 0 && (at == 0 || s.paced[0].goesOn < at) {
		at = s.paced[0].goesOn
	}
	return at
}

// jobHeap orders held jobs by their moment.
type jobHeap []*job

func (h jobHeap) Len() int           { return len(h) }
func (h jobHeap) Less(i, j int) bool { return h[i].At < h[j].At }
func (h jobHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *jobHeap) Push(x any)        { *h = append(*h, x.(*job)) }
func (h *jobHeap) Pop() any          { return pop((*[]*job)(h)) }

func pop[T any](h *[]T) T {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
