package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// entriesOf returns the entries that a payout or refund has, sorted: the last parts of their
// references.
func (w *payoutWorld) entriesOf(kind, no string) string {
	w.t.Helper()
	rows, err := w.own().Query(fmt.Sprintf("SELECT ref FROM transfers WHERE ref LIKE '%s:%s:%%' ORDER BY ref", kind, no[1:]))
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var ref string
		if err := rows.Scan(&ref); err != nil {
			w.t.Fatal(err)
		}
		all = append(all, ref[strings.LastIndex(ref, ":")+1:])
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// endedByTwo proposes how something without a clear answer ended, and has another person approve
// it. A service and the proposer cannot.
func (w *payoutWorld) endedByTwo(path string, body requestBody) {
	w.t.Helper()
	if a := w.request(http.MethodPost, path, w.token, body.text()); a.status != http.StatusForbidden ||
		a.json("error", "code") != "person_needed" {
		w.t.Errorf("by a service: %d %s", a.status, a.body)
	}
	made := w.request(http.MethodPost, path, w.maker, body.text())
	if made.status != http.StatusCreated || made.json("approval", "state") != "waiting" || made.json("approval", "maker") != "mo.maker" {
		w.t.Fatalf("POST %s: %d %s", path, made.status, made.body)
	}
	approve := approvalsPath + "/" + made.json("approval", "id") + "/approve"
	verdict := fmt.Sprintf(`{"hash":%q,"reason":"compared with the statement"}`, made.json("approval", "hash"))
	if a := w.request(http.MethodPost, approve, w.maker, verdict); a.status != http.StatusForbidden {
		w.t.Errorf("by its maker: %d %s", a.status, a.body)
	}
	for range 2 { // the second one is answered alike, and nothing runs twice
		if a := w.request(http.MethodPost, approve, w.checker, verdict); a.status != http.StatusOK || a.json("state") != "done" ||
			a.json("checker") != "chen.checker" {
			w.t.Fatalf("approve: %d %s", a.status, a.body)
		}
	}
}

// wantNotifiedAs waits for the one notification of this type about a payout or refund.
func (w *payoutWorld) wantNotifiedAs(field, no, kind string) {
	w.t.Helper()
	w.within(20*time.Second, "the merchant is notified of "+kind+" of "+no, func() bool {
		n := 0
		for _, r := range w.merchant.Requests() {
			a := answer{body: string(r.Body)}
			if a.json("type") == kind && a.json("data", field) == no {
				n++
			}
		}
		return n == 1
	})
}

// A payout whose supplier gives no clear answer until the last query is due is stuck. Two people
// end it as the supplier's statement says: it arrived, or its money goes back.
func TestTwoPeopleEndAStuckPayoutOverHTTP(t *testing.T) {
	eachPayoutWorld(t, func(t *testing.T, w *payoutWorld) {
		for said, want := range map[string]struct {
			really                                string // at the supplier
			status, steps, entries, moved, notice string
			takes                                 int
		}{
			"success": {"success", "succeeded", "success success ", "C D F", "1", "payout.succeeded", 2010},
			"failed":  {"failed", "reversed", "success failed success", "D F FR R", "0", "payout.failed", 0},
		} {
			before := w.available()
			no := w.approved("stuck-"+said, "sim-till", map[string]any{"state": want.really, "answer": "500"})
			path := "/api/v1/admin/payouts/" + no
			early := requestBody{"credit": said, "evidence": "line 7 of the statement of today"}
			w.within(30*time.Second, no+" is unknown", func() bool {
				return w.request(http.MethodGet, path, w.checker, "").json("status") == "unknown"
			})
			if a := w.request(http.MethodPost, path+"/resolve", w.maker, early.text()); a.status != http.StatusUnprocessableEntity ||
				a.json("error", "field") != "action" {
				t.Errorf("%s, which is not stuck yet: %d %s", no, a.status, a.body)
			}
			// It was sent a day ago: the next query is the last one of its steps.
			if _, err := w.own().Exec(fmt.Sprintf("UPDATE payouts SET first_call_at = first_call_at - %[1]d, last_call_at = last_call_at - %[1]d WHERE payout_no = '%[2]s'",
				(24 * time.Hour).Microseconds(), no)); err != nil {
				t.Fatal(err)
			}
			w.within(2*time.Minute, no+" is stuck", func() bool {
				return w.request(http.MethodGet, path, w.checker, "").json("status") == "stuck"
			})
			open := w.request(http.MethodGet, "/api/v1/admin/exceptions?state=open&kind=payout_stuck", w.checker, "")
			if open.json("items", "0", "detail", "payout_no") != no || w.entriesOf("payout", no) != "D F" {
				t.Errorf("%s is stuck with the entries %s: %s", no, w.entriesOf("payout", no), open.body)
			}
			if a := w.request(http.MethodPost, path+"/resolve", w.maker,
				`{"credit":"perhaps","evidence":"line 7"}`); a.status != http.StatusUnprocessableEntity ||
				a.json("error", "field") != "credit" {
				t.Errorf("no answer: %d %s", a.status, a.body)
			}
			w.endedByTwo(path+"/resolve", early)
			w.ends("sim-till", no, want.status, want.steps, want.moved)
			w.wantNotifiedAs("payout_no", no, want.notice)
			if got := w.entriesOf("payout", no); got != want.entries {
				t.Errorf("%s: the entries are %s, want %s", no, got, want.entries)
			}
			var had int
			if _, err := fmt.Sscan(before, &had); err != nil || w.available() != fmt.Sprint(had-want.takes) {
				t.Errorf("%s: %s is available of %s: %v", no, w.available(), before, err)
			}
			if left := w.request(http.MethodGet, "/api/v1/admin/exceptions?state=open&kind=payout_stuck", w.checker, ""); left.json("items",
				"0", "id") != "" {
				t.Errorf("%s is over, and a person must still look at it: %s", no, left.body)
			}
			if a := w.request(http.MethodPost, path+"/resolve", w.maker, early.text()); a.status != http.StatusUnprocessableEntity ||
				a.json("error", "field") != "action" {
				t.Errorf("%s, which is over: %d %s", no, a.status, a.body)
			}
		}
		w.books()
	})
}

// Two people end a refund that its supplier will not finish: one that the supplier's staff paid
// out by hand while its interface gives no answer, and one that was refused for lack of funds.
func TestTwoPeopleEndAnUnclearRefundOverHTTP(t *testing.T) {
	eachPayoutWorld(t, func(t *testing.T, w *payoutWorld) {
		w.apply("merchants:\n  - { code: m1, limits: [{ currency: CNY, payout_each: 5000, payout_day: 1000000, payout_auto: 1000, refund_auto: 100 }] }\n")
		for said, of := range map[string]struct {
			supplier, state, status, kind    string
			then                             map[string]any // at the supplier, after the refund is unclear
			entries, moved, refunded, notice string
		}{
			"succeeded": {
				"sim-wx", "abnormal", "unknown", "refund_failed",
				map[string]any{"state": "success", "answer": "500"},
				"C D", "1",
				"500", "refund.succeeded",
			},
			"failed": {"sim-ali", "short_of_funds", "submitted", "supplier_short", nil, "D R", "0", "0", "refund.failed"},
		} {
			order := w.paidAt("unclear-"+said, of.supplier)
			before := w.available()
			no := w.request(http.MethodPost, "/api/v1/orders/"+order+"/refunds", apiKey, refundOf("r-"+said, 500)).json("refund_no")
			w.setAs(of.supplier, "refunds", no, map[string]any{"state": of.state})
			w.decide("refund", no)
			var x string
			w.within(time.Minute, no+" needs a person", func() bool {
				a := w.request(http.MethodGet, "/api/v1/admin/exceptions?state=open&kind="+of.kind+"&order_no="+order, w.checker, "")
				x = a.json("items", "0", "id")
				return x != "" && a.json("items", "0", "detail", "refund_no") == no
			})
			if a := w.request(http.MethodGet, "/api/v1/refunds/"+no, apiKey, ""); a.json("status") != of.status ||
				w.entriesOf("refund", no) != "D" {
				t.Errorf("%s has the entries %s: %s", no, w.entriesOf("refund", no), a.body)
			}
			if of.then != nil {
				w.setAs(of.supplier, "refunds", no, of.then)
			}
			w.endedByTwo("/api/v1/admin/exceptions/"+x+"/propose", requestBody{
				"action": "refund.resolve", "reason": "as the statement says", "amount": "5.00",
				"params": map[string]any{"outcome": said, "evidence": "line 9 of the statement of today", "unverified": of.then != nil},
			})
			a := w.request(http.MethodGet, "/api/v1/refunds/"+no, apiKey, "")
			if a.json("status") != said || w.entriesOf("refund", no) != of.entries || w.movedOf(of.supplier, "refunds", no) != of.moved {
				t.Errorf("%s has the entries %s, and its money moved %s times: %s", no, w.entriesOf("refund", no),
					w.movedOf(of.supplier, "refunds", no), a.body)
			}
			w.wantNotifiedAs("refund_no", no, of.notice)
			w.wantOrder(order, 10*time.Second, map[string]string{"status": "paid", "refunded_amount": of.refunded})
			var had, back int
			if _, err := fmt.Sscan(before, &had); err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Sscan(of.refunded, &back); err != nil || w.available() != fmt.Sprint(had-back) {
				t.Errorf("%s: %s is available of %s", no, w.available(), before)
			}
		}
		w.books()
	})
}
