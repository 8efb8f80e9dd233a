package work

import (
	"backstop/internal/base/db"
)

// Creation is the set of jobs that one transaction creates already claimed. If its lane has
// room, a row is written as claimed by this node and runs after the commit, without the queue
// and without a separate claim. All other rows are read when they are due. So are the rows of
// a node that crashes, once their lease ends, like any other claim.
type Creation[T, R any] struct {
	w     *Worker[T, R]
	lease Lease
	all   []Claimed[T]
}

// Creation begins a Creation that ends with the transaction.
func (w *Worker[T, R]) Creation(tx db.Tx) *Creation[T, R] {
	c := &Creation[T, R]{w: w, lease: w.lease()}
	tx.OnEnd(c.end)
	return c
}

// Reserve reserves room for a job that is about to be created, and reports whether there was
// any. row receives the lease to be stored, and returns what the slot runs.
func (c *Creation[T, R]) Reserve(id, lane int64, row func(Lease) T) bool {
	x, ok := c.w.reserve(id, lane)
	if ok {
		c.all = append(c.all, Claimed[T]{x, row(c.lease)})
	}
	return ok
}

func (w *Worker[T, R]) reserve(id, lane int64) (Slot, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing || w.unwritten >= maxUnwritten {
		return Slot{}, false
	}
	x, ok := w.o.Slots.Reserve(w.o.DB.Now(), id, lane)
	if ok {
		w.calls.Add(1) // until it has run
	}
	return x, ok
}

// end runs what was created, or nothing if the transaction failed. If it is unknown whether
// the commit succeeded, the rows wait for the end of their lease.
func (c *Creation[T, R]) end(err error) {
	if len(c.all) == 0 {
		return
	}
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range c.all {
		if err != nil {
			w.o.Slots.Return(w.o.DB.Now(), x.Slot, false)
			w.calls.Done()
			continue
		}
		w.hold(x)
	}
	w.next()
}
