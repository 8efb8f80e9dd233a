package console

import (
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/signin"
	"backstop/internal/signin/signintest"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// A browser goes to the provider and back, which is another site to it, signs in again for an act on
// people, and signs out at both: what the content policy and SameSite allow shows nowhere else.
func TestABrowserSignsInAtTheProvider(t *testing.T) {
	t.Parallel()
	p := openWithProvider(t, dbtest.Default(t), "BACKSTOP_PASSWORDS=off", "BACKSTOP_BREAK_GLASS=glass")
	p.there.Add(signintest.User{Subject: "s-1", Name: "li", Groups: []string{"admins"}})
	p.there.Add(signintest.User{Subject: "s-2", Name: "wang", Groups: []string{"others"}})
	if _, err := p.h.Operators.Add(t.Context(), "glass", access.Admin, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	base := p.atItsAddress(t)
	ctx, said := newBrowser(t, p.h.Addr)
	var at, text string
	ours := func(what string, actions ...chromedp.Action) {
		t.Helper()
		run(t, ctx, actions...)
		if found := violations(t, ctx); len(found) > 0 {
			t.Errorf("%s: %s", what, strings.Join(found, "; "))
		}
		if *screenshots != "" {
			takeScreenshot(t, ctx, "provider-"+what)
		}
	}
	as := func(name string) chromedp.Action {
		return chromedp.Tasks{chromedp.WaitVisible("#as"), chromedp.SendKeys("#as", name), chromedp.Click("button")}
	}
	ours("login", emulation.SetDeviceMetricsOverride(390, 900, 1, true),
		chromedp.Navigate(base+"/login?lang=en"), chromedp.WaitVisible(`a[href^="/login/oidc"]`))
	run(t, ctx, chromedp.Click(`a[href^="/login/oidc"]`))
	ours("no-role", as("wang"), chromedp.WaitVisible(`a[href*="again=1"]`), chromedp.TextContent("main", &text))
	if !strings.Contains(text, "none of your groups has a role") {
		t.Errorf("somebody without a role: %s", text)
	}
	run(t, ctx, chromedp.Click(`a[href*="again=1"]`))
	run(t, ctx, as("li"), chromedp.WaitReady(`form[action="/logout"]`), chromedp.Location(&at))
	if at != base+"/" {
		t.Errorf("signed in at %s", at)
	}
	if _, err := p.h.DB.NewRaw("UPDATE sessions SET second_at = second_at - ?", access.FreshFor.Microseconds()).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.h.Operators.Add(t.Context(), "bo", access.Viewer, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	const again = `form[action="/operators/bo/disable"] a[href*="again=1"]`
	ours("again", chromedp.Navigate(base+"/operators/bo?lang=en"), chromedp.WaitVisible(again))
	run(t, ctx, chromedp.Click(again))
	run(t, ctx, as("li"), chromedp.WaitVisible("#disable-reason"), chromedp.Location(&at))
	if at != base+"/operators/bo?lang=en" {
		t.Errorf("back at %s", at)
	}
	run(t, ctx, chromedp.SendKeys("#disable-reason", because), chromedp.Click(`form[action="/operators/bo/disable"] button`),
		chromedp.WaitVisible(`form[action="/operators/bo/enable"]`))
	run(t, ctx, chromedp.Evaluate(`void document.querySelector('form[action="/logout"]').requestSubmit()`, nil))
	if !waittest.Within(10*time.Second, func() bool { // the page that goes on is left at once
		return chromedp.Run(ctx, chromedp.Location(&at)) == nil && strings.HasPrefix(at, p.there.URL)
	}) {
		t.Errorf("signed out at %s", at)
	}
	run(t, ctx, chromedp.Navigate(base+"/orders"), chromedp.WaitVisible(`a[href^="/login/oidc"]`))
	all := slices.DeleteFunc(said.take(), func(line string) bool {
		return strings.Contains(line, "leaves: "+p.there.URL) || strings.Contains(line, "log: Failed to load resource")
	})
	if len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}

// atItsAddress makes the server's address that of its console.
func (p *person) atItsAddress(t *testing.T) string {
	t.Helper()
	base := "http://" + p.h.Addr
	c := p.h.Config
	c.AdminURL = base
	at, err := signin.FromConfig(c, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(at.Close)
	p.h.Provider, p.h.Config.AdminURL = at, base
	p.there.Redirect(base + signin.CallbackPath)
	return base
}
