package console

import (
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestAQueueIsPausedInABrowser pauses notifications by the dialog, looks at the pages in both
// languages and themes, and resumes them.
func TestAQueueIsPausedInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	if _, err := h.Operators.Add(t.Context(), "li.hang", access.Ops, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.Addr)
	base := "http://" + h.Addr
	run(t, ctx, emulation.SetDeviceMetricsOverride(1440, 900, 1, false), signsIn(base, "li.hang", webtest.GoodPassword, "/"))
	said.take()
	acts := func(name string) {
		t.Helper()
		run(t, ctx, chromedp.Navigate(base+"/queues/notify"), chromedp.WaitVisible(`[data-open="#`+name+`"]`),
			chromedp.Click(`[data-open="#`+name+`"]`),
			chromedp.WaitVisible("#"+name+"-reason"), chromedp.SendKeys("#"+name+"-reason", "a merchant migrates"),
			chromedp.Click("#"+name+" button.primary"),
			chromedp.WaitVisible(".notice.ok"))
	}
	acts("pause")
	h.walk(t, access.Ops, "main .notice.warn", namedPage{name: "queue-paused", path: "/queues/notify"},
		namedPage{name: "queues-paused", path: "/queues"}, namedPage{name: "orders-paused", path: "/orders"})
	run(t, ctx, emulation.SetDeviceMetricsOverride(390, 900, 1, false))
	acts("resume") // with a thumb
	var body string
	run(t, ctx, chromedp.Navigate(base+"/orders"), chromedp.WaitReady("main"), chromedp.OuterHTML("main", &body))
	if strings.Contains(body, "notice warn") {
		t.Error("resumed, the page still says that notifications are paused")
	}
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}
