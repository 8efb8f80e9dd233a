package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/console"
	"backstop/internal/evidence"
	"backstop/internal/exception"
)

// manyCallbacks adds callbacks of one order, each of size bytes that HTML and JSON write
// five times as long.
func manyCallbacks(t *testing.T, d *db.DB, n, size int) {
	t.Helper()
	body := []byte(`{"attach":"` + strings.Repeat(`&lt;`, size/4) + `"}`)
	steps := `[{"name":"supplier","ok":true,"detail":"wx-main (wechatpay)"},{"name":"address","ok":true,"detail":"203.0.113.7; any address is allowed"},` +
		`{"name":"signature","ok":true,"detail":"RSA-SHA256 holds under PUB_KEY_ID_1"},{"name":"time window","ok":true,"detail":"signed 628ms before it arrived, 5m0s allowed"},` +
		`{"name":"decryption","ok":true,"detail":"resource opened"},{"name":"content","ok":true,"detail":"TRANSACTION.SUCCESS of 4200001"},` +
		`{"name":"order","ok":true,"detail":"2026112000000007 is pending, version 1"},{"name":"account","ok":true,"detail":"the message is for our account"},` +
		`{"name":"amount","ok":false,"detail":"0.05, not 3499.00 CNY"}]`
	for i := range n {
		_, err := d.NewRaw("INSERT INTO callbacks (id, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome, received_at, remote_addr, method, query, headers, body, steps)"+
			" VALUES (?, 1, 9100, ?, ?, ?, 'd', 'amount_mismatch', ?, '203.0.113.7', 'POST', '', 'Content-Type: application/json', ?, ?)",
			20_000+i, scriptedNo, fmt.Sprint("T", i), fmt.Sprint("e", i), shanghai2026+int64(200+i)*1_000_000, body, steps).Exec(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		x := exception.Item{
			ID: int64(20_000 + i), Kind: exception.AmountMismatch, State: exception.Resolved, SupplierID: 1, MerchantID: 1, OrderID: 9100, OrderNo: scriptedNo, Subject: fmt.Sprint("T", i),
			Amount: 5, Currency: "CNY", Seen: 1, OpenedAt: shanghai2026 + int64(200+i)*1_000_000, ResolvedAt: new(int64), Outcome: exception.NoEffect,
			Detail: exception.Detail(map[string]any{"want": 349900, "got": 5, "difference": -349895, "supplier": "wx-main", "trade_no": fmt.Sprint("T", i)}),
		}
		*x.ResolvedAt = x.OpenedAt + 1
		if _, err := d.NewInsert().Model(&x).Exec(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.NewRaw("INSERT INTO callback_repeats (callback_id, seen, last_seen_at, last_addr) VALUES (9201, 312, ?, '198.51.100.9')", shanghai2026+500_000_000).Exec(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// A supplier, or who has recorded one, may send for days: the page and the file must
// open all the same, and say what they leave out.
func TestALongStoryStaysShortAndSaysWhatIsLeftOut(t *testing.T) {
	h := open(t)
	script(t, h.DB, shanghai2026, "x")
	manyCallbacks(t, h.DB, 1000, 20_000)
	h.ReadSettings(t)
	cookie := h.SignIn(t, access.Auditor)
	bodies := map[string]string{}
	for path, most := range map[string]int{"?lang=en": 1 << 20, "/evidence?lang=en": 1 << 20, "/evidence?format=json": 8 << 20} {
		got := h.Page(t, cookie, scripted+path)
		if got.Status != http.StatusOK || len(got.Body) > most {
			t.Errorf("%s: %d, %d bytes; at most %d", path, got.Status, len(got.Body), most)
		}
		bodies[path] = got.Body
	}
	page := bodies["?lang=en"]
	inOrder(t, page, "802 callbacks between the oldest 100 and the newest 100 are not shown", "The bodies of", "The same message came again 312 times", "198.51.100.9")
	if n := strings.Count(page, `id="raw-`); n != 200 {
		t.Errorf("%d callbacks are shown, want 200", n)
	}
	last := strconv.FormatInt(20_999, 36) // whose body had no room
	if raw := h.Page(t, cookie, scripted+"/events/"+last+"/_raw?lang=en").Body; !strings.Contains(raw, "&amp;lt;&amp;lt;") {
		t.Error("a body that was left out cannot be opened")
	}
	f, err := evidence.Check([]byte(bodies["/evidence?format=json"]), h.Keys.SigningKeys()[0].Public)
	if err != nil {
		t.Fatal(err)
	}
	var e console.Evidence
	if err := json.Unmarshal(f.Evidence, &e); err != nil {
		t.Fatal(err)
	}
	if e.Complete || e.LeftOut.Callbacks != 802 || e.LeftOut.Texts == 0 || e.LeftOut.Bytes < 1<<20 {
		t.Errorf("complete %t, left out %+v", e.Complete, e.LeftOut)
	}
	for _, event := range e.Events {
		if event["kind"] == "callback" && len(event["body_sha256"].(string)) != 64 {
			t.Errorf("a body without its hash: %v", event["body_sha256"])
		}
	}
}
