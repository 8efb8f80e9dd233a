package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestShadowModeBooksAndNotifiesNobody: what is paid in shadow mode is booked and answered, nobody outside is notified,
// and switching the mode off sends nothing of that time.
func TestShadowModeBooksAndNotifiesNobody(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		warehouse := merchantAt(t)
		w.apply(w.config("") + `
subscriptions:
  - code: warehouse
    merchants: [m1]
    events: [order.paid]
    signing_secret: whsec_` + base64.StdEncoding.EncodeToString(warehouseSecret) + `
    urls: ["` + warehouse.URL() + `"]
`)
		live := w.more
		w.more = slices.Concat(live, []string{"BACKSTOP_SHADOW=true"})
		w.start("")
		shadowed, open := w.create("shadow-1", nil), w.create("shadow-2", nil)
		w.wantAccepted(callbackForm("sp-main", shadowed, "T-shadow-1", 1999))
		w.wantOrder(shadowed, 5*time.Second, map[string]string{"status": "paid", "paid_amount": "1999", "notify_status": "none"})
		w.wantRefusedInShadow(shadowed, open)
		w.books()
		if found, _ := w.command("doctor"); !strings.Contains(found, "shadow mode") {
			t.Errorf("doctor says nothing of shadow mode:\n%s", found)
		}
		w.wantComparison(shadowed, open)
		w.terminate()

		w.more = live
		w.start("")
		notified := w.create("live-1", nil)
		w.wantAccepted(callbackForm("sp-main", notified, "T-live-1", 1999))
		w.wantOrder(notified, 5*time.Second, map[string]string{"status": "paid", "notify_status": "delivered"})
		w.within(5*time.Second, "the warehouse is notified", func() bool { return len(received(warehouse, notified)) == 1 })
		w.wantOrder(shadowed, 5*time.Second, map[string]string{"notify_status": "none"})
		if a, b := received(w.merchant, shadowed), received(warehouse, shadowed); len(a)+len(b) != 0 {
			t.Errorf("of shadow mode the merchant received %d notifications, and the warehouse %d", len(a), len(b))
		}
		if kinds := w.exceptions(""); len(kinds) != 0 {
			t.Errorf("exceptions %v", kinds)
		}
		w.books()
	})
}

// wantRefusedInShadow tries everything of the API that would move money or notify.
func (w *world) wantRefusedInShadow(paid, open string) {
	w.t.Helper()
	skipped := w.request(http.MethodGet, "/api/v1/notifications?order_no="+paid, apiKey, "")
	for _, x := range []struct{ path, key, body string }{
		{"/api/v1/orders/" + open + "/pay", apiKey, "{}"},
		{"/api/v1/orders/" + open + "/cancel", apiKey, ""},
		{"/api/v1/orders/" + paid + "/refunds", apiKey, refundOf("shadow-refund", 500)},
		{"/api/v1/notifications/" + skipped.json("items", "0", "id") + "/resend", apiKey, "{}"},
		{"/api/v1/admin/merchants/m1/ping", w.token, "{}"},
	} {
		if a := w.request(http.MethodPost, x.path, x.key, x.body); a.status != http.StatusConflict || a.json("error", "code") != "shadow_mode" {
			w.t.Errorf("%s: %d %s", x.path, a.status, a.body)
		}
	}
	if a := w.order(open); a.json("status") != "pending" {
		w.t.Errorf("refused, the order is %s", a.json("status"))
	}
}

// wantComparison compares what became of the orders with what another system says.
func (w *world) wantComparison(paid, open string) {
	w.t.Helper()
	there := filepath.Join(w.t.TempDir(), "there.jsonl")
	for status, want := range map[string]string{
		"pending": "2 the same, 0 differ, 0 only there, 0 paid here only",
		"closed":  open + ": here pending, there closed\n1 the same, 1 differ, 0 only there, 0 paid here only",
	} {
		text := fmt.Sprintf("{\"order_no\":%q,\"status\":\"paid\",\"paid_amount\":1999}\n{\"order_no\":%q,\"status\":%q}\n", paid, open, status)
		if err := os.WriteFile(there, []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
		if out, err := w.command("import", "outcomes", there); strings.TrimSpace(out) != want || (err == nil) != (status == "pending") {
			w.t.Errorf("%v, %q, want %q", err, out, want)
		}
	}
	// The console shows both files, and the order that differed in one of them.
	var files, rows int
	if err := w.own().QueryRow("SELECT count(*), (SELECT count(*) FROM comparison_rows) FROM comparisons WHERE file = 'there.jsonl'").
		Scan(&files, &rows); err != nil || files != 2 || rows != 1 {
		w.t.Errorf("%d comparisons with %d rows are kept: %v", files, rows, err)
	}
}
