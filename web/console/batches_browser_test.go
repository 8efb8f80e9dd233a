package console

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/batch"
	"backstop/internal/sweep"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// onBrowser is a person of ops at a browser whose pages are looked at by axe, and photographed.
func (h *harness) onBrowser(t *testing.T, width int64) (do func(...chromedp.Action), looks func(language, theme, path string),
	fine func(name string), end func(),
) {
	t.Helper()
	return h.onBrowserAs(t, access.Ops, width)
}

// onBrowserAs is onBrowser with another role.
func (h *harness) onBrowserAs(t *testing.T, role string, width int64) (do func(...chromedp.Action),
	looks func(language, theme, path string), fine func(name string), end func(),
) {
	t.Helper()
	if _, err := h.Operators.Add(t.Context(), "li.hang", role, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.Addr)
	base := "http://" + h.Addr
	do = func(actions ...chromedp.Action) { t.Helper(); run(t, ctx, actions...) }
	do(emulation.SetDeviceMetricsOverride(width, 1200, 1, false), network.ClearBrowserCookies(),
		signsIn(base, "li.hang", webtest.GoodPassword, "/"))
	looks = func(language, theme, path string) {
		t.Helper()
		do(reads(base, language, theme), chromedp.Navigate(base+path), chromedp.WaitReady("main"), becomes(whole))
	}
	fine = func(name string) {
		t.Helper()
		if found := violations(t, ctx); len(found) > 0 {
			t.Errorf("%s: %s", name, strings.Join(found, "; "))
		}
		if *screenshots != "" {
			takeScreenshot(t, ctx, name)
		}
	}
	return do, looks, fine, func() {
		t.Helper()
		if all := said.take(); len(all) > 0 {
			t.Errorf("the browser said: %s", strings.Join(all, "; "))
		}
	}
}

// A batch is started, watched and paused on its page, by keyboard alone, in both languages and
// themes: the page follows it without being loaded again, also where another person resumes it.
func TestABatchIsWatchedAndPausedInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Nudge = func([]queue.Nudge) {}
	do, looks, fine, end := h.onBrowser(t, 1440)
	const inState = `document.querySelector("#batch-progress").dataset.state === `
	cookie := h.SignIn(t, access.Ops)
	var rows int64
	for i, look := range []struct{ language, theme, button string }{{"zh", "light", "暂停"}, {"en", "dark", "Pause"}} {
		change(t, h.DB, "DELETE FROM deliveries")
		const size, rate = 190, 5
		exhaust(t, h.DB, size)
		name := "batch-" + look.language + "-" + look.theme
		looks(look.language, look.theme, "/notifications?status=exhausted")
		var path string
		do(tabTo(`button[name="pick"][value="all"]`), chromedp.KeyEvent(kb.Enter),
			becomes(`location.pathname.startsWith("/batches/bat_") && `+whole), chromedp.Evaluate(`location.pathname`, &path))
		id, _ := batch.ParseNo(strings.TrimPrefix(path, "/batches/"))
		change(t, h.DB, "UPDATE batches SET rate = ? WHERE id = ?", rate, id)
		fine(name + "-planned")
		do(tabTo("#run-reason"), chromedp.KeyEvent("their server is back"), tabTo("#amount_CNY"),
			chromedp.KeyEvent(strconv.Itoa(size*10)+".00"),
			tabTo(`form[action$="/start"] button`), chromedp.KeyEvent(kb.Enter), becomes(inState+`"running" && `+whole))
		// The page is not loaded again while it follows: what was set on it stays.
		var before, after string
		do(chromedp.Evaluate(`window.sameP = true`, nil), chromedp.Text("#batch-progress strong", &before),
			becomes(`document.querySelector("#batch-progress strong").textContent !== `+strconv.Quote(before)+` && window.sameP === true`))
		fine(name + "-running")
		do(tabTo("#control-reason"), chromedp.KeyEvent("their server is slow"),
			becomes(`document.querySelector('[formaction$="/pause"]').textContent.includes(`+strconv.Quote(look.button)+`)`),
			tabTo(`[formaction$="/pause"]`), chromedp.KeyEvent(kb.Enter), becomes(inState+`"paused" && `+whole))
		begun := time.Now()
		fine(name + "-paused")
		quiet(t, time.Until(begun.Add(2*time.Second))) // what was begun may end until then
		paused := h.found(t, id)
		waittest.Stays(t, "no row is begun", time.Second, func() bool { return h.found(t, id).Ended() == paused.Ended() })
		do(chromedp.Text("#batch-progress strong", &after))
		if now := h.found(t, id); now.State != batch.Paused || now.Ended() != paused.Ended() || now.Ended() == size ||
			!strings.Contains(after, strconv.FormatInt(now.Ended(), 10)) {
			t.Errorf("%s: paused at %d, now %d, the page says %q", look.language, paused.Ended(), now.Ended(), after)
		}
		h.onBatch(t, cookie, path, "rate", "rate", "1000")
		h.onBatch(t, cookie, path, "resume") // by another person: the page follows, and offers what is possible now
		do(becomes(inState + `"done" && document.querySelector("#control-reason") === null`))
		fine(name + "-done")
		if rows += size; h.found(t, id).Ended() != size || number(t, h.DB, "SELECT count(*) FROM batch_rows WHERE state = 'done'") != rows {
			t.Errorf("%s, run %d: not every row ended", look.language, i)
		}
	}
	end()
}

// A sweep is begun on its page by keyboard alone, in both languages and themes, and the page
// follows it to its end.
func TestASweepIsBegunInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	do, looks, fine, end := h.onBrowser(t, 1440)
	for i, look := range []struct{ language, theme, running, done string }{
		{"zh", "light", "正在扫描", "已完成"},
		{"en", "dark", "Running now", "Done"},
	} {
		name := "sweep-" + look.language + "-" + look.theme
		looks(look.language, look.theme, "/sweeps")
		fine(name)
		do(tabTo(`[data-open="#run"]`), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#run"), tabTo("#run-reason"))
		fine(name + "-asked")
		do(chromedp.KeyEvent("the night was lost"), tabTo(`#run button.primary`), chromedp.KeyEvent(kb.Enter),
			becomes(`location.search.includes("form=") && `+whole))
		fine(name + "-running")
		var text string
		do(chromedp.Text("main", &text))
		if !strings.Contains(text, look.running) {
			t.Errorf("while it runs the page reads %q", text)
		}
		do(chromedp.Evaluate(`window.sameP = true`, nil))
		change(t, h.DB,
			"UPDATE sweeps SET state = 'done', ended_at = began_at + 90000000, looked_at = 12345, night = ?, pushed = ? WHERE state = 'running'",
			sweep.Number(h.DB.NowTime().In(h.Config.Timezone).AddDate(0, 0, -i)), `[{"what":"orders","count":31}]`)
		do(becomes(`document.querySelector("#runs").textContent.includes("12,345") && document.querySelector("#now-title") === null && window.sameP === true`), chromedp.Text("#runs", &text))
		if !strings.Contains(text, look.done) {
			t.Errorf("after its end the page reads %q", text)
		}
		fine(name + "-done")
	}
	if n := number(t, h.DB, "SELECT count(*) FROM sweeps WHERE state = 'done'"); n != 2 {
		t.Errorf("%d sweeps", n)
	}
	end()
}
