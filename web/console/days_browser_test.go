package console

import (
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// An admin changes a merchant's fees and a lead approves it, where changes wait for a second person.
// Nine steps of two people.
func TestFeesAreChangedByTwoPeopleInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	admin := h.SignIn(t, access.Admin)
	h.adds(t, admin, "shop")
	const rules = "/settings/approval"
	h.sends(t, admin, rules, rules, 303, "apply", "true")
	h.sends(t, admin, rules+"/review", rules+"/review", 303, "reason", agreed)
	h.Notify(t, "ord_1", 1)
	if _, err := h.Operators.Add(t.Context(), "lu", access.Lead, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	base, proposed := "http://"+h.Addr, `location.pathname.startsWith("/approvals/apr_") && document.readyState === "complete"`
	boss, said := newBrowser(t, h.Addr)
	var at, text string
	run(t, boss, emulation.SetDeviceMetricsOverride(1440, 900, 1, false), signsIn(base, "the.admin", webtest.GoodPassword, "/"))
	said.take()
	run(t, boss, chromedp.Navigate(base+"/merchants/shop/settings?lang=en"), chromedp.WaitVisible(`[name="fees"]`),
		chromedp.SetValue(`[name="fees"]`, "- { rate: 1.2%, fixed: 10 }"), onward(continues, "/merchants/shop/settings/review"))
	run(t, boss, chromedp.TextContent("main", &text), into("reason", agreed), chromedp.Click(applies, chromedp.ByQuery), becomes(proposed),
		chromedp.Location(&at))
	if !strings.Contains(text, "once a second person approves") {
		t.Errorf("the review does not say that it waits: %s", text)
	}
	lu, heard := newBrowser(t, h.Addr)
	run(t, lu, emulation.SetDeviceMetricsOverride(390, 900, 1, true), signsIn(base, "lu", webtest.GoodPassword, "/approvals"))
	heard.take()
	run(t, lu, chromedp.Navigate(at), chromedp.WaitVisible("#approve-reason"), chromedp.SendKeys("#approve-reason", agreed),
		chromedp.Click(`form[action$="/approve"] button`, chromedp.ByQuery), becomes(proposed+` && location.search.includes("form=")`))
	run(t, boss, chromedp.Navigate(base+"/merchants/shop/settings?lang=en"), chromedp.WaitVisible(`[name="fees"]`),
		chromedp.Value(`[name="fees"]`, &text))
	if !strings.Contains(text, "rate: 1.2%") {
		t.Errorf("the fees are %q", text)
	}
	if all := append(said.take(), heard.take()...); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}

// A merchant's engineer signs in on a phone, reads an order and the merchant's page, and rotates the
// signing secret. Seven steps.
func TestAMerchantsEngineerHasADayInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	markers := markOther(t, h.DB)
	change(t, h.DB, "UPDATE merchants SET notify = ? WHERE code = 'm2'", plainNotify)
	h.ReadSettings(t)
	if _, err := h.Operators.Add(t.Context(), "mei", access.Merchant, webtest.GoodPassword, "m2"); err != nil {
		t.Fatal(err)
	}
	base := "http://" + h.Addr
	mei, said := newBrowser(t, h.Addr)
	run(t, mei, emulation.SetDeviceMetricsOverride(390, 900, 1, true), signsIn(base, "mei", webtest.GoodPassword, "/orders"))
	said.take()
	var secret string
	for _, path := range []string{"/orders", "/orders/2026112000000077", "/notifications", "/merchants/m2"} {
		var text string
		run(t, mei, chromedp.Navigate(base+path+"?lang=en"), becomes(whole), chromedp.TextContent("main", &text))
		for _, marker := range markers {
			if strings.Contains(strings.ReplaceAll(text, "2026112000000077", ""), marker) {
				t.Errorf("%s shows %s of another merchant", path, marker)
			}
		}
	}
	run(t, mei, chromedp.SendKeys("#rotate-reason", because), chromedp.Click(`form[action$="/rotate"] button`, chromedp.ByQuery),
		chromedp.WaitVisible(".copied pre"), chromedp.TextContent(".copied pre", &secret))
	if !strings.HasPrefix(strings.TrimSpace(secret), "whsec_") {
		t.Errorf("the page shows %q", secret)
	}
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}
