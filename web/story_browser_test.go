package web

import (
	"strings"
	"testing"

	"backstop/internal/access"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestAStoryInABrowser looks at the whole story in both languages and themes, and
// filters it in place.
func TestAStoryInABrowser(t *testing.T) {
	h := open(t)
	script(t, h.db, h.db.Now()-200_000_000, "Mall")
	h.readSettings(t)
	if _, err := h.o.Operators.Add(t.Context(), "wang.min", access.Lead, goodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.addr)
	base := "http://" + h.addr
	run(t, ctx, emulation.SetDeviceMetricsOverride(1440, 1400, 1, false), chromedp.Navigate(base+"/login?lang=en"), chromedp.WaitVisible("#password"),
		chromedp.SendKeys("#name", "wang.min"), chromedp.SendKeys("#password", goodPassword+"\r"), chromedp.WaitVisible(".panel.risk"))
	for _, theme := range []string{"light", "dark"} {
		for _, lang := range []string{"zh", "en"} {
			run(t, ctx, chromedp.Navigate(base+"/me"), chromedp.WaitVisible("#language"),
				chromedp.SetValue("#language", lang), chromedp.SetValue("#theme", theme), chromedp.Submit("#zone"), chromedp.WaitVisible(".notice.ok"))
			for name, path := range map[string]string{
				"story":      scripted,
				"story-diff": scripted + "/_diff?a=" + id36(9201) + "&b=" + id36(9202),
				"story-raw":  scripted + "/events/" + id36(9201) + "/_raw",
			} {
				var look struct {
					Overflow   int
					Violations []string
				}
				run(t, ctx, chromedp.Navigate(base+path), chromedp.WaitReady("main"), chromedp.Evaluate(examine, &look))
				look.Violations = append(look.Violations, violations(t, ctx)...)
				if look.Overflow > 0 || len(look.Violations) > 0 {
					t.Errorf("%s in %s, %s: %+v", name, lang, theme, look)
				}
				if *screenshots && name == "story" {
					takeScreenshot(t, ctx, name+"-"+lang+"-"+theme)
				}
			}
		}
	}
	var where string
	var events int
	run(t, ctx, chromedp.Navigate(base+scripted), chromedp.WaitVisible("#phase-delivery"), chromedp.Click("#phase-delivery"),
		chromedp.WaitVisible(`#phase-delivery[aria-current]`), chromedp.Location(&where), chromedp.Evaluate(`document.querySelectorAll(".story > li").length`, &events))
	if !strings.HasSuffix(where, "?phase=delivery") || events != 3 {
		t.Errorf("the phase leads to %s with %d events", where, events)
	}
	run(t, ctx, chromedp.NavigateBack(), chromedp.WaitVisible(`#phase-[aria-current]`))
	if all := said.take(); len(all) > 0 {
		t.Errorf("the browser said: %s", strings.Join(all, "; "))
	}
}
