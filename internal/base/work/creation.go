package work

import (
	"backstop/internal/base/db"
)

// Creation is what one transaction creates as claimed: with a free slot, a row is
// written as this node's claim and run after the commit. Neither the queue nor a claim
// of its own is needed then. What finds no slot is found when it is due, and so is what
// a node leaves that dies: the row is like that of any other claim.
type Creation[T, R any] struct {
	w     *Worker[T, R]
	lease Lease
	all   []Claimed[T]
}

// Creation begins one that ends with the transaction; nil, of a worker that is nil,
// claims nothing.
func (w *Worker[T, R]) Creation(tx db.Tx) *Creation[T, R] {
	if w == nil {
		return nil
	}
	c := &Creation[T, R]{w: w, lease: w.lease()}
	tx.OnEnd(c.end)
	return c
}

// Reserve gives a job that is about to be created a slot, if there is one, and the
// lease that its row is to be written with. row is what the slot runs.
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
		w.calls.Add(1) // until it is over
	}
	return x, ok
}

// end runs what was created, or forgets it. Where it is not known whether the
// transaction was committed, its rows wait for the end of their lease.
func (c *Creation[T, R]) end(err error) {
	if len(c.all) == 0 {
		return
	}
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range c.all {
		switch {
		case err != nil:
			w.o.Slots.Return(w.o.DB.Now(), x.Slot, false)
			w.calls.Done()
		case w.closing:
			go w.giveBack(x)
		default:
			w.created[x.Slot.ID] = x
			w.o.Slots.Committed(x.Slot)
		}
	}
	w.next()
}

// giveBack releases what was created as claimed and finds its process ending.
func (w *Worker[T, R]) giveBack(c Claimed[T]) {
	defer w.calls.Done()
	w.untried(c, w.o.DB.Now())
}
