package console

import (
	"context"
	"fmt"
	"testing"

	"backstop/internal/access"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// pressK presses K with a modifier, which types no character.
func pressK(modifier input.Modifier) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		if err := input.DispatchKeyEvent(input.KeyRawDown).WithKey("k").WithCode("KeyK").WithModifiers(modifier).Do(ctx); err != nil {
			return err
		}
		return input.DispatchKeyEvent(input.KeyUp).WithKey("k").WithCode("KeyK").WithModifiers(modifier).Do(ctx)
	})
}

// enter presses Enter as a keyboard does: the page may take the key, or the field has it.
var enter = chromedp.ActionFunc(func(ctx context.Context) error {
	if err := input.DispatchKeyEvent(input.KeyDown).WithKey("Enter").WithCode("Enter").WithText("\r").WithWindowsVirtualKeyCode(13).Do(
		ctx); err != nil {
		return err
	}
	return input.DispatchKeyEvent(input.KeyUp).WithKey("Enter").WithCode("Enter").WithWindowsVirtualKeyCode(13).Do(ctx)
})

// ctrlK opens the palette by its key, and waits until it takes text.
func ctrlK(modifier input.Modifier) chromedp.Action {
	return chromedp.Tasks{pressK(modifier), paletteOpen}
}

var paletteOpen = becomes(
	`document.querySelector("#palette").open && document.activeElement.matches("#palette input") && document.querySelectorAll("#hits [role=option]").length > 5`)

// marks waits until the palette's lines are those of what was typed last, and the marked one leads
// to an address of this site.
func marks(path string) chromedp.Action {
	return becomes(
		fmt.Sprintf(
			`!document.querySelector("#hits[aria-busy]") && document.querySelector("#hits [aria-selected=true]")?.getAttribute("href") === %q && document.activeElement.getAttribute("aria-activedescendant") === document.querySelector("#hits [aria-selected=true]").id`, path))
}

// The palette is used by keyboard alone: it leads to a page, opens the dialog of an act without
// carrying it out, presses what is on every page, and finds an order; it gives the focus back.
// Not in parallel: beside seven other windows its answers come between two keys.
func TestThePaletteInABrowser(t *testing.T) {
	h := open(t)
	seed(t, h.DB)
	do, looks, fine, end := h.onBrowserAs(t, access.Lead, 1440)
	for _, look := range []struct{ language, theme, sweep, note, other string }{
		{"en", "dark", "swe", "note", "light"}, {"zh", "light", "扫描", "备注", "dark"},
	} {
		name := "palette-" + look.language + "-" + look.theme
		looks(look.language, look.theme, "/orders")
		do(press("/"), becomes(`document.activeElement.matches(".search input")`), ctrlK(input.ModifierCtrl))
		fine(name)
		do(chromedp.KeyEvent(kb.Escape),
			becomes(`!document.querySelector("#palette").open && document.activeElement.matches(".search input")`))
		do(ctrlK(input.ModifierMeta), pressK(input.ModifierMeta), becomes(`!document.querySelector("#palette").open`))
		// The event that it was closed comes when it is open again.
		do(chromedp.Evaluate(
			`for (let i = 0; i < 3; i++) document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "k", ctrlKey: true, bubbles: true, cancelable: true}))`, nil), paletteOpen,
			chromedp.KeyEvent(kb.Escape), becomes(`!document.querySelector("#palette").open`))

		do(ctrlK(input.ModifierCtrl), chromedp.KeyEvent(look.sweep), marks("/sweeps"))
		fine(name + "-found")
		do(chromedp.KeyEvent(kb.ArrowDown), marks("/sweeps#open-run"), chromedp.KeyEvent(kb.ArrowUp), marks("/sweeps"),
			chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.ArrowDown), marks("/sweeps"))
		// Enter that ends the composition of Chinese characters opens nothing.
		do(chromedp.Evaluate(
			`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", isComposing: true, bubbles: true, cancelable: true}))`, nil),
			chromedp.KeyEvent(kb.ArrowDown), marks("/sweeps#open-run"), enter, at("/sweeps"),
			becomes(`document.querySelector("#run").open && document.activeElement.matches("#run-reason")`))
		do(pressK(input.ModifierCtrl), becomes(`!document.querySelector("#palette").open`)) // above a dialog there is no other
		do(chromedp.KeyEvent(kb.Escape),
			becomes(`!document.querySelector("#run").open && document.activeElement.matches('[data-open="#run"]')`))
		// The same place again, from its own page.
		do(ctrlK(input.ModifierCtrl), chromedp.KeyEvent(look.sweep), marks("/sweeps"), chromedp.KeyEvent(kb.ArrowDown),
			marks("/sweeps#open-run"), enter,
			becomes(`document.querySelector("#run").open`), chromedp.KeyEvent(kb.Escape))

		do(ctrlK(input.ModifierCtrl), chromedp.KeyEvent("theme"), marks("/me#theme"), enter,
			becomes(fmt.Sprintf(`document.documentElement.dataset.theme === %q && %s`, look.other, whole)))
		do(ctrlK(input.ModifierCtrl), chromedp.KeyEvent("GX-88210477"), enter, at(orderOne)) // before anything was found
		do(ctrlK(input.ModifierCtrl), chromedp.KeyEvent(look.note),
			becomes(`document.querySelector("#hits [aria-selected=true]")?.id.startsWith("hit-here-")`))
		fine(name + "-here")
		do(enter, becomes(`document.querySelector("#note").open`), chromedp.KeyEvent(kb.Escape),
			becomes(`!document.querySelector("#note").open`))
		do(ctrlK(input.ModifierCtrl), chromedp.KeyEvent("no such thing"), enter, at("/search"))
	}
	if n := number(t, h.DB, "SELECT count(*) FROM sweeps"); n != 0 {
		t.Errorf("the palette began %d sweeps", n)
	}
	end()
}

// On a phone the button of the search opens the palette, and a touch opens its line.
func TestThePaletteOnAPhone(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	do, looks, fine, end := h.onBrowser(t, 390)
	for _, look := range []struct{ language, theme string }{{"zh", "dark"}, {"en", "light"}} {
		looks(look.language, look.theme, "/orders")
		var inside bool
		do(chromedp.Click(".search .go", chromedp.ByQuery), paletteOpen,
			chromedp.Evaluate(`document.documentElement.scrollWidth <= innerWidth &&
			[...document.querySelectorAll("#palette button, #palette input, #hits [role=option]")].every(e => e.getBoundingClientRect().height >= 43.5 && e.getBoundingClientRect().right <= innerWidth)`, &inside))
		if !inside {
			t.Errorf("%s: something is too small for a thumb, or wider than the phone", look.language)
		}
		fine("palette-narrow-" + look.language + "-" + look.theme)
		do(chromedp.KeyEvent("m1"), marks("/merchants/m1"), chromedp.Click(`#hits [href="/merchants/m1"]`, chromedp.ByQuery),
			at("/merchants/m1"))
	}
	end()
}
