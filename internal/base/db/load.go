package db

import (
	"sync"
	"time"
)

// maxGather bounds how long items wait for company beside a transaction that
// runs: one that is held up, by a lock or a slow disk, must not hold up the others.
const maxGather = 20 * time.Millisecond

// load is what the transactions of a Batcher that run now carry.
type load struct {
	mu           sync.Mutex
	transactions int
	items        int
	ended        chan struct{} // holds one: a transaction is over
}

func (l *load) begin(items int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.transactions++
	l.items += items
}

func (l *load) end(items int) {
	l.mu.Lock()
	l.transactions--
	l.items -= items
	l.mu.Unlock()
	select {
	case l.ended <- struct{}{}:
	default:
	}
}

// carries says that a transaction of so many items is worth its own cost: nothing
// runs, or what runs has no more items each.
func (l *load) carries(items int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return items*l.transactions >= l.items
}
