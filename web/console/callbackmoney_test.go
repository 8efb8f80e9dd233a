package console

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// A callback shows its amount beside that of its order, whether it was accepted or not.
func TestACallbackShowsItsAmountBesideThatOfItsOrder(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	viewer := h.SignIn(t, access.Viewer)
	paid := number(t, h.DB, "SELECT id FROM callbacks WHERE outcome = 'paid'")
	if page := h.Page(t, viewer, fmt.Sprintf("/callbacks/%d?lang=en", paid)).Body; strings.Count(page, `value="349900 CNY"`) != 2 ||
		!strings.Contains(page, `value="0 CNY"`) {
		t.Error("the amounts of a payment are not both shown")
	}
	change(t, h.DB, "INSERT INTO callbacks (id, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome, received_at, remote_addr,"+
		" method, query, headers, body) SELECT 9295, 1, o.id, o.order_no, 'T-wrong', 'e', 'd', 'amount_mismatch', 5, '', 'POST', '', '', ?"+
		" FROM orders AS o WHERE o.order_no = '2026112000000001'", []byte("{}"))
	change(t, h.DB, "INSERT INTO exceptions (id, kind, state, supplier_id, order_no, subject, amount, currency, detail, opened_at, updated_at)"+
		" VALUES (9296, 'amount_mismatch', 'open', 1, '2026112000000001', 'T-wrong', 349000, 'CNY', '{}', 5, 5)")
	page := h.Page(t, viewer, "/callbacks/9295?lang=en").Body
	for _, amount := range []string{"349000 CNY", "349900 CNY", "-900 CNY"} {
		if !strings.Contains(page, `value="`+amount+`"`) {
			t.Errorf("the callback of a wrong amount does not show %s", amount)
		}
	}
}

// A repeat says what the message said that it repeats: on the list, in its export and on its page. So does a
// message under another key about the payment that paid the order.
func TestARepeatedCallbackShowsItsAmount(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seed(t, d)
		viewer := h.SignIn(t, access.Viewer)
		change(t, d, "UPDATE orders SET paid_amount = amount WHERE order_no = '2026112000000001'")
		const columns = "(id, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome, received_at, remote_addr," +
			" method, query, headers, body, steps)"
		add := func(key, digest, outcome, steps string) int64 {
			t.Helper()
			id := d.NewID()
			change(t, d, "INSERT INTO callbacks "+columns+" SELECT ?, 1, o.id, o.order_no, 'T-first', ?, ?, ?, ?, '', 'POST', '', '', ?, ?"+
				" FROM orders AS o WHERE o.order_no = '2026112000000001'", id, key, digest, outcome, d.Now(), []byte("{}"), steps)
			return id
		}
		add("k1", "paid", "paid", "amount\t0\tpayment.amount\n")
		add("k1", "wrong", "amount_mismatch", "amount\t0\tpayment.not\t!\t1\t2\n")
		change(t, d, "INSERT INTO exceptions (id, kind, state, supplier_id, order_no, subject, amount, currency, detail, opened_at, updated_at)"+
			" VALUES (9296, 'amount_mismatch', 'open', 1, '2026112000000001', 'T-first', 349000, 'CNY', '{}', 5, 5)")
		const again = "repeat\t0\tpayment.repeat\n"
		for id, want := range map[int64]string{
			add("k1", "paid", "repeat", again):                            "349900 CNY",
			add("k1", "wrong", "repeat", again):                           "349000 CNY",
			add("k2", "paid", "repeat", "state\t0\tpayment.same_trade\n"): "349900 CNY",
			add("k3", "other", "repeat", again):                           "",
		} {
			page := h.Page(t, viewer, fmt.Sprintf("/callbacks/%d?lang=en", id)).Body
			panel := regexp.MustCompile(`(?s)id="amount-title".*?</section>`).FindString(page)
			row := regexp.MustCompile(fmt.Sprintf(`(?s)<tr data-row[^>]*>(?:[^<]|<[^/]|</[^t]|</t[^r])*/callbacks/%d".*?</tr>`, id)).
				FindString(h.Page(t, viewer, "/callbacks?lang=en").Body)
			amounts := func(of string) (all []string) {
				for _, m := range moneyForm.FindAllStringSubmatch(of, -1) {
					all = append(all, m[1])
				}
				return all
			}
			ofPage, ofRow := amounts(panel), amounts(row)
			if row == "" || want != "" && (len(ofPage) < 2 || ofPage[0] != want || !slices.Equal(ofRow, []string{want})) ||
				want == "" && (len(ofPage) != 1 || len(ofRow) > 0) { // only that of its order
				t.Errorf("a repeat shows %q on its page and %q on the list, want %q", ofPage, ofRow, want)
			}
		}
		files := cells(t, h.Page(t, viewer, "/callbacks?format=csv&lang=en&columns=amount,currency,outcome").Body)
		n := 0
		for _, r := range files {
			if slices.Contains(r, "3490.00") || slices.Contains(r, "3499.00") {
				n++
			}
		}
		if n < 5 {
			t.Errorf("%d callbacks have an amount in the file: %q", n, files)
		}
	})
}
