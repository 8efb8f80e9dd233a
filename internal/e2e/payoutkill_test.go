package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"
)

// decidedPoints are the failpoints of a payout that people decide, and of its reversal.
var decidedPoints = []string{"approved_before_run", "act_before_commit", "act_after_commit", "payout_reversing"}

// The program is killed while a payout is approved, and while one that failed is booked back: each
// moves its money once, or not at all.
func TestKilledWhileAPayoutIsApprovedOrReversed(t *testing.T) {
	o := supplierOptions()
	o.ownRedis = true
	each(t, o, func(t *testing.T, w *world) {
		a := w.payFrom()
		kills := len(decidedPoints)
		if full() {
			kills = 50 * len(decidedPoints) // as many on the other engine
		}
		from := seed(t)
		rng := rand.New(rand.NewPCG(from, 2))
		for round := range kills {
			point, supplier := decidedPoints[round%len(decidedPoints)], payoutSuppliers[rng.IntN(len(payoutSuppliers))]
			fails := point == "payout_reversing" || rng.IntN(2) == 0
			w.start(point)
			no := a.requestPayout(fmt.Sprintf("d-%d", round), supplier, 1100).json("payout_no")
			state, status, steps, moved := "success", "succeeded", "success success ", "1"
			if fails {
				state, status, steps, moved = "failed", "reversed", "success failed success", "0"
			}
			a.script(supplier, no, map[string]any{"state": state})
			list := w.request(http.MethodGet, approvalsPath+"?state=waiting&kind=payout", a.checker, "")
			if list.json("items", "0", "object_id") != no {
				t.Fatalf("waiting: %s", list.body)
			}
			approve := func() (answer, error) {
				return w.do(http.MethodPost, approvalsPath+"/"+list.json("items", "0", "id")+"/approve", a.checker,
					http.Header{"Content-Type": {"application/json"}},
					fmt.Sprintf(`{"hash":%q,"reason":"as the statement shows"}`, list.json("items", "0", "hash")))
			}
			_, _ = approve() // its answer may be lost
			w.died()
			if round%2 == 1 {
				w.redis.Flush()
			}
			w.start("")
			restarted := time.Now()
			tr := newTraffic(w)
			if _, ok := tr.insist("approval", approve, func(x answer) bool {
				return x.status == http.StatusOK &&
					x.json("state") == "done"
			}); !ok {
				t.Fatalf("killed at %s: %v", point, tr.unexpected)
			}
			a.ends(supplier, no, status, steps, moved)
			t.Logf("killed at %s of %s: %s %s after the restart", point, supplier, status, time.Since(restarted).Round(time.Millisecond))
			w.books()
			w.terminate()
		}
	})
}
