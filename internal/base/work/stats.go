package work

import "slices"

// Stats is how a node's slots are used.
type Stats struct {
	Quick, Slow int // slots in use, of lanes that are quick and of those that are slow
	Ahead       int // jobs that are claimed, or about to be, and have no slot
	Ready       int // lanes that wait for a slot
	Jobs        int // held, waiting, reserved or running
	Held        int // until their moment
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

// SlowLanes are the lanes whose jobs take long, in order.
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
	Paced bool // its rate holds it back
	// PerSecond is its rate on this node, and Burst what may begin at once after a
	// pause; 0 = it has none.
	PerSecond float64
	Burst     int
}

// Lane returns the state of a lane.
func (s *Slots) Lane(id int64) (x LaneStats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lanes[id]; l != nil {
		x.Slow, x.Paced = l.slow, l.pausedTo != 0
		if l.limiter != nil {
			x.PerSecond, x.Burst = float64(l.limiter.Limit()), l.limiter.Burst()
		}
	}
	return x
}
