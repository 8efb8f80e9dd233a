package e2e

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// againWithin is the promise about notifications in flight at a crash.
const againWithin = 15 * time.Second

// points are the named crash points, on the way of a callback and of a
// notification.
var points = []string{"after_verify", "before_commit", "after_commit", "after_enqueue", "before_send", "after_send", "after_ack"}

func TestKilledAtAnyPointNothingIsLost(t *testing.T) {
	t.Parallel()
	for _, point := range points {
		for _, engine := range []string{"sqlite", "postgres"} {
			for _, flush := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/flush=%t", point, engine, flush), func(t *testing.T) {
					t.Parallel()
					rounds := 1
					if full() {
						rounds = 5
					}
					w := newWorld(t, options{postgres: engine == "postgres", ownRedis: flush})
					if point == "after_enqueue" { // what is rationed goes through the queue
						w.apply(strings.Replace(w.config(""), "max_in_flight: 20", "max_in_flight: 20, rate_limit: 1000/s", 1))
					}
					tr := newTraffic(w)
					for round := range rounds {
						dieAt(w, tr, point, flush, round)
					}
				})
			}
		}
	}
}

// dieAt starts the program with the point armed, makes twenty orders, pays them while the program dies at the point, and
// checks what the next life makes of it.
func dieAt(w *world, tr *traffic, point string, flush bool, round int) {
	w.t.Helper()
	w.start(point + ":2")
	var orders []string
	for i := range 20 {
		if no, ok := tr.create(fmt.Sprintf("%s-%d-%d", point, round, i)); ok {
			orders = append(orders, no)
		}
	}
	var payoutSuppliers sync.WaitGroup
	var next atomic.Int64
	for range 4 {
		payoutSuppliers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(orders); i = int(next.Add(1)) - 1 {
				tr.pay(orders[i])
			}
		})
	}
	w.died()
	received := w.merchant.Count()
	if flush {
		w.redis.Flush()
	}
	w.start("")
	restarted := time.Now()
	payoutSuppliers.Wait()
	repeated := tr.settle(againWithin - time.Since(restarted))
	w.t.Logf("%d notified before the kill; all notified %s after the restart, %d more than once", received,
		time.Since(restarted).Round(time.Millisecond), repeated)
	if point == "after_send" && repeated == 0 {
		w.t.Error("killed between the answer and its record, and yet nothing was sent again: the point is not where it should be")
	}
	w.terminate()
}

func TestKilledAtRandomUnderLoadNothingIsLost(t *testing.T) {
	t.Parallel()
	for _, flush := range []bool{false, true} {
		t.Run(fmt.Sprintf("flush=%t", flush), func(t *testing.T) {
			each(t, options{ownRedis: flush}, func(t *testing.T, w *world) {
				kills := 5
				if full() {
					kills = 100
				}
				moment := rand.New(rand.NewPCG(seed(t), 0))
				w.start("")
				tr := newTraffic(w)
				stop := load(tr, 8)
				for range kills {
					time.Sleep(time.Duration(50+moment.IntN(400)) * time.Millisecond) // at a moment that nothing chooses
					w.kill()
					if flush {
						w.redis.Flush()
					}
					w.start("")
				}
				restarted := time.Now()
				stop()
				repeated := tr.settle(againWithin - time.Since(restarted))
				received := w.merchant.Requests()
				last := received[len(received)-1].At.Sub(restarted)
				t.Logf("%d kills, %d orders; the last was notified %s after the last restart; %d notified more than once",
					kills, len(tr.made), last.Round(time.Millisecond), repeated)
				if len(tr.made) < kills {
					t.Errorf("only %d orders: that was no load", len(tr.made))
				}
			})
		})
	}
}

// flows waits for so many more notifications.
func (w *world) flows(n int) {
	w.t.Helper()
	before := w.merchant.Count()
	w.within(20*time.Second, "notifications flow", func() bool { return w.merchant.Count() >= before+n })
}

// load buys on a few lines at once until it is stopped.
func load(tr *traffic, lines int) (stop func()) {
	var wg sync.WaitGroup
	var over atomic.Bool
	var n atomic.Int64
	for range lines {
		wg.Go(func() {
			for !over.Load() {
				tr.buy("load-" + strconv.FormatInt(n.Add(1), 10))
			}
		})
	}
	return func() {
		over.Store(true)
		wg.Wait()
	}
}

func TestTerminatedUnderLoadLeavesInTimeAndLosesNothing(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		w.start("")
		tr := newTraffic(w)
		stop := load(tr, 8)
		rounds := 2
		if full() {
			rounds = 20
		}
		var longest time.Duration
		for range rounds {
			w.flows(20)
			longest = max(longest, w.terminate())
			w.start("")
		}
		stop()
		repeated := tr.settle(againWithin)
		t.Logf("%d ends, the longest took %s; %d orders, %d notified more than once", rounds, longest.Round(time.Millisecond), len(tr.made),
			repeated)
		if repeated > 0 {
			t.Errorf("%d notifications were repeated although nothing crashed", repeated)
		}
	})
}
