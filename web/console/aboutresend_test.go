package console

import (
	"net/http"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/fund/refund"
	"backstop/internal/notify"
)

// A notification about a refund shows its money, and is sent again from its own page.
func TestANotificationAboutARefundIsSentAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	now := h.DB.Now()
	const body = `{"type":"refund.failed","data":{"refund_no":"R71","amount":1234,"currency":"CNY"}}`
	for id, kind := range map[int]string{71: "refund.failed", 72: notify.Ping} {
		change(t, h.DB, "INSERT INTO events (id, merchant_id, subject_id, type, version, body, created_at) VALUES (?, 1, ?, ?, 1, ?, ?)",
			id, id, kind, body, now)
		change(t, h.DB,
			"INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, created_at, finished_at) VALUES (?, ?, 1, ?, ?, 'webhook', '', 'exhausted', ?, ?)",
			id+100, id, id, kind, now, now)
	}
	if _, err := h.DB.NewInsert().Model(&refund.Refund{
		ID: 71, RefundNo: "R71", MerchantID: 1, OutRefundNo: "RF-71", Amount: 1234, Currency: "CNY", Status: refund.Failed, CreatedAt: now,
	}).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := "/notifications/" + notify.PublicID(71, "refund.failed")
	support := h.SignIn(t, access.Support)
	page := h.Page(t, support, path+"?lang=en").Body
	if !strings.Contains(page, "12.34") || !strings.Contains(page, path+"/resend") {
		t.Fatalf("the amount (%v) or the form (%v) is missing", strings.Contains(page, "12.34"), strings.Contains(page, path+"/resend"))
	}
	change(t, h.DB,
		"INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, created_at)"+
			" VALUES (?, 71, 1, 71, 'refund.failed', 'webhook', '', 'delivered', ?)", h.DB.NewID(), now)
	for _, filter := range []string{"type=refund.failed", "amount=12.34"} { // in the list and in its total
		if list := h.Page(t, support, "/notifications?lang=en&"+filter).Body; strings.Count(list, `value="1234 CNY"`) != 2 {
			t.Errorf("%s: the list has the amount %d times", filter, strings.Count(list, `value="1234 CNY"`))
		}
	}
	if ping := h.Page(t, support, "/notifications/"+notify.PublicID(72, notify.Ping)).Body; strings.Contains(ping, "/resend\"") {
		t.Error("a ping can be sent again")
	}
	form := append(formOf(t, page, path+"/resend"), "reason", "the merchant asked by phone")
	if got := h.Post(t, h.SignIn(t, access.Viewer), path+"/resend", form...); got.Status != http.StatusForbidden {
		t.Errorf("by a viewer: %d", got.Status)
	}
	if got := h.Post(t, support, "/notifications/"+notify.PublicID(72, notify.Ping)+"/resend", form...); got.Status != http.StatusNotFound {
		t.Errorf("of another notification: %d", got.Status)
	}
	for range 2 { // the second is a repeat of the form
		if got := h.Post(t, support, path+"/resend", form...); got.Status != http.StatusSeeOther ||
			!strings.HasPrefix(got.Header.Get("Location"), path+"?") {
			t.Fatalf("%d %s %s", got.Status, got.Header.Get("Location"), got.Body)
		}
	}
	if n := number(t, h.DB, "SELECT count(*) FROM deliveries WHERE id = 171 AND status = 'retry_wait'"); n != 1 {
		t.Error("it is not due")
	}
	if n := number(t, h.DB, "SELECT count(*) FROM audit WHERE action = 'notification.resend' AND params LIKE '%"+notify.PublicID(71, "refund.failed")+
		"%' AND params LIKE '%171%'"); n != 1 {
		t.Errorf("%d audit rows", n)
	}
}
