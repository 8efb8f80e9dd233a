package e2e

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browser is a person's browser without scripts: it keeps its cookie and says where its
// forms come from.
type browser struct {
	*world
	cookie string
}

func (b *browser) page(path string) string {
	b.t.Helper()
	a, err := b.do(http.MethodGet, path, "", http.Header{"Cookie": {b.cookie}}, "")
	if err != nil || a.status != http.StatusOK {
		b.t.Fatalf("GET %s: %d, %v: %s", path, a.status, err, a.body)
	}
	return a.body
}

// post sends a form. It does not follow the answer: a redirect is to be looked at.
func (b *browser) post(path string, form url.Values, site string) *http.Response {
	b.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+b.address+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Sec-Fetch-Site": {site}, "Cookie": {b.cookie}}
	still := *client
	still.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := still.Do(req)
	if err != nil {
		b.t.Fatalf("POST %s: %v", path, err)
	}
	resp.Body.Close()
	if set := resp.Header.Get("Set-Cookie"); set != "" {
		b.cookie, _, _ = strings.Cut(set, ";")
	}
	return resp
}

// signIn adds an operator and signs in with a password of their own.
func (w *world) signIn(name, role string) *browser {
	w.t.Helper()
	_, once, _ := strings.Cut(w.run("operator", "add", name, "--role", role), "one-time password: ")
	once = strings.TrimSpace(once)
	const own = "a password of one's own, 27"
	b := &browser{world: w}
	for _, step := range []struct {
		path string
		form url.Values
	}{
		{"/login", url.Values{"name": {name}, "password": {once}}},
		{"/me/password", url.Values{"old": {once}, "new": {own}, "again": {own}}},
	} {
		if resp := b.post(step.path, step.form, "same-origin"); resp.StatusCode != http.StatusSeeOther {
			w.t.Fatalf("%s: %s", step.path, resp.Status)
		}
	}
	if b.post("/login", url.Values{"name": {name}, "password": {own}}, "same-origin"); b.cookie == "" {
		w.t.Fatal("no session")
	}
	return b
}

// hiddenOf are the hidden fields of a page's form.
func hiddenOf(t *testing.T, page, action string) url.Values {
	t.Helper()
	_, form, found := strings.Cut(page, `action="`+action+`"`)
	if !found {
		t.Fatalf("the page has no form for %s", action)
	}
	form, _, _ = strings.Cut(form, "</form>")
	fields := url.Values{}
	for _, m := range regexp.MustCompile(`type="hidden" name="([^"]+)" value="([^"]+)"`).FindAllStringSubmatch(form, -1) {
		fields.Set(m[1], m[2])
	}
	return fields
}

// The order of a callback that never came is paid by the form of its page alone: the next
// query of the program is an hour away.
func TestTheConsoleQueriesTheSupplierNow(t *testing.T) {
	eachSupplierWorld(t, supplierOptions("BACKSTOP_QUERY_STEPS=1h"), func(t *testing.T, w *supplierWorld) {
		no := w.create("queried-by-hand", requestBody{"supplier": "sim-wx"})
		if p := w.pay(no, `{}`); p.json("payment", "status") != "submitted" {
			t.Fatalf("pay: %d %s", p.status, p.body)
		}
		w.set("sim-wx", no, map[string]any{"state": "paid", "callback": "none"})
		b := w.signIn("eva", "support")
		path := "/orders/" + no
		story := b.page(path + "?lang=en")
		if strings.Contains(story, "the buyer has the receipt") || !strings.Contains(story, "Ask the supplier now") {
			t.Fatalf("the story before it: %s", story)
		}
		form := hiddenOf(t, story, path+"/query")
		if form.Get("form_key") == "" {
			t.Fatalf("the form has no key: %v", form)
		}
		form.Set("reason", "the buyer has the receipt")
		if resp := b.post(path+"/query", form, "cross-site"); resp.StatusCode != http.StatusForbidden {
			t.Errorf("from another site: %s", resp.Status)
		}
		short := url.Values{"form_key": {"another"}, "reason": {"why"}}
		if resp := b.post(path+"/query", short, "same-origin"); resp.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("without a reason: %s", resp.Status)
		}
		if n := w.queries(no); n != 0 {
			t.Fatalf("%d queries before the operator asked", n)
		}
		for range 2 { // a double click
			if resp := b.post(path+"/query", form, "same-origin"); resp.StatusCode != http.StatusSeeOther ||
				!strings.HasPrefix(resp.Header.Get("Location"), path) {
				t.Fatalf("%s to %q", resp.Status, resp.Header.Get("Location"))
			}
		}
		if n := w.queries(no); n != 1 {
			t.Errorf("queried %d times, want once", n)
		}
		w.wantOrder(no, 20*time.Second, map[string]string{"status": "paid", "paid_amount": "1999", "notify_status": "delivered"})
		w.wantOneNotification(no, "order.paid")
		story = b.page(path + "?lang=en")
		if !strings.Contains(story, "the buyer has the receipt") {
			t.Error("the story does not show who queried, and why")
		}
		calls := w.request(http.MethodGet, "/api/v1/admin/supplier-calls?order_no="+no+"&op=query", w.token, "")
		if calls.json("items", "0", "class") != "ok" || calls.json("items", "0", "reference") != no {
			t.Errorf("the call is not recorded: %s", calls.body)
		}
		if strings.Contains(story, `action="`+path+`/query"`) {
			t.Error("a paid order can still be queried")
		}
		w.books()
	})
}
