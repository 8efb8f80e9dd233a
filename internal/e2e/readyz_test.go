package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"backstop/internal/base/db/dbtest"
)

// probe is a load balancer's check, which waits 2 s at most.
var probe = &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// readiness is an answer to /readyz.
type readiness struct {
	code     int
	Status   string
	Degraded []struct{ Name, Reason string }
	Checks   []struct {
		Name string
		OK   bool
	}
}

// probed is what a load balancer learns; code 0 = no answer in time.
func (w *world) probed() (r readiness) {
	resp, err := probe.Get("http://" + w.address + "/readyz")
	if err != nil {
		return r
	}
	defer resp.Body.Close()
	if raw, err := io.ReadAll(resp.Body); err != nil || json.Unmarshal(raw, &r) != nil {
		return readiness{}
	}
	r.code = resp.StatusCode
	return r
}

// isStopped reports whether no thread of a process runs. A signal is sent before they have stopped.
func isStopped(pid int) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(stat, []byte(") T ")) {
			return false
		}
	}
	return true
}

// isDegraded reports whether a node can take callbacks without something.
func (r readiness) isDegraded(name string) bool {
	return r.code == http.StatusOK && r.Status == "degraded" &&
		slices.ContainsFunc(r.Degraded, func(d struct{ Name, Reason string }) bool { return d.Name == name && d.Reason != "" })
}

func (r readiness) isNotReady(name string) bool {
	return r.code == http.StatusServiceUnavailable && r.Status == "not ready" &&
		slices.ContainsFunc(r.Checks, func(c struct {
			Name string
			OK   bool
		},
		) bool {
			return c.Name == name && !c.OK
		})
}

// noticed bounds the time until a load balancer knows; a second or two on a machine that is not busy.
const noticed = 30 * time.Second

// A process that is stopped still accepts connections. A node without Redis stays in the load
// balancer and one without its database leaves it, both by answers that come within the
// balancer's timeout; of a node that is stopped itself there is no answer.
func TestReadinessWhileAProcessIsStopped(t *testing.T) {
	t.Parallel()
	server := dbtest.OwnPostgres(t)
	w := newWorld(t, options{postgres: true, database: server, ownRedis: true})
	w.start("")
	well := func() bool { r := w.probed(); return r.code == http.StatusOK && r.Status == "ready" }
	w.within(noticed, "the node is ready", well)

	w.redis.Hang()
	w.within(noticed, "200 degraded without Redis", func() bool { return w.probed().isDegraded("redis") })
	no := w.create("no-redis-1", nil)
	if a, err := w.postCallback("sp-main", callbackForm("sp-main", no, "T1", 1999), nil); err != nil || !a.accepted() {
		t.Errorf("a callback without Redis: %d %s %v", a.status, a.body, err)
	}
	w.redis.Resume()
	w.within(noticed, "ready again with Redis", well)

	resume := dbtest.StopPostgres(t, server)
	w.within(noticed, "503 without the database", func() bool { return w.probed().isNotReady("database") })
	resume()
	w.within(noticed, "ready again with the database", well)

	w.signal(syscall.SIGSTOP)
	w.within(noticed, "each thread is stopped", func() bool { return isStopped(w.server.cmd.Process.Pid) })
	conn, err := net.DialTimeout("tcp", w.address, time.Second)
	if err != nil {
		t.Errorf("a stopped process accepts: %v", err)
	} else {
		conn.Close()
	}
	if r := w.probed(); r.code != 0 {
		t.Errorf("a stopped process answered %+v", r)
	}
	if out, err := w.command("health"); err == nil {
		t.Errorf("a stopped process is healthy: %s", out)
	}
	w.signal(syscall.SIGCONT)
	w.within(noticed, "ready again after SIGCONT", well)
	w.wantOrder(no, noticed, map[string]string{"status": "paid", "notify_status": "delivered"})
	w.books()
}
