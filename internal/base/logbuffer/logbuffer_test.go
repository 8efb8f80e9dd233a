package logbuffer

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"backstop/internal/base/waittest"
)

// reader is the other end of a log.
type reader struct {
	mu   sync.Mutex
	got  bytes.Buffer
	fail error
	stop chan struct{} // while it is not nil, a write waits until it is closed
}

func (r *reader) Write(p []byte) (int, error) {
	r.mu.Lock()
	stop, fail := r.stop, r.fail
	r.mu.Unlock()
	if stop != nil {
		<-stop
	}
	if fail != nil {
		return 0, fail
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.Write(p)
}

func (r *reader) set(stop chan struct{}, fail error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop, r.fail = stop, fail
}

func (r *reader) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.String()
}

// settle waits until the logged lines are being written.
func settle() { waittest.Pass(gatherTime) }

func note(lines int64) []byte { return fmt.Appendf(nil, "dropped %d\n", lines) }

// write logs lines of ten bytes, numbered from and to.
func write(w *Writer, from, to int) {
	for i := from; i <= to; i++ {
		fmt.Fprintf(w, "line %04d\n", i)
	}
}

func TestWholeLinesAreDroppedAndCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &reader{stop: make(chan struct{})}
		w := New(r, 100, note)
		write(w, 1, 1)
		settle() // it is being written
		write(w, 2, 30)
		if err := w.Err(); err != nil {
			t.Errorf("at once: %v", err)
		}
		waittest.Pass(stuckTime + time.Millisecond)
		if err := w.Err(); err == nil || !strings.Contains(err.Error(), "stopped reading") {
			t.Errorf("after %s: %v", stuckTime, err)
		}
		stop := r.stop
		r.set(nil, nil)
		close(stop)
		settle()
		write(w, 31, 32)
		settle()
		want := ""
		for i := range 10 {
			want += fmt.Sprintf("line %04d\n", i+1)
		}
		if want += "dropped 20\nline 0031\nline 0032\n"; r.text() != want {
			t.Errorf("the log is\n%swant\n%s", r.text(), want)
		}
		if err := w.Err(); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A line that is longer than the whole buffer must not stop later lines.
func TestALineWithoutRoomIsDroppedAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		w := New(r, 100, note)
		_, _ = w.Write(make([]byte, 101))
		settle()
		write(w, 1, 1)
		settle()
		if want := "dropped 1\nline 0001\n"; r.text() != want {
			t.Errorf("the log is %q, want %q", r.text(), want)
		}
		_ = w.Close()
	})
}

func TestAFailedWriteIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &reader{fail: errors.New("no space left on device")}
		w := New(r, 100, note)
		write(w, 1, 2)
		settle()
		if err := w.Err(); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("while it fails: %v", err)
		}
		r.set(nil, nil)
		waittest.Pass(retryTime + gatherTime)
		if err := w.Err(); err != nil || r.text() != "line 0001\nline 0002\n" {
			t.Errorf("the log is %q, %v", r.text(), err)
		}
		_ = w.Close()
	})
}

func TestCloseWritesWhatWaitsForASecondAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		w := New(r, 1000, note)
		write(w, 1, 50)
		if err := w.Close(); err != nil || strings.Count(r.text(), "\n") != 50 {
			t.Errorf("%d lines, %v", strings.Count(r.text(), "\n"), err)
		}
		stop := make(chan struct{})
		r = &reader{stop: stop}
		w = New(r, 1000, note)
		write(w, 1, 50)
		begin := time.Now()
		if err := w.Close(); err == nil || time.Since(begin) != flushTime {
			t.Errorf("a reader that is stuck: %v after %s", err, time.Since(begin))
		}
		close(stop)
		r = &reader{fail: errors.New("broken pipe")}
		w = New(r, 1000, note)
		write(w, 1, 50)
		settle()
		begin = time.Now()
		if _ = w.Close(); time.Since(begin) != 0 {
			t.Errorf("a reader that is gone kept it for %s", time.Since(begin))
		}
	})
}
