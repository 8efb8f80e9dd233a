package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// disputePoints are the failpoints around the booking of a dispute.
var disputePoints = []string{"dispute_noted", "before_commit", "dispute_booked"}

// disputed makes the simulated Stripe report what happened to the dispute of an order's payment.
func (w *supplierWorld) disputed(no string, script map[string]any) {
	w.t.Helper()
	raw, _ := json.Marshal(script)
	req, _ := http.NewRequest(http.MethodPut, "http://"+w.simulator+"/_sim/sim-st/disputes/"+no, bytes.NewReader(raw))
	resp, err := client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		w.t.Fatalf("PUT %s of %s: %s", raw, no, resp.Status)
	}
}

// wantDispute waits until the only dispute of an order has these fields.
func (w *supplierWorld) wantDispute(no string, want map[string]string) answer {
	w.t.Helper()
	var a answer
	w.within(20*time.Second, fmt.Sprintf("the dispute of %s is %v", no, want), func() bool {
		a = w.request(http.MethodGet, "/api/v1/admin/disputes?order_no="+no, w.token, "")
		for name, value := range want {
			if a.json("items", "0", name) != value {
				return false
			}
		}
		return true
	})
	return a
}

// balance checks the merchant's balance in one currency.
func (w *supplierWorld) balance(what, available, reserved string) {
	w.t.Helper()
	b := w.request(http.MethodGet, "/api/v1/balance", apiKey, "")
	if b.json("items", "0", "available") != available || b.json("items", "0", "reserved") != reserved {
		w.t.Errorf("%s: %s, want %s and %s reserved", what, b.body, available, reserved)
	}
}

// notifiedOf returns the types of the notifications about a dispute, sorted.
func (w *supplierWorld) notifiedOf(disputeNo string) (types []string) {
	for _, r := range w.merchant.Requests() {
		if a := (answer{body: string(r.Body)}); a.json("data", "dispute_no") == disputeNo {
			types = append(types, a.json("type"))
		}
	}
	slices.Sort(types)
	return types
}

// A dispute from its opening to its end, by signed events: one is won and its money comes back,
// one is lost, and of one the events arrive in the wrong order.
func TestPaymentsAreDisputed(t *testing.T) {
	eachSupplierWorld(t, supplierOptions(), func(t *testing.T, w *supplierWorld) {
		person := w.personal("mo.maker", "finance")
		won := w.paidAt("disputed-won", "sim-st")
		w.disputed(won, map[string]any{"state": "created", "callback": "twice"})
		d := w.wantDispute(won, map[string]string{
			"status": "opened", "amount": "1999", "merchant": "m1", "supplier": "sim-st",
			"reserved": "1999",
		}).json("items", "0", "dispute_no")
		w.wantOrder(won, 5*time.Second, map[string]string{"status": "paid", "disputed_amount": "1999"})
		w.balance("reserved", "0", "1999")
		if a := w.request(http.MethodPost, "/api/v1/orders/"+won+"/refunds", apiKey, refundOf("x", 1)); a.status != http.StatusConflict ||
			a.json("error", "code") != "refund_exceeds" || a.json("error", "refundable") != "0" {
			t.Errorf("a refund of a disputed payment: %d %s", a.status, a.body)
		}
		w.disputed(won, map[string]any{"state": "withdrawn", "fee": 150})
		w.wantDispute(won, map[string]string{"withdrawn": "true", "fee": "150", "reserved": "0"})
		w.balance("withdrawn", "-150", "0")

		path := "/api/v1/admin/disputes/" + d
		if a := w.request(http.MethodPost, path+"/evidence", w.token,
			`{"text":"the parcel was signed for"}`); a.status != http.StatusForbidden || a.json("error", "code") != "person_needed" {
			t.Errorf("evidence by a service: %d %s", a.status, a.body)
		}
		if a := w.request(http.MethodPost, path+"/evidence", person, `{"text":"short"}`); a.status != http.StatusUnprocessableEntity ||
			a.json("error", "field") != "text" {
			t.Errorf("short evidence: %d %s", a.status, a.body)
		}
		a := w.request(http.MethodPost, path+"/evidence", person, `{"text":"the parcel was signed for","url":"https://x.example/1"}`)
		if a.status != http.StatusOK || a.json("status") != "answered" || a.json("evidence", "0", "by") != "operator:mo.maker" ||
			a.json("evidence", "0", "url") != "https://x.example/1" {
			t.Errorf("evidence: %d %s", a.status, a.body)
		}
		if a := w.request(http.MethodGet, "/api/v1/admin/disputes/D1", w.token, ""); a.status != http.StatusNotFound {
			t.Errorf("an unknown dispute: %d %s", a.status, a.body)
		}
		w.disputed(won, map[string]any{"state": "won"})
		w.disputed(won, map[string]any{"state": "reinstated"})
		w.wantDispute(won, map[string]string{"status": "won", "reinstated": "1999", "fee_returned": "150"})
		w.wantOrder(won, 5*time.Second, map[string]string{"status": "paid", "disputed_amount": "0"})
		w.balance("won", "1999", "0")

		lost := w.paidAt("disputed-lost", "sim-st")
		w.disputed(lost, map[string]any{"state": "withdrawn", "fee": 150}) // before it was created
		w.disputed(lost, map[string]any{"state": "lost"})
		w.disputed(lost, map[string]any{"state": "created", "callback": "twice"})
		l := w.wantDispute(lost, map[string]string{"status": "lost", "withdrawn": "true"}).json("items", "0", "dispute_no")
		w.wantOrder(lost, 5*time.Second, map[string]string{"status": "paid", "disputed_amount": "1999"})
		w.balance("lost", "1849", "0")

		late := w.paidAt("disputed-late", "sim-st")
		w.disputed(late, map[string]any{"state": "created", "late_ms": 1500})
		w.disputed(late, map[string]any{"state": "withdrawn", "late_ms": 1000})
		w.disputed(late, map[string]any{"state": "won", "late_ms": 500})
		w.disputed(late, map[string]any{"state": "reinstated"})
		w.wantDispute(late, map[string]string{"status": "won", "withdrawn": "true", "reinstated": "1999"})
		w.within(10*time.Second, "all its messages arrive", func() bool {
			a := w.request(http.MethodGet, "/api/v1/admin/callbacks?order_no="+late, w.token, "")
			return a.json("items", "3", "outcome") == "dispute_opened"
		})
		w.balance("out of order", "3848", "0")

		inquiry := w.paidAt("inquiry", "sim-st")
		w.disputed(inquiry, map[string]any{"state": "warning"})
		w.within(10*time.Second, "the inquiry is seen",
			func() bool { return slices.Equal(w.exceptions(inquiry), []string{"dispute_opened"}) })
		w.balance("an inquiry", "5847", "0")

		for no, want := range map[string][]string{d: {"dispute.opened", "dispute.won"}, l: {"dispute.lost", "dispute.opened"}} {
			w.within(10*time.Second, "the merchant is notified of "+no, func() bool { return slices.Equal(w.notifiedOf(no), want) })
		}
		for no, state := range map[string]string{won: "resolved", lost: "resolved", late: "resolved", inquiry: "open"} {
			a := w.request(http.MethodGet, "/api/v1/admin/exceptions?order_no="+no, w.token, "")
			if a.json("items", "0", "kind") != "dispute_opened" || a.json("items", "0", "state") != state ||
				a.json("items", "0", "detail", "due_by") == "" {
				t.Errorf("want it %s: %s", state, a.body)
			}
		}
		kinds := map[string]bool{}
		day := time.Now().In(time.FixedZone("CST", 8*3600)).Format(time.DateOnly)
		s := w.request(http.MethodGet, "/api/v1/statement?currency=CNY&limit=200&day="+day, apiKey, "")
		for i := range 40 {
			kinds[s.json("items", fmt.Sprint(i), "kind")] = true
		}
		if !kinds["dispute"] || !kinds["dispute_won"] || !kinds["fee"] {
			t.Errorf("the statement has the kinds %v: %s", kinds, s.body)
		}
		w.books()
	})
}

// The program is killed around the booking of each message of a dispute, and the supplier sends
// it again.
func TestKilledAtAnyPointOfADisputeItIsBookedOnce(t *testing.T) {
	o := supplierOptions()
	o.ownRedis = true
	each(t, o, func(t *testing.T, w *world) {
		a := w.simulate()
		rounds := len(disputePoints)
		if full() {
			rounds *= 100 / 2 // the other half on the other engine
		}
		for round := range rounds {
			w.start("")
			if round == 0 {
				w.token = w.personal("mo.monitor", "finance")
			}
			no := a.paidAt(fmt.Sprintf("kill-%d", round), "sim-st")
			for _, state := range []string{"created", "withdrawn", "lost"} {
				w.terminate()
				point := disputePoints[round%len(disputePoints)]
				w.start(point)
				a.disputed(no, map[string]any{"state": state, "fee": 150})
				w.died()
				if round%2 == 1 {
					w.redis.Flush()
				}
				w.start("")
				a.disputed(no, map[string]any{"state": state, "fee": 150}) // sent again
				status := "opened"
				if state == "lost" {
					status = "lost"
				}
				a.wantDispute(no, map[string]string{"status": status, "withdrawn": fmt.Sprint(state != "created")})
			}
			d := a.wantDispute(no, map[string]string{"fee": "150"}).json("items", "0", "dispute_no")
			w.within(30*time.Second, "the merchant is notified", func() bool {
				return slices.Equal(slices.Compact(a.notifiedOf(d)), []string{"dispute.lost", "dispute.opened"})
			})
			a.balance(disputePoints[round%len(disputePoints)], fmt.Sprint(-150*(round+1)), "0")
			w.books()
			w.terminate()
		}
	})
}
