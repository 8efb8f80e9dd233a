package console

import (
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestAlertsInABrowser looks at the page of alerts as an admin, who sees all of
// it, and sends a test alert by its dialog.
func TestAlertsInABrowser(t *testing.T) {
	h := open(t)
	h.ring(t)
	if _, err := h.Operators.Add(t.Context(), "wang.min", access.Admin, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.Addr)
	base := "http://" + h.Addr
	run(t, ctx, emulation.SetDeviceMetricsOverride(1440, 900, 1, false), signsIn(base, "wang.min", webtest.GoodPassword, "/"))
	said.take()
	for _, theme := range []string{"light", "dark"} {
		for _, lang := range []string{"zh", "en"} {
			run(t, ctx, reads(base, lang, theme))
			for name, path := range map[string]string{"alerts": "/alerts", "alerts-rule": "/alerts?rule=success_rate"} {
				for _, width := range []int64{390, 1280, 1440} {
					var look struct {
						Theme, Language string
						Overflow        int
						Violations      []string
					}
					run(t, ctx, emulation.SetDeviceMetricsOverride(width, 900, 1, false), chromedp.Navigate(base+path), chromedp.WaitReady("main"), chromedp.Evaluate(examine, &look))
					look.Violations = append(look.Violations, violations(t, ctx)...)
					if look.Theme != theme || !strings.HasPrefix(look.Language, lang) || look.Overflow > 0 || len(look.Violations) > 0 {
						t.Errorf("%s in %s at %d: %+v", name, lang, width, look)
					}
				}
				if *screenshots != "" {
					takeScreenshot(t, ctx, name+"-"+lang+"-"+theme)
				}
			}
		}
	}
	run(t, ctx, chromedp.Navigate(base+"/alerts"), chromedp.WaitVisible(`[data-open="#test"]`), chromedp.Click(`[data-open="#test"]`),
		chromedp.WaitVisible("#test-reason"), chromedp.SendKeys("#test-reason", "is anybody there"), chromedp.Click("#test button.primary"),
		chromedp.WaitVisible(".notice.ok"))
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}
