package queue

import (
	"sync/atomic"
	"time"
)

const (
	// openFor is how long calls fail at once after a failure.
	openFor = 500 * time.Millisecond
	// probeFor is how long other calls keep failing while one call probes whether Redis is
	// back: as long as that call can take.
	probeFor = 2 * callTimeout
)

// circuit protects callers from a Redis that does not answer: after a failure, at most one
// caller per half second waits for the timeout.
type circuit struct {
	begun time.Time    // times count from here, so that clock changes do not affect them
	until atomic.Int64 // calls fail before this moment; 0 when closed
}

// allow reports whether a call may be tried.
func (c *circuit) allow() bool {
	until := c.until.Load()
	if until == 0 {
		return true
	}
	now := time.Since(c.begun)
	return int64(now) >= until && c.until.CompareAndSwap(until, int64(now+probeFor))
}

func (c *circuit) failed() { c.until.Store(int64(time.Since(c.begun) + openFor)) }

func (c *circuit) succeeded() {
	if c.until.Load() != 0 {
		c.until.Store(0)
	}
}
