package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// queriedWithin is the promise about an order that was being queried at a crash: it is queried
// again at most 30 s after its step. The steps of these tests are of one second.
const queriedWithin = 31 * time.Second

// callPoints are the named crash points around a call to a supplier.
var callPoints = []string{"before_call", "after_call", "before_answer_commit", "after_answer_commit", "after_pay"}

// TestKilledAtAnyPointOfACallNothingMovesTwice crashes while payments are started, and again
// while they are queried: whatever was in flight, money moves once under each reference, and
// every order comes to its end by itself.
func TestKilledAtAnyPointOfACallNothingMovesTwice(t *testing.T) {
	t.Parallel()
	for _, point := range callPoints {
		for _, engine := range []string{"sqlite", "postgres"} {
			for _, flush := range []bool{false, true} {
				if !full() && flush != (engine == "postgres") {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/flush=%t", point, engine, flush), func(t *testing.T) {
					t.Parallel()
					rounds := 1
					if full() {
						rounds = 13 // of two kills: a hundred of each point
					}
					o := supplierOptions("BACKSTOP_SUPPLIER_TIMEOUT=5s") // of a slow machine: no failure of a supplier
					o.postgres, o.ownRedis = engine == "postgres", flush
					w := newWorld(t, o).simulate("--paid", "100", "--paid-after", "8s", "--silent", "1")
					for round := range rounds {
						w.dieAround(point, flush, round)
					}
				})
			}
		}
	}
}

// buyer makes an order and says pay for it until that is answered, as merchants do.
func (w *supplierWorld) buyer(out, supplier string) (no string) {
	tr := newTraffic(w.world)
	a, ok := tr.insist("create", func() (answer, error) {
		return w.do(http.MethodPost, "/api/v1/orders", apiKey, nil, newOrder(out, requestBody{"supplier": supplier}).text())
	}, func(a answer) bool { return a.status == http.StatusCreated || a.status == http.StatusOK })
	if ok {
		no = a.json("order_no")
		tr.insist("pay", func() (answer, error) {
			return w.do(http.MethodPost, "/api/v1/orders/"+no+"/pay", apiKey, nil, `{}`)
		}, func(a answer) bool {
			// A payment that went through before the crash may be found by then.
			return a.status == http.StatusOK || a.json("error", "code") == "order_not_payable"
		})
	}
	for _, what := range tr.unexpected {
		w.t.Errorf("order %s of %s: %s", out, supplier, what)
	}
	return no
}

// dieAround kills the program at a point while payments are started, and at the same point
// while they are queried.
func (w *supplierWorld) dieAround(point string, flush bool, round int) {
	w.t.Helper()
	const orders, lines = 16, 4
	inStart := fmt.Sprintf("%s:%d", point, 1+rand.IntN(orders-lines))
	w.start(inStart)
	nos := make([]string, orders)
	var buyers sync.WaitGroup
	for line := range lines {
		buyers.Go(func() {
			for i := line; i < orders; i += lines {
				nos[i] = w.buyer(fmt.Sprintf("%s-%d-%d", point, round, i), simulated[i%len(simulated)])
			}
		})
	}
	w.died()
	if flush {
		w.redis.Flush()
	}
	w.start("")
	buyers.Wait()
	restarted, inQuery := time.Now(), "nothing"
	if point != "after_pay" { // of a start only
		w.terminate()
		// Nothing is paid yet, and nobody but the queries calls any more.
		inQuery = fmt.Sprintf("%s:%d", point, 1+rand.IntN(3))
		w.launch(inQuery)
		w.died()
		if flush {
			w.redis.Flush()
		}
		w.start("")
		restarted = time.Now()
	}
	for i, no := range nos {
		w.wantOrder(no, max(0, queriedWithin-time.Since(restarted)), map[string]string{
			"status": "paid", "paid_amount": "1999",
			"notify_status": "delivered",
		})
		w.wantNotified(no)
		if m := w.moved(simulated[i%len(simulated)], no); m != "1" {
			w.t.Errorf("%s at %s: money moved %s times", no, simulated[i%len(simulated)], m)
		}
	}
	w.t.Logf("killed at %s and %s: all paid and notified %s after the last restart", inStart, inQuery,
		time.Since(restarted).Round(time.Millisecond))
	if kinds := w.exceptions(""); len(kinds) > 0 {
		w.t.Errorf("honest suppliers, and yet exceptions: %v", kinds)
	}
	w.books()
	w.terminate()
}

// wantNotified checks that the merchant was notified of a payment, under one id: after a kill it
// may be more than once.
func (w *supplierWorld) wantNotified(no string) {
	w.t.Helper()
	ids := map[string]bool{}
	for _, r := range w.notifications(no) {
		ids[r.ID] = true
		if kind := (answer{body: string(r.Body)}).json("type"); kind != "order.paid" {
			w.t.Errorf("order %s: notified of %s", no, kind)
		}
	}
	if len(ids) != 1 {
		w.t.Errorf("order %s: notified under %d ids", no, len(ids))
	}
}

// TestKilledAtAnyPointOfACompensationItIsRunAgain dies while notifications that were given up
// are sent again, because their merchant is back.
func TestKilledAtAnyPointOfACompensationItIsRunAgain(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"compensation_claim", "compensation_run"} {
		for _, engine := range []string{"sqlite", "postgres"} {
			for _, flush := range []bool{false, true} {
				if !full() && flush != (engine == "postgres") {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/flush=%t", point, engine, flush), func(t *testing.T) {
					t.Parallel()
					rounds := 1
					if full() {
						rounds = 25
					}
					w := newWorld(t, options{postgres: engine == "postgres", ownRedis: flush, environ: backEnviron})
					w.apply(w.shortSchedule())
					for round := range rounds {
						w.dieCompensating(point, flush, round)
					}
				})
			}
		}
	}
}

// backEnviron has the breaker open after two notifications were given up.
var backEnviron = []string{"BACKSTOP_BREAKER_FAILURES=5", "BACKSTOP_BREAKER_OPEN=1s"}

// shortSchedule gives a notification up after two attempts.
func (w *world) shortSchedule() string {
	text := w.config("")
	from := strings.Index(text, "schedule: [")
	to := from + strings.Index(text[from:], "]")
	return text[:from] + "schedule: [100ms" + text[to:]
}

// giveUp has two notifications exhausted and one wait for the merchant; the numbers are of
// their orders.
func (w *world) giveUp(name string) (nos []string) {
	w.t.Helper()
	w.merchant.Behave(down)
	for i, status := range []string{"exhausted", "exhausted", "parked"} {
		no := w.create(fmt.Sprintf("%s-%d", name, i), nil)
		w.wantAccepted(callbackForm("sp-main", no, "T-"+no, 1999))
		w.wantOrder(no, 10*time.Second, map[string]string{"notify_status": status})
		nos = append(nos, no)
	}
	return nos
}

func (w *world) dieCompensating(point string, flush bool, round int) {
	w.t.Helper()
	hits := 3 // one compensation opens the two others
	if point == "compensation_claim" {
		hits = 2 // those two may be claimed at once
	}
	w.start(fmt.Sprintf("%s:%d", point, 1+round%hits))
	nos := w.giveUp(fmt.Sprintf("%s-%d", point, round))
	w.merchant.Behave(up)
	w.died()
	if flush {
		w.redis.Flush()
	}
	w.start("")
	restarted := time.Now()
	a := &supplierWorld{world: w}
	for _, no := range nos {
		w.wantOrder(no, max(0, queriedWithin-time.Since(restarted)), map[string]string{"status": "paid", "notify_status": "delivered"})
		a.wantNotified(no)
	}
	w.within(queriedWithin, "no compensation is left", func() bool {
		return w.compensations("state=waiting")+w.compensations("state=running") == 0
	})
	if n := w.compensations("state=done"); n < 3*(round+1) {
		w.t.Errorf("%d compensations are done, want 3 of each round", n)
	}
	w.t.Logf("killed at %s: all notified %s after the restart", point, time.Since(restarted).Round(time.Millisecond))
	w.books()
	w.terminate()
}
