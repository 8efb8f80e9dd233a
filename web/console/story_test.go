package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/supplier"
	"backstop/web/webtest"
)

const (
	scriptedNo = "2026112014291100"
	scripted   = "/orders/" + scriptedNo
)

// script writes an order whose story has everything: paid by a callback that came
// twice, two attempts that failed in two ways, used up and on the exception desk.
// Its moments count from start (Unix µs); said is what strangers wrote wherever
// they may write.
func script(t *testing.T, d *db.DB, start int64, said string) {
	t.Helper()
	at := func(s float64) int64 { return start + int64(s*1e6) }
	write := func(rows any) {
		t.Helper()
		if _, err := d.NewInsert().Model(rows).Exec(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	exec := func(q string, args ...any) {
		t.Helper()
		if _, err := d.NewRaw(q, args...).Exec(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	paid := at(117.006)
	write(&order.Order{
		ID: 9100, OrderNo: scriptedNo, OutTradeNo: "GX-88210477", MerchantID: 1, SupplierID: 1, Amount: 349900, Currency: "CNY",
		Exponent: 2,
		Subject:  "Two tickets " + said, Status: order.Paid, Version: 2, PaidAmount: 349900, PaidAt: &paid,
		SupplierTradeNo: "4200002614202611201428773301", HasItems: true, CreatedAt: at(0), ExpiresAt: at(1800),
	})
	write(&[]order.History{
		{ID: 9101, OrderID: 9100, Version: 1, To: order.Pending, Cause: order.Created, Actor: "merchant:m1", CreatedAt: at(0)},
		{
			ID: 9102, OrderID: 9100, Version: 2, From: order.Pending, To: order.Paid, Cause: order.ByCallback, Actor: "supplier:wx",
			SourceID: 9201, CreatedAt: paid,
		},
	})
	for i, c := range []struct {
		at            float64
		outcome, id   string
		stamp, origin string
	}{
		{117, "paid", "5b1c-a27e", "1795156268", "101.226.103.61"},
		{135.5, "repeat", "e903-11fd", "1795156283", "101.226.103.62"},
	} {
		steps := []supplier.Step{
			{Name: "supplier", OK: true, Detail: "wx (wechatpay)", TookUS: 40},
			{Name: "address", OK: true, Detail: c.origin + " is in allow_ips", TookUS: 60},
			{Name: "signature", OK: true, Detail: "RSA-SHA256 " + said, TookUS: 1900},
			{Name: "amount", OK: true, Detail: "349900 CNY", TookUS: 100},
		}
		body := fmt.Sprintf(`{"id":%q,"trade_state":"SUCCESS","payer":{"openid":"oUpF8-secret-openid"},"amount":349900,"attach":%q}`, c.id,
			said)
		exec("INSERT INTO callbacks (id, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome, received_at, remote_addr, method, query, headers, body, steps)"+
			" VALUES (?, 1, 9100, ?, '42', 'e', 'd', ?, ?, ?, 'POST', '', ?, ?, ?)", 9201+i, scriptedNo, c.outcome, at(c.at), c.origin,
			"Content-Type: application/json\nUser-Agent: "+said+"\nWechatpay-Timestamp: "+c.stamp, []byte(body), supplier.Steps(steps).Text())
	}
	write(&notify.Event{
		ID: 9300, MerchantID: 1, SubjectID: 9100, Type: "order.paid", Version: 2,
		Body: `{"id":"ntf_70s-order-paid-0","type":"order.paid"}`, CreatedAt: paid,
	})
	done := at(140)
	write(&notify.Delivery{
		ID: 9301, EventID: 9300, RecipientID: 1, SubjectID: 9100, EventType: "order.paid", Channel: notify.Webhook,
		Status:   notify.Exhausted,
		Attempts: 2, LastClass: notify.BadText, LastError: "answer has another text", CreatedAt: paid, FinishedAt: &done, Currency: "CNY",
		Amount: 349900,
	})
	write(&[]notify.Attempt{
		{
			ID: 9401, DeliveryID: 9301, RecipientID: 1, Number: 1, URL: "https://pay.galaxymall.example/notify", Class: notify.BadStatus,
			HTTPStatus: 502, StartedAt: at(117.014), TookUS: 3_204_000, Node: "n1", RequestHeader: "Webhook-Id: ntf_70s-order-paid-0",
			ResponseHeader: "Server: " + said, ResponseBody: []byte(said), Error: "HTTP 502 " + said,
		},
		{
			ID: 9402, DeliveryID: 9301, RecipientID: 1, Number: 2, URL: "https://pay.galaxymall.example/notify", Class: notify.BadText,
			HTTPStatus: 200, StartedAt: at(137.5), TookUS: 2_500_000, Node: "n1", RequestHeader: "Webhook-Id: ntf_70s-order-paid-0",
			ResponseBody: []byte("failed"), Error: "answer has another text",
		},
	})
	write(&exception.Item{
		ID: 9501, Kind: exception.NotifyExhausted, State: "open", MerchantID: 1, OrderNo: scriptedNo, OrderID: 9100,
		Subject: notify.PublicID(9100, "order.paid"), Amount: 349900, Currency: "CNY",
		Detail: exception.Detail(map[string]any{"last_error": said, "attempts": 2}), Seen: 1, OpenedAt: done,
	})
	for _, q := range []string{
		"INSERT INTO skus (id, sku, stock, locked, sold, applied) VALUES (91, 'SKU-9', 10, 0, 1, 11)",
		"INSERT INTO order_items (order_id, sku_id, quantity) VALUES (9100, 91, 1)",
		"INSERT INTO accounts (id, code, currency) VALUES (9601, 'supplier:wx', 'CNY'), (9602, 'merchant:m1', 'CNY')",
		fmt.Sprintf("INSERT INTO journals (id, created_at) VALUES (9603, %d)", paid),
		fmt.Sprintf("INSERT INTO transfers (id, journal_id, debit_account, credit_account, amount, currency, ref, created_at)"+
			" VALUES (9604, 9603, 9601, 9602, 349900, 'CNY', 'paid:9100', %d)", paid),
		`UPDATE merchants SET name = 'Galaxy ` + said +
			`', notify = '{"urls":["https://pay.galaxymall.example/notify"],"ack":"text","ack_text":"success","schedule":"list","waits_ms":[1000]}' WHERE id = 1`,
	} {
		exec(strings.ReplaceAll(q, "?", "??"))
	}
}

// inOrder checks that the texts are in the page in this order.
func inOrder(t *testing.T, page string, texts ...string) {
	t.Helper()
	at := 0
	for _, text := range texts {
		i := strings.Index(page[at:], text)
		if i < 0 {
			t.Fatalf("%q is missing, or not after what precedes it", text)
		}
		at += i + len(text)
	}
}

// shanghai2026 is 2026-11-20 14:29:11.204 in Shanghai.
var shanghai2026 = time.Date(2026, 11, 20, 6, 29, 11, 204_000_000, time.UTC).UnixMicro()

func TestAScriptedOrderShowsItsWholeStory(t *testing.T) {
	t.Parallel()
	h := open(t)
	script(t, h.DB, shanghai2026, webtest.Hostile)
	h.ReadSettings(t)
	cookie := h.SignIn(t, access.Lead)
	page := h.Page(t, cookie, scripted+"?lang=en").Body
	inOrder(t, page, "all 2 attempts are used up", "#s-5", "Step 5", "#s-7", "Step 7", "#s-8", "Step 8",
		"notify.schedule = 1s; attempts = 2",
		"14:29:11.204", "Order created", "14:31:08.204", "Callback received", "2.1 ms",
		"14:31:08.210", "Status", "version 2", "Notification created", "Order paid", "14:31:08.218", "Attempt 1",
		"- 2xx and the body &#34;success&#34;", "HTTP 502",
		"14:31:26.704", "Repeat", "Lines that differ from the first: 4", "14:31:28.704", "Attempt 2", "+ HTTP 200, body &#34;failed&#34;",
		"14:31:31.204", "Exception opened")
	for act, reason := range map[string]string{"note": "called the merchant, they fix nginx", "resend": "the merchant says it is fixed"} {
		form := append(formOf(t, page, scripted+"/"+act), "reason", reason)
		if got := h.Post(t, cookie, scripted+"/"+act, form...); got.Status != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", act, got.Status, got.Body)
		}
	}
	page = h.Page(t, cookie, scripted+"?lang=en").Body
	inOrder(t, page, "has not confirmed: attempt 2 failed", "Attempt 3 of 4", "notify.schedule = 1s", "Exception opened",
		"Planned: attempt 3 of 4", "attempt 4 is the last")
	for _, said := range []string{"called the merchant, they fix nginx", "the merchant says it is fixed", "Exception closed", "the.lead"} {
		if !strings.Contains(page, said) {
			t.Errorf("the story lacks %q", said)
		}
	}
}

// No text from a stranger becomes markup, on any page of the story.
func TestHostileTextIsTextEverywhereInAStory(t *testing.T) {
	t.Parallel()
	h := open(t)
	script(t, h.DB, shanghai2026, "for "+webtest.Hostile)
	h.ReadSettings(t)
	cookie := h.SignIn(t, access.Lead)
	first := h.Page(t, cookie, scripted).Body
	form := append(formOf(t, first, scripted+"/note"), "reason", webtest.Hostile+" \u202e")
	h.Post(t, cookie, scripted+"/note", form...)
	shown := h.Post(t, cookie, scripted+"/unmask", append(formOf(t, first, scripted+"/unmask"), "reason", webtest.Hostile)...)
	bodies := map[string]string{"unmasked": shown.Body}
	for _, path := range []string{
		scripted, scripted + "?phase=delivery", scripted + "/_diff?a=" + id36(9201) + "&b=" + id36(9202),
		scripted + "/events/" + id36(9201) + "/_raw",
	} {
		bodies[path] = h.Page(t, cookie, path).Body
	}
	for path, body := range bodies {
		if !strings.Contains(body, "{{.}}") { // whose pairs and elements are masked
			t.Errorf("%s does not show the hostile text at all", path)
		}
		for _, markup := range []string{"<script>alert", "<img", `onerror=alert(1)>`} {
			if strings.Contains(body, markup) {
				t.Errorf("%s contains %s", path, markup)
			}
		}
	}
}

func id36(n int64) string { return strconv.FormatInt(n, 36) }

func TestAPhaseIsChosenInTheAddress(t *testing.T) {
	t.Parallel()
	h := open(t)
	script(t, h.DB, shanghai2026, webtest.Hostile)
	cookie := h.SignIn(t, access.Viewer)
	page := h.Page(t, cookie, scripted+"?phase=delivery&lang=en").Body
	list := page[strings.Index(page, `<ol class="story">`):]
	if !strings.Contains(list, "Attempt 2") || strings.Contains(list, "Callback received") ||
		!strings.Contains(page, `aria-current="true"`) {
		t.Error("the phase's events are not those that are shown")
	}
	part := h.Call(t, http.MethodGet, scripted+"/_story?phase=payment", "", "Cookie", cookie, "HX-Request", "true").Body
	if !strings.HasPrefix(part, `<section class="panel" id="story"`) || strings.Contains(part, "Attempt 2") ||
		strings.Contains(part, "<html") {
		t.Errorf("the fragment is %.200s", part)
	}
	if got := h.Page(t, cookie, scripted+"/_story?phase=payment"); got.Header.Get("Location") != scripted+"?phase=payment" {
		t.Errorf("a fragment opened as a page: %d to %q", got.Status, got.Header.Get("Location"))
	}
	if got := h.Page(t, cookie, scripted+"?phase=nothing"); got.Status != http.StatusUnprocessableEntity {
		t.Errorf("an unknown phase: %d", got.Status)
	}
}

// Personal data comes to who may see it, says why, and asks once; never by a GET.
func TestPersonalDataIsShownOnceToWhoSaysWhy(t *testing.T) {
	t.Parallel()
	h := open(t)
	script(t, h.DB, shanghai2026, "plain")
	const secret = "oUpF8-secret-openid"
	body := []byte(`{"user":{"openid":"` + secret + `"}}`)
	change(t, h.DB, "UPDATE notify_attempts SET response_body = ?", body)
	_, err := h.DB.NewRaw("INSERT INTO refused_callbacks"+
		" (id, supplier, outcome, received_at, remote_addr, method, query, headers, body, steps)"+
		" VALUES (9290, 'wx', 'bad_signature', ?, '203.0.113.9', 'POST', '', '', ?, '')", shanghai2026, body).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x := exception.Item{
		ID: 9590, Kind: exception.UnknownOrder, State: exception.Opened, SupplierID: 1, Subject: "T9590", Amount: 5, Currency: "CNY",
		CallbackID: 9201,
		Detail:     exception.Detail(map[string]any{"trade_no": "T9590"}), Seen: 1, OpenedAt: shanghai2026,
	}
	if _, err := h.DB.NewInsert().Model(&x).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	notification := notify.PublicID(9100, "order.paid")
	pages := []struct{ path, action, id string }{
		{scripted, console.UnmaskOrder, scriptedNo},
		{"/callbacks/9201", console.UnmaskCallback, "9201"},
		{"/callbacks/9290", console.UnmaskCallback, "9290"},
		{"/notifications/" + notification, console.UnmaskNotification, notification},
		{"/exceptions/9590", console.UnmaskException, "9590"},
	}
	for _, role := range access.AllRoles {
		cookie := h.SignIn(t, role)
		for _, path := range []string{
			scripted + "/_diff?a=" + id36(9201) + "&b=" + id36(9202), scripted + "/events/" + id36(9201) + "/_raw",
		} {
			if got := h.Page(t, cookie, path); got.Status != http.StatusOK || strings.Contains(got.Body, secret) {
				t.Errorf("%s as %s: status %d, openid shown: %t", path, role, got.Status, strings.Contains(got.Body, secret))
			}
		}
		for _, p := range pages {
			to := p.path + "/unmask"
			page := h.Page(t, cookie, p.path)
			if page.Status != http.StatusOK || strings.Contains(page.Body, secret) {
				t.Errorf("%s as %s: %d, openid shown: %t", p.path, role, page.Status, strings.Contains(page.Body, secret))
			}
			if !h.Policy.Allows(access.RolesOf(role), access.ViewPersonal) {
				got := h.Post(t, cookie, to, "form_key", "k"+role, "reason", "the bank asks for it")
				if got.Status != http.StatusForbidden || strings.Contains(page.Body, "/unmask") {
					t.Errorf("%s as %s: %d", to, role, got.Status)
				}
				continue
			}
			form := formOf(t, page.Body, to)
			short := h.Post(t, cookie, to, append(form[:len(form):len(form)], "reason", "short")...)
			if short.Status != http.StatusUnprocessableEntity || strings.Contains(short.Body, secret) {
				t.Errorf("%s without a reason as %s: %d", to, role, short.Status)
			}
			form = append(form, "reason", "the bank asks for it")
			got := h.Post(t, cookie, to, form...)
			if got.Status != http.StatusOK || !strings.Contains(got.Body, secret) || got.Header.Get("Refresh") != "60; url="+p.path ||
				got.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s as %s: %d %v", to, role, got.Status, got.Header)
			}
			if again := h.Post(t, cookie, to, form...); again.Status != http.StatusSeeOther || strings.Contains(again.Body, secret) {
				t.Errorf("%s again as %s: %d", to, role, again.Status)
			} else if page := h.Page(t, cookie, again.Header.Get("Location")+"&lang=en"); !strings.Contains(page.Body, "is masked again") {
				t.Errorf("%s does not say that it was shown", p.path)
			}
			var acts int
			err := h.DB.NewRaw("SELECT count(*) FROM audit WHERE action = ? AND actor = ? AND object_id = ?"+
				" AND params LIKE '%the bank asks for it%'",
				p.action, "operator:the."+role, p.id).Scan(t.Context(), &acts)
			if err != nil || acts != 1 {
				t.Errorf("%d acts %s of %s in the audit, %v", acts, p.action, role, err)
			}
		}
	}
}

// The same story is read in the person's zone, and its sentence follows the clock.
func TestASentenceFollowsTheClock(t *testing.T) {
	t.Parallel()
	h := open(t)
	script(t, h.DB, shanghai2026, "plain")
	h.ReadSettings(t)
	cookie := h.SignIn(t, access.Viewer)
	for _, c := range []struct {
		set, says string
	}{
		{"status = 'queued', attempts = 0, schedule_from = 0, next_at = %d + 60000000", "the first attempt has not begun"},
		{"status = 'retry_wait', attempts = 1, next_at = %d + 60000000", "attempt 1 failed"},
		{"status = 'sending', attempts = 2, next_at = %d + 10000000", "Attempt 2 is running"},
		{"status = 'retry_wait', next_at = %d - 60000000", "should have continued at"},
		{
			"status = 'retry_wait', attempts = 0, last_class = 'locked', next_at = %d - 60000000",
			"Not sent because of a fault on our side: secrets do not open",
		},
		{"status = 'retry_wait', attempts = 0, last_class = 'blocked_here', next_at = %d - 1000000", "blocked on this node only"},
		{"status = 'retry_wait', attempts = 0, last_class = 'no_channel', next_at = %d - 1000000", "No attempt is counted"},
		{"status = 'delivered', next_at = NULL, finished_at = %d", "Completed, merchant notified"},
	} {
		exec := "UPDATE deliveries SET " + fmt.Sprintf(c.set, h.DB.Now()) + " WHERE id = 9301"
		if _, err := h.DB.ExecContext(t.Context(), exec); err != nil {
			t.Fatal(err)
		}
		if body := h.Page(t, cookie, scripted+"?lang=en").Body; !strings.Contains(body, c.says) {
			t.Errorf("%s: the page lacks %q", exec, c.says)
		}
	}
	exec := "UPDATE deliveries SET status = 'retry_wait', attempts = 0, last_class = 'locked', next_at = 1 WHERE id = 9301"
	if _, err := h.DB.ExecContext(t.Context(), exec); err != nil {
		t.Fatal(err)
	}
	if body := h.Page(t, cookie, scripted+"?lang=zh").Body; !strings.Contains(body, "系统自身原因，通知未发出：密钥无法解开") {
		t.Error("the page does not say in Chinese that the secrets do not open")
	}
	exec = fmt.Sprintf("UPDATE deliveries SET status = 'retry_wait', attempts = 1, next_at = %d + 60000000 WHERE id = 9301", h.DB.Now())
	for _, q := range []string{
		exec, "UPDATE merchants SET disabled_at = 1 WHERE id = 1",
		"UPDATE settings SET value = value + 1 WHERE name = 'config_version'",
	} {
		if _, err := h.DB.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	h.ReadSettings(t)
	if body := h.Page(t, cookie, scripted+"?lang=en").Body; !strings.Contains(body, "The merchant is disabled") {
		t.Error("the page does not say that the merchant is disabled")
	}
	setNotify(t, h.DB, "urls", []string{})
	exec = "UPDATE merchants SET disabled_at = NULL WHERE id = 1"
	for _, q := range []string{exec, "UPDATE settings SET value = value + 1 WHERE name = 'config_version'"} {
		if _, err := h.DB.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	h.ReadSettings(t)
	if body := h.Page(t, cookie, scripted+"?lang=en").Body; !strings.Contains(body, "The merchant has no usable endpoint left") {
		t.Error("the page does not say that the merchant has no address")
	}
}

// Money that does not fit its order is named with both sums, exactly.
func TestASentenceNamesTheMoneyThatDoesNotFit(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Viewer)
	for i, c := range []struct {
		kind, currency string
		status         order.Status
		amount, paid   int64
		says           string
	}{
		{exception.AmountMismatch, "JPY", order.Pending, 1980, 1970, "¥1,970 JPY was paid instead of ¥1,980 JPY"},
		{exception.AmountMismatch, "KWD", order.Paying, 12345, 12300, "12.300 KWD was paid instead of 12.345 KWD"},
		{
			exception.LatePayment, "CNY", order.Closed, 9007199254740993, 9007199254740993,
			"the order was closed when ¥90,071,992,547,409.93 CNY arrived",
		},
		{exception.DuplicatePayment, "CNY", order.Paid, 100, 100, "already paid when ¥1.00 CNY arrived"},
		{exception.CurrencyMismatch, "CNY", order.Pending, 100, 100, "waits for a decision: Currency mismatch"},
	} {
		no := fmt.Sprintf("M%d", i)
		o := order.Order{
			ID: int64(700 + i), OrderNo: no, OutTradeNo: no, MerchantID: 1, SupplierID: 1, Amount: c.amount,
			Currency: c.currency, Subject: "x", Status: c.status, Version: 1,
		}
		x := exception.Item{
			ID: int64(800 + i), Kind: c.kind, State: "open", MerchantID: 1, SupplierID: 1, OrderNo: no, OrderID: o.ID, Subject: "t",
			Amount: c.paid, Currency: c.currency, Detail: exception.Detail(nil), Seen: 1, OpenedAt: h.DB.Now(),
		}
		for _, row := range []any{&o, &x} {
			if _, err := h.DB.NewInsert().Model(row).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if body := h.Page(t, cookie, "/orders/"+no+"?lang=en").Body; !strings.Contains(body, c.says) {
			t.Errorf("%s: the page lacks %q", c.kind, c.says)
		}
	}
}

func TestAStoryIsReadInThePersonsZone(t *testing.T) {
	t.Parallel()
	h := open(t)
	script(t, h.DB, shanghai2026, "plain")
	cookie := h.SignIn(t, access.Lead)
	for zone, shown := range map[string]string{"Asia/Shanghai": "14:31:08.204", "UTC": "06:31:08.204", "America/New_York": "01:31:08.204"} {
		if got := h.Post(t, cookie, "/me", "language", "en", "zone", zone); got.Status >= http.StatusBadRequest {
			t.Fatalf("the zone %s: %d", zone, got.Status)
		}
		inOrder(t, h.Page(t, cookie, scripted).Body, zone, shown, "Callback received")
		if file := h.Page(t, cookie, scripted+"/evidence?format=json").Body; !strings.Contains(file, `"zone":"`+zone+`"`) ||
			!strings.Contains(file, shown) {
			t.Errorf("the evidence does not name the zone %s", zone)
		}
	}
}

// setNotify sets one field of merchant m1's notification settings.
func setNotify(t *testing.T, d *db.DB, field string, value any) {
	t.Helper()
	var text string
	if err := d.Read.NewRaw("SELECT CAST(notify AS TEXT) FROM merchants WHERE id = 1").Scan(t.Context(), &text); err != nil {
		t.Fatal(err)
	}
	settings := map[string]any{}
	if err := json.Unmarshal([]byte(text), &settings); err != nil {
		t.Fatal(err)
	}
	settings[field] = value
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	change(t, d, "UPDATE merchants SET notify = ? WHERE id = 1", string(raw))
}
