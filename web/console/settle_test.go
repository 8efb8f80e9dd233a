package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/exception"
	"backstop/internal/ledger/fact"
	"backstop/web/webtest"
)

// exceptionPage is the page of one exception, and what operators do there.
type exceptionPage struct {
	*testing.T
	*harness
	path string
}

// on is the page of the first exception of a kind.
func (h *harness) on(t *testing.T, kind string) exceptionPage {
	t.Helper()
	return exceptionPage{t, h, fmt.Sprintf("/exceptions/%d", number(t, h.DB, "SELECT id FROM exceptions WHERE kind = '"+kind+"'"))}
}

// do sends a form of the page twice, as a double click does, and returns the first
// answer; what is not drawn is sent all the same.
func (k exceptionPage) do(cookie, what string, want int, fields ...string) webtest.Answer {
	k.Helper()
	page := k.Page(k.T, cookie, k.path).Body
	form := []string{"form_key", "none " + what}
	if strings.Contains(page, k.path+"/"+what) {
		form = formOf(k.T, page, k.path+"/"+what)
	}
	var first webtest.Answer
	for i := range 2 {
		got := k.Post(k.T, cookie, k.path+"/"+what, append(form[:2:2], fields...)...)
		if got.Status != want {
			k.Errorf("%s with %v: %d, want %d", what, fields, got.Status, want)
		}
		if i == 0 {
			first = got
		}
	}
	return first
}

// No form that a single person sends ends an exception: its subject stays, whoever sends the
// form.
func TestAnExceptionIsDiscussedTakenInHandAndNotEndedByOnePerson(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seed(t, h.DB)
		support, ops, lead := h.SignIn(t, access.Support), h.SignIn(t, access.Ops), h.SignIn(t, access.Lead)
		change(t, h.DB, "UPDATE exceptions SET kind = 'stuck_paying', amount = 0, currency = '' WHERE kind = 'unknown_order'")
		cookies := map[string]string{access.Support: support, access.Ops: ops, access.Lead: lead}
		for _, role := range access.AllRoles {
			if cookies[role] == "" {
				cookies[role] = h.SignIn(t, role)
			}
			cookie := cookies[role]
			for _, kind := range []string{exception.StuckPaying, exception.AmountMismatch} {
				k := h.on(t, kind)
				k.do(cookie, "settle", http.StatusNotFound, "reason", "put right by hand", "amount", "12.300", "outcome",
					"refunded_elsewhere", "reference", "RF-1")
				if strings.Contains(h.Page(t, cookie, k.path).Body, k.path+"/settle") {
					t.Errorf("%s is offered to settle %s", role, kind)
				}
			}
		}
		if n := number(t, h.DB, "SELECT count(*) FROM exceptions WHERE state <> 'open'"); n != 0 {
			t.Errorf("%d are not open any more", n)
		}

		k := h.on(t, exception.StuckPaying)
		change(t, h.DB, "UPDATE exceptions SET state = 'ignored' WHERE kind = 'stuck_paying'")
		k.do(support, "reopen", http.StatusForbidden, "reason", "it was not over")
		k.do(ops, "reopen", http.StatusSeeOther, "reason", "it was not over")

		k = h.on(t, exception.AmountMismatch)
		k.do(support, "comment", http.StatusSeeOther, "reason", "the supplier looks into it <b>")
		k.do(support, "assign", http.StatusSeeOther, "to", "the.ops")
		k.do(support, "assign", http.StatusUnprocessableEntity, "to", "the.viewer")
		change(t, h.DB,
			"UPDATE exceptions SET state = 'resolved', outcome = 'refunded_elsewhere', reference = 'RF-2026 <1>', resolved_at = 5, alerted_at = 1 WHERE kind = 'amount_mismatch'")
		for _, path := range []string{k.path, "/orders/2026112000000003", "/orders/2026112000000003/evidence"} {
			page := h.Page(t, lead, path+"?lang=en").Body
			for _, text := range []string{"Refunded elsewhere", "RF-2026 &lt;1&gt;"} {
				if !strings.Contains(page, text) {
					t.Errorf("%s does not say %q", path, text)
				}
			}
		}
		if file := h.Page(t, lead, "/orders/2026112000000003/evidence?format=json").Body; !strings.Contains(file, `refunded_elsewhere`) {
			t.Error("the evidence does not contain the outcome")
		}
		for role, cookie := range map[string]string{access.Support: support, access.Ops: ops, access.Admin: cookies[access.Admin]} {
			got := k.do(cookie, "reopen", http.StatusForbidden, "reason", "open it again")
			if role == access.Ops && !strings.Contains(got.Body, "财务主管") {
				t.Errorf("the refusal does not say who may: %s", got.Body)
			}
		}
		change(t, h.DB, "UPDATE exceptions SET decided_by = 7 WHERE kind = 'amount_mismatch'") // by two people
		k.do(lead, "reopen", http.StatusConflict, "reason", "the refund came back")
		change(t, h.DB, "UPDATE exceptions SET decided_by = 0 WHERE kind = 'amount_mismatch'")
		k.do(lead, "reopen", http.StatusSeeOther, "reason", "the refund came back")
		if n := number(t, h.DB,
			"SELECT count(*) FROM exceptions WHERE kind = 'amount_mismatch' AND state = 'open' AND outcome = '' AND alerted_at IS NULL"); n != 1 {
			t.Error("it is not open again, or does not alert again")
		}
		if page := h.Page(t, lead, "/audit?object=exception&lang=en").Body; !strings.Contains(page, "RF-2026 &lt;1&gt;") ||
			!strings.Contains(page, "reopened it") {
			t.Error("the audit does not record how it had ended")
		}
		if n := number(t, h.DB, "SELECT count(*) FROM audit WHERE object = 'exception'"); n != 4 {
			t.Errorf("%d acts are kept, want 4", n)
		}
	})
}

// What the supplier holds and the books do not is shown on the order's page, with the
// exceptions about it.
func TestTheOrdersMoneySaysWhatTheSupplierHoldsBeside(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	lead := h.SignIn(t, access.Lead)
	order := number(t, h.DB, "SELECT id FROM orders WHERE order_no = '2026112000000001'")
	change(t, h.DB, "DELETE FROM exceptions")
	for i, x := range []exception.Item{
		{Kind: exception.DuplicatePayment, State: "open", Subject: "TRADE-X", Amount: 1999, Currency: "CNY"},
		{Kind: exception.AmountMismatch, State: "assigned", Subject: "TRADE-Y", Amount: 1, Currency: "CNY"},
		{Kind: exception.DuplicatePayment, State: "resolved", Subject: "TRADE-Z", Amount: 777, Currency: "CNY"},
		{Kind: exception.DisputeOpened, State: "open", Subject: "du_9", Amount: 2500, Currency: "CNY"},
		{Kind: exception.AmountMismatch, State: "open", Subject: "TRADE-H", Amount: 3224, Currency: "CNY", HeldRef: "held:TRADE-H"},
	} {
		x.ID, x.OrderID, x.OrderNo, x.Detail, x.Seen, x.OpenedAt = h.DB.NewID(), order, "2026112000000001", exception.Detail(nil), 1,
			h.DB.Now()+int64(i)
		if _, err := h.DB.NewInsert().Model(&x).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var entries fact.Entries
	entries.Add(fact.Held, fact.Values{Supplier: "wx", ID: "TRADE-H", Amount: 3224, Currency: "CNY"})
	post(t, h.DB, entries)
	page := h.Page(t, lead, "/orders/2026112000000001?lang=en").Body
	_, money, _ := strings.Cut(page, `id="money-title"`)
	money, _, _ = strings.Cut(money, "</section>")
	for _, text := range []string{
		"not in the books", "TRADE-X", "¥19.99", "TRADE-Y", "¥0.01", "¥20.00", "refunded or disputed", "du_9",
		"¥25.00", "Not all is booked", "Held in suspense, not in the order", "TRADE-H", "¥32.24",
		"Received", "3,551.24", "In the order", "3,499.00", // the order's, TRADE-X, TRADE-Y and TRADE-H
	} {
		if !strings.Contains(money, text) {
			t.Errorf("the money panel does not say %q", text)
		}
	}
	if strings.Contains(money, "TRADE-Z") {
		t.Error("settled money is still held")
	}
	for _, id := range numbers(t, h.DB, "SELECT id FROM exceptions") {
		link := fmt.Sprintf(`href="/exceptions/%d"`, id)
		if strings.Count(page, link) < 2 {
			t.Errorf("the order leads %d times to its exception", strings.Count(page, link))
		}
		if back := h.Page(t, lead, fmt.Sprintf("/exceptions/%d", id)).Body; !strings.Contains(back, `href="/orders/2026112000000001"`) {
			t.Error("the exception does not lead back to its order")
		}
	}
	if !strings.Contains(page, "Equals what was received") {
		t.Error("the entry that holds the money is not compared with what is held")
	}
	change(t, h.DB, "UPDATE exceptions SET amount = 3225 WHERE held_ref <> ''")
	if page := h.Page(t, lead, "/orders/2026112000000001?lang=en").Body; !strings.Contains(page, "Differs from what was received") {
		t.Error("an entry with another amount equals what was received")
	}
	change(t, h.DB, "UPDATE exceptions SET state = 'resolved'")
	if page := h.Page(t, lead, "/orders/2026112000000001?lang=en").Body; strings.Contains(page, "not in the books") ||
		strings.Contains(page, "suspense, not") || !strings.Contains(page, "Equals the amount paid") {
		t.Error("nothing is held any more, but the page shows held money")
	}
}

// A decision is one chain in the order's story, with both names and what binds them.
func TestTheChainOfADecisionIsInTheStoryAndTheEvidence(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	h.SignIn(t, access.Finance)
	lead := h.SignIn(t, access.Lead)
	const hash = "9b74c9897bac770ffc029102a200c5de0c5d2a3f7b1f4a5e6d7c8b9a0f1e2d3c"
	change(t, h.DB,
		"INSERT INTO approvals (id, action, object, object_id, order_no, version, amount, currency, params, reason, evidence, hash, maker, checker, checker_reason, second, state,"+
			" made_at, expires_at, decided_at, started_at, done_at, tries, result)"+
			" SELECT 77, 'force_closed', 'order', '2026112000000001', '2026112000000001', 1, 1999, 'CNY', '{\"evidence\":\"a letter\"}', 'the supplier is gone <b>', 'a letter', '"+hash+"',"+
			" m.id, c.id, 'the letter is here', TRUE, 'done', 1792828800000001, 1792828800000009, 1792828800000002, 1792828800000002, 1792828800000003, 1, '{}'"+
			" FROM operators AS m, operators AS c WHERE m.name = 'the.finance' AND c.name = 'the.lead'")
	page := h.Page(t, lead, "/orders/2026112000000001?lang=en").Body
	for text, n := range map[string]int{
		hash: 3, "apr_77": 3, "the supplier is gone &lt;b&gt;": 1, "the letter is here": 1,
		"made by the.finance · checked by the.lead": 1,
	} {
		if got := strings.Count(page, text); got < n {
			t.Errorf("the story contains %q %d times, want %d", text, got, n)
		}
	}
	file := h.Page(t, lead, "/orders/2026112000000001/evidence?format=json").Body
	for _, text := range []string{
		`"kind":"proposal"`, `"kind":"approval"`, `"kind":"run"`, `"maker":"the.finance"`, `"checker":"the.lead"`,
		hash,
	} {
		if !strings.Contains(strings.ReplaceAll(file, `": "`, `":"`), text) {
			t.Errorf("the evidence does not contain %s", text)
		}
	}
}
