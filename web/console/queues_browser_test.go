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
	for _, theme := range []string{"light", "dark"} {
		for _, lang := range []string{"zh", "en"} {
			run(t, ctx, emulation.SetDeviceMetricsOverride(1440, 900, 1, false), reads(base, lang, theme))
			for name, path := range map[string]string{
				"queue-paused": "/queues/notify", "queues-paused": "/queues",
				"orders-paused": "/orders",
			} {
				for _, width := range []int64{1440, 390} {
					var look struct {
						Overflow   int
						Violations []string
					}
					run(t, ctx, emulation.SetDeviceMetricsOverride(width, 900, 1, false), chromedp.Navigate(base+path),
						chromedp.WaitReady("main .notice.warn"), chromedp.Evaluate(examine, &look))
					look.Violations = append(look.Violations, violations(t, ctx)...)
					if look.Overflow > 0 || len(look.Violations) > 0 {
						t.Errorf("%s in %s at %d: %+v", name, lang, width, look)
					}
					if *screenshots != "" {
						takeScreenshot(t, ctx, name+"-"+lang+"-"+theme+map[int64]string{390: "-narrow"}[width])
					}
				}
			}
		}
	}
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
