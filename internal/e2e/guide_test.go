package e2e

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// visitor uses the console as a browser without scripts does.
type visitor struct {
	w      *world
	cookie string
	page   string
	at     string // the path of the page
}

// open follows a link, and a redirect after a form.
func (v *visitor) open(path string) {
	v.w.t.Helper()
	v.request(http.MethodGet, path, "")
}

func (v *visitor) request(method, path, form string) {
	v.w.t.Helper()
	a, err := v.w.do(method, path, "", http.Header{
		"Cookie": {v.cookie}, "Origin": {"http://" + v.w.address}, "Sec-Fetch-Site": {"same-origin"}, "Accept-Language": {"en"}, "Accept": {"text/html"},
		"Content-Type": {"application/x-www-form-urlencoded"},
	}, form)
	if err != nil {
		v.w.t.Fatal(err)
	}
	for _, line := range a.header.Values("Set-Cookie") {
		if pair, _, _ := strings.Cut(line, ";"); strings.HasPrefix(pair, "backstop") {
			if name, _, _ := strings.Cut(pair, "="); !strings.Contains(name, "-device-") {
				v.cookie = pair
			}
		}
	}
	if a.status == http.StatusSeeOther {
		v.request(http.MethodGet, a.header.Get("Location"), "")
		return
	}
	if a.status != http.StatusOK {
		v.w.t.Fatalf("%s %s: %d\n%.1000s", method, path, a.status, a.body)
	}
	v.page, v.at = html.UnescapeString(a.body), path
}

// press sends a form of the page, found by its path.
func (v *visitor) press(action string) {
	v.w.t.Helper()
	found := regexp.MustCompile(`<form method="post" action="` + action + `"><input type="hidden" name="form_key" value="([^"]*)">`).FindStringSubmatch(v.page)
	if found == nil {
		v.w.t.Fatalf("%s has no form %s", v.at, action)
	}
	v.request(http.MethodPost, action, "form_key="+url.QueryEscape(found[1]))
}

// ticks is how many of the four steps are done.
func (v *visitor) ticks() int {
	v.w.t.Helper()
	_, steps, ok := strings.Cut(v.page, `<section id="guide"`)
	if !ok {
		v.w.t.Fatalf("%s has no guide", v.at)
	}
	steps, _, _ = strings.Cut(steps, "</section>")
	return strings.Count(steps, `class="pill ok"`)
}

// A fresh installation leads to its first delivered notification, with forms alone, by the
// printed commands too, and without an address opened for it.
func TestTheGuideEndsWithADeliveredNotification(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{environ: []string{"BACKSTOP_NOTIFY_ALLOW_CIDRS=", "BACKSTOP_ENVIRONMENT=test"}})
	w.folder = t.TempDir() // nothing was applied there
	w.start("")
	greeting, err := os.ReadFile(filepath.Join(w.folder, fmt.Sprintf("server-%d.out", w.starts)))
	if err != nil {
		t.Fatal(err)
	}
	once := regexp.MustCompile(`admin one-time password: (\S+)`).FindSubmatch(greeting)
	if once == nil {
		t.Fatalf("no password in %s", greeting)
	}
	v, own := &visitor{w: w}, "a-password-of-my-own-1"
	v.request(http.MethodPost, "/login", url.Values{"name": {"admin"}, "password": {string(once[1])}}.Encode())
	v.request(http.MethodPost, "/me/password", url.Values{"old": {string(once[1])}, "new": {own}, "again": {own}}.Encode())
	if v.at != "/" || v.ticks() != 0 || !strings.Contains(v.page, "[Test] ") {
		t.Fatalf("after the password: %s with %d ticks", v.at, v.ticks())
	}
	v.press("/guide/sandbox")
	key := regexp.MustCompile(`export SANDBOX_KEY=(sk_test_[a-z0-9]+)`).FindStringSubmatch(v.page)
	if key == nil || v.ticks() != 1 {
		t.Fatalf("the new key is not shown, or %d ticks", v.ticks())
	}
	if v.open("/guide"); strings.Contains(v.page, key[1]) {
		t.Error("the key is shown a second time")
	}
	v.press("/guide/order")
	if v.ticks() != 2 {
		t.Fatalf("%d ticks after the order", v.ticks())
	}
	v.press("/guide/callback")
	if !strings.HasPrefix(v.at, "/orders/") {
		t.Fatalf("the callback leads to %s", v.at)
	}
	story := v.at
	w.within(20*time.Second, "the guide says that the notification was delivered", func() bool {
		v.open("/")
		return v.ticks() == 4 && strings.Contains(v.page, "The first notification was delivered.") && strings.Contains(v.page, `href="`+story+`"`)
	})
	if v.open(story); !strings.Contains(v.page, "echo.backstop.invalid") {
		t.Error("the story lacks the endpoint of the sandbox")
	}
	// The printed commands do the same as the buttons.
	w.request(http.MethodPost, "/api/v1/orders", key[1], `{"out_trade_no":"curl-1","amount":1999,"currency":"CNY","supplier":"backstop-sandbox","subject":"Telescope"}`)
	w.within(10*time.Second, "the callback of the new order is printed", func() bool {
		v.open("/guide")
		return strings.Contains(v.page, "curl -d 'amount=1999")
	})
	body := regexp.MustCompile(`curl -d '(amount=[^']*)' http://[^/]*(/callback/backstop-sandbox)`).FindStringSubmatch(v.page)
	if a, err := w.do(http.MethodPost, body[2], "", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, body[1]); err != nil || a.status != http.StatusOK {
		t.Errorf("the printed callback: %d %s, %v", a.status, a.body, err)
	}
	// Nothing else was opened: the endpoint of another merchant on this machine stays refused.
	if a := w.request(http.MethodPost, "/api/v1/orders", key[1], `{"out_trade_no":"curl-2","amount":1,"currency":"CNY","supplier":"backstop-sandbox","subject":"x","notify_url":"`+w.merchant.URL()+`"}`); a.status != http.StatusUnprocessableEntity {
		t.Errorf("an order with an endpoint on this machine: %d %s", a.status, a.body)
	}
	v.open("/")
	v.press("/guide/dismiss")
	w.within(10*time.Second, "the guide is gone", func() bool {
		v.open("/")
		return strings.Contains(v.page, `<section id="guide" hidden>`)
	})
	w.run("verify")
}

// In production no sandbox is offered unless it is asked for.
func TestProductionOffersNoSandbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{environ: []string{"BACKSTOP_ENVIRONMENT=production"}})
	w.folder = t.TempDir()
	w.start("")
	v, own := &visitor{w: w}, "a-password-of-my-own-1"
	_, once, _ := strings.Cut(w.run("operator", "add", "ada", "--role", "admin"), "one-time password: ")
	once = strings.Fields(once)[0]
	v.request(http.MethodPost, "/login", url.Values{"name": {"ada"}, "password": {once}}.Encode())
	v.request(http.MethodPost, "/me/password", url.Values{"old": {once}, "new": {own}, "again": {own}}.Encode())
	if strings.Contains(v.page, `action="/guide/sandbox"`) || !strings.Contains(v.page, `href="/guide?sandbox=1"`) {
		t.Error("production offers a sandbox")
	}
	if a, err := w.do(http.MethodPost, "/guide/sandbox", "", http.Header{"Cookie": {v.cookie}, "Origin": {"http://" + w.address}, "Content-Type": {"application/x-www-form-urlencoded"}}, "form_key=x"); err != nil || a.status != http.StatusUnprocessableEntity {
		t.Errorf("a form that did not ask: %d, %v", a.status, err)
	}
	if v.open("/guide?sandbox=1"); !strings.Contains(v.page, `action="/guide/sandbox"`) {
		t.Error("a sandbox that is asked for is not offered")
	}
}
