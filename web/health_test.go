package web

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadyNamesWhatIsMissing(t *testing.T) {
	h := open(t)
	h.ready = newReadiness([]Check{
		{"database", func(context.Context) error { return nil }},
		{"redis", func(context.Context) error { return errors.New("connection refused") }},
	})
	got := h.call(t, "GET", "/readyz", "")
	if got.status != 503 || got.body != `{"status":"not ready","checks":[{"name":"database","ok":true},{"name":"redis","ok":false,"error":"connection refused"}]}` {
		t.Errorf("answer %+v", got)
	}
	h.ready = newReadiness([]Check{{"settings", func(context.Context) error { return fmt.Errorf("a check: %w", Warning("merchant m1")) }}})
	got = h.call(t, "GET", "/readyz", "")
	if got.status != 200 || got.body != `{"status":"ready","checks":[{"name":"settings","ok":false,"error":"a check: merchant m1","warning":true}]}` {
		t.Errorf("with a warning: %+v", got)
	}
	h.ready = newReadiness(nil)
	if got := h.call(t, "GET", "/readyz", ""); got.status != 200 || !strings.Contains(got.body, `"ready"`) {
		t.Errorf("answer %+v", got)
	}
	if got := h.call(t, "GET", "/healthz", ""); got.status != 200 {
		t.Errorf("alive: %+v", got)
	}
}

func TestAHangingCheckIsBoundedAndStartedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var started, healthy atomic.Int64
		r := newReadiness([]Check{
			{"deaf", func(context.Context) error { started.Add(1); <-release; return nil }},
			{"healthy", func(context.Context) error { healthy.Add(1); return nil }},
		})
		begin := time.Now()
		for range 3 {
			results := r.ask()
			if results[0].OK || !results[1].OK {
				t.Errorf("results %+v", results)
			}
			time.Sleep(checkAge)
		}
		if took := time.Since(begin); took != checkTime+3*checkAge {
			t.Errorf("three answers took %s", took)
		}
		if started.Load() != 1 || healthy.Load() != 3 {
			t.Errorf("the hanging check was started %d times, the other %d", started.Load(), healthy.Load())
		}
		close(release)
		synctest.Wait()
		if results := r.ask(); !results[0].OK {
			t.Errorf("after it answered: %+v", results)
		}
	})
}

func TestProbesAreNoLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		r := newReadiness([]Check{{"database", func(context.Context) error { asked.Add(1); return nil }}})
		for range 1000 {
			r.ask()
			time.Sleep(time.Millisecond)
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("1000 probes in a second asked %d times", n)
		}
	})
}

func TestMetricsAreServed(t *testing.T) {
	h := open(t)
	h.call(t, "POST", "/callback/wx", "")
	got := h.call(t, "GET", "/metrics", "")
	if got.status != 200 || !strings.Contains(got.body, "# TYPE backstop_callback_seconds histogram") || !strings.HasPrefix(got.header.Get("Content-Type"), "text/plain") {
		t.Errorf("%d %v", got.status, got.header)
	}
}

func TestALimiterForgetsOnlyWhoIsLongGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its clock stands still meanwhile
		l := newLimiter[int](1)
		if !l.allow(-1) || l.allow(-1) {
			t.Fatal("one a second is not one")
		}
		for i := range 10 * limiterKeys {
			l.allow(i)
			if i%100 == 0 && l.allow(-1) {
				t.Fatal("a key in use was forgotten")
			}
			if n := len(l.young) + len(l.old); n > limiterKeys {
				t.Fatalf("%d keys are held", n)
			}
		}
	})
}

func TestASenderIsAnAddressOrAnIPv6Network(t *testing.T) {
	for pair, same := range map[[2]string]bool{
		{"192.0.2.1", "192.0.2.1"}: true, {"192.0.2.1", "192.0.2.2"}: false,
		{"2001:db8::1", "2001:db8::ffff:1"}: true, {"2001:db8::1", "2001:db8:0:1::1"}: false,
	} {
		a, b := senderOf(netip.MustParseAddr(pair[0])), senderOf(netip.MustParseAddr(pair[1]))
		if (a == b) != same {
			t.Errorf("%v are one sender: %v", pair, a == b)
		}
	}
	if fmt.Sprint(senderOf(netip.Addr{})) != fmt.Sprint(senderKey{}) {
		t.Error("an unknown address is somebody")
	}
}
