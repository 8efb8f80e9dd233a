package console

import (
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// An admin invites a colleague who may only read; the colleague sets a password by the link, on a
// phone, and sees the orders, and sets up a second factor. Fourteen steps of two people.
func TestAColleagueIsInvitedInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	if _, err := h.Operators.Add(t.Context(), "boss", access.Admin, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	base := "http://" + h.Addr
	ctx, said := newBrowser(t, h.Addr)
	var link string
	run(t, ctx, emulation.SetDeviceMetricsOverride(1440, 900, 1, false), signsIn(base, "boss", webtest.GoodPassword, "/"))
	said.take()
	run(t, ctx, chromedp.Navigate(base+"/operators"), chromedp.SendKeys("#invite-name", "li.hang"),
		chromedp.SendKeys("#invite-reason", because), chromedp.Click(`form[action="/operators"] button.primary`),
		chromedp.WaitVisible(".copied"), chromedp.TextContent(".copied pre", &link))
	h.walk(t, access.Admin, "main h1", namedPage{name: "operators", path: "/operators"},
		namedPage{name: "operator-invited", path: "/operators/li.hang"}, namedPage{name: "roles", path: "/roles"},
		namedPage{name: "second-factor", path: "/me/second"})

	path := linkOf(t, link)
	li, heard := newBrowser(t, h.Addr)
	var at string
	run(t, li, emulation.SetDeviceMetricsOverride(390, 900, 1, true), chromedp.Navigate(base+path+"?lang=en"),
		chromedp.SendKeys("#new", webtest.GoodPassword), chromedp.SendKeys("#again", webtest.GoodPassword), chromedp.Click("button.primary"),
		chromedp.WaitReady(`form[action="/logout"]`), chromedp.Location(&at))
	if at != base+"/orders" {
		t.Errorf("the colleague comes in at %s", at)
	}
	// On the phone the colleague sets up a second factor by the key.
	var key, text string
	run(t, li, chromedp.Navigate(base+"/me/second?lang=en"), chromedp.WaitVisible(".copied pre"), chromedp.TextContent(".copied pre", &key))
	run(t, li, chromedp.SendKeys("#code", h.code(t, key, 0)), chromedp.Click(`form[action="/me/second"] button.primary`),
		chromedp.WaitVisible("#recovery"), chromedp.TextContent("main", &text))
	if !strings.Contains(text, "each works once") {
		t.Errorf("after the set-up: %s", text)
	}
	if all := append(said.take(), heard.take()...); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}
