package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/callback"
	"backstop/internal/notify"
	"backstop/internal/supplier"
	"backstop/web"
	"backstop/web/webtest"
)

// canaries are personal texts, one for each place where somebody outside can write,
// so that a place that shows one is known by it.
func canaries() map[string]string {
	c := map[string]string{
		"body field": "13811110001", "body words": "li.hang.2@mail.example", "body name": "李航三", "body nested": "13811110004",
		"body nested name": "李航五", "body form": "6222021234567894", "body identity": "11010519491231002X", "body deep": "13811110008",
		"body number": "13811110009", "query": "13811110010", "query nested": "13811110011", "header value": "13811110012",
		"header URL": "13811110013", "header URL name": "李航十四", "user agent": "ua.15@mail.example", "header JSON": "13811110016",
		"step": "13811110017", "answer": "13811110018", "answer header": "13811110019", "attempt error": "13811110020",
		"last error": "13811110021",
		"subject":    "13811110022", "notify_url path": "13811110023", "notify_url parameter": "13811110024", "attempt URL": "13811110025",
		"refused body": "13811110026", "refused query": "13811110027", "refused header": "13811110028", "refused step": "13811110029",
		"refused supplier": "13811110030", "exception detail": "13811110031", "answer nested": "13811110032",
		"path of a request": "13811110033",
		"request query":     "13811110034", "request agent": "13811110035",
	}
	for _, where := range []string{"body", "form", "query", "header", "answer", "answer header"} {
		for _, name := range credentials {
			c[where+" "+name] = "Canary" + strings.ReplaceAll(where, " ", "") + strings.ReplaceAll(name, "_", "")
		}
	}
	return c
}

// credentials are names under which callers and merchants send secrets.
var credentials = []string{
	"authorization", "cookie", "set-cookie", "token", "id_token", "refresh_token", "session", "sid", "jwt", "credential", "x-api-key",
	"password", "pin", "otp", "signature_key", "access_token", "api_key", "secret", "passphrase", "private_key", "never_heard_of",
}

// credentialsOf are the canaries of one place, as "name" + between + "value" + end each.
func credentialsOf(c map[string]string, where, between, end string) string {
	var b strings.Builder
	for _, name := range credentials {
		b.WriteString(name + between + c[where+" "+name] + end)
	}
	return b.String()
}

// plant writes the canaries where a callback, an answer and an order left them.
func plant(t *testing.T, h *harness, c map[string]string) {
	t.Helper()
	text := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	fields := func(where string) map[string]any {
		all := map[string]any{}
		for _, name := range credentials {
			all[name] = c[where+" "+name]
		}
		return all
	}
	body := text(map[string]any{
		"data": fields("body"), "message": strings.TrimSuffix(credentialsOf(c, "form", "=", "&"), "&"),
		"attach": c["body field"], "remark": "请联系 " + c["body words"] + " 谢谢", "payer": map[string]any{"real_name": c["body name"]},
		"biz": text(map[string]any{"a": text(map[string]any{"b": "call " + c["body nested"]}), "contact_name": c["body nested name"]}),
		"ext": "x=1&y=" + url.QueryEscape(c["body form"]), "note": []any{map[string]any{"v": c["body identity"]}},
		"deep": "%257B%2522a%2522%253A%2522" + c["body deep"] + "%2522%257D", "n": json.Number(c["body number"]),
	})
	headers := credentialsOf(c, "header", ": ", "\n") + "X-Note: " + c["header value"] +
		"\nReferer: https://shop.example/pay?x=" + c["header URL"] + "&buyer=" +
		url.QueryEscape(c["header URL name"]) +
		"\nUser-Agent: pay/1.0 (" + c["user agent"] + ")\nX-Context: " +
		text(map[string]any{"a": text(map[string]any{"b": c["header JSON"]})})
	step := func(detail string) string {
		return supplier.Steps{{Name: "parse", Detail: detail}}.Text()
	}
	change(t, h.DB, "UPDATE callbacks SET body = ?, headers = ?, query = ?, steps = ?", []byte(body), headers,
		credentialsOf(c, "query", "=", "&")+"x="+c["query"]+"&y="+url.QueryEscape(text(map[string]any{"a": c["query nested"]})),
		step("the field attach holds "+c["step"]))
	change(t, h.DB, "UPDATE refused_callbacks SET body = ?, headers = ?, query = ?, steps = ?, supplier = ?",
		[]byte(credentialsOf(c, "form", "=", "&")+"a="+c["refused body"]),
		credentialsOf(c, "header", ": ", "\n")+"X-A: "+c["refused header"], credentialsOf(c, "query", "=", "&")+"q="+c["refused query"],
		step("no field "+c["refused step"]), c["refused supplier"])
	change(t, h.DB, "UPDATE notify_attempts SET response_body = ?, response_header = ?, error = ?, url = ? WHERE id = 401",
		[]byte(text(map[string]any{
			"msg": "hello " + c["answer"], "data": text(map[string]any{"m": c["answer nested"]}), "user": fields("answer"),
		})),
		credentialsOf(c, "answer header", ": ", "\n")+"X-User: "+c["answer header"],
		"HTTP 502: "+c["attempt error"], "https://m.example/u/"+c["attempt URL"]+"?t=1")
	change(t, h.DB, "UPDATE deliveries SET last_error = ?, url = ?", "HTTP 502: "+c["last error"], "https://m.example/u/"+
		c["notify_url path"]+"?p="+c["notify_url parameter"])
	change(t, h.DB, "UPDATE orders SET subject = ?, notify_url = ?", "Ticket for "+c["subject"], "https://m.example/u/"+
		c["notify_url path"]+"?p="+c["notify_url parameter"])
	change(t, h.DB, "UPDATE exceptions SET detail = ?", text(map[string]any{"last_error": "answered " + c["exception detail"]}))
}

// visible are the canaries that a text shows, plainly or escaped.
func visible(c map[string]string, text string) (found []string) {
	for place, secret := range c {
		if strings.Contains(text, secret) || strings.Contains(text, url.QueryEscape(secret)) {
			found = append(found, place)
		}
	}
	return found
}

// Personal data that outsiders sent is shown to no one without the right to see it, wherever it
// was written and wherever it is shown.
func TestNobodySeesWhatIsPlanted(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	c := canaries()
	details := h.details(t)
	plant(t, h, c)
	look := func(where, text string) {
		t.Helper()
		if found := visible(c, text); len(found) > 0 {
			t.Errorf("%s shows %q", where, found)
		}
	}
	id := func(query string) (n int64) {
		t.Helper()
		if err := h.DB.Read.NewRaw(query).Scan(t.Context(), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	order := "2026112000000001"
	params := map[string]string{
		":order_no": order, ":callback": "", ":event_id": id36(id("SELECT min(id) FROM callbacks")),
		":notification": notify.PublicID(id("SELECT subject_id FROM events"), "order.paid"),
		":exception":    fmt.Sprint(id("SELECT min(id) FROM exceptions")), ":merchant": "m1", ":batch": "",
	}
	paths := map[string]bool{
		"/orders?window=31d": true, "/notifications?window=31d": true, "/callbacks?window=31d": true,
		"/exceptions?window=31d": true, "/search?q=" + order: true,
	}
	for _, d := range details {
		paths[d.path] = true
	}
	placeholder := regexp.MustCompile(`:[a-z_]+`)
	for _, r := range h.Routes() {
		if r.Method != http.MethodGet || r.Audience != web.ForOperator || strings.HasSuffix(r.Path, "*") || r.Path == "/_/live" {
			continue
		}
		path := placeholder.ReplaceAllStringFunc(r.Path, func(name string) string { return params[name] })
		if r.Path == "/orders/:order_no/_diff" {
			path += "?a=" + params[":event_id"] + "&b=" + id36(id("SELECT max(id) FROM callbacks"))
		}
		paths[path] = true
	}
	for _, role := range []string{access.Viewer, access.Finance, access.Auditor} { // also who may see it gives a reason first
		cookie := h.SignIn(t, role)
		seen := 0
		for path := range paths {
			for _, part := range []string{"", "true"} {
				got := h.Call(t, http.MethodGet, path, "", "Cookie", cookie, "HX-Request", part)
				look(role+" "+path+" "+part, got.Body+fmt.Sprint(got.Header))
				if got.Status == http.StatusOK {
					seen++
				}
			}
		}
		if seen < 40 {
			t.Errorf("%s saw only %d pages and fragments", role, seen)
		}
		stream := h.watch(t, cookie, "/_/live?lang=en")
		frame := stream.Next(t).Data
		if look(role+" live", frame); strings.Count(frame, "<section") < len(h.in.topics()) {
			t.Errorf("%s: the frame lacks panels: %q", role, frame)
		}
		stream.Cut()
	}
	lead := h.SignIn(t, access.Lead)
	for _, path := range []string{
		"exceptions", "callbacks", "supplier-calls", "compensations", "refunds", "approvals", "merchant-callback-monitor/logs",
		"merchant-callback-monitor/realtime", "merchant-callback-monitor/merchants", "merchant-callback-monitor/breakers",
		"merchant-callback-monitor/health",
	} {
		for _, key := range []string{webtest.MonitorToken, webtest.BearerOf(lead)} { // nobody sees more by the API
			got := h.Api(t, key, http.MethodGet, "/api/v1/admin/"+path, "")
			if got.Status != http.StatusOK || len(got.Body) < 20 {
				t.Errorf("%s: %d %q", path, got.Status, got.Body)
			}
			look(path, got.Body)
		}
	}
	h.Lines.Answer = &notify.Result{
		Class: notify.BadStatus, Status: 502, Error: "HTTP 502: " + c["attempt error"],
		ResponseHeader: credentialsOf(c, "answer header", ": ", "\n"),
		ResponseBody:   []byte(credentialsOf(c, "answer", "=", "&")),
	}
	if got := h.Api(t, webtest.MonitorToken, http.MethodPost, "/api/v1/admin/merchants/m1/ping", ""); got.Status != http.StatusOK ||
		!strings.Contains(got.Body, "never_heard_of") {
		t.Errorf("a ping: %d %q", got.Status, got.Body)
	} else {
		look("a ping", got.Body)
		ping, _ := got.Object(t)["id"].(string)
		look("the page of a ping", h.Page(t, lead, "/merchants/m1?pinged="+ping).Body)
	}
	for _, list := range []string{"orders", "callbacks", "notifications", "exceptions"} {
		got := h.Page(t, lead, "/"+list+"?window=31d&format=csv")
		look("export of "+list, got.Body)
		if got.Status != http.StatusOK || strings.Count(got.Body, "\n") < 2 {
			t.Errorf("export of %s: %d %q", list, got.Status, got.Body)
		}
	}
	for _, format := range []string{"json", "html"} {
		got := h.Page(t, lead, "/orders/"+order+"/evidence?format="+format)
		look("evidence as "+format, got.Body)
		if got.Status != http.StatusOK || !strings.Contains(got.Body, order) {
			t.Errorf("evidence: %d", got.Status)
		}
	}
	h.Sender.Answer = callback.Receipt{Outcome: callback.UnknownSupplier, Reply: callback.NotFound}
	h.Call(t, http.MethodPost, "/callback/"+c["path of a request"]+"?q="+c["request query"], "a="+c["refused body"], "User-Agent",
		c["request agent"])
	h.Call(t, http.MethodGet, "/nowhere/"+c["path of a request"]+"?q="+c["request query"], "", "User-Agent", c["request agent"])
	h.Call(t, http.MethodPost, "/api/v1/orders", `{"subject":"`+c["subject"]+`","amount":"`+c["body number"]+`"}`, "Authorization",
		"Bearer "+webtest.KeyOfGalaxy, "Content-Type", "application/json")
	for line := range strings.Lines(h.Logged()) {
		look("the log: "+line, line)
	}
}

// unmasked returns a page after a reason for seeing what it masks.
func (h *harness) unmasked(t *testing.T, cookie, path string) string {
	t.Helper()
	form := formOf(t, h.Page(t, cookie, path).Body, path+"/unmask")
	return h.Post(t, cookie, path+"/unmask", append(form, "reason", "the bank asks for it")...).Body
}

// Those who may see what is masked see all of it, once they have said why.
func TestWhoMayUnmaskSeesWhatIsPlanted(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	c := canaries()
	plant(t, h, c)
	const order = "/orders/2026112000000001"
	inStory := []string{
		"body field", "body words", "body name", "body nested", "body nested name", "body form", "body identity", "body deep",
		"body number", "query",
		"query nested", "header value", "header URL", "header URL name", "user agent", "header JSON", "step", "answer", "answer header",
		"attempt error", "subject",
	}
	for _, role := range []string{access.Lead, access.Auditor} {
		cookie := h.SignIn(t, role)
		shown := h.unmasked(t, cookie, order)
		for _, place := range inStory {
			if len(visible(map[string]string{place: c[place]}, shown)) == 0 {
				t.Errorf("%s does not see %s", role, place)
			}
		}
		var refused int64
		if err := h.DB.Read.NewRaw("SELECT id FROM refused_callbacks").Scan(t.Context(), &refused); err != nil {
			t.Fatal(err)
		}
		body := h.unmasked(t, cookie, "/callbacks/"+strconv.FormatInt(refused, 10))
		for _, place := range []string{"refused body", "refused query", "refused header", "refused step"} {
			if !strings.Contains(body, c[place]) {
				t.Errorf("%s does not see %s", role, place)
			}
		}
	}
}
