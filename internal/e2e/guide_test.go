package e2e

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const ownPassword = "a password of one's own, 27"

// visitor uses the console as a browser without scripts does.
type visitor struct {
	*browser
	page string
	at   string // the path of the page
}

func (v *visitor) open(path string) {
	v.t.Helper()
	english := "?lang=en"
	if strings.Contains(path, "?") {
		english = "&lang=en"
	}
	v.page, v.at = html.UnescapeString(v.browser.page(path+english)), path
}

// send sends a form and follows a redirect.
func (v *visitor) send(path string, form url.Values) {
	v.t.Helper()
	resp := v.post(path, form, "same-origin")
	switch resp.StatusCode {
	case http.StatusSeeOther:
		v.open(resp.Header.Get("Location"))
	default:
		v.t.Fatalf("POST %s: %s", path, resp.Status)
	}
}

// press sends a form of the page, found by its path.
func (v *visitor) press(action string) {
	v.t.Helper()
	v.send(action, hiddenOf(v.t, v.page, action))
}

// create makes the sandbox: its answer is the page with the key, and no redirect.
func (v *visitor) create() {
	v.t.Helper()
	v.show("/guide/sandbox", hiddenOf(v.t, v.page, "/guide/sandbox"))
	v.at = "/guide"
}

// show sends a form whose answer is a page that is shown once.
func (v *visitor) show(path string, form url.Values) {
	v.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+v.address+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header = http.Header{
		"Content-Type": {"application/x-www-form-urlencoded"}, "Sec-Fetch-Site": {"same-origin"},
		"Cookie": {v.cookie, "lang=en"},
	}
	resp, err := client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		v.t.Fatalf("%s, %v", resp.Status, err)
	}
	v.page, v.at = html.UnescapeString(string(text)), path
}

// stepsDone is how many of the four steps are done.
func (v *visitor) stepsDone() int {
	v.t.Helper()
	_, steps, ok := strings.Cut(v.page, `<section id="guide"`)
	if !ok {
		v.t.Fatalf("%s has no guide", v.at)
	}
	steps, _, _ = strings.Cut(steps, "</section>")
	return strings.Count(steps, `class="pill ok"`)
}

// A fresh installation leads to its first delivered notification, with forms alone, by the
// printed commands too, and without an address opened for it.
func TestTheGuideEndsWithADeliveredNotification(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.folder = t.TempDir() // nothing was applied there
	w.more = []string{"BACKSTOP_NOTIFY_ALLOW_CIDRS=", "BACKSTOP_ENVIRONMENT=test"}
	w.start("")
	greeting, err := os.ReadFile(filepath.Join(w.folder, fmt.Sprintf("server-%d.out", w.starts)))
	if err != nil {
		t.Fatal(err)
	}
	once := regexp.MustCompile(`admin one-time password: (\S+)`).FindSubmatch(greeting)
	if once == nil {
		t.Fatalf("no password in %s", greeting)
	}
	v := &visitor{browser: &browser{world: w}}
	v.send("/login", url.Values{"name": {"admin"}, "password": {string(once[1])}})
	v.send("/me/password", url.Values{"old": {string(once[1])}, "new": {ownPassword}, "again": {ownPassword}})
	if v.at != "/operators?first=1" || !strings.Contains(v.page, `href="/guide"`) {
		t.Fatalf("after the password: %s", v.at)
	}
	v.open("/")
	if v.stepsDone() != 0 || !strings.Contains(v.page, "[Test] ") {
		t.Fatalf("the overview has %d ticks", v.stepsDone())
	}
	v.create()
	key := regexp.MustCompile(`export SANDBOX_KEY=(sk_sandbox_[a-z0-9]+)`).FindStringSubmatch(v.page)
	if key == nil || v.stepsDone() != 1 {
		t.Fatalf("the new key is not shown, or %d ticks", v.stepsDone())
	}
	if v.open("/guide"); strings.Contains(v.page, key[1]) {
		t.Error("the key is shown a second time")
	}
	v.press("/guide/order")
	if v.stepsDone() != 2 {
		t.Fatalf("%d ticks after the order", v.stepsDone())
	}
	v.press("/guide/callback")
	if !strings.HasPrefix(v.at, "/orders/") {
		t.Fatalf("the callback leads to %s", v.at)
	}
	story := v.at
	w.within(20*time.Second, "the guide says that the notification was delivered", func() bool {
		v.open("/")
		return v.stepsDone() == 4 && strings.Contains(v.page, "The first notification was delivered.") &&
			strings.Contains(v.page, `href="`+story+`"`)
	})
	if v.open(story); !strings.Contains(v.page, "echo.backstop.invalid") {
		t.Error("the story lacks the endpoint of the sandbox")
	}
	// The printed commands do the same as the buttons.
	w.request(http.MethodPost, "/api/v1/orders", key[1],
		`{"out_trade_no":"curl-1","amount":1999,"currency":"CNY","supplier":"backstop-sandbox","subject":"Telescope"}`)
	w.within(10*time.Second, "the callback of the new order is printed", func() bool {
		v.open("/guide")
		return strings.Contains(v.page, "curl -d 'amount=1999")
	})
	body := regexp.MustCompile(`curl -d '(amount=[^']*)' http://[^/]*(/callback/backstop-sandbox)`).FindStringSubmatch(v.page)
	if a, err := w.do(http.MethodPost, body[2], "", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		body[1]); err != nil || a.status != http.StatusOK {
		t.Errorf("the printed callback: %d %s, %v", a.status, a.body, err)
	}
	// Nothing else was opened: the endpoint of another merchant on this machine stays refused.
	if a := w.request(http.MethodPost, "/api/v1/orders", key[1],
		`{"out_trade_no":"curl-2","amount":1,"currency":"CNY","supplier":"backstop-sandbox","subject":"x","notify_url":"`+w.merchant.URL()+
			`"}`); a.status != http.StatusUnprocessableEntity {
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
	v := &visitor{browser: w.signIn("ada", "admin")}
	v.open("/")
	if strings.Contains(v.page, `action="/guide/sandbox"`) || !strings.Contains(v.page, `href="/guide?sandbox=1"`) {
		t.Error("production offers a sandbox")
	}
	if resp := v.post("/guide/sandbox", url.Values{"form_key": {"x"}}, "same-origin"); resp.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a form that did not ask: %s", resp.Status)
	}
	v.page = html.UnescapeString(v.browser.page("/guide?sandbox=1&lang=en"))
	if !strings.Contains(v.page, `action="/guide/sandbox"`) {
		t.Error("a sandbox that is asked for is not offered")
	}
}
