package e2e

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// personal adds an operator and returns a token of theirs.
func (w *world) personal(name, role string) string {
	w.t.Helper()
	w.run("operator", "add", name, "--role", role)
	return strings.TrimSpace(w.run("operator", "token", name))
}

// latePaymentDecided: one person proposes, another one approves, and the order is paid, its
// merchant notified and the money booked, once.
func latePaymentDecided(w *world) {
	maker, checker := w.personal("mo.maker", "finance"), w.personal("chen.checker", "lead")
	no := w.create("late-2", requestBody{"expires_in": 1})
	w.wantOrder(no, 10*time.Second, map[string]string{"status": "closed"})
	w.wantAccepted(callbackForm("sp-main", no, "T-late-2", 1999))
	found := w.request(http.MethodGet, "/api/v1/admin/exceptions?order_no="+no, maker, "")
	path := "/api/v1/admin/exceptions/" + found.json("items", "0", "id")
	post := func(path, token string, body map[string]any) answer {
		return w.request(http.MethodPost, path, token, requestBody(body).text())
	}
	proposal := map[string]any{"action": "accept_late", "reason": "the goods are still here", "amount": "19.99"}
	refused := func(what string, a answer, status int, code string) {
		w.t.Helper()
		if a.status != status || a.json("error", "code") != code {
			w.t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	refused("by a service", post(path+"/propose", w.token, proposal), http.StatusForbidden, "person_needed")
	refused("what nobody could ask about", post(path+"/propose", maker, proposal), http.StatusUnprocessableEntity, "invalid_field")
	proposal["params"] = map[string]any{"unverified": true}
	made := post(path+"/propose", maker, proposal)
	if made.status != http.StatusCreated || made.json("approval", "state") != "waiting" || made.json("approval", "maker") != "mo.maker" {
		w.t.Fatalf("proposed: %d %s", made.status, made.body)
	}
	approve := "/api/v1/admin/approvals/" + made.json("approval", "id") + "/approve"
	verdict := map[string]any{"hash": made.json("approval", "hash"), "reason": "compared with the statement"}
	refused("by its maker", post(approve, maker, verdict), http.StatusForbidden, "own_proposal")
	w.wantOrder(no, 0, map[string]string{"status": "closed", "paid_amount": "0"})
	for range 2 { // the second one is answered alike, and nothing runs twice
		if done := post(approve, checker, verdict); done.status != http.StatusOK || done.json("state") != "done" ||
			done.json("checker") != "chen.checker" {
			w.t.Fatalf("approved: %d %s", done.status, done.body)
		}
	}
	paid := w.wantOrder(no, 10*time.Second, map[string]string{
		"status": "paid", "paid_amount": "1999", "supplier_trade_no": "T-late-2",
		"notify_status": "delivered",
	})
	if paid.json("version") != "3" {
		w.t.Errorf("the order is in version %s", paid.json("version"))
	}
	var types []string
	for _, n := range w.notifications(no) {
		types = append(types, (answer{body: string(n.Body)}).json("type"))
	}
	if slices.Sort(types); strings.Join(types, " ") != "order.closed order.paid" {
		w.t.Errorf("the merchant was notified of %v", types)
	}
	if x := w.request(http.MethodGet, path, checker, ""); x.json("state") != "resolved" || x.json("outcome") != "accepted" ||
		x.json("approvals", "0", "state") != "done" {
		w.t.Errorf("the exception: %s", x.body)
	}
	w.wantAccepted(callbackForm("sp-main", no, "T-late-2", 1999)) // told once more
	w.wantOrder(no, 0, map[string]string{"status": "paid", "version": "3"})
}
