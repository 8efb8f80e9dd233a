package console

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// looks are how each page of a walk is looked at: Chinese and light, and English and dark, whose
// texts are the longer ones: at every width, and on a phone, where tables scroll and lines break.
var looks = []struct {
	language, theme string
	widths          []int64 // the first as it is loaded, the others as somebody drags the window
}{{"zh", "light", []int64{1440}}, {"en", "dark", []int64{1440, 1280, 1366, 1920, phoneWidth}}}

const (
	phoneWidth = 390
	tableWidth = 1440 // at which every table has room for its columns
)

// walk looks at pages that only read, several at once: nothing is complained about, nothing leaves
// our origin, axe finds nothing, nothing is wider than the window, tables have room, and a phone has nothing too small
// for a thumb. Each page is there once its element ready is.
func (h *harness) walk(t *testing.T, role, ready string, all ...namedPage) {
	t.Helper()
	if testing.Short() {
		t.Skip("short: no browser")
	}
	sessions := map[string]string{} // by theme
	for _, l := range looks {
		if sessions[l.theme] == "" {
			sessions[l.theme] = h.session(t, "walks."+l.theme, role, l.language, l.theme)
		}
	}
	windows := make(chan *window, len(all)*len(looks)) // idle ones, all of this test
	t.Run("pages", func(sub *testing.T) {
		for _, p := range all {
			for _, l := range looks {
				sub.Run(fmt.Sprintf("%s-%s-%s", p.name, l.language, l.theme), func(sub *testing.T) {
					sub.Parallel()
					var w *window
					select {
					case w = <-windows:
					default:
						ctx, said, err := openWindow(t, h.Addr)
						if errors.Is(err, errNoChromium) {
							sub.Skip(err)
						}
						if err != nil {
							sub.Fatal(err)
						}
						w = &window{ctx, said}
					}
					defer func() { windows <- w }()
					w.signedIn(sub, h.Addr, sessions[l.theme])
					w.visit(sub, "http://"+h.Addr+p.path, ready, p.name, l.language, l.theme, l.widths...)
				})
			}
		}
	})
	close(windows)
	for w := range windows {
		if all := w.said.take(); len(all) > 0 {
			t.Errorf("after the last page: %s", strings.Join(all, "; "))
		}
	}
}

// window is one of a browser, and what is complained about in it.
type window struct {
	ctx  context.Context
	said *complaints
}

// signedIn gives the window the cookie of a session.
func (w *window) signedIn(t *testing.T, host, cookie string) {
	t.Helper()
	name, value, _ := strings.Cut(cookie, "=")
	run(t, w.ctx, network.SetCookie(name, value).WithURL("http://"+host).WithHTTPOnly(true).WithSameSite(network.CookieSameSiteLax))
}

// visit loads a page in the first width and looks at it in each. Axe looks at it in the first and
// on a phone.
func (w *window) visit(t *testing.T, url, ready, name, language, theme string, widths ...int64) {
	t.Helper()
	var look struct {
		Theme, Language string
		Overflow        int
		Violations      []string
	}
	name += "-" + language + "-" + theme
	for i, width := range widths {
		run(t, w.ctx, emulation.SetDeviceMetricsOverride(width, 900, 1, false))
		if i == 0 {
			run(t, w.ctx, chromedp.Navigate(url), chromedp.WaitReady(ready), becomes(whole))
		} else {
			run(t, w.ctx, becomes(fmt.Sprint("innerWidth === ", width)))
		}
		run(t, w.ctx, chromedp.Evaluate(examine, &look))
		if i == 0 || width == phoneWidth {
			look.Violations = append(look.Violations, violations(t, w.ctx)...)
		}
		if width == tableWidth {
			var wide []string
			if run(t, w.ctx, chromedp.Evaluate(tooWide, &wide)); len(wide) > 0 {
				t.Errorf("at %d: too wide: %s", width, strings.Join(wide, "; "))
			}
		}
		if look.Theme != theme || !strings.HasPrefix(look.Language, language) || look.Overflow > 0 || len(look.Violations) > 0 {
			t.Errorf("at %d: %+v", width, look)
		}
		picture := name
		if width == phoneWidth {
			picture += "-narrow"
			var small []string
			if run(t, w.ctx, chromedp.Evaluate(tooSmallForAThumb, &small)); len(small) > 0 {
				t.Errorf("hard to touch: %s", strings.Join(small, "; "))
			}
			var narrow []string
			if run(t, w.ctx, chromedp.Evaluate(tooNarrow, &narrow)); len(narrow) > 0 {
				t.Errorf("narrower than their card: %s", strings.Join(narrow, "; "))
			}
		}
		if *screenshots != "" && (i == 0 || width == phoneWidth) {
			takeScreenshot(t, w.ctx, picture)
		}
	}
	if all := w.said.take(); len(all) > 0 {
		t.Error(strings.Join(all, "; "))
	}
}

// session signs in an operator who has chosen a language and a theme, and returns the cookie.
func (h *harness) session(t *testing.T, name, role, language, theme string) string {
	t.Helper()
	if _, err := h.Operators.Add(t.Context(), name, role, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	cookie := webtest.CookieOf(h.Post(t, "", "/login", "name", name, "password", webtest.GoodPassword))
	if got := h.Post(t, cookie, "/me", "language", language, "theme", theme); got.Header.Get("Location") != "/me?kept=1" {
		t.Fatalf("choosing %s and %s: %d to %q", language, theme, got.Status, got.Header.Get("Location"))
	}
	return cookie
}
