package console

import (
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/alert"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestAlertsInABrowser looks at the page of alerts as an admin, who sees all of
// it, and sends a test alert by its dialog.
func TestAlertsInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.ring(t)
	if _, err := h.Operators.Add(t.Context(), "wang.min", access.Admin, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	h.walk(t, access.Admin, "main",
		namedPage{name: "alerts", path: "/alerts"}, namedPage{name: "alerts-rule", path: "/alerts?rule=success_rate"},
		namedPage{name: "attention-none", path: "/?text=nothing+like+it&matter=approvals"},
		namedPage{name: "queues", path: "/queues"}, namedPage{name: "queue", path: "/queues/compensate"},
		namedPage{name: "incident", path: "/attention/1"}, namedPage{name: "incident-snoozed", path: "/attention/6"})
	ctx, said := newBrowser(t, h.Addr)
	base := "http://" + h.Addr
	run(t, ctx, emulation.SetDeviceMetricsOverride(1440, 900, 1, false), signsIn(base, "wang.min", webtest.GoodPassword, "/"))
	run(t, ctx, chromedp.Navigate(base+"/alerts"), chromedp.WaitVisible(`[data-open="#test"]`), chromedp.Click(`[data-open="#test"]`),
		chromedp.WaitVisible("#test-reason"), chromedp.SendKeys("#test-reason", "is anybody there"), chromedp.Click("#test button.primary"),
		chromedp.WaitVisible(".notice.ok"))
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}

// An operator on call sees an incident on the overview, acknowledges it and snoozes another one,
// on a phone and by keys alone.
func TestAnIncidentIsHandledOnAPhone(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.ring(t)
	if _, err := h.Operators.Add(t.Context(), "wang.min", access.Ops, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.Addr)
	base := "http://" + h.Addr
	run(t, ctx, emulation.SetDeviceMetricsOverride(390, 844, 1, true), signsIn(base, "wang.min", webtest.GoodPassword, "/"))
	said.take()
	run(t, ctx, chromedp.WaitReady(`#attention a[href="/attention/1"]`),
		focus(`a[href="/attention/1"]`), chromedp.KeyEvent(kb.Enter), at("/attention/1"),
		focus(`[data-open="#acknowledge"]`), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#acknowledge-reason:focus",
			chromedp.ByQuery), chromedp.KeyEvent("adding a worker"),
		focus("#acknowledge button.primary"), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(".callout.info"))
	i, err := alert.FindIncident(t.Context(), h.DB.Read, 1)
	if err != nil || i.State != alert.Acknowledged || i.Assignee != "wang.min" {
		t.Fatalf("%+v, %v", i, err)
	}
	run(t, ctx, chromedp.Navigate(base+"/attention/4"), chromedp.WaitVisible(`[data-open="#snooze"]`), focus(`[data-open="#snooze"]`),
		chromedp.KeyEvent(kb.Enter),
		chromedp.WaitVisible("#snooze-reason:focus", chromedp.ByQuery), chromedp.KeyEvent("the key is on its way"),
		focus("#for"), chromedp.KeyEvent(kb.ArrowDown), focus("#snooze button.primary"), chromedp.KeyEvent(kb.Enter),
		chromedp.WaitVisible(".callout.idle"))
	if i, err = alert.FindIncident(t.Context(), h.DB.Read, 4); err != nil || i.State != alert.Snoozed {
		t.Errorf("%+v, %v", i, err)
	}
	var look struct{ Overflow int }
	run(t, ctx, chromedp.Evaluate(examine, &look))
	if all := append(said.take(), violations(t, ctx)...); len(all) > 0 || look.Overflow > 0 {
		t.Errorf("browser: %s, %d px too wide", strings.Join(all, "; "), look.Overflow)
	}
}

// focus puts the keyboard on an element, as Tab would.
func focus(selector string) chromedp.Action { return chromedp.Focus(selector, chromedp.ByQuery) }
