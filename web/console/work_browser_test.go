package console

import (
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestManyAreSentAgainInABrowser picks a page of notifications, looks at the dry
// run, and finds the button shut until reason and amount are written.
func TestManyAreSentAgainInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	exhaust(t, h.DB, 25)
	if _, err := h.Operators.Add(t.Context(), "li.hang", access.Ops, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.Addr)
	var picked string
	var shut, open bool
	const button = "document.querySelector('form[data-guard] button').disabled"
	run(t, ctx, emulation.SetDeviceMetricsOverride(1440, 900, 1, false), signsIn("http://"+h.Addr, "li.hang", webtest.GoodPassword,
		"/notifications"), chromedp.KeyEvent("jx"), chromedp.Text("[data-n]", &picked))
	if picked != "1" {
		t.Errorf("the key x picks %q rows", picked)
	}
	run(t, ctx, chromedp.Click("[data-all]"), chromedp.Text("[data-n]", &picked))
	if picked != "25" {
		t.Errorf("the page has %q picked rows", picked)
	}
	run(t, ctx, chromedp.Click("button[value=rows]"), chromedp.WaitVisible("#amount_CNY"), becomes(whole), chromedp.Evaluate(button, &shut),
		chromedp.SendKeys("#run-reason", "their server is back"), chromedp.SendKeys("#amount_CNY", "250.00"),
		chromedp.Evaluate("!"+button, &open))
	if !shut || !open {
		t.Errorf("the button is shut before %t, open after the amount %t", shut, open)
	}
	var at string
	run(t, ctx, chromedp.Click("form[data-guard] button"), chromedp.WaitVisible("#result"), chromedp.Location(&at))
	path, _, _ := strings.Cut(strings.TrimPrefix(at, "http://"+h.Addr), "?")
	h.over(t, path)
	if *screenshots != "" {
		takeScreenshot(t, ctx, "plan-result")
	}
	if found := violations(t, ctx); len(found) > 0 {
		t.Errorf("the results: %s", strings.Join(found, "; "))
	}
	if n := number(t, h.DB, "SELECT count(*) FROM deliveries WHERE status = 'retry_wait'"); n != 25 {
		t.Errorf("%d are sent again", n)
	}
	run(t, ctx, chromedp.Reload(), chromedp.WaitVisible("#result"))
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}
