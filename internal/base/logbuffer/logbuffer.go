// Package logbuffer keeps the log from stopping the program: whoever logs never waits
// for whoever reads the log.
package logbuffer

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"backstop/internal/base/metric"
)

// Size is how many bytes of lines wait for the log's reader at most.
const Size = 1 << 20

const (
	// chunk is written at once: what a reader that is slow, but reads, takes in time.
	chunk = 32 << 10
	// stuckTime is how long one chunk may take before the reader counts as stuck.
	stuckTime = 2 * time.Second
	// retryTime passes between two tries after one that failed: a disk that was full or
	// a named pipe gets its lines when it takes some again.
	retryTime = time.Second
	// gatherTime is how long the first line waits for company: under load a write takes
	// hundreds of lines, not one.
	gatherTime = 5 * time.Millisecond
	// flushTime bounds the wait of Close for the reader.
	flushTime = time.Second
)

// Writer is a bounded buffer in front of a log. Each Write is one line; when there is
// no room for it, it is dropped as a whole and counted.
type Writer struct {
	out  io.Writer
	size int
	note func(lines int64) []byte
	wake chan struct{}
	done chan struct{}

	mu       sync.Mutex
	pending  []byte
	held     int       // bytes of pending and of what is being written
	dropping bool      // from the first line that found no room until half of it is free
	dropped  int64     // lines since then
	since    time.Time // when the chunk that is being written was begun; zero = none is
	err      error     // the end of the last chunk
	closed   chan struct{}
	closing  sync.Once
}

// New returns a Writer in front of out. It holds size bytes at most; note makes the line
// that stands in the place of lines that were dropped.
func New(out io.Writer, size int, note func(lines int64) []byte) *Writer {
	w := &Writer{out: out, size: size, note: note, wake: make(chan struct{}, 1), done: make(chan struct{}), closed: make(chan struct{})}
	go w.run()
	return w
}

// Write takes a line. It never blocks and never fails.
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

// resume takes lines again as soon as half of the buffer is free, and says in their
// place how many are missing.
func (w *Writer) resume() {
	if w.dropping && w.held <= w.size/2 {
		w.add(w.note(w.dropped))
		w.dropping, w.dropped = false, 0
	}
}

// Close writes what waits, for flushTime at most.
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

// Err says why no lines can be written now.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return fmt.Errorf("the log cannot be written: %w", w.err)
	case !w.since.IsZero() && time.Since(w.since) > stuckTime:
		return errors.New("whoever reads the log has stopped reading: lines are dropped once the buffer is full")
	}
	return nil
}

// run writes until Close has been called and nothing waits, or nothing can be written.
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

// gather lets more lines come, while there is room for them.
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

// writeChunk returns how much of the chunk was written, and after a failure waits for
// the next try. It says false where there will be none.
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
