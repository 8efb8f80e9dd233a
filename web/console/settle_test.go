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
	"backstop/web/webtest"
)

// clerk does what one operator does about one exception.
type clerk struct {
	*testing.T
	*harness
	path string
}

// on is a clerk of the first exception of a kind.
func (h *harness) on(t *testing.T, kind string) clerk {
	t.Helper()
	return clerk{t, h, fmt.Sprintf("/exceptions/%d", number(t, h.DB, "SELECT id FROM exceptions WHERE kind = '"+kind+"'"))}
}

// do sends a form of the page twice, as a double click does, and returns the first
// answer; what is not drawn is sent all the same.
func (k clerk) do(cookie, what string, want int, fields ...string) webtest.Answer {
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

func TestAnExceptionIsDiscussedTakenInHandAndSettled(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seed(t, h.DB)
		support, ops, lead := h.SignIn(t, access.Support), h.SignIn(t, access.Ops), h.SignIn(t, access.Lead)
		change(t, h.DB, "UPDATE exceptions SET kind = 'stuck_paying', amount = 0, currency = '' WHERE kind = 'unknown_order'")

		k := h.on(t, exception.StuckPaying)
		k.do(support, "settle", http.StatusForbidden, "reason", "put right by hand")
		k.do(ops, "settle", http.StatusUnprocessableEntity, "reason", "short")
		k.do(ops, "settle", http.StatusUnprocessableEntity, "reason", "of no money at all", "outcome", "no_effect")
		k.do(ops, "settle", http.StatusSeeOther, "reason", "of no money at all")
		if page := h.Page(t, ops, k.path+"?lang=en").Body; strings.Contains(page, k.path+"/settle") || !strings.Contains(page, k.path+"/reopen") {
			t.Error("what is over can be settled again, or not be opened again")
		}
		k.do(support, "reopen", http.StatusForbidden, "reason", "it was not over")
		k.do(ops, "reopen", http.StatusSeeOther, "reason", "it was not over")
		k.do(ops, "settle", http.StatusSeeOther, "reason", "a known oddity", "ignore", "1")
		if n := number(t, h.DB, "SELECT count(*) FROM exceptions WHERE state = 'ignored'"); n != 1 {
			t.Errorf("%d are ignored", n)
		}
		k.do(ops, "reopen", http.StatusSeeOther, "reason", "it was no oddity")

		k = h.on(t, exception.AmountMismatch)
		end := []string{"reason", "the rest was refunded by hand", "amount", "12.300", "outcome", "refunded_elsewhere", "reference", "RF-2026 <1>"}
		k.do(support, "comment", http.StatusSeeOther, "reason", "the supplier looks into it <b>")
		k.do(support, "assign", http.StatusSeeOther, "person", "the.ops")
		k.do(support, "assign", http.StatusUnprocessableEntity, "person", "the.viewer")
		for role, cookie := range map[string]string{
			access.Support: support, access.Ops: ops, access.Finance: h.SignIn(t, access.Finance), access.Admin: h.SignIn(t, access.Admin),
		} {
			got := k.do(cookie, "settle", http.StatusForbidden, end...)
			if role == access.Ops && (!strings.Contains(got.Body, "可以操作的角色：财务主管 lead<") || strings.Contains(got.Body, "finance")) {
				t.Errorf("the refusal does not say who may: %s", got.Body)
			}
			k.do(cookie, "reopen", http.StatusForbidden, "reason", "open it again")
			if page := h.Page(t, cookie, k.path).Body; strings.Contains(page, k.path+"/settle") {
				t.Errorf("%s is offered to settle money", role)
			}
		}
		for field, name := range map[string]string{"amount": "金额", "outcome": "处理结果", "reference": "凭证号"} {
			for _, value := range []string{"", strings.Repeat("9", 300)} {
				with := []string{}
				for i := 0; i < len(end); i += 2 {
					if end[i] != field {
						with = append(with, end[i], end[i+1])
					}
				}
				got := k.do(lead, "settle", http.StatusUnprocessableEntity, append(with, field, value)...)
				if !strings.Contains(got.Body, "有问题的一项："+name) {
					t.Errorf("the refusal of %s=%q does not name the field", field, value)
				}
			}
		}
		if page := h.Page(t, lead, k.path+"?lang=en").Body; !strings.Contains(page, `data-typed="12.300"`) || !strings.Contains(page, "Refunded elsewhere") {
			t.Error("the page asks for neither the amount nor the outcome")
		}
		if n := number(t, h.DB, "SELECT count(*) FROM exceptions WHERE kind = 'amount_mismatch' AND state = 'assigned'"); n != 1 {
			t.Fatal("a refusal settled it")
		}
		k.do(lead, "settle", http.StatusSeeOther, end...)
		for _, path := range []string{k.path, "/orders/2026112000000003", "/orders/2026112000000003/evidence"} {
			page := h.Page(t, lead, path+"?lang=en").Body
			for _, text := range []string{"Refunded elsewhere", "RF-2026 &lt;1&gt;", "the.lead", "the rest was refunded by hand", "resolved it"} {
				if !strings.Contains(page, text) {
					t.Errorf("%s does not say %q", path, text)
				}
			}
		}
		if file := h.Page(t, lead, "/orders/2026112000000003/evidence?format=json").Body; !strings.Contains(file, `refunded_elsewhere`) {
			t.Error("the evidence does not hold the outcome")
		}
		if page := h.Page(t, ops, k.path+"?lang=en").Body; !strings.Contains(page, "only lead may") {
			t.Error("ops is not told who may open it again")
		}
		change(t, h.DB, "UPDATE exceptions SET alerted_at = 1")
		k.do(lead, "reopen", http.StatusSeeOther, "reason", "the refund came back")
		if n := number(t, h.DB, "SELECT count(*) FROM exceptions WHERE kind = 'amount_mismatch' AND state = 'open' AND outcome = '' AND alerted_at IS NULL"); n != 1 {
			t.Error("it is not open again, or does not alert again")
		}
		k.do(lead, "settle", http.StatusSeeOther, "reason", "there was no payment", "amount", "12.300", "outcome", "no_effect")
		if page := h.Page(t, lead, "/audit?object=exception&lang=en").Body; !strings.Contains(page, "RF-2026 &lt;1&gt;") || !strings.Contains(page, "12.300 KWD") || !strings.Contains(page, "opened it again") {
			t.Error("the audit does not say how it ended")
		}
		if n := number(t, h.DB, "SELECT count(*) FROM audit WHERE object = 'exception'"); n != 9 {
			t.Errorf("%d acts are kept, want 9", n)
		}
	})
}

// What the supplier holds and the books do not stands on the order's page, with
// the exceptions that say so.
func TestTheOrdersMoneySaysWhatTheSupplierHoldsBeside(t *testing.T) {
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
	} {
		x.ID, x.OrderID, x.OrderNo, x.Detail, x.Seen, x.OpenedAt = h.DB.NewID(), order, "2026112000000001", exception.Detail(nil), 1, h.DB.Now()+int64(i)
		if _, err := h.DB.NewInsert().Model(&x).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	page := h.Page(t, lead, "/orders/2026112000000001?lang=en").Body
	_, money, _ := strings.Cut(page, `id="money-title"`)
	money, _, _ = strings.Cut(money, "</section>")
	for _, text := range []string{"not in the books", "TRADE-X", "¥19.99", "TRADE-Y", "¥0.01", "¥20.00", "refunded or disputed", "du_9", "¥25.00", "Not all is booked"} {
		if !strings.Contains(money, text) {
			t.Errorf("the money panel does not say %q", text)
		}
	}
	if strings.Contains(money, "TRADE-Z") {
		t.Error("what was settled is still held")
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
	change(t, h.DB, "UPDATE exceptions SET state = 'resolved'")
	if page := h.Page(t, lead, "/orders/2026112000000001?lang=en").Body; strings.Contains(page, "not in the books") {
		t.Error("nothing is held any more, and the page says otherwise")
	}
}
