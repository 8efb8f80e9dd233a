package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const batchesPath = "/api/v1/admin/batches"

const batchReason = "as agreed by phone"

// planned plans a batch over orders, and returns its id and how many rows have which outcome.
func (w *world) planned(token, action string, nos ...string) (id, outcomes string) {
	w.t.Helper()
	a := w.request(http.MethodPost, batchesPath, token, requestBody{"action": action, "ids": nos}.text())
	if a.status != http.StatusCreated {
		w.t.Fatalf("plan %s: %d %s", action, a.status, a.body)
	}
	var said []string
	for i := range 5 {
		if n := a.json("plan", "outcomes", fmt.Sprint(i), "count"); n != "0" {
			said = append(said, n+" "+a.json("plan", "outcomes", fmt.Sprint(i), "outcome"))
		}
	}
	return a.json("id"), strings.Join(said, ", ")
}

// begin starts a batch.
func (w *world) begin(token, id, typed string) answer {
	w.t.Helper()
	return w.request(http.MethodPost, batchesPath+"/"+id+"/start", token, requestBody{"reason": batchReason, "typed": typed}.text())
}

// ended waits for the end of a batch.
func (w *world) ended(token, id, state string) answer {
	w.t.Helper()
	var a answer
	w.within(30*time.Second, "the batch is "+state, func() bool {
		a = w.request(http.MethodGet, batchesPath+"/"+id, token, "")
		return a.json("state") == state
	})
	return a
}

// rows are the outcome, the result and the cause of each order of a batch.
func (w *world) rows(token, id string) map[string]string {
	w.t.Helper()
	var page struct {
		Items []struct {
			OrderNo string `json:"order_no"`
			Outcome string
			Result  string
			Cause   string
		}
	}
	a := w.request(http.MethodGet, batchesPath+"/"+id+"/rows?limit=200", token, "")
	if err := json.Unmarshal([]byte(a.body), &page); err != nil {
		w.t.Fatalf("rows: %s, %v", a.body, err)
	}
	rows := map[string]string{}
	for _, r := range page.Items {
		rows[r.OrderNo] = strings.TrimSpace(r.Outcome + " " + r.Result + " " + r.Cause)
	}
	return rows
}

// wantRows compares the rows of a batch.
func (w *world) wantRows(token, id string, want map[string]string) {
	w.t.Helper()
	rows := w.rows(token, id)
	for no, row := range want {
		if rows[no] != row {
			w.t.Errorf("order %s: %q, want %q", no, rows[no], row)
		}
	}
	if len(rows) != len(want) {
		w.t.Errorf("%d rows, want %d", len(rows), len(want))
	}
}

// queries counts how often an order was queried.
func (w *supplierWorld) queries(no string) int {
	w.t.Helper()
	return strings.Count(strings.Join(w.calls(no), " "), "query")
}

// TestBatchesOfOrdersDoWhatTheyShow queries simulated suppliers about orders, again and again until
// they answer, and closes orders.
func TestBatchesOfOrdersDoWhatTheyShow(t *testing.T) {
	o := supplierOptions("BACKSTOP_QUERY_STEPS=1h", "BACKSTOP_COMPENSATE_STEPS=1s,1s,1s,1s,1s,1s,5s,5s,5s,10s")
	eachSupplierWorld(t, o, func(t *testing.T, w *supplierWorld) {
		made := 0
		queryableOrder := func(state map[string]any) string {
			t.Helper()
			made++
			no := w.create(fmt.Sprintf("queryable-%d", made), requestBody{"supplier": "sim-till"})
			if p := w.pay(no, `{}`); p.json("payment", "status") != "submitted" {
				t.Fatalf("pay: %d %s", p.status, p.body)
			}
			state["callback"] = "none"
			w.set("sim-till", no, state)
			return no
		}
		otherOrder := func(pay bool) string { // its supplier cannot be queried
			t.Helper()
			made++
			no := w.create(fmt.Sprintf("other-%d", made), nil)
			if pay {
				w.pay(no, `{}`)
			}
			return no
		}
		paidOrder := func() string {
			t.Helper()
			no := otherOrder(false)
			w.wantAccepted(callbackForm("sp-main", no, "T-"+no, 1999))
			return no
		}
		finance := w.personal("fang.finance", "finance")

		// query: each is queried once, and the answer is confirmed.
		paid, unpaid, garbage := queryableOrder(map[string]any{"state": "paid"}), queryableOrder(map[string]any{"state": "unpaid"}),
			queryableOrder(map[string]any{"state": "paid", "answer": "garbage"})
		over, unknown, pending := paidOrder(), otherOrder(true), otherOrder(false)
		id, shown := w.planned(w.token, "query", paid, unpaid, garbage, over, unknown, pending)
		if shown != "3 will_query, 1 skip_final, 1 blocked_unknown, 1 blocked_other" {
			t.Errorf("query shows %s", shown)
		}
		if n := w.queries(paid); n != 0 {
			t.Errorf("the plan made %d queries", n)
		}
		if a := w.begin(w.token, id, ""); a.status != http.StatusAccepted {
			t.Fatalf("begin: %d %s", a.status, a.body)
		}
		w.ended(w.token, id, "done")
		w.wantRows(w.token, id, map[string]string{
			paid: "will_query done paid", unpaid: "will_query done paying", garbage: "will_query failed supplier_unknown",
			over: "skip_final skipped", unknown: "blocked_unknown skipped", pending: "blocked_other skipped",
		})
		w.wantOrder(paid, 10*time.Second, map[string]string{"status": "paid", "paid_amount": "1999", "notify_status": "delivered"})
		w.wantOneNotification(paid, "order.paid")
		w.wantOrder(unpaid, 0, map[string]string{"status": "paying"})
		w.wantOrder(garbage, 0, map[string]string{"status": "paying"})
		for _, no := range []string{paid, unpaid, garbage} {
			if n := w.queries(no); n != 1 {
				t.Errorf("%s was queried %d times", no, n)
			}
		}

		// rerun: a compensation each, which asks until there is an answer.
		paid = queryableOrder(map[string]any{"state": "paid"})
		id, shown = w.planned(w.token, "rerun", paid, unpaid, over)
		if shown != "2 will_query, 1 skip_final" {
			t.Errorf("rerun shows %s", shown)
		}
		w.begin(w.token, id, "")
		w.ended(w.token, id, "done")
		w.wantRows(w.token, id, map[string]string{paid: "will_query done", unpaid: "will_query done", over: "skip_final skipped"})
		w.wantOrder(paid, 15*time.Second, map[string]string{"status": "paid", "notify_status": "delivered"})
		w.wantOneNotification(paid, "order.paid")
		if n := w.compensations("kind=rerun&order_no=" + unpaid); n != 1 {
			t.Errorf("%d compensations ask about an order", n)
		}
		if _, shown = w.planned(w.token, "rerun", unpaid); shown != "1 blocked_other" {
			t.Errorf("what is queried already: %s", shown)
		}
		w.set("sim-till", unpaid, map[string]any{"state": "paid", "callback": "none"})
		w.wantOrder(unpaid, 20*time.Second, map[string]string{"status": "paid"})

		// close: at once where nobody paid, at its supplier where somebody may have.
		unpaid, pending = queryableOrder(map[string]any{"state": "unpaid"}), otherOrder(false)
		faster := queryableOrder(map[string]any{"state": "unpaid", "close": "paid"})
		closing := otherOrder(true)
		w.request(http.MethodPost, "/api/v1/orders/"+closing+"/cancel", apiKey, `{}`)
		w.wantOrder(closing, 5*time.Second, map[string]string{"status": "closing"})
		nos := []string{unpaid, pending, faster, closing, unknown, over}
		if a := w.request(http.MethodPost, batchesPath, w.token,
			requestBody{"action": "close", "ids": nos}.text()); a.status != http.StatusForbidden {
			t.Errorf("a service closes: %d %s", a.status, a.body)
		}
		id, shown = w.planned(finance, "close", nos...)
		if shown != "1 will_run, 2 will_query, 1 skip_final, 1 blocked_unknown, 1 blocked_other" {
			t.Errorf("close shows %s", shown)
		}
		if a := w.begin(finance, id, ""); a.status != http.StatusAccepted {
			t.Fatalf("begin: %d %s", a.status, a.body)
		}
		w.ended(finance, id, "done")
		w.wantRows(finance, id, map[string]string{
			unpaid: "will_query done", pending: "will_run done", faster: "will_query done", closing: "blocked_other skipped",
			unknown: "blocked_unknown skipped", over: "skip_final skipped",
		})
		w.wantOrder(pending, 10*time.Second, map[string]string{"status": "closed", "notify_status": "delivered"})
		w.wantOrder(unpaid, 20*time.Second, map[string]string{"status": "closed"})
		w.wantOrder(faster, 20*time.Second, map[string]string{"status": "paid"})
		for no, kind := range map[string]string{pending: "order.closed", unpaid: "order.closed", faster: "order.paid"} {
			w.within(10*time.Second, "the merchant is notified", func() bool { return len(w.notifications(no)) > 0 })
			w.wantOneNotification(no, kind)
		}
		if ops := strings.Join(w.calls(unpaid), " "); !strings.Contains(ops, "query") || !strings.Contains(ops, "close") {
			t.Errorf("the calls to its supplier were %s", ops)
		}
		w.wantOrder(unknown, 0, map[string]string{"status": "paying"})

		// What was shown is not what is there any more: nothing is begun.
		nos = []string{otherOrder(false), otherOrder(false), otherOrder(false)}
		id, _ = w.planned(finance, "close", nos...)
		w.wantAccepted(callbackForm("sp-main", nos[1], "T-"+nos[1], 1999))
		if a := w.begin(finance, id, ""); a.status != http.StatusConflict || a.json("error", "code") != "drifted" {
			t.Errorf("another amount: %d %s", a.status, a.body)
		}
		w.wantOrder(nos[0], 0, map[string]string{"status": "pending"})

		// A supplier that answers nothing: the batch stops, and the rest is not queried.
		var silent []string
		for range 40 {
			silent = append(silent, queryableOrder(map[string]any{"state": "paid", "answer": "hang"}))
		}
		id, _ = w.planned(w.token, "query", silent...)
		if a := w.begin(w.token, id, "799.60"); a.status != http.StatusAccepted {
			t.Fatalf("begin: %d %s", a.status, a.body)
		}
		stopped := w.ended(w.token, id, "stopped")
		if why := stopped.json("stopped_because"); why != "supplier_breaker" && why != "supplier_timeout" {
			t.Errorf("it stopped because of %s", why)
		}
		queried, failed := 0, 0
		for _, row := range w.rows(w.token, id) {
			if row == "will_query failed supplier_timeout" {
				failed++
			}
		}
		for _, no := range silent {
			queried += w.queries(no)
			if s := w.order(no).json("status"); s != "paying" {
				t.Errorf("an order whose supplier cannot be queried is %s", s)
			}
		}
		if queried == 0 || queried > 24 || failed < 5 || failed == 40 {
			t.Errorf("%d were queried, %d rows failed", queried, failed)
		}
		w.books()
	})
}

// TestTwoNodesWorkABatchAndASweepOnce starts both at both nodes at the same moment.
func TestTwoNodesWorkABatchAndASweepOnce(t *testing.T) {
	t.Parallel()
	one, two := twoNodes(t)
	token, finance := one.token, one.personal("fang.finance", "finance")
	one.start("")
	two.start("")
	one.loseOrders("lost")
	const rows = 150
	var nos []string
	for i := range rows {
		nos = append(nos, one.create(fmt.Sprintf("batch-%d", i), nil))
	}
	id, shown := one.planned(finance, "close", nos...)
	if shown != "150 will_run" {
		t.Fatalf("close shows %s", shown)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	swept, begun, sweep := map[int]int{}, map[int]int{}, ""
	post := func(w *world, path, token, body string) answer {
		a, err := w.do(http.MethodPost, path, token, http.Header{"Content-Type": {"application/json"}}, body)
		if err != nil {
			t.Error(err)
		}
		return a
	}
	for _, w := range []*world{one, two} {
		all.Go(func() {
			a := post(w, sweepsPath, token, sweepReason)
			mu.Lock()
			defer mu.Unlock()
			if swept[a.status]++; a.status == http.StatusAccepted {
				sweep = a.json("id")
			}
		})
		all.Go(func() {
			a := post(w, batchesPath+"/"+id+"/start", finance, requestBody{"reason": batchReason, "typed": "2998.50"}.text())
			mu.Lock()
			defer mu.Unlock()
			begun[a.status]++
		})
	}
	all.Wait()
	if swept[http.StatusAccepted] != 1 || swept[http.StatusConflict] != 1 || begun[http.StatusAccepted] != 1 ||
		begun[http.StatusConflict] != 1 {
		t.Fatalf("sweeps %v, batches %v: want one 202 and one 409 of each", swept, begun)
	}
	done := two.ended(finance, id, "done")
	if done.json("done") != "150" || done.json("sums_done", "0", "amount") != fmt.Sprint(rows*1999) {
		t.Errorf("at its end: %s", done.body)
	}
	two.swept(sweep)
	closed := map[string]int{}
	one.within(20*time.Second, "every merchant is notified", func() bool {
		clear(closed)
		for _, no := range nos {
			closed[no] = len(one.notifications(no))
		}
		for _, n := range closed {
			if n == 0 {
				return false
			}
		}
		return true
	})
	for no, n := range closed {
		if n != 1 {
			t.Errorf("order %s: %d notifications", no, n)
		}
	}
	for what, query := range map[string]string{
		"changes of the batch's orders": "SELECT count(*) FROM order_history WHERE to_status = 'closed' AND cause = 'cancel'",
		"rows that are done":            "SELECT count(*) FROM batch_rows WHERE state = 'done'",
	} {
		var n int
		if err := one.own().QueryRow(query).Scan(&n); err != nil || n != rows {
			t.Errorf("%s: %d, %v", what, n, err)
		}
	}
	one.books()
	one.terminate()
	two.terminate()
}
