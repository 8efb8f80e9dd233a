package e2e

import (
	"bufio"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestTheLogsReaderStopsNothing serves while the log is not read, while it is read
// again, and after the reader has gone away.
func TestTheLogsReaderStopsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{environ: []string{"BACKSTOP_LOG_LEVEL=debug", "BACKSTOP_CALLBACK_RATE=100000/s"}})
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	w.stderr = writer
	w.start("")
	_ = writer.Close()
	no := w.create("log-1", nil)

	// More lines than the pipe and the program hold together.
	w.repeat(no, 8000)
	w.wantLogWarning("stopped reading")
	if n := w.metric("backstop_log_lines_dropped_total"); n == 0 {
		t.Error("no line was dropped: the test sent too few callbacks")
	}

	// The reader is back: what was kept comes, then how much was not, then what is new.
	var dropped, after atomic.Int64
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			line := answer{body: lines.Text()}
			switch {
			case line.json("level") == "":
				t.Errorf("a torn line: %q", line.body)
			case line.json("msg") == "log lines dropped":
				n, _ := strconv.ParseInt(line.json("lines"), 10, 64)
				dropped.Add(n)
			case dropped.Load() > 0 && line.json("msg") == "callback":
				after.Add(1)
			}
		}
	}()
	w.within(10*time.Second, "lines flow again behind one that says how many are missing", func() bool {
		w.wantAccepted(callbackForm("sp-main", no, "T-"+no, 1999))
		return after.Load() > 0
	})
	if n := w.metric("backstop_log_lines_dropped_total"); n != dropped.Load() {
		t.Errorf("%d lines were dropped, the log counts %d", n, dropped.Load())
	}
	w.within(5*time.Second, "nothing is wrong with the log",
		func() bool {
			return !strings.Contains(w.request(http.MethodGet, "/readyz", "", "").body, `{"name":"log","reason":`)
		})

	_ = reader.Close()
	<-gone
	w.repeat(no, 500)
	w.wantLogWarning("broken pipe")
	if took := w.terminate(); took > 10*time.Second {
		t.Errorf("it took %s to exit", took)
	}
}

// A log that is not read must not keep the program from ending.
func TestTheServerEndsAlthoughNobodyReadsItsLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{environ: []string{"BACKSTOP_LOG_LEVEL=debug", "BACKSTOP_CALLBACK_RATE=100000/s"}})
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	w.stderr = writer
	w.start("")
	_ = writer.Close()
	w.repeat(w.create("log-2", nil), 1000)
	if took := w.terminate(); took > 10*time.Second {
		t.Errorf("it took %s to exit", took)
	}
}

// repeat sends one callback so many times; each is taken.
func (w *world) repeat(no string, times int64) {
	w.t.Helper()
	form := callbackForm("sp-main", no, "T-"+no, 1999)
	var left, lost atomic.Int64
	left.Store(times)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for left.Add(-1) >= 0 && lost.Load() == 0 {
				if a, err := w.postCallback("sp-main", form, nil); err != nil || !a.accepted() {
					w.t.Errorf("callback: %d %q %v", a.status, a.body, err)
					lost.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if lost.Load() > 0 {
		w.t.FailNow()
	}
}

// wantLogWarning waits until a node that is ready all the same says what is wrong with
// its log.
func (w *world) wantLogWarning(kind string) {
	w.t.Helper()
	var a answer
	w.within(10*time.Second, "the node is ready and warns of its log", func() bool {
		a = w.request(http.MethodGet, "/readyz", "", "")
		return a.status == http.StatusOK && strings.Contains(a.body, `{"name":"log","reason":`)
	})
	if !strings.Contains(a.body, kind) {
		w.t.Errorf("readyz does not say %q: %s", kind, a.body)
	}
}

// metric is the value of a figure without labels.
func (w *world) metric(name string) int64 {
	w.t.Helper()
	for line := range strings.Lines(w.request(http.MethodGet, "/metrics", "", "").body) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				w.t.Fatal(err)
			}
			return int64(n)
		}
	}
	w.t.Fatalf("there is no %s", name)
	return 0
}
