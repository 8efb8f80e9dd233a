package console

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/sandbox"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Only an admin takes the steps; each is recorded, and no key is.
func TestTheStepsOfTheGuideAreAudited(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, role := range []string{access.Viewer, access.Ops, access.Lead, access.Auditor} {
		if got := h.Post(t, h.SignIn(t, role), "/guide/sandbox", "form_key", "k-"+role); got.Status != 403 {
			t.Errorf("%s: %d", role, got.Status)
		}
	}
	cookie := h.SignIn(t, access.Admin)
	made := h.Post(t, cookie, "/guide/sandbox", "form_key", "k")
	_, key, _ := strings.Cut(made.Body, "export SANDBOX_KEY=")
	key, _, _ = strings.Cut(key, "<")
	if again := h.Post(t, cookie, "/guide/sandbox", "form_key", "k"); !strings.HasPrefix(key, "sk_sandbox_") ||
		strings.Contains(again.Body, "export SANDBOX_KEY=") {
		t.Errorf("the key %q, and a form that is sent twice shows another", key)
	}
	for range 2 { // the same form creates one order
		if got := h.Post(t, cookie, "/guide/order", "form_key", "o"); got.Header.Get("Location") != "/guide" {
			t.Fatalf("order: %d %s", got.Status, got.Body)
		}
	}
	if got := h.Post(t, cookie, "/guide/callback", "form_key", "c"); !strings.HasPrefix(got.Header.Get("Location"), "/orders/") {
		t.Errorf("callback: %d %s", got.Status, got.Body)
	}
	sent := h.Sender.Last()
	if sent == nil || !strings.Contains(string(sent.Body), "&sign=") || h.Sender.Codes[0] != sandbox.Code {
		t.Errorf("the callback sent: %+v", sent)
	}
	var acts []string
	if err := h.DB.NewRaw("SELECT action FROM audit WHERE action LIKE 'sandbox.%' OR action = 'settings.apply' ORDER BY number").Scan(
		t.Context(), &acts); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(acts, " "); got != "settings.apply sandbox.make sandbox.order sandbox.callback" {
		t.Errorf("the audit has %s", got)
	}
	var secrets, orders int
	if err := h.DB.NewRaw("SELECT count(*) FROM audit WHERE params LIKE ?", "%"+key+"%").Scan(t.Context(), &secrets); err != nil ||
		secrets > 0 {
		t.Errorf("the key is in %d rows of the audit, %v", secrets, err)
	}
	if err := h.DB.NewRaw("SELECT count(*) FROM orders WHERE out_trade_no LIKE 'sandbox-%'").Scan(t.Context(), &orders); err != nil ||
		orders != 1 {
		t.Errorf("%d orders, %v", orders, err)
	}
}

// A sandbox whose key cannot be opened, such as without the master key, has no callback to offer.
// It takes nobody the overview, which is needed then.
func TestASandboxThatCannotSignBreaksNoPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Admin)
	h.Post(t, cookie, "/guide/sandbox", "form_key", "k")
	h.Post(t, cookie, "/guide/order", "form_key", "o")
	change(t, h.DB, "UPDATE suppliers SET config = '{}' WHERE code = ?", sandbox.Code)
	for _, path := range []string{"/", "/guide", "/_/guide"} {
		if got := h.Call(t, "GET", path, "", "Cookie", cookie, "HX-Request", "true"); got.Status != 200 ||
			strings.Contains(got.Body, "&amp;sign=") || strings.Contains(got.Body, "guide/callback") {
			t.Errorf("%s: %d", path, got.Status)
		}
	}
	if got := h.Post(t, cookie, "/guide/callback", "form_key", "c"); got.Status != 303 || got.Header.Get("Location") != "/guide" ||
		h.Sender.Last() != nil {
		t.Errorf("callback: %d to %s", got.Status, got.Header.Get("Location"))
	}
}

// Keys of the example are made by a button, not by looking at the guide, and are not shown again.
func TestTheGuideMakesKeysOnRequestOnly(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Admin)
	keys := regexp.MustCompile(`(sk_live|whsec)_[A-Za-z0-9+/]{20,}|key: [0-9a-f]{32}`)
	shown := func(form string) string {
		t.Helper()
		got := h.Post(t, cookie, "/guide/keys", "form_key", form)
		if found := keys.FindAllString(html.UnescapeString(got.Body), -1); got.Status == http.StatusOK && len(found) >= 3 {
			return strings.Join(found, " ")
		}
		t.Fatalf("the keys are missing: %d", got.Status)
		return ""
	}
	if one := shown("one"); shown("one") != one || shown("two") == one {
		t.Error("a form that is sent again shows other keys, or another form the same")
	}
	for range 2 {
		got := h.Page(t, cookie, "/guide?lang=en")
		if found := keys.FindAllString(html.UnescapeString(got.Body), -1); len(found) > 0 || !strings.Contains(got.Body, "Fill in new keys") {
			t.Errorf("the guide shows the keys %q", found)
		}
	}
	if got := h.Post(t, h.SignIn(t, access.Ops), "/guide/keys", "form_key", "k"); got.Status != http.StatusForbidden {
		t.Errorf("ops: %d", got.Status)
	}
}

// The guide is taken with the keyboard alone, from the overview to the delivered notification.
func TestTheGuideByKeyboard(t *testing.T) {
	t.Parallel()
	h := open(t)
	if _, err := h.Operators.Add(t.Context(), "ada", access.Admin, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	change(t, h.DB, "DELETE FROM merchants") // as in a fresh installation
	ctx, said := newBrowser(t, h.Addr)
	base := "http://" + h.Addr
	run(t, ctx, emulation.SetDeviceMetricsOverride(1440, 900, 1, false))
	run(t, ctx, signsIn(base, "ada", webtest.GoodPassword, "/"), reads(base, "en", "light"))
	// press puts the focus on a button of the guide as Tab does, and presses Enter.
	press := func(action string) {
		t.Helper()
		run(t, ctx, chromedp.WaitReady(`form[action="`+action+`"] button`),
			chromedp.Evaluate(`document.body.focus(); document.querySelector("main").focus()`, nil))
		for range 60 {
			var there bool
			run(t, ctx, chromedp.KeyEvent(kb.Tab), chromedp.Evaluate(`document.activeElement.closest('form[action="`+action+`"]') !== null`,
				&there))
			if there {
				run(t, ctx, chromedp.KeyEvent(kb.Enter))
				return
			}
		}
		t.Fatalf("Tab does not reach %s", action)
	}
	look := func(name string) {
		t.Helper()
		if found := violations(t, ctx); len(found) > 0 {
			t.Errorf("%s: %s", name, strings.Join(found, "; "))
		}
		if *screenshots != "" {
			takeScreenshot(t, ctx, name)
		}
	}
	run(t, ctx, chromedp.Navigate(base+"/"), chromedp.WaitReady("#guide form"))
	look("guide-begins")
	press("/guide/sandbox")
	run(t, ctx, chromedp.WaitVisible("#key-title"), chromedp.WaitReady(`[data-copy^="export SANDBOX_KEY=sk_sandbox_"]`))
	look("guide-key")
	press("/guide/order")
	run(t, ctx, becomes("location.pathname === '/guide' && document.querySelector('form[action=\"/guide/callback\"]') !== null"))
	look("guide-callback")
	press("/guide/callback")
	run(t, ctx, becomes("location.pathname.startsWith('/orders/')"), inState("live"), says("h1", "Pending"))
	// The page goes on by itself to the end of the last step.
	change(t, h.DB, "UPDATE orders SET status = 'paid', version = version + 1, paid_amount = amount, paid_at = ?, next_at = NULL", h.DB.Now())
	change(t, h.DB, "INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, attempts, created_at)"+
		" SELECT id + 50, id + 51, merchant_id, id, 'order.paid', 'webhook', '', 'sending', 1, ? FROM orders", h.DB.Now())
	run(t, ctx, says("h1", "Sending"))
	change(t, h.DB, "UPDATE deliveries SET status = 'delivered', finished_at = ?", h.DB.Now())
	run(t, ctx, says("h1", "Delivered"), chromedp.Navigate(base+"/guide"), says("#guide", "The first notification was delivered."))
	if complaints := said.take(); len(complaints) > 0 {
		t.Error(strings.Join(complaints, "; "))
	}
}
