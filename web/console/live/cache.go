package live

import (
	"context"
	"sync"
	"time"
)

// Cache holds what has been read, so that one query serves all consoles.
type Cache[K comparable, T any] struct {
	mu   sync.Mutex
	kept map[K]*kept[T]
}

type kept[T any] struct {
	mu    sync.Mutex
	at    time.Time
	value T
	err   error
}

const (
	// maxKept bounds the cached values: there are few panels but many batches.
	maxKept = 500
	// readTime bounds one query of a cache, which is not part of a request.
	readTime = 3 * time.Second
)

// Get returns a value that is at most so old, and when it was read. Errors are cached as long as
// values, so that a database that is down gets no extra queries.
func (c *Cache[K, T]) Get(key K, every time.Duration, read func(context.Context) (T, error)) (T, time.Time, error) {
	c.mu.Lock()
	k := c.kept[key]
	if k == nil {
		k = new(kept[T])
		if c.kept == nil || len(c.kept) >= maxKept { // batches that nobody views any more
			c.kept = map[K]*kept[T]{}
		}
		c.kept[key] = k
	}
	c.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.at) >= every {
		ctx, cancel := context.WithTimeout(context.Background(), readTime)
		defer cancel()
		k.value, k.err = read(ctx)
		k.at = time.Now()
	}
	return k.value, k.at, k.err
}

// Forget makes the next reader of a key see what has just been changed.
func (c *Cache[K, T]) Forget(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.kept, key)
}
