package console

import (
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestAnExportIsChosenInABrowser opens the menu of exports by keyboard, in both languages and on
// a narrow screen too, and leaves a column out.
func TestAnExportIsChosenInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	ordered(t, h.DB, 30, "", "20261123000001") // as long as real numbers
	if _, err := h.Operators.Add(t.Context(), "li.hang", access.Finance, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.Addr)
	const fits = "document.documentElement.scrollWidth <= innerWidth && document.querySelector('#export form').getBoundingClientRect().left >= 0"
	run(t, ctx, signsIn("http://"+h.Addr, "li.hang", webtest.GoodPassword, "/orders"))
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"wide", 1440, 900}, {"narrow", 390, 844}} {
		for _, lang := range []string{"en", "zh"} {
			var inside, hidden bool
			run(t, ctx, emulation.SetDeviceMetricsOverride(size.width, size.height, 1, false),
				chromedp.Navigate("http://"+h.Addr+"/orders?status=paid&lang="+lang), chromedp.WaitReady("#export"),
				chromedp.Evaluate("!document.querySelector('#export form').checkVisibility()", &hidden),
				chromedp.Focus("#export summary"), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#export form"),
				chromedp.Evaluate(fits, &inside))
			if !inside || !hidden {
				t.Errorf("%s, %s: the menu is hidden at first %t, on the screen then %t", size.name, lang, hidden, inside)
			}
			if found := violations(t, ctx); len(found) > 0 {
				t.Errorf("%s, %s: %s", size.name, lang, strings.Join(found, "; "))
			}
			if *screenshots != "" {
				takeScreenshot(t, ctx, "export-"+size.name+"-"+lang)
			}
		}
	}
	var asked string
	run(t, ctx, chromedp.Click(`#export input[value="subject"]`),
		chromedp.Evaluate(`(() => { const f = document.querySelector("#export form");
		return new URLSearchParams(new FormData(f, f.querySelector("button[value=xlsx]"))).toString() })()`, &asked))
	if !strings.Contains(asked, "status=paid") || !strings.Contains(asked, "format=xlsx") || !strings.Contains(asked, "columns=amount") ||
		strings.Contains(asked, "columns=subject") {
		t.Errorf("the form asks for %s", asked)
	}
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}
