package console

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// tabTo goes to an element by the tab key.
func tabTo(selector string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for range 120 {
			var there bool
			if err := chromedp.Evaluate("!!document.activeElement?.matches("+strconv.Quote(selector)+")", &there).Do(ctx); err != nil ||
				there {
				return err
			}
			if err := chromedp.KeyEvent(kb.Tab).Do(ctx); err != nil {
				return err
			}
		}
		return fmt.Errorf("120 tabs do not lead to %s", selector)
	})
}

// TestTwoPeopleDecideByKeyboardAlone has finance propose that an order is closed and a lead
// approve it, in both languages and both themes; the story shows what came of it.
func TestTwoPeopleDecideByKeyboardAlone(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	change(t, h.DB, "DELETE FROM approvals")
	for name, role := range map[string]string{"xu": access.Finance, "bo": access.Lead} {
		if _, err := h.Operators.Add(t.Context(), name, role, webtest.GoodPassword); err != nil {
			t.Fatal(err)
		}
	}
	ctx, said := newBrowser(t, h.Addr)
	base, no := "http://"+h.Addr, "/orders/2026112000000002"
	fine := func(name string) {
		t.Helper()
		if found := violations(t, ctx); len(found) > 0 {
			t.Errorf("%s: %s", name, strings.Join(found, "; "))
		}
		if *screenshots != "" {
			takeScreenshot(t, ctx, name)
		}
	}
	comes := func(name, language, theme, path string) {
		t.Helper()
		run(t, ctx, network.ClearBrowserCookies(), signsIn(base, name, webtest.GoodPassword, "/"), reads(base, language, theme),
			chromedp.Navigate(base+path), chromedp.WaitReady("main"), becomes(whole))
	}
	const proposed = `location.pathname.startsWith("/approvals/apr_") && ` + whole
	run(t, ctx, emulation.SetDeviceMetricsOverride(1440, 1400, 1, false))
	for i, look := range []struct{ language, theme, waits, done string }{
		{"zh", "light", "这是您自己的提议", "已驳回"},
		{"en", "dark", "This is your own proposal", "It took effect"},
	} {
		comes("xu", look.language, look.theme, no)
		run(t, ctx, tabTo("#decide-force_closed > summary"), chromedp.KeyEvent(kb.Enter), tabTo("#force_closed-evidence"),
			chromedp.KeyEvent("their console, line 7"),
			tabTo(`#decide-force_closed [type="checkbox"]`), chromedp.KeyEvent(" "), tabTo("#force_closed-amount"))
		fine("decide-order-" + look.language + "-" + look.theme)
		var shut bool
		const button = `document.querySelector("#decide-force_closed button").disabled`
		run(t, ctx, chromedp.Evaluate(button, &shut), chromedp.KeyEvent("1980"), tabTo("#force_closed-reason"),
			chromedp.KeyEvent("nobody pays this any more"),
			tabTo("#decide-force_closed button"), chromedp.KeyEvent(kb.Enter), becomes(proposed))
		if !shut {
			t.Error("the button is open before the amount is typed")
		}
		var own string
		var at string
		run(t, ctx, chromedp.Text("main", &own, chromedp.ByQuery), chromedp.Location(&at))
		at, _, _ = strings.Cut(strings.TrimPrefix(at, base), "?")
		if !strings.Contains(own, look.waits) {
			t.Errorf("the maker reads %q", own)
		}
		var forms int
		run(t, ctx, chromedp.Evaluate(`document.querySelectorAll('form[action$="/approve"], form[action$="/reject"]').length`, &forms))
		if forms != 0 {
			t.Error("the maker is offered to approve")
		}
		fine("approval-own-" + look.language + "-" + look.theme)
		comes("bo", look.language, look.theme, "/")
		// What waits is read every two seconds.
		run(t, ctx, becomes(`document.querySelector('a[href="/approvals#yours"]') !== null`),
			tabTo(`a[href="/approvals#yours"]`))
		fine("overview-proposal-" + look.language + "-" + look.theme)
		run(t, ctx, chromedp.KeyEvent(kb.Enter), becomes(`location.pathname === "/approvals" && `+whole), tabTo(`a[href="`+at+`"]`))
		fine("approvals-" + look.language + "-" + look.theme)
		verb := []string{"reject", "approve"}[i]
		run(t, ctx, chromedp.KeyEvent(kb.Enter), becomes(proposed), tabTo("#"+verb+"-reason"),
			chromedp.KeyEvent("compared with their console"))
		fine("approval-other-" + look.language + "-" + look.theme)
		var end string
		run(t, ctx, tabTo(`form[action$="/`+verb+`"] button`), chromedp.KeyEvent(kb.Enter),
			becomes(proposed+` && location.search.includes("form=")`), chromedp.Text("main", &end, chromedp.ByQuery))
		if !strings.Contains(end, look.done) {
			t.Errorf("after the decision the page reads %q", end)
		}
		fine("approval-decided-" + look.language + "-" + look.theme)
	}
	var story string
	run(t, ctx, chromedp.Navigate(base+no), chromedp.WaitReady("main"), chromedp.Text("main", &story, chromedp.ByQuery))
	for _, text := range []string{"Closed", "xu → bo", "Force closed"} {
		if !strings.Contains(story, text) {
			t.Errorf("the story lacks %q", text)
		}
	}
	fine("order-decided-en-dark")
	for _, kind := range []string{"amount_mismatch", "unknown_order"} {
		for _, look := range [][2]string{{"zh", "light"}, {"en", "dark"}} {
			run(t, ctx, reads(base, look[0], look[1]), chromedp.Navigate(base+h.on(t, kind).path), chromedp.WaitReady("main"),
				becomes(whole),
				chromedp.Evaluate(`for (const d of document.querySelectorAll("details.decision")) d.open = true`, nil))
			fine("exception-" + kind + "-" + look[0] + "-" + look[1])
		}
	}
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}
