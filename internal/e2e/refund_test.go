package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// refundPoints are the failpoints between the request for a refund and its stored result.
var refundPoints = []string{"refund_holding", "refund_held", "refund_submitted", "refund_called", "refund_settling", "refund_settled"}

// refundKills returns the total number of kills, spread over these points; a full run has 100 per
// point.
func refundKills() int {
	if full() {
		return 100 * len(refundPoints)
	}
	return len(refundPoints)
}

// shortenQueryAfter makes "not found" reliable after two seconds, for all suppliers.
func (w *supplierWorld) shortenQueryAfter() {
	w.t.Helper()
	declared, err := os.ReadFile(filepath.Join(w.folder, "simulate.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply(regexp.MustCompile(`(?m)^( *)- code: (sim-\w+)$`).ReplaceAllString(string(declared),
		"$1- query_after: 2s\n$1  refund_repeat: true\n$1  code: $2"))
}

// paidAt returns an order that was paid at a supplier and notified.
func (w *supplierWorld) paidAt(out, supplier string) string {
	w.t.Helper()
	no := w.create(out, requestBody{"supplier": supplier})
	w.pay(no, `{}`)
	w.set(supplier, no, map[string]any{"state": "paid", "callback": "none"})
	w.wantOrder(no, 20*time.Second, map[string]string{"status": "paid", "notify_status": "delivered"})
	return no
}

func refundOf(out string, amount int) string {
	return fmt.Sprintf(`{"out_refund_no":%q,"amount":%d,"reason":"broken"}`, out, amount)
}

// refunded waits until a refund has succeeded, and checks that its money moved once.
func (w *supplierWorld) refunded(supplier, refundNo string, most time.Duration) {
	w.t.Helper()
	var last answer
	w.within(most, "refund "+refundNo+" of "+supplier+" succeeds", func() bool {
		last = w.request(http.MethodGet, "/api/v1/refunds/"+refundNo, apiKey, "")
		return last.json("status") == "succeeded"
	})
	if m := w.movedOf(supplier, "refunds", refundNo); m != "1" {
		w.t.Errorf("%s: the money of %s moved %s times", supplier, refundNo, m)
	}
}

// Each kind of supplier refunds a payment in two parts, by its real protocol; the merchant's
// order, balance and notifications follow.
func TestAPaymentIsRefundedInParts(t *testing.T) {
	eachSupplierWorld(t, supplierOptions(), func(t *testing.T, w *supplierWorld) {
		w.shortenQueryAfter()
		for _, supplier := range simulated {
			no := w.paidAt("back-"+supplier, supplier)
			path := "/api/v1/orders/" + no + "/refunds"
			first := w.request(http.MethodPost, path, apiKey, refundOf("a-"+supplier, 500))
			if first.status != http.StatusCreated || first.json("amount") != "500" || first.json("order_no") != no {
				t.Fatalf("%s: %d %s", supplier, first.status, first.body)
			}
			if again := w.request(http.MethodPost, path, apiKey, refundOf("a-"+supplier, 500)); again.status != http.StatusOK ||
				again.json("refund_no") != first.json("refund_no") {
				t.Errorf("%s, the same again: %d %s", supplier, again.status, again.body)
			}
			if other := w.request(http.MethodPost, path, apiKey, refundOf("a-"+supplier, 501)); other.status != http.StatusConflict ||
				other.json("error", "code") != "idempotency_conflict" {
				t.Errorf("%s, other content: %d %s", supplier, other.status, other.body)
			}
			if more := w.request(http.MethodPost, path, apiKey, refundOf("b-"+supplier, 1500)); more.status != http.StatusConflict ||
				more.json("error", "code") != "refund_exceeds" || more.json("error", "refundable") != "1499" {
				t.Errorf("%s, too much: %d %s", supplier, more.status, more.body)
			}
			w.refunded(supplier, first.json("refund_no"), 30*time.Second)
			w.wantOrder(no, 5*time.Second, map[string]string{"status": "paid", "refunded_amount": "500", "refund_status": "partial"})
			rest := w.request(http.MethodPost, path, apiKey, refundOf("b-"+supplier, 1499))
			w.refunded(supplier, rest.json("refund_no"), 30*time.Second)
			w.wantOrder(no, 5*time.Second, map[string]string{"status": "paid", "refunded_amount": "1999", "refund_status": "full"})
			if late := w.request(http.MethodPost, "/api/v1/refunds/"+rest.json("refund_no")+"/cancel", apiKey,
				""); late.status != http.StatusConflict || late.json("error", "code") != "refund_started" {
				t.Errorf("%s, cancel: %d %s", supplier, late.status, late.body)
			}
			for _, refund := range []answer{first, rest} {
				refundNo := refund.json("refund_no")
				w.within(10*time.Second, "the merchant is notified of "+refundNo, func() bool {
					n := 0
					for _, r := range w.merchant.Requests() {
						a := answer{body: string(r.Body)}
						if a.json("type") == "refund.succeeded" && a.json("data", "refund_no") == refundNo {
							n++
						}
					}
					return n == 1
				})
			}
		}
		if b := w.request(http.MethodGet, "/api/v1/balance", apiKey, ""); b.json("items", "0", "available") != "0" ||
			b.json("items", "0", "in_transit") != "0" {
			t.Errorf("all was given back: %s", b.body)
		}
		w.books()
	})
}

// The program is killed around each step of refunds: each one moves its money once and ends.
func TestKilledAtAnyPointOfARefundItGoesBackOnce(t *testing.T) {
	o := supplierOptions()
	o.ownRedis = true
	each(t, o, func(t *testing.T, w *world) {
		a := w.simulate()
		a.shortenQueryAfter()
		from := seed(t)
		rng := rand.New(rand.NewPCG(from, 1))
		first := rng.IntN(len(refundPoints))
		for round := range refundKills() / 2 { // the other half on the other engine
			point, supplier := refundPoints[(first+round)%len(refundPoints)], simulated[rng.IntN(len(simulated))]
			w.start(point)
			no := a.paidAt(fmt.Sprintf("kill-%d", round), supplier)
			create := func() (answer, error) {
				return w.do(http.MethodPost, "/api/v1/orders/"+no+"/refunds", apiKey, nil, refundOf(fmt.Sprintf("r-%d", round), 700))
			}
			_, _ = create() // its answer may be lost
			w.died()
			if round%2 == 1 {
				w.redis.Flush()
			}
			w.start("")
			restarted := time.Now()
			tr := newTraffic(w)
			got, ok := tr.insist("refund", create, func(x answer) bool { return x.status == http.StatusOK || x.status == http.StatusCreated })
			if !ok {
				t.Fatalf("killed at %s: %v", point, tr.unexpected)
			}
			// The lease of the ended process is released, a call that may have been made is queried
			// after 10 s, and a refund that is not found is sent again after query_after.
			a.refunded(supplier, got.json("refund_no"), 45*time.Second)
			w.wantOrder(no, 5*time.Second, map[string]string{"refunded_amount": "700", "refund_status": "partial"})
			t.Logf("killed at %s of %s: given back %s after the restart", point, supplier, time.Since(restarted).Round(time.Millisecond))
			w.books()
			w.terminate()
		}
	})
}

// Kills use up attempts, but no time: whatever they interrupt, a minute after the last one no refund
// is open. Waits that grew with attempts left one in four open for an hour.
func TestOpenRefundsEndWithinAMinuteOfTheLastKill(t *testing.T) {
	o := supplierOptions()
	o.ownRedis = true
	each(t, o, func(t *testing.T, w *world) {
		refunds, kills := 8, 2
		if full() {
			refunds, kills = 42, 14
		}
		a := w.simulate()
		a.shortenQueryAfter()
		moment := rand.New(rand.NewPCG(seed(t), 2))
		w.start("")
		var orders, suppliers []string
		for i := range refunds {
			suppliers = append(suppliers, simulated[i%len(simulated)])
			orders = append(orders, a.paidAt(fmt.Sprintf("open-%d", i), suppliers[i]))
		}
		tr := newTraffic(w)
		numbers := make([]string, refunds)
		var created sync.WaitGroup
		create := func(from, to int) {
			for i := from; i < to; i++ {
				got, _ := tr.insist("refund", func() (answer, error) {
					return w.do(http.MethodPost, "/api/v1/orders/"+orders[i]+"/refunds", apiKey, nil, refundOf(fmt.Sprintf("open-%d", i), 700))
				}, func(x answer) bool { return x.status == http.StatusOK || x.status == http.StatusCreated })
				numbers[i] = got.json("refund_no")
			}
		}
		for kill := range kills {
			created.Go(func() { create(kill*refunds/kills, (kill+1)*refunds/kills) })
			time.Sleep(time.Duration(20+moment.IntN(300)) * time.Millisecond) // at a moment that nothing chooses
			w.kill()
			w.start("")
		}
		killed := time.Now()
		created.Wait()
		if len(tr.unexpected) > 0 {
			t.Fatal(tr.unexpected)
		}
		open := func() (n int) {
			for _, no := range numbers {
				if w.request(http.MethodGet, "/api/v1/refunds/"+no, apiKey, "").json("status") != "succeeded" {
					n++
				}
			}
			return n
		}
		interrupted := open()
		w.within(time.Minute-time.Since(killed), "no refund is open", func() bool { return open() == 0 })
		t.Logf("%d kills, %d of %d refunds open after the last one, none %s after it", kills, interrupted, refunds,
			time.Since(killed).Round(time.Millisecond))
		for i, no := range numbers {
			a.refunded(suppliers[i], no, 5*time.Second)
		}
		w.books()
	})
}

// Somebody refunds in Stripe's dashboard beside a refund of ours. The charge's event has only the
// sum: what exceeds ours was made at Stripe, and is booked once.
func TestRefundsMadeAtStripeAreBookedBesideOurs(t *testing.T) {
	eachSupplierWorld(t, supplierOptions(), func(t *testing.T, w *supplierWorld) {
		declared, err := os.ReadFile(filepath.Join(w.folder, "simulate.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		secret := regexp.MustCompile(`whsec_[0-9a-f]+`).FindString(string(declared))
		no := w.paidAt("listed", "sim-st")
		intent := w.setAs("sim-st", "orders", no, map[string]any{"state": "paid", "callback": "none"}).json("trade_no")
		ours := w.request(http.MethodPost, "/api/v1/orders/"+no+"/refunds", apiKey, refundOf("mine", 500)).json("refund_no")
		w.refunded("sim-st", ours, 30*time.Second)
		w.setAs("sim-st", "refunds", "DASHBOARD1", map[string]any{"state": "success", "order": no, "amount": 300})
		charge := map[string]any{
			"id": "ch_" + strings.TrimPrefix(intent, "pi_"), "object": "charge", "payment_intent": intent, "amount": 1999,
			"amount_refunded": 800, "refunded": false,
			"currency": "cny", "metadata": map[string]any{"order_no": no},
		}
		for i := range 2 { // Stripe sends events more than once
			w.stripeAs("sim-st", secret, fmt.Sprint("evt_charge_", i), "charge.refunded", time.Now(), charge)
		}
		w.wantOrder(no, 20*time.Second, map[string]string{"status": "paid", "refunded_amount": "800", "refund_status": "partial"})
		list := w.request(http.MethodGet, "/api/v1/orders/"+no+"/refunds", apiKey, "")
		found := 0
		for i := range 2 {
			at := fmt.Sprint(i)
			if list.json("items", at, "amount") == "300" && list.json("items", at, "status") == "succeeded" {
				found++
			}
		}
		if found != 1 || list.json("items", "2", "refund_no") != "" {
			t.Errorf("the refunds are %s", list.body)
		}
		w.books()
	})
}
