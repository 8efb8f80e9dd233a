package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	sweepsPath = "/api/v1/admin/sweeps"
	// sweptWithin is the promise about a sweep whose node was killed: its lease ends after 30 s,
	// and the tick looks every 10 s.
	sweptWithin = 60 * time.Second
	// lostOrders are two transactions of the sweep.
	lostOrders = 60
)

// loseOrders makes orders that are past their time and due never.
func (w *world) loseOrders(name string) {
	w.t.Helper()
	for i := range lostOrders {
		w.create(fmt.Sprintf("%s-%d", name, i), nil)
	}
	if _, err := w.own().Exec(
		"UPDATE orders SET next_at = NULL, expires_at = created_at - 600000000 WHERE status = 'pending'"); err != nil {
		w.t.Fatal(err)
	}
}

// swept waits for the end of a sweep, and expects all lost orders to be closed, each by one
// push.
func (w *world) swept(id string) {
	w.t.Helper()
	var last answer
	w.within(sweptWithin, "the sweep is done", func() bool {
		last = w.request(http.MethodGet, sweepsPath+"/"+id, w.token, "")
		return last.json("state") == "done"
	})
	if want := fmt.Sprintf(`"pushed":[{"what":"orders_expired","count":%d}],"differences":[]`, lostOrders); !strings.Contains(last.body,
		want) {
		w.t.Errorf("the sweep is %s, want %s", last.body, want)
	}
	w.within(10*time.Second, "every order is closed", func() bool {
		var open int
		if err := w.own().QueryRow("SELECT count(*) FROM orders WHERE status <> 'closed'").Scan(&open); err != nil {
			w.t.Fatal(err)
		}
		return open == 0
	})
}

const sweepReason = `{"reason":"rows were lost by hand"}`

// TestKilledInASweepItGoesOn dies before the first write of a sweep, and between two of its
// transactions: it ends, and each row is pushed once.
func TestKilledInASweepItGoesOn(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"sweep_lease", "sweep_page:2"} {
		for _, engine := range []string{"sqlite", "postgres"} {
			for _, flush := range []bool{false, true} {
				if !full() && flush != (engine == "postgres") {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/flush=%t", point, engine, flush), func(t *testing.T) {
					t.Parallel()
					rounds := 1
					if full() {
						rounds = 25 // 100 per point
					}
					w := newWorld(t, options{postgres: engine == "postgres", ownRedis: flush})
					for round := range rounds {
						w.dieInSweep(point, flush, round)
						if t.Failed() {
							return
						}
					}
					t.Logf("%d kills", rounds)
				})
			}
		}
	}
}

func (w *world) dieInSweep(point string, flush bool, round int) {
	w.t.Helper()
	w.start(point)
	w.loseOrders(fmt.Sprint("lost", round))
	a := w.request(http.MethodPost, sweepsPath, w.token, sweepReason)
	if a.status != http.StatusAccepted {
		w.t.Fatalf("begin: %d %s", a.status, a.body)
	}
	w.died()
	if flush {
		w.redis.Flush()
	}
	w.start("")
	if again := w.request(http.MethodPost, sweepsPath, w.token, sweepReason); again.status != http.StatusConflict ||
		again.json("error", "code") != "running" {
		w.t.Errorf("a second one: %d %s", again.status, again.body)
	}
	w.swept(a.json("id"))
	w.books()
	w.terminate()
}

// TestTwoNodesSweepOnce begins a sweep at both at the same moment.
func TestTwoNodesSweepOnce(t *testing.T) {
	t.Parallel()
	one, two := twoNodes(t)
	one.start("")
	two.start("")
	one.loseOrders("lost")
	var mu sync.Mutex
	var both sync.WaitGroup
	statuses, id := map[int]int{}, ""
	for _, w := range []*world{one, two} {
		both.Go(func() {
			a, err := w.do(http.MethodPost, sweepsPath, one.token, http.Header{"Content-Type": {"application/json"}}, sweepReason)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if statuses[a.status]++; a.status == http.StatusAccepted {
				id = a.json("id")
			}
		})
	}
	both.Wait()
	if statuses[http.StatusAccepted] != 1 || statuses[http.StatusConflict] != 1 {
		t.Fatalf("statuses %v, want one 202 and one 409", statuses)
	}
	two.swept(id)
	one.books()
	one.terminate()
	two.terminate()
}
