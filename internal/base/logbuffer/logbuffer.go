// Package logbuffer decouples the program from its log: logging never waits for the reader
// of the log.
package logbuffer

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"backstop/internal/base/metric"
)

// Size is the maximum number of bytes that wait for the log's reader.
const Size = 1 << 20

const (
	// chunk is the size of one write, in bytes: even a slow reader takes it within stuckTime.
	chunk = 32 << 10
	// stuckTime is how long one chunk may take before the reader counts as stuck.
	stuckTime = 2 * time.Second
	// retryTime is the wait after a failed write, such as to a full disk or to a named pipe
	// without a reader.
	retryTime = time.Second
	// gatherTime is how long the first line waits for more, so that under load one write has
	// hundreds of lines.
	gatherTime = 5 * time.Millisecond
	// flushTime is how long Close waits for the reader.
	flushTime = time.Second
)

// Writer is a bounded buffer in front of a log. Each Write is one line; a line that does not
// fit is dropped as a whole and counted.
type Writer struct {
	out  io.Writer
	size int
	note func(lines int64) []byte
	wake chan struct{}
	done chan struct{}

	mu       sync.Mutex
	pending  []byte
	held     int       // bytes of pending and of the current write
	dropping bool      // from the first dropped line until half of the buffer is free
	dropped  int64     // lines since then
	since    time.Time // start of the current write; zero = none
	err      error     // of the last write
	closed   chan struct{}
	closing  sync.Once
}

// New returns a Writer in front of out. It holds at most size bytes; note makes the line
// that replaces dropped lines.
func New(out io.Writer, size int, note func(lines int64) []byte) *Writer {
	w := &Writer{out: out, size: size, note: note, wake: make(chan struct{}, 1), done: make(chan struct{}), closed: make(chan struct{})}
	go w.run()
	return w
}

// Write buffers a line. It never blocks and never fails.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	if w.dropping || w.held+len(line) > w.size {
		w.dropping = true
		w.dropped++
		metric.LogLinesDropped.Inc()
	} else {
		w.add(line)
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return len(line), nil
}

func (w *Writer) add(line []byte) {
	w.pending = append(w.pending, line...)
	w.held += len(line)
}

// resume accepts lines again once half of the buffer is free, after a line that says how
// many were dropped.
func (w *Writer) resume() {
	if w.dropping && w.held <= w.size/2 {
		w.add(w.note(w.dropped))
		w.dropping, w.dropped = false, 0
	}
}

// Close writes the buffered lines, within flushTime.
func (w *Writer) Close() error {
	w.closing.Do(func() { close(w.closed) })
	late := time.NewTimer(flushTime)
	defer late.Stop()
	select {
	case <-w.done:
		return nil
	case <-late.C:
		return errors.New("the log's reader did not take the last lines in time")
	}
}

// Err returns why lines cannot be written at present, or nil.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return fmt.Errorf("the log cannot be written: %w", w.err)
	case !w.since.IsZero() && time.Since(w.since) > stuckTime:
		return errors.New("the log's reader has stopped reading: lines are dropped once the buffer is full")
	}
	return nil
}

// run writes until Close has been called and the buffer is empty, or a write failed.
func (w *Writer) run() {
	defer close(w.done)
	var batch []byte
	for {
		w.mu.Lock()
		w.resume()
		batch, w.pending = w.pending, batch[:0]
		w.mu.Unlock()
		for rest := batch; len(rest) > 0; {
			n, ok := w.writeChunk(rest[:min(len(rest), chunk)])
			if rest = rest[n:]; !ok {
				return
			}
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-w.wake:
			w.gather()
		case <-w.closed:
			return
		}
	}
}

// gather waits for more lines, while there is room for them.
func (w *Writer) gather() {
	w.mu.Lock()
	roomy := w.held < w.size/4
	w.mu.Unlock()
	if !roomy {
		return
	}
	select {
	case <-time.After(gatherTime):
	case <-w.closed:
	}
}

// writeChunk returns how many bytes of the chunk were written, and waits after a failure.
// ok is false if the chunk must not be tried again.
func (w *Writer) writeChunk(p []byte) (n int, ok bool) {
	w.mu.Lock()
	w.since = time.Now()
	w.mu.Unlock()
	n, err := w.out.Write(p)
	w.mu.Lock()
	w.since, w.err = time.Time{}, err
	w.held -= n
	w.resume()
	w.mu.Unlock()
	if err == nil {
		return n, true
	}
	select {
	case <-time.After(retryTime):
		return n, true
	case <-w.closed:
		return n, false
	}
}
