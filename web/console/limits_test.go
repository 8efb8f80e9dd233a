package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/web"
	"backstop/web/webtest"
)

// plainNotify is how a merchant without endpoints is notified.
const plainNotify = `{"urls":[],"ack":"status","format":"standard","schedule":"day","timeout_ms":5000,"max_in_flight":9}`

// marker is in every text of the other merchant that a person wrote.
const marker = "ELSEWHERE-7F"

// markOther gives merchant m1, to whom everything belongs that was seeded, texts that nothing else
// has, and m2 an order of its own. It returns all such texts.
func markOther(t *testing.T, d *db.DB) []string {
	t.Helper()
	change(t, d, "UPDATE merchants SET name = ? WHERE code = 'm1'", marker)
	change(t, d, "UPDATE orders SET subject = ?, out_trade_no = out_trade_no || ?", marker, marker)
	change(t, d, "UPDATE refunds SET reason = ?", marker)
	change(t, d, "UPDATE deliveries SET last_error = ?", marker)
	change(t, d, "UPDATE notify_attempts SET url = ?, error = ?, response_body = ?", "https://"+marker+".example", marker, []byte(marker))
	change(t, d, "UPDATE callbacks SET body = ?, trade_no = ?", []byte(`{"note":"`+marker+`"}`), marker)
	change(t, d, "UPDATE exceptions SET subject = ?, merchant_id = 1", marker)
	change(t, d, "UPDATE approvals SET reason = ?, evidence = ?", marker, marker)
	change(t, d, "UPDATE compensations SET last_error = ?", marker)
	change(t, d, "UPDATE views SET name = ?", marker)
	now := d.Now()
	if _, err := d.NewInsert().Model(&order.Order{
		ID: d.NewID(), OrderNo: "2026112000000077", OutTradeNo: "OWN-1", MerchantID: 2, SupplierID: 1, Amount: 4400, Currency: "CNY", Exponent: 2,
		Subject: "Own order", Status: order.Pending, Version: 1, CreatedAt: now, ExpiresAt: now + 1_800_000_000,
	}).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	return []string{
		marker, "20261120000000", "R710", "D740", "420000261420261120142877", "T-77", "349900", "3499.00", "3,499.00", "oUpF8", "NO-SUCH-ORDER",
	}
}

// ofOther returns what fills the parameters of paths with what belongs to m1.
func ofOther(t *testing.T, d *db.DB) *strings.Replacer {
	t.Helper()
	read := func(query string) (text string) {
		if err := d.NewRaw("SELECT CAST(("+query+") AS TEXT)").Scan(t.Context(), &text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	var subject int64
	if err := d.NewRaw("SELECT subject_id FROM events").Scan(t.Context(), &subject); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(
		":order_no", "2026112000000001", ":refund_no", refundOne, ":dispute_no", "D7401", ":notification", notify.PublicID(subject, "order.paid"),
		":payout_no", read("SELECT min(payout_no) FROM payouts"), ":callback", read("SELECT min(id) FROM callbacks"), ":merchant", "m1",
		":event_id", read("SELECT min(id) FROM callbacks"), ":exception", read("SELECT min(id) FROM exceptions"), ":approval", "apr_501",
		":compensation", read("SELECT min(id) FROM compensations"), ":supplier", "wx", ":code", "m1", ":account", "merchant:m1", ":currency", "CNY",
		":view", "1", ":id", read("SELECT min(id) FROM compensations"), "*", "x",
	)
}

// TestWhoIsLimitedSeesNothingOfOthers walks every route of the console and of the admin API.
func TestWhoIsLimitedSeesNothingOfOthers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seed(t, d)
		markers, fill := markOther(t, d), ofOther(t, d)
		change(t, d, "DELETE FROM report_unnotified")
		change(t, d, "INSERT INTO report_unnotified (merchant_id, currency, orders, amount) VALUES (1, 'CNY', 3, 349900), (2, 'CNY', 1, 4400)")
		change(t, d, "UPDATE api_tokens SET merchants = 'm2', scope = 'monitor,control,compensate' WHERE name = 'grafana'")
		h.ReadSettings(t)
		for _, roles := range []string{access.Support, "admin,auditor,finance,lead,ops"} {
			name := "limited-" + roles[:5]
			if _, err := h.Operators.Add(t.Context(), name, roles, webtest.GoodPassword, "m2"); err != nil {
				t.Fatal(err)
			}
			cookie := webtest.CookieOf(h.Post(t, "", "/login", "name", name, "password", webtest.GoodPassword))
			h.walkLimited(t, markers, fill, roles, func(r web.Route, path string) webtest.Answer {
				if r.Audience == web.ForMonitor {
					return h.Api(t, strings.TrimPrefix(cookie, h.CookieName()+"="), r.Method, path, "")
				}
				return h.Call(t, r.Method, path, "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin")
			})
			own := h.Page(t, cookie, "/orders?lang=en").Body
			if !strings.Contains(own, "2026112000000077") || strings.Contains(own, `href="/analytics"`) || strings.Contains(own, `action="/search"`) {
				t.Errorf("%s does not see the own order, or what leads to others", roles)
			}
			for _, left := range []string{`formaction="/batches`, `class="search"`, `<form method="post"></form>`} {
				if strings.Contains(own, left) {
					t.Errorf("%s: what leads nowhere is left: %s", roles, left)
				}
			}
			if body := h.Page(t, cookie, "/merchants/m2?lang=en").Body; strings.Contains(body, `href="/merchants/m2/settings"`) {
				t.Errorf("%s: a link to what does not exist looks like one: %s", roles, body)
			}
			today := h.Page(t, cookie, "/?lang=en")
			if today.Status != http.StatusOK || !strings.Contains(today.Body, "44.00") || !strings.Contains(today.Body, `href="/merchants/m2"`) ||
				strings.Contains(today.Body, `href="/merchants/m1"`) || strings.Contains(today.Body, "/accounts?part=") || strings.Contains(today.Body, `id="queues"`) {
				t.Errorf("%s: today is %d: %s", roles, today.Status, today.Body)
			}
			if got := h.Page(t, cookie, "/orders/2026112000000077?lang=en"); got.Status != http.StatusOK ||
				strings.Contains(got.Body, "two people") {
				t.Errorf("%s: the own order: %d, with decisions that cannot be proposed: %s", roles, got.Status, got.Body)
			}
		}
		h.walkLimited(t, markers, fill, "a token", func(r web.Route, path string) webtest.Answer {
			if r.Audience != web.ForMonitor {
				return webtest.Answer{Status: http.StatusNotFound}
			}
			return h.Api(t, webtest.MonitorToken, r.Method, path, "")
		})
	})
}

// TestAMerchantsEngineerHelpsHimself is a day of somebody with the role merchant.
func TestAMerchantsEngineerHelpsHimself(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seed(t, d)
		markers := markOther(t, d)
		change(t, d, "UPDATE merchants SET notify = ? WHERE code = 'm2'", plainNotify)
		h.ReadSettings(t)
		if _, err := h.Operators.Add(t.Context(), "mei", access.Merchant, webtest.GoodPassword, "m2"); err != nil {
			t.Fatal(err)
		}
		got := h.Post(t, "", "/login", "name", "mei", "password", webtest.GoodPassword)
		if got.Header.Get("Location") != "/orders" {
			t.Errorf("signed in to %q", got.Header.Get("Location"))
		}
		mei := webtest.CookieOf(got)
		for path, want := range map[string]int{
			"/orders": 200, "/orders/2026112000000077": 200, "/notifications": 200, "/merchants/m2": 200, "/merchants/m2/statement": 200,
			"/merchants/m2/statement?month=": 200, "/merchants/m2/statement?month=&format=csv": 200, "/callbacks": 200, "/roles": 200,
			"/orders/2026112000000001": 404, "/merchants/m1/statement": 404, "/operators": 404, "/settings": 404, "/": 303,
			"/orders/2026112000000077/evidence": 403,
		} {
			got := h.Page(t, mei, path)
			if got.Status != want {
				t.Errorf("%s: %d, want %d", path, got.Status, want)
			}
			body := strings.ReplaceAll(got.Body, "2026112000000077", "")
			if i := slices.IndexFunc(markers, func(m string) bool { return strings.Contains(body, m) }); i >= 0 && want == 200 {
				t.Errorf("%s shows %s of another merchant", path, markers[i])
			}
		}
		for object, want := range map[string]int{
			"/orders/2026112000000077": http.StatusSeeOther, "/merchants/m2": http.StatusSeeOther, "/orders/2026112000000001": http.StatusNotFound,
			"/merchants/m1": http.StatusNotFound, "/exceptions/x": http.StatusNotFound, "/approvals/apr_501": http.StatusNotFound, "": http.StatusNotFound,
		} {
			if got := h.Page(t, mei, "/_/live?page="+object); got.Status != want { // 303: only an event source is served
				t.Errorf("the live updates of %q: %d, want %d", object, got.Status, want)
			}
		}
		page := h.Page(t, mei, "/merchants/m2?lang=en").Body
		if strings.Contains(page, "/breaker/") || strings.Contains(page, "/enable") {
			t.Error("the page offers what the role may not")
		}
		form := formOf(t, page, "/merchants/m2/rotate")
		made := h.Post(t, mei, "/merchants/m2/rotate?lang=en", append(form, "reason", because)...)
		if made.Status != http.StatusOK || !strings.Contains(made.Body, "whsec_") || made.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("rotated: %d", made.Status)
		}
		twice := h.Post(t, mei, "/merchants/m2/rotate", append(form, "reason", because)...)
		if twice.Status != http.StatusSeeOther || strings.Contains(twice.Body, "whsec_") {
			t.Errorf("the form sent twice: %d", twice.Status)
		}
		if got := h.Post(t, mei, "/merchants/m1/rotate", append(form, "reason", because)...); got.Status != http.StatusNotFound {
			t.Errorf("of another merchant: %d", got.Status)
		}
	})
}

// The role merchant is refused to who is not limited, by the field and in both languages.
func TestTheRoleMerchantNeedsALimit(t *testing.T) {
	t.Parallel()
	h := open(t)
	admin := h.SignIn(t, access.Admin)
	if _, err := h.Operators.Add(t.Context(), "mei", access.Merchant, webtest.GoodPassword, "m2"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Operators.Add(t.Context(), "li", access.Viewer, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, says, zh string }{
		{"/operators", "the role merchant needs a limit", "商户角色必须限定商户"},
		{"/operators/li/role", "is for those who are limited to merchants", "请先限定商户"},
		{"/operators/mei/merchants", "the role merchant needs a limit", "商户角色必须限定商户"},
	} {
		for language, want := range map[string]string{"en": c.says, "zh": c.zh} {
			got := h.Post(t, admin, c.path+"?lang="+language, "form_key", c.path+language, "name", "bo", "role", "merchant", "reason", because)
			if got.Status != http.StatusUnprocessableEntity || !strings.Contains(strings.ToLower(got.Body), want) {
				t.Errorf("%s in %s: %d without %q", c.path, language, got.Status, want)
			}
		}
	}
}

// walkLimited calls every route about things of the other merchant: those of one thing do not exist,
// and what the others answer has none of the markers.
func (h *harness) walkLimited(t *testing.T, markers []string, fill *strings.Replacer, who string, call func(web.Route, string) webtest.Answer) {
	t.Helper()
	seen := 0
	for _, r := range h.Routes() {
		if r.Audience != web.ForOperator && r.Audience != web.ForMonitor {
			continue
		}
		path := fill.Replace(r.Path)
		queries := []string{"", "?lang=en", "?no=2026112000000001", "?merchant=m1", "?format=csv", "?from=2020-01-01", "?limit=200"}
		if path != r.Path || r.Method != http.MethodGet {
			queries = queries[:1]
		}
		for _, query := range queries {
			got := call(r, path+query)
			if got.Status == http.StatusOK {
				seen++
			}
			if path != r.Path && got.Status != http.StatusNotFound {
				t.Errorf("%s: %s %s: %d, want 404", who, r.Method, path, got.Status)
			}
			body := strings.ReplaceAll(got.Body, "2026112000000077", "")
			for _, sent := range []string{path, query, "2026112000000001"} { // which a page may repeat
				if strings.Contains(path+query, sent) && sent != "" {
					body = strings.ReplaceAll(body, sent, "")
				}
			}
			if i := slices.IndexFunc(markers, func(m string) bool { return strings.Contains(body, m) }); i >= 0 {
				at := strings.Index(body, markers[i])
				t.Errorf("%s: %s %s shows %s: %q", who, r.Method, path+query, markers[i], fmt.Sprint(body[max(0, at-150):min(len(body), at+80)]))
			}
		}
	}
	if seen == 0 {
		t.Errorf("%s: nothing was answered: the walk proves nothing", who)
	}
}

// TestEveryLimitIsOfARoute keeps the table from naming a path that no route has.
func TestEveryLimitIsOfARoute(t *testing.T) {
	t.Parallel()
	h := open(t)
	for path := range h.in.limits() {
		if !slices.ContainsFunc(h.Routes(), func(r web.Route) bool { return r.Path == path }) {
			t.Errorf("no route has the path %s", path)
		}
	}
}
