//go:build unix

package amqp_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// front stands before the broker and can hold back what it says.
type front struct {
	addr  string
	mu    sync.Mutex
	count int
	held  bool
	wake  *sync.Cond
	ended bool
}

func newFront(t *testing.T, broker string) *front {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &front{addr: l.Addr().String()}
	f.wake = sync.NewCond(&f.mu)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			f.count++
			f.mu.Unlock()
			far, err := net.Dial("tcp", broker)
			if err != nil {
				_ = near.Close()
				continue
			}
			running.Go(func() { _, _ = io.Copy(far, near); _ = far.Close() })
			running.Go(func() { f.answer(near, far); _ = near.Close() })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		f.mu.Lock()
		f.ended = true
		f.wake.Broadcast()
		f.mu.Unlock()
	})
	return f
}

// answer passes on what the broker says, unless it is held back.
func (f *front) answer(near io.Writer, far io.Reader) {
	buffer := make([]byte, 4096)
	for {
		n, err := far.Read(buffer)
		f.mu.Lock()
		for f.held && !f.ended {
			f.wake.Wait()
		}
		f.mu.Unlock()
		if _, failed := near.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

func (f *front) set(held bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = held
	f.wake.Broadcast()
}

func (f *front) freeze() { f.set(true) }
func (f *front) thaw()   { f.set(false) }

func (f *front) accepted() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}
