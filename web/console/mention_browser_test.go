package console

import (
	"fmt"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/exception"
	"backstop/web/webtest"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestNamesAreOfferedInANote writes notes with mentions by keyboard alone, in the dialog of an order
// and on the page of an exception: those who may be reached are offered, one is taken, and the note
// is in their inbox.
func TestNamesAreOfferedInANote(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	for name, role := range map[string]string{"wang.min": access.Lead, "wang.jun": access.Viewer, "wang.gone": access.Viewer} {
		if _, err := h.Operators.Add(t.Context(), name, role, webtest.GoodPassword); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Operators.Disable(t.Context(), "wang.gone"); err != nil {
		t.Fatal(err)
	}
	for i := range 9 { // more than are offered at once
		if _, err := h.Operators.Add(t.Context(), fmt.Sprint("zhao.", i), access.Support, webtest.GoodPassword); err != nil {
			t.Fatal(err)
		}
	}
	do, looks, fine, end := h.onBrowser(t, 1440)
	offered := func(names string) chromedp.Action {
		return becomes(
			`[...document.querySelectorAll("[data-mention]")].filter(b => b.checkVisibility()).map(b => b.dataset.mention).sort().join() === "` + names + `"`)
	}
	holds := func(field, note string) chromedp.Action {
		return becomes(`document.activeElement.matches("` + field + `") && document.activeElement.value === "` + note + `"`)
	}
	reached := func(note string, want int) {
		t.Helper()
		if all := h.unread(t, "wang.min"); len(all) != want || all[0].Text != note && all[len(all)-1].Text != note {
			t.Errorf("the inbox has %+v, without %q", all, note)
		}
	}
	looks("en", "light", orderOne)
	do(tabTo(`[data-open="#note"]`), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#note-reason", chromedp.ByQuery),
		tabTo("#note-reason"), chromedp.KeyEvent("mail a@wa.test, "), offered(""),
		chromedp.KeyEvent("please look, @li"), offered(""), chromedp.KeyEvent(kb.Backspace+kb.Backspace+"zh"),
		offered("zhao.0,zhao.1,zhao.2,zhao.3,zhao.4,zhao.5,zhao.6,zhao.7"),
		chromedp.KeyEvent("ao.8"), offered(""), chromedp.KeyEvent(strings.Repeat(kb.Backspace, 6)+"Wa"), offered("wang.jun,wang.min"))
	fine("mention-dialog")
	do(chromedp.KeyEvent("ng.m"), offered("wang.min"), tabTo(`[data-mention="wang.min"]`), chromedp.KeyEvent(kb.Enter), offered(""),
		holds("#note-reason", "mail a@wa.test, please look, @wang.min "), chromedp.KeyEvent("today"),
		tabTo("#note button.primary"), chromedp.KeyEvent(kb.Enter),
		becomes(`document.querySelector(".story").textContent.includes("@wang.min today") && `+whole))
	reached("mail a@wa.test, please look, @wang.min today", 1)

	x := h.on(t, exception.AmountMismatch).path
	looks("zh", "dark", x)
	do(tabTo("#comment-reason"), chromedp.KeyEvent("请核对金额@wang.m"), offered("wang.min"))
	fine("mention-page")
	do(chromedp.KeyEvent(kb.Tab), becomes(`document.activeElement.matches('[data-mention="wang.min"]')`), chromedp.KeyEvent(kb.Enter),
		holds("#comment-reason", "请核对金额@wang.min "),
		tabTo(`form[action$="/comment"] button.primary`), chromedp.KeyEvent(kb.Enter),
		becomes(`location.search.includes("form=") && `+whole))
	var page string
	do(chromedp.Text("main", &page, chromedp.ByQuery))
	if !strings.Contains(page, "请核对金额@wang.min") {
		t.Errorf("the exception shows %q", page)
	}
	reached("请核对金额@wang.min", 2)
	end()
}
