package db

import (
	"sync"
	"time"
)

// maxGather bounds how long items wait for more while a transaction runs: a transaction that
// is delayed, by a lock or a slow disk, must not delay the others.
const maxGather = 20 * time.Millisecond

// load counts the running transactions of a Batcher and their items.
type load struct {
	mu           sync.Mutex
	transactions int
	items        int
	ended        chan struct{} // receives when a transaction has ended; of capacity 1
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

// carries reports whether a transaction of this many items is worth its cost: no other is
// running, or the running ones have no more items on average.
func (l *load) carries(items int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return items*l.transactions >= l.items
}
