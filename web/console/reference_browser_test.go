package console

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Whoever integrates reads the reference without signing in.
func TestTheReferenceInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx, said := newBrowser(t, h.Addr)
	for _, look := range []struct {
		language, theme string
		width           int64
	}{{"zh", "light", 1440}, {"en", "dark", 390}} {
		var fits bool
		run(t, ctx, emulation.SetDeviceMetricsOverride(look.width, 900, 1, false),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.theme}}),
			chromedp.Navigate("http://"+h.Addr+"/docs?lang="+look.language), chromedp.WaitReady("main"),
			chromedp.Evaluate("document.documentElement.scrollWidth <= innerWidth", &fits))
		if !fits {
			t.Errorf("at %d the page scrolls sideways", look.width)
		}
		for _, v := range violations(t, ctx) {
			t.Errorf("%s, %s, %d: %s", look.language, look.theme, look.width, v)
		}
	}
	if all := said.take(); len(all) > 0 {
		t.Errorf("the browser says %q", all)
	}
}
