package e2e

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestADrainingNodeTakesCallbacksAndSendsTheBalancerAway: a node that is about to stop
// announces it, keeps no connection open, and takes what still arrives.
func TestADrainingNodeTakesCallbacksAndSendsTheBalancerAway(t *testing.T) {
	const drain = 3 * time.Second
	each(t, options{environ: []string{"BACKSTOP_DRAIN=" + drain.String()}}, func(t *testing.T, w *world) {
		w.start("")
		if a := w.request(http.MethodGet, "/readyz", "", ""); a.status != http.StatusOK || a.last {
			t.Fatalf("before: %d %+v", a.status, a)
		}
		no := w.create("drain-1", nil)
		begun := time.Now()
		w.signal(syscall.SIGTERM)
		w.within(drain/2, "it is draining", func() bool {
			return w.request(http.MethodGet, "/readyz", "", "").status == http.StatusServiceUnavailable
		})
		accepted := 0
		for time.Since(begun) < drain-time.Second {
			a := w.request(http.MethodGet, "/readyz", "", "")
			if a.status != http.StatusServiceUnavailable || a.json("status") != "draining" {
				t.Fatalf("readyz: %d %s", a.status, a.body)
			}
			a = w.mustPostCallback("sp-main", callbackForm("sp-main", no, "T-"+no, 1999))
			if !a.accepted() || !a.last {
				t.Fatalf("callback: %+v", a)
			}
			accepted++
		}
		if a := w.request(http.MethodGet, "/healthz", "", ""); a.status != http.StatusOK {
			t.Errorf("healthz: %d", a.status)
		}
		if accepted < 5 {
			t.Errorf("only %d callbacks were sent", accepted)
		}
		w.left(drain + stopTime)
		if took := time.Since(begun); took < drain {
			t.Errorf("it exited after %s", took)
		}
	})
}

func TestASecondSignalEndsTheDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{environ: []string{"BACKSTOP_DRAIN=4m"}})
	w.start("")
	w.signal(syscall.SIGTERM)
	w.within(5*time.Second, "it is draining", func() bool {
		return w.request(http.MethodGet, "/readyz", "", "").status == http.StatusServiceUnavailable
	})
	w.terminate()
}

// A closed terminal or a log rotation sends SIGHUP, whose default action ends a process at once.
func TestAHangupIsALineOfTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.start("")
	no := w.create("hangup-1", nil)
	w.signal(syscall.SIGHUP)
	w.within(5*time.Second, "the log says so", func() bool { return strings.Contains(w.server.tail(), "SIGHUP is ignored") })
	if a := w.mustPostCallback("sp-main", callbackForm("sp-main", no, "T-"+no, 1999)); !a.accepted() {
		t.Errorf("callback after it: %+v", a)
	}
	w.terminate()
}
