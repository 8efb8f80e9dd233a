package pool

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"backstop/internal/base/waittest"
)

// counted is a pool of numbers that counts what is opened and closed.
type counted struct {
	*Pool[int]
	opened, closed atomic.Int64
}

func newCounted(most int) *counted {
	c := &counted{}
	c.Pool = New(Options[int]{Max: most, Idle: time.Minute, Close: func(int) { c.closed.Add(1) }})
	return c
}

func (c *counted) left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

func (c *counted) open(context.Context) (int, error) { return int(c.opened.Add(1)), nil }

func (c *counted) take(t *testing.T, key string) *Lease[int] {
	t.Helper()
	l, err := c.Take(t.Context(), key, c.open)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestABurstOpensOneConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounted(4)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				l, err := c.Take(t.Context(), "a", func(ctx context.Context) (int, error) {
					waittest.Pass(time.Second)
					return c.open(ctx)
				})
				if err != nil || l.Conn != 1 {
					t.Errorf("got %v, %v", l, err)
					return
				}
				l.Release()
			})
		}
		wg.Wait()
		c.Close()
		if c.opened.Load() != 1 || c.closed.Load() != 1 {
			t.Errorf("%d opened, %d closed", c.opened.Load(), c.closed.Load())
		}
	})
}

func TestIdleConnectionsAreClosedAndUsedOnesAreNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounted(4)
		held := c.take(t, "held")
		c.take(t, "idle").Release()
		waittest.Pass(3 * time.Minute)
		if c.closed.Load() != 1 || c.left() != 1 {
			t.Errorf("%d closed, %d left; want the idle one closed", c.closed.Load(), c.left())
		}
		held.Release()
		waittest.Pass(3 * time.Minute)
		if c.closed.Load() != 2 || c.left() != 0 {
			t.Errorf("%d closed, %d left", c.closed.Load(), c.left())
		}
		c.Close()
	})
}

func TestAFullPoolClosesIdleConnectionsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounted(2)
		a, b := c.take(t, "a"), c.take(t, "b")
		if _, err := c.Take(t.Context(), "c", c.open); !errors.Is(err, ErrFull) {
			t.Errorf("with all in use: %v", err)
		}
		a.Release()
		c.take(t, "c").Release()
		synctest.Wait()
		if c.closed.Load() != 1 || c.left() != 2 {
			t.Errorf("%d closed, %d left", c.closed.Load(), c.left())
		}
		b.Release()
		c.Close()
		if c.closed.Load() != 3 {
			t.Errorf("%d closed at the end", c.closed.Load())
		}
	})
}

func TestDroppedConnectionsServeTheirUsersToTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounted(2)
		first, second := c.take(t, "a"), c.take(t, "a")
		first.Drop()
		first.Release()
		synctest.Wait()
		if c.closed.Load() != 0 {
			t.Error("closed under its second user")
		}
		fresh := c.take(t, "a")
		if fresh.Conn != 2 {
			t.Errorf("connection %d after the drop, want another", fresh.Conn)
		}
		second.Release()
		synctest.Wait()
		if c.closed.Load() != 1 {
			t.Error("not closed after its last user")
		}
		fresh.Release()
		c.Close()
	})
}

func TestFailuresToOpenLeaveNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounted(1)
		broken := errors.New("broken")
		if _, err := c.Take(t.Context(), "a", func(context.Context) (int, error) { return 0, broken }); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		if c.left() != 0 {
			t.Error("a failed connection uses a slot")
		}
		// A caller that waits for another's opening waits no longer than its own deadline.
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, _ = c.Take(ctx, "a", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
		}()
		synctest.Wait()
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := c.Take(short, "a", c.open); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while another opens: %v", err)
		}
		cancel()
		synctest.Wait()
		c.Close()
		if _, err := c.Take(t.Context(), "a", c.open); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}
