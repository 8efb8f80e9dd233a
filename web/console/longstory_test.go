package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/console"
	"backstop/internal/evidence"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/recipient"
	"backstop/internal/supplier"
)

// manyCallbacks adds callbacks of one order, each of size bytes that HTML and JSON write
// five times as long.
func manyCallbacks(t *testing.T, d *db.DB, n, size int) {
	t.Helper()
	body := []byte(`{"trade_state_desc":"` + strings.Repeat(`&lt;`, size/4) + `"}`)
	steps := "supplier\t0\t\twx-main (wechatpay)\n" +
		"address\t0\t\t203.0.113.7; any address is allowed\n" +
		"signature\t0\t\tRSA-SHA256 holds under PUB_KEY_ID_1\n" +
		"time window\t0\t\tsigned 628ms before it arrived, 5m0s allowed\n" +
		"decryption\t0\t\tresource opened\n" +
		"content\t0\t\tTRANSACTION.SUCCESS of 4200001\n" +
		"order\t0\t\t2026112000000007 is pending, version 1\n" +
		"account\t0\t\tthe message is for our account\n" +
		"amount\t0\t\t!\t0.05, not 3499.00 CNY\n"
	for i := range n {
		_, err := d.NewRaw(
			"INSERT INTO callbacks (id, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome, received_at, remote_addr, method, query, headers, body, steps)"+
				" VALUES (?, 1, 9100, ?, ?, ?, 'd', 'amount_mismatch', ?, '203.0.113.7', 'POST', '', 'Content-Type: application/json', ?, ?)",
			20_000+i, scriptedNo, fmt.Sprint("T", i), fmt.Sprint("e", i), shanghai2026+int64(200+i)*1_000_000, body,
			steps).Exec(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		x := exception.Item{
			ID: int64(20_000 + i), Kind: exception.AmountMismatch, State: exception.Resolved, SupplierID: 1, MerchantID: 1, OrderID: 9100,
			OrderNo: scriptedNo, Subject: fmt.Sprint("T", i),
			Amount: 5, Currency: "CNY", Seen: 1, OpenedAt: shanghai2026 + int64(200+i)*1_000_000, ResolvedAt: new(int64),
			Outcome: exception.NoEffect,
			Detail: exception.Detail(map[string]any{
				"want": 349900, "got": 5, "difference": -349895, "supplier": "wx-main",
				"trade_no": fmt.Sprint("T", i),
			}),
		}
		*x.ResolvedAt = x.OpenedAt + 1
		if _, err := d.NewInsert().Model(&x).Exec(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.NewRaw("INSERT INTO callback_repeats (callback_id, seen, last_seen_at, last_addr) VALUES (9201, 312, ?, '198.51.100.9')",
		shanghai2026+500_000_000).Exec(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// A supplier, or who has recorded one, may send for days: the page and the file must
// open all the same, and say what they leave out. It runs alone: beside eight browsers such a
// page may take longer than a request is given.
func TestALongStoryStaysShortAndSaysWhatIsLeftOut(t *testing.T) {
	if testing.Short() {
		t.Skip("short: under the race detector such a page takes longer than a request may")
	}
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
	inOrder(t, page, "Not shown, between the oldest and the newest events: callbacks 802, exceptions 801.", "The bodies of",
		"The same message was repeated 312 times", "198.51.100.9")
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
	if e.Complete || e.LeftOut.Callbacks != 802 || e.LeftOut.Events[console.ItemCallback].N != 802 || e.LeftOut.Texts == 0 ||
		e.LeftOut.Bytes < 1<<20 {
		t.Errorf("complete %t, left out %+v", e.Complete, e.LeftOut)
	}
	for _, event := range e.Events {
		if event["kind"] == "callback" && len(event["body_sha256"].(string)) != 64 {
			t.Errorf("a body without its hash: %v", event["body_sha256"])
		}
	}
}

// gathered is how many of each kind of event gather writes.
const gathered = 260

// gather adds to the scripted order many of every kind of event, with texts as long as
// they may be and of letters that HTML and JSON write several times as long.
func gather(t *testing.T, h *harness) {
	t.Helper()
	long := func(n int) string { return strings.Repeat(`a"'<`, n/4) }
	var steps []supplier.Step
	for i := range 10 {
		steps = append(steps, supplier.Step{Name: "signature", OK: i < 8, Detail: long(200), TookUS: 40})
	}
	facts := map[string]any{"want": 349900, "got": 5, "difference": -349895, "last_error": long(300)}
	for _, name := range []string{"field", "reason", "status", "refund_no", "first_trade_no", "type", "order_no", "supplier", "trade_no"} {
		facts[name] = long(128)
	}
	write := func(rows any) {
		t.Helper()
		if _, err := h.DB.NewInsert().Model(rows).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(gathered) {
		id, at := 20_000+i, shanghai2026+(200+i)*1_000_000
		_, err := h.DB.NewRaw(
			"INSERT INTO callbacks (id, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome, received_at, remote_addr, method, query, headers, body, steps)"+
				" VALUES (?, 1, 9100, ?, ?, ?, 'd', 'amount_mismatch', ?, '203.0.113.7', 'POST', ?, ?, ?, ?)",
			id, scriptedNo, fmt.Sprint(long(120), i), fmt.Sprint("e", i), at, "", "User-Agent: "+long(600),
			[]byte(`{"trade_state_desc":"`+long(2000)+`"}`),
			supplier.Steps(steps).Text()).Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		write(&order.History{
			ID: id, OrderID: 9100, Version: 3 + i, From: order.Closing, To: order.Paying, Cause: order.ByCallback,
			Actor: "supplier:" + long(64), CreatedAt: at,
		})
		write(&notify.Event{ID: id, MerchantID: 1, SubjectID: 9100, Type: "order.paid", Version: 3 + i, Body: `{"id":"ntf_` +
			strconv.FormatInt(id, 36) + `","subject":"` + strings.Repeat("a<'", 300) + `"}`, CreatedAt: at})
		write(&notify.Delivery{
			ID: id, EventID: id, RecipientID: 1, SubjectID: 9100, EventType: "order.paid", Channel: notify.Webhook,
			Status: notify.Exhausted, Attempts: 1, LastClass: notify.BadStatus, LastError: long(300), CreatedAt: at, FinishedAt: &at,
		})
		write(&notify.Attempt{
			ID: id, DeliveryID: id, RecipientID: 1, Number: 1, URL: "https://pay.galaxymall.example/" + strings.Repeat("'", 2000),
			Class: notify.BadStatus, HTTPStatus: 500, StartedAt: at,
			TookUS: 3_204_000, Node: "n1", RequestHeader: "A: " + long(4000), ResponseHeader: "Server: " + long(600),
			ResponseBody: []byte("failed"), Error: long(300),
		})
		write(&exception.Item{
			ID: id, Kind: exception.AmountMismatch, State: exception.Resolved, SupplierID: 1, MerchantID: 1, OrderID: 9100,
			OrderNo: scriptedNo, Subject: fmt.Sprint(long(120), i),
			Amount: 5, Currency: "CNY", Seen: 1, OpenedAt: at, UpdatedAt: at, ResolvedAt: &at, Outcome: exception.NoEffect,
			Reference: long(200), Detail: exception.Detail(facts),
		})
		write(&breaker.Change{
			ID: id, OwnerID: 1, OwnerKind: recipient.Merchant, Generation: i + 1, From: breaker.Closed, To: breaker.Open,
			Cause: breaker.ByHand, Failures: 5, Actor: "operator:li", Reason: long(1000), At: at,
		})
	}
	err := h.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		for i := range gathered {
			for object, id := range map[string]string{"order": scriptedNo, console.ExceptionObject: strconv.Itoa(20_000 + i)} {
				a := audit.Act{
					Actor: "operator:li", Action: object + ".note", Object: object, ObjectID: id,
					Params: map[string]any{"reason": long(1000)},
				}
				if err := h.Audit.Write(ctx, tx, a); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// However much an order has gathered, of whatever kind, its page opens and its evidence
// can be handed out; both count what they leave out. It runs beside no browser, as above.
func TestAnOrderThatHasGatheredMuchOfEverything(t *testing.T) {
	if testing.Short() {
		t.Skip("short: under the race detector such a page takes longer than a request may")
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		script(t, d, shanghai2026, "x")
		gather(t, h)
		h.ReadSettings(t)
		cookie := h.SignIn(t, access.Auditor)
		page := ""
		for path, most := range map[string]int{
			"?lang=en": 1 << 20, "?lang=zh&phase=delivery": 1 << 20, "/evidence?lang=zh": 1 << 20, "/evidence?format=json": 8 << 20,
		} {
			got := h.Page(t, cookie, scripted+path)
			if got.Status != http.StatusOK || len(got.Body) > most {
				t.Errorf("%s: %d, %d bytes; at most %d", path, got.Status, len(got.Body), most)
			}
			if !strings.HasPrefix(path, "/evidence") && len(got.Body) < most/2 {
				t.Errorf("%s has %d bytes only: there is room for more", path, len(got.Body))
			}
			switch path {
			case "?lang=en":
				page = got.Body
			case "/evidence?format=json":
				isCounted(t, got.Body)
			}
		}
		for label, mark := range map[string]string{
			"callbacks": `id="raw-`, "attempts": `id="attempt-`,
			"notifications": "<b>Notification created", "exceptions": "<b>Exception opened",
		} {
			left := regexp.MustCompile(`events: [^.]*?\b` + label + ` (\d+)`).FindStringSubmatch(page)
			all := gathered + map[string]int{"callbacks": 2, "attempts": 2, "notifications": 1, "exceptions": 1}[label]
			if n := strings.Count(page, mark); n < 10 || left == nil || left[1] != strconv.Itoa(all-n) {
				t.Errorf("%d of %d %s are shown, %q left out", n, all, label, left)
			}
		}
		inOrder(t, page, "Order created", "are not shown here: the page is full")
	})
}

// isCounted checks that a file has each event or counts it among those left out.
func isCounted(t *testing.T, file string) {
	t.Helper()
	var f struct{ Evidence console.Evidence }
	if err := json.Unmarshal([]byte(file), &f); err != nil {
		t.Fatal(err)
	}
	all := map[console.ItemKind]int64{}
	for kind, left := range f.Evidence.LeftOut.Events {
		all[kind] = left.N
	}
	for _, event := range f.Evidence.Events {
		all[console.ItemKind(event["kind"].(string))]++
	}
	want := map[console.ItemKind]int64{
		console.ItemCallback: gathered + 2, console.ItemStatus: gathered + 2, console.ItemNotification: gathered + 1,
		console.ItemAttempt:   gathered + 2,
		console.ItemException: gathered + 1, console.ItemBreaker: gathered,
	}
	for kind, n := range want {
		if all[kind] != n {
			t.Errorf("%d events of the kind %s are shown or counted, want %d", all[kind], kind, n)
		}
	}
	// Of exceptions that were not read neither ends nor acts are known.
	if n := all[console.ItemAct]; n < gathered+100 || f.Evidence.Complete {
		t.Errorf("%d acts; complete %t", n, f.Evidence.Complete)
	}
}
