package db

// SharedWaiting is how many parts wait for the next shared transaction.
func (d *DB) SharedWaiting() int {
	d.shared.mu.Lock()
	defer d.shared.mu.Unlock()
	return len(d.shared.waiting)
}

// Waiting is how many items wait for a writer now.
func (b *Batcher[In, Out]) Waiting() int { return len(b.queue) + int(b.held.Load()) }
