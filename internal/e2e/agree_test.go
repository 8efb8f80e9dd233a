package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// ready requests the readiness of a node, whatever it is.
func (w *world) ready() answer {
	w.t.Helper()
	a, err := w.do(http.MethodGet, "/readyz", "", nil, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// exits waits for the end of a life that was only launched, and returns its code and
// last words.
func (w *world) exits() (code int, said string) {
	w.t.Helper()
	select {
	case <-w.server.ended:
	case <-time.After(readyTime):
		w.t.Fatalf("the server still runs\n%s", w.server.tail())
	}
	lines := strings.Split(strings.TrimSpace(w.server.tail()), "\n")
	return w.server.cmd.ProcessState.ExitCode(), lines[len(lines)-1]
}

// TestANodeThatMayNotReachTheMerchantExhaustsNothing runs two nodes of which one was
// not given the merchant's range. Every notification has two attempts.
func TestANodeThatMayNotReachTheMerchantExhaustsNothing(t *testing.T) {
	t.Parallel()
	one, two := twoNodes(t)
	one.apply(strings.Replace(one.config(""), "[1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s]", "[1s]", 1))
	two.more = append(slices.Clone(two.more), "BACKSTOP_NOTIFY_ALLOW_CIDRS=10.9.8.0/24")
	one.start("")
	two.start("")
	front := balanced(one, two)
	var orders []string
	for i := range 40 {
		no := front.create(fmt.Sprintf("r%d", i), nil)
		front.wantAccepted(callbackForm("sp-main", no, "t-"+no, 1999))
		orders = append(orders, no)
	}
	for _, no := range orders {
		one.wantOrder(no, 30*time.Second, map[string]string{"status": "paid", "notify_status": "delivered"})
		if kinds := one.exceptions(no); len(kinds) != 0 {
			t.Errorf("%s has exceptions: %v", no, kinds)
		}
	}
	for _, w := range []*world{one, two} {
		// What /readyz found is given again for half a second.
		w.within(5*time.Second, "readyz says that they differ", func() bool {
			a := w.ready()
			return a.status == http.StatusOK && strings.Contains(a.body, `"reason":"running nodes differ in BACKSTOP_NOTIFY_ALLOW_CIDRS"`)
		})
	}
	if raw := two.server.tail(); !strings.Contains(raw, "ranges 10.9.8.0/24") || !strings.Contains(raw, "ranges 127.0.0.0/8,::1/128") {
		t.Errorf("the log does not say how they differ:\n%s", raw)
	}
	one.within(60*time.Second, "the alert that they differ fires", func() bool {
		n := one.request(http.MethodGet, "/api/v1/admin/merchant-callback-monitor/health", one.token, "").json("firing_alerts")
		return n != "" && n != "0"
	})
	one.books()
}

// TestOnlyTheKeyInUseStarts runs nodes without the key, with another one, and with one
// that was replaced meanwhile.
func TestOnlyTheKeyInUseStarts(t *testing.T) {
	t.Parallel()
	one, two := twoNodes(t)
	one.start("")

	two.key = ""
	two.startUnready()
	if code, said := two.exits(); code != 2 || !strings.Contains(said, "BACKSTOP_MASTER_KEY") ||
		strings.Contains(two.server.tail(), "\n{") {
		t.Errorf("without a key it exits with %d: %s", code, said)
	}
	two.key = newKey()
	two.startUnready()
	if code, said := two.exits(); code != 1 || !strings.Contains(said, "in use is the key") || !strings.Contains(said, "this process has") {
		t.Errorf("with another key it exits with %d: %s", code, said)
	}
	if out, err := two.command("apply", "apply.yaml"); err == nil {
		t.Errorf("apply with another key printed %q", out)
	}

	// A rotation is begun node by node: what is applied meanwhile opens everywhere.
	old := one.key
	two.key = newKey() + "," + old
	two.start("")
	two.apply(one.config("\n  - code: sp-more\n    kind: sortedparams\n    enabled: true\n    config: " + supplierConfig("sp-more")))
	no := one.create("k1", nil)
	one.within(10*time.Second, "what a node with both keys applied is verified by one with the older key", func() bool {
		a, err := one.postCallback("sp-more", callbackForm("sp-more", no, "t-"+no, 1999), nil)
		return err == nil && a.status == http.StatusOK
	})
	for _, w := range []*world{one, two} {
		if a := w.ready(); a.status != http.StatusOK || !strings.Contains(a.body, "differ in their master keys") {
			t.Errorf("before it is resealed: %d %s", a.status, a.body)
		}
	}
	two.run("reseal")
	one.within(10*time.Second, "the node with the older key alone is not ready, by keys", func() bool {
		a := one.ready()
		return a.status == http.StatusServiceUnavailable && strings.Contains(a.body, `{"name":"keys","ok":false`)
	})
	if a := two.ready(); a.status != http.StatusOK {
		t.Errorf("the node with both keys: %d %s", a.status, a.body)
	}
	one.within(30*time.Second, "the alert fires", func() bool {
		n := two.request(http.MethodGet, "/api/v1/admin/merchant-callback-monitor/health", one.token, "").json("firing_alerts")
		return n != "" && n != "0"
	})
}

// TestASecondNodeOfOneNameDoesNotStart expects the first one to go on, and a killed one to
// start again at once.
func TestASecondNodeOfOneNameDoesNotStart(t *testing.T) {
	t.Parallel()
	one, two := twoNodes(t)
	one.more = append(slices.Clone(one.more), "BACKSTOP_NODE_NAME=pay-1")
	two.more = one.more
	one.start("")
	first := one.server
	two.startUnready()
	code, said := two.exits()
	if code != 1 || !strings.Contains(said, `"pay-1" belongs to`) ||
		!strings.Contains(said, fmt.Sprint("process ", first.cmd.Process.Pid)) {
		t.Errorf("it exits with %d: %s", code, said)
	}
	select {
	case <-first.ended:
		t.Fatalf("the first one ended: %s\n%s", first.cmd.ProcessState, first.tail())
	case <-time.After(12 * time.Second): // longer than a beat, by which the first one would learn of it
	}
	if a := one.ready(); a.status != http.StatusOK {
		t.Errorf("the first one: %d %s", a.status, a.body)
	}
	one.kill()
	begun := time.Now()
	one.start("")
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("after a kill it started within %s", took)
	}
	paidAndNotified(one)
}
