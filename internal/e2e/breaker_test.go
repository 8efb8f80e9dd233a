package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"backstop/internal/notify/fakemerchant"
)

// TestBreakerParksThroughACrashAndReleases has a merchant refuse everything: what waits is
// parked, stays so across a kill -9, and is notified when the merchant is back. Both are
// alerted.
func TestBreakerParksThroughACrashAndReleases(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var received strings.Builder
			chat := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				received.Write(body)
			}))
			t.Cleanup(chat.Close)
			w := newWorld(t, options{postgres: engine == "postgres", environ: []string{
				"BACKSTOP_BREAKER_FAILURES=3", "BACKSTOP_BREAKER_OPEN=6s",
				"BACKSTOP_ALERT_URLS=generic+" + chat.URL + "/room?template=json", "BACKSTOP_ALERT_LANGUAGE=en",
			}})
			w.merchant.Behave(fakemerchant.Answer(http.StatusServiceUnavailable, "down"))
			w.start("")
			var orders []string
			for i := range 8 {
				no := w.create(fmt.Sprintf("b%d", i), nil)
				w.wantAccepted(callbackForm("sp-main", no, "t-"+no, 1999))
				orders = append(orders, no)
			}
			all := func(status string) func() bool {
				return func() bool {
					for _, no := range orders {
						if w.order(no).json("notify_status") != status {
							return false
						}
					}
					return true
				}
			}
			w.within(10*time.Second, "all are parked", all("parked"))
			sent := w.merchant.Count()
			w.kill()
			w.start("")
			w.within(5*time.Second, "all are parked after the crash", all("parked"))
			late := w.create("late", nil)
			w.wantAccepted(callbackForm("sp-main", late, "t-late", 1999))
			orders = append(orders, late)
			w.within(2*time.Second, "a new one is parked at once", all("parked"))
			if more := w.merchant.Count() - sent; more > 1 { // a probe, where the start took long
				t.Errorf("%d attempts while the breaker was open", more)
			}
			t.Cleanup(func() {
				mu.Lock()
				defer mu.Unlock()
				if t.Failed() {
					t.Logf("received %s", received.String())
				}
			})
			receivedAll := func(parts ...string) func() bool {
				return func() bool {
					mu.Lock()
					defer mu.Unlock()
					return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(received.String(), part) })
				}
			}
			// The alert says what waits: it must come before the merchant is back.
			w.within(time.Minute, "the alert arrives", receivedAll("Galaxy Mall (m1): the breaker opened at", "failures in a row", "CNY",
				w.address+"/merchants/m1"))
			w.merchant.Behave(fakemerchant.Answer(http.StatusOK, "success"))
			w.within(30*time.Second, "all are notified", all("delivered"))
			w.within(time.Minute, "its end arrives", receivedAll("a breaker closed"))
			w.books()
		})
	}
}

// TestTerminatedWhileItStarts ends starts at every stage; none leaves anything
// that the next one trips over.
func TestTerminatedWhileItStarts(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		for after := 5 * time.Millisecond; after < 250*time.Millisecond; after += 15 * time.Millisecond {
			w.startUnready()
			select {
			case <-w.server.ended:
				t.Fatalf("it ended by itself: %s\n%s", w.server.cmd.ProcessState, w.server.tail())
			case <-time.After(after):
			}
			if err := w.server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			select {
			case <-w.server.ended:
			case <-time.After(stopTime):
				t.Fatalf("a start that was ended after %s still runs\n%s", after, w.server.tail())
			}
			status := w.server.cmd.ProcessState.Sys().(syscall.WaitStatus)
			// Before the program listens to signals, and so before its first word, the
			// signal itself ends it.
			if !(status.Exited() && status.ExitStatus() == 0) && !(status.Signaled() && status.Signal() == syscall.SIGTERM &&
				w.server.tail() == "") {
				t.Errorf("ended after %s: %s\n%s", after, w.server.cmd.ProcessState, w.server.tail())
			}
		}
		w.start("")
		paidAndNotified(w)
		w.books()
	})
}
