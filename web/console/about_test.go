package console

import (
	"fmt"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/notify"
)

// A row leads to what it is about: notifications also tell of refunds, payouts and disputes, and
// a callback's reference may be no order of ours.
func TestRowsLeadToWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	h := open(t)
	viewer, now := h.SignIn(t, access.Viewer), h.DB.Now()
	for i, kind := range []string{"refund.succeeded", "payout.failed", "dispute.opened", "ping"} {
		id := 71 + i
		change(t, h.DB, "INSERT INTO events (id, merchant_id, subject_id, type, version, body, created_at) VALUES (?, 1, ?, ?, 1, '{}', ?)",
			id, id, kind, now)
		change(t, h.DB,
			"INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, created_at) VALUES (?, ?, 1, ?, ?, 'webhook', '', 'queued', ?)",
			h.DB.NewID(), id, id, kind, now)
	}
	list := h.Page(t, viewer, "/notifications?lang=en").Body
	for id, link := range map[string]string{
		notify.PublicID(71, "refund.succeeded"): "/refunds/R71", notify.PublicID(72, "payout.failed"): "/payouts/P72",
		notify.PublicID(73, "dispute.opened"): "/disputes/D73",
	} {
		one := h.Page(t, viewer, "/notifications/"+id+"?lang=en").Body
		for what, page := range map[string]string{"the list": list, "its page": one} {
			if !strings.Contains(page, fmt.Sprintf("href=%q", link)) {
				t.Errorf("%s does not lead to %s", what, link)
			}
		}
	}
	if strings.Contains(list, `href="/orders/"`) {
		t.Error("a notification leads to an order without a number")
	}

	for i, no := range []string{"NOSUCH", "P72"} {
		change(t, h.DB,
			"INSERT INTO callbacks (id, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome, received_at, remote_addr, method, query, headers, body, steps)"+
				" VALUES (?, 1, 0, ?, 'W', '', '', 'unknown_order', ?, '192.0.2.1', 'POST', '', '', '', '')", h.DB.NewID()+int64(i), no,
			now)
	}
	page := h.Page(t, viewer, "/callbacks?lang=en").Body
	for _, no := range []string{"NOSUCH", "P72"} {
		if !strings.Contains(page, no) || strings.Contains(page, `href="/orders/`+no) {
			t.Errorf("the callback about %s is not shown, or leads to an order that does not exist", no)
		}
	}
}
