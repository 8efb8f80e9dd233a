package console

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/order"
	"backstop/web/webtest"

	"github.com/chromedp/chromedp"
)

var newerAddress = regexp.MustCompile(`data-newer="([^"]+)"`)

// newerOf is where a list's page asks for how many rows are newer.
func (h *harness) newerOf(t *testing.T, cookie, path string) string {
	t.Helper()
	found := newerAddress.FindStringSubmatch(h.Page(t, cookie, path).Body)
	if found == nil {
		return ""
	}
	return html.UnescapeString(found[1])
}

func (h *harness) fragment(t *testing.T, cookie, path string) webtest.Answer {
	t.Helper()
	return h.Call(t, http.MethodGet, path, "", "Cookie", cookie, "HX-Request", "true")
}

// comeIn writes so many new orders of a state.
func comeIn(t *testing.T, d *db.DB, n int, status order.Status) {
	t.Helper()
	now := d.Now()
	for i := range n {
		id := db.IDAt(now+time.Second.Microseconds()) + int64(len(status)*1000+i)
		o := order.Order{
			ID: id, OrderNo: fmt.Sprintf("NEW%d", id), OutTradeNo: fmt.Sprintf("N%d", id), MerchantID: 1, SupplierID: 1,
			Amount: 1, Currency: "CNY", Exponent: 2, Status: status, Version: 1, CreatedAt: now,
		}
		if _, err := d.NewInsert().Model(&o).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestListsSayWhatIsNewOfTheirFilter(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Viewer)
	h.Post(t, cookie, "/me", "language", "en")
	empty := h.newerOf(t, cookie, "/orders")
	exceptions, callbacks, notifications := h.newerOf(t, cookie, "/exceptions?kind=unknown_order"), h.newerOf(t, cookie, "/callbacks"),
		h.newerOf(t, cookie, "/notifications")
	if got := h.fragment(t, cookie, empty); got.Status != http.StatusOK || got.Body != "" {
		t.Fatalf("nothing is new, but %q answers %d %q", empty, got.Status, got.Body)
	}
	// The seed's rows are a minute old: they are older than the pages.
	seed(t, h.DB)
	all, paid := h.newerOf(t, cookie, "/orders"), h.newerOf(t, cookie, "/orders?status=paid")
	comeIn(t, h.DB, 3, order.Paid)
	comeIn(t, h.DB, 2, order.Closed)
	for path, want := range map[string]string{
		all: "Show 5 new", paid: "Show 3 new", empty: "Show 5 new", exceptions: "", callbacks: "",
		notifications: "",
	} {
		if got := h.fragment(t, cookie, path); got.Status != http.StatusOK || !strings.Contains(got.Body, want) || want == "" &&
			got.Body != "" {
			t.Errorf("%s: %d %q, want %q", path, got.Status, got.Body, want)
		}
	}
	if got := h.fragment(t, cookie, paid); !strings.Contains(got.Body, `href="/orders?status=paid"`) {
		t.Errorf("what is new of a filter leads to %q", got.Body)
	}
	comeIn(t, h.DB, 110, order.Failed)
	if got := h.fragment(t, cookie, all); !strings.Contains(got.Body, "Show 99+ new") {
		t.Errorf("many are counted without an end: %q", got.Body)
	}
	for path, want := range map[string]int{
		all + "x":            http.StatusBadRequest,
		all + "&status=paid": http.StatusBadRequest, // a cursor belongs to its filter
		"/orders?newer=abc":  http.StatusBadRequest,
	} {
		if got := h.fragment(t, cookie, path); got.Status != want {
			t.Errorf("%s: %d, want %d", path, got.Status, want)
		}
	}
	if got := h.Page(t, cookie, all); got.Status != http.StatusSeeOther || got.Header.Get("Location") != "/orders" {
		t.Errorf("without a script: %d to %q", got.Status, got.Header.Get("Location"))
	}
	if older := h.newerOf(t, cookie, "/orders?window=24h&to=2026-01-01"); older != "" {
		t.Errorf("a list of a past range polls for newer rows at %q", older)
	}
}

// TestNewRowsDoNotMoveAList has orders come while somebody reads the list: they
// are announced, the rows stay where they are, and a click shows them.
func TestNewRowsDoNotMoveAList(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	if _, err := h.Operators.Add(t.Context(), "wang.min", access.Lead, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.Addr)
	const (
		back  = `document.dispatchEvent(new Event("visibilitychange"))` // a tab that is looked at again asks at once
		where = `document.querySelector("tr[data-row]").getBoundingClientRect().top + document.querySelectorAll("tr[data-row]").length * 10000`
		told  = `document.querySelector("[data-newer]").textContent`
	)
	var before, after float64
	run(t, ctx, signsIn("http://"+h.Addr, "wang.min", webtest.GoodPassword, "/orders"), chromedp.Evaluate(where, &before))
	comeIn(t, h.DB, 2, order.Paid)
	run(t, ctx, chromedp.Evaluate(back, nil), becomes(told+` === "Show 2 new"`), chromedp.Evaluate(where, &after))
	if before != after {
		t.Errorf("the list moved from %v to %v", before, after)
	}
	comeIn(t, h.DB, 1, order.Closed)
	run(t, ctx, chromedp.Focus("[data-newer] a"), chromedp.Evaluate(back, nil), becomes(told+` === "Show 3 new"`),
		becomes(`document.activeElement.matches("[data-newer] a")`))
	run(t, ctx, chromedp.Click("[data-newer] a"), becomes(`document.querySelectorAll("tr[data-row]").length === 6 && `+whole))
	comeIn(t, h.DB, 1, order.Failed)
	run(t, ctx, press("p"), becomes(told+` === "Paused"`), chromedp.Evaluate(back, nil))
	quiet(t, 500*time.Millisecond)
	run(t, ctx, becomes(told+` === "Paused"`), press("p"), chromedp.Evaluate(back, nil), becomes(told+` === "Show 1 new"`))
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}
