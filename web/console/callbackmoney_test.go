package console

import (
	"fmt"
	"strings"
	"testing"

	"backstop/internal/access"
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
