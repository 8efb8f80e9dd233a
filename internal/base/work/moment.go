package work

import "container/heap"

// byMoment is a heap of jobs or lanes that wait for a moment, the earliest first.
type byMoment[T interface{ moment() int64 }] []T

func (j *job) moment() int64  { return j.At }
func (l *lane) moment() int64 { return l.pausedTo }

func (h byMoment[T]) Len() int           { return len(h) }
func (h byMoment[T]) Less(i, j int) bool { return h[i].moment() < h[j].moment() }
func (h byMoment[T]) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byMoment[T]) Push(x any)        { *h = append(*h, x.(T)) }

func (h *byMoment[T]) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// hold keeps a job until its moment.
func (s *Slots) hold(j Job) {
	if len(s.held) >= maxHeld {
		return // its row is read when it is due
	}
	h := &job{Job: j, state: isHeld}
	s.jobs[j.ID] = h
	heap.Push(&s.held, h)
}

// due moves held jobs into their lanes at their moment, and makes lanes ready whose rate
// allows one more.
func (s *Slots) due(now int64) {
	for len(s.held) > 0 && s.held[0].At <= now {
		j := heap.Pop(&s.held).(*job)
		if s.jobs[j.ID] == j && j.state == isHeld { // else it became due earlier
			delete(s.jobs, j.ID)
			s.enqueue(now, j.Job)
		}
	}
	for len(s.paced) > 0 && s.paced[0].pausedTo <= now {
		l := heap.Pop(&s.paced).(*lane)
		l.pausedTo = 0
		s.makeReady(l, s.o.Gate(l.id))
	}
}

func (s *Slots) wakeAt() (at int64) {
	if len(s.held) > 0 {
		at = s.held[0].At
	}
	if len(s.paced) > 0 && (at == 0 || s.paced[0].pausedTo < at) {
		at = s.paced[0].pausedTo
	}
	return at
}
