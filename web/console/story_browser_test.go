package console

import (
	"fmt"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestAStoryInABrowser looks at the whole story in both languages and themes, and
// filters it in place.
func TestAStoryInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	script(t, h.DB, h.DB.Now()-200_000_000, "Mall")
	setNotify(t, h.DB, "waits_ms", []int{1000, 17000, 90000, 3600000})
	for _, q := range []string{ // it waits for its third attempt
		fmt.Sprintf("UPDATE deliveries SET status = 'retry_wait', finished_at = NULL, next_at = %d WHERE id = 9301", h.DB.Now()+90_000_000),
		"DELETE FROM exceptions",
	} {
		if _, err := h.DB.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	h.ReadSettings(t)
	if _, err := h.Operators.Add(t.Context(), "wang.min", access.Lead, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	h.walk(t, access.Lead, "main", namedPage{name: "story", path: scripted}, namedPage{name: "evidence", path: scripted + "/evidence"},
		namedPage{name: "story-diff", path: scripted + "/_diff?a=" + id36(9201) + "&b=" + id36(9202)},
		namedPage{name: "story-raw", path: scripted + "/events/" + id36(9201) + "/_raw"})
	ctx, said := newBrowser(t, h.Addr)
	base := "http://" + h.Addr
	run(t, ctx, emulation.SetDeviceMetricsOverride(1440, 1400, 1, false), signsIn(base, "wang.min", webtest.GoodPassword, "/"))
	var where string
	var events int
	run(t, ctx, chromedp.Navigate(base+scripted), chromedp.WaitVisible("#phase-delivery"), chromedp.Click("#phase-delivery"),
		chromedp.WaitVisible(`#phase-delivery[aria-current]`), chromedp.Location(&where),
		chromedp.Evaluate(`document.querySelectorAll(".story > li").length`, &events))
	if !strings.HasSuffix(where, "?phase=delivery") || events != 3 {
		t.Errorf("the phase leads to %s with %d events", where, events)
	}
	run(t, ctx, chromedp.NavigateBack(), chromedp.WaitVisible(`#phase-[aria-current]`))
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}

// TestAStoryIsReadWithoutJavaScript filters and compares with scripts off.
func TestAStoryIsReadWithoutJavaScript(t *testing.T) {
	t.Parallel()
	h := open(t)
	script(t, h.DB, shanghai2026, "plain")
	if _, err := h.Operators.Add(t.Context(), "wang.min", access.Viewer, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, _ := newBrowser(t, h.Addr)
	var list, compared string
	run(t, ctx, emulation.SetScriptExecutionDisabled(true), signsIn("http://"+h.Addr, "wang.min", webtest.GoodPassword, "/"),
		chromedp.Navigate("http://"+h.Addr+scripted), chromedp.WaitReady("#phase-payment"), chromedp.Click("#phase-payment"),
		chromedp.WaitReady("#phase-payment[aria-current]"),
		chromedp.Text(".story", &list, chromedp.ByQuery),
		chromedp.Click(`.story a[href*="_diff"]`, chromedp.ByQuery), chromedp.WaitReady("#diff"),
		chromedp.Text("#diff", &compared, chromedp.ByQuery))
	if strings.Contains(list, "Attempt 1") || !strings.Contains(list, "Callback received") {
		t.Errorf("the phase shows %q", list)
	}
	if !strings.Contains(compared, "1795156283") || !strings.Contains(compared, "trade_state") {
		t.Errorf("the comparison shows %q", compared)
	}
}
