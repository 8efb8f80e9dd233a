package work

import "slices"

// Stats is how a node's slots are used.
type Stats struct {
	Quick, Slow int // slots in use by quick lanes and by slow lanes
	Ahead       int // jobs that are claimed, or about to be, and have no slot
	Ready       int // lanes that wait for a slot
	Jobs        int // held, waiting, reserved or running
	Held        int // jobs held until their moment
	Lanes       int
}

// Stats returns how the slots are used.
func (s *Slots) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Quick: s.quick.inFlight, Slow: s.slow.inFlight, Ahead: s.ahead, Ready: len(s.quick.ready) + len(s.slow.ready),
		Jobs: len(s.jobs), Held: len(s.held), Lanes: len(s.lanes),
	}
}

// SlowLanes returns the ids of slow lanes in ascending order.
func (s *Slots) SlowLanes() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []int64
	for id, l := range s.lanes {
		if l.slow {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// LaneStats is the state of a lane.
type LaneStats struct {
	Slow  bool
	Paced bool // it waits because of its rate
	// Reading says that its due rows are being read, or are about to be.
	Reading bool
	// PerSecond is its rate on this node, and Burst how many jobs may begin at once after a
	// pause; 0 = it has no rate.
	PerSecond float64
	Burst     int
}

// Lane returns the state of a lane.
func (s *Slots) Lane(id int64) (x LaneStats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lanes[id]; l != nil {
		x.Slow, x.Paced, x.Reading = l.slow, l.pausedTo != 0, l.reading || l.more
		if l.limiter != nil {
			x.PerSecond, x.Burst = float64(l.limiter.Limit()), l.limiter.Burst()
		}
	}
	return x
}
