package console

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/views/orders"
	"backstop/web"
	"backstop/web/webtest"
)

func TestColumnsAreChosenInTheAddress(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		ordered(t, d, 4, "tea")
		cookie := h.SignIn(t, access.Lead)
		all := h.Page(t, cookie, "/orders?lang=en").Body
		if !strings.Contains(all, `class="amounts p2"`) || !strings.Contains(all, `name="columns" value="merchant" checked`) {
			t.Error("without a choice, not every column is shown")
		}
		// The form of the columns leads to an address that has them in one word.
		got := h.Page(t, cookie, "/orders?columns=created&columns=no&columns=amount&merchant=m1")
		if at := got.Header.Get("Location"); got.Status != http.StatusSeeOther ||
			at != "/orders?columns=created%2Cno%2Camount&merchant=m1" {
			t.Fatalf("%d to %q", got.Status, at)
		}
		page := h.Page(t, cookie, got.Header.Get("Location")+"&lang=en").Body
		for _, part := range []string{
			`class="amounts h3 h4 h5 h7 h8 h9 chosen p2"`,                                   // the positions of the columns that are hidden
			`<input type="hidden" name="columns" value="created,no,amount">`,                // filters keep them
			`name="columns" value="no" checked`, `name="columns" value="paid_amount"> Paid`, // the export begins with them
			`href="/orders?columns=created%2Cno%2Camount"`,                       // without its filter, the list keeps them
			`href="/orders?merchant=m1"`,                                         // all columns again
			`name="query" value="columns=created%2Cno%2Camount&amp;merchant=m1"`, // a view saves them
		} {
			if !strings.Contains(page, part) {
				t.Errorf("the page has no %s", part)
			}
		}
		rows := cells(t, h.Page(t, cookie, got.Header.Get("Location")+"&lang=en&format=csv").Body)
		if !slices.Equal(rows[1][1:], []string{"Order number", "Amount"}) || !strings.Contains(rows[0][0], "filter: merchant=m1 ") {
			t.Errorf("heading %q, %q", rows[0], rows[1])
		}
		if got := h.Page(t, cookie, "/orders?columns="+strings.Repeat("x", 600)); got.Status != http.StatusUnprocessableEntity {
			t.Errorf("600 bytes of columns: %d", got.Status)
		}
		if got := h.Page(t, cookie, "/orders?columns=gone"); got.Status != http.StatusOK ||
			!strings.Contains(got.Body, `class="amounts p2"`) {
			t.Errorf("a view with a column that is gone: %d, or columns are hidden", got.Status)
		}
	})
}

// Finance begins with the columns of money, in low rows; what a person chose wins.
func TestFinanceBeginsWithTheColumnsOfMoney(t *testing.T) {
	t.Parallel()
	h := open(t)
	ordered(t, h.DB, 4, "tea")
	heads := func(cookie, path string) (all []string) {
		for _, m := range regexp.MustCompile(`(?s)<th scope="col"[^>]*>\s*(.*?)\s*(?:<span|</th>)`).FindAllStringSubmatch(h.Page(t, cookie, path).Body, -1) {
			all = append(all, m[1])
		}
		return all
	}
	finance, lead := h.SignIn(t, access.Finance), h.SignIn(t, access.Lead)
	if got, want := heads(finance, "/orders?lang=en"), []string{
		"Order number", "Paid at", "Merchant", "Supplier", "Amount", "Fee", "Refunded", "Net", "State",
	}; !slices.Equal(got, want) {
		t.Errorf("finance begins with %q", got)
	}
	page := h.Page(t, finance, "/orders?lang=en").Body
	for _, part := range []string{
		`data-density="compact"`, `name="columns" value="net" checked`, `name="columns" value="subject">`, `value="trade_no" checked`,
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page of finance has no %s", part)
		}
	}
	if page := h.Page(t, finance+"; "+web.DensityCookie+"=comfortable", "/orders").Body; strings.Contains(page, "data-density") {
		t.Error("a height that was chosen does not win")
	}
	if got := heads(finance, "/orders?lang=en&columns=created,net"); len(got) != 10 || got[1] != "Created" || got[7] != "Net" {
		t.Errorf("finance chose created and net of %q", got)
	}
	if got := heads(lead, "/orders?lang=en"); len(got) != 9 || got[1] != "Created" || slices.Contains(got, "Net") {
		t.Errorf("a lead begins with %q", got)
	}
	rows := cells(t, h.Page(t, finance, "/orders?lang=en&format=csv").Body)
	if len(rows[1]) != len(orders.OrderColumns) {
		t.Errorf("the file has %q", rows[1])
	}
}

func TestOneCurrencyStandsInTheHeading(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		ordered(t, d, 4, "tea") // two are JPY
		cookie := h.SignIn(t, access.Lead)
		mixed := h.Page(t, cookie, "/orders?lang=en").Body
		if strings.Contains(mixed, "amounts one") || !strings.Contains(mixed, `<span class="ccy e0">JPY</span>`) ||
			!strings.Contains(mixed, `<span class="ccy">CNY</span></data>`) {
			t.Error("rows of two currencies do not have their codes")
		}
		change(t, d, "DELETE FROM orders WHERE currency = 'CNY'")
		one := h.Page(t, cookie, "/orders?lang=en").Body
		if !strings.Contains(one, `class="amounts one p0"`) || !strings.Contains(one, `Amount <span class="ccy">JPY</span></th>`) {
			t.Error("the one currency is not in the heading")
		}
	})
}

func TestTheBrowserKeepsTheRowHeight(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Viewer)
	if page := h.Page(t, cookie, "/orders").Body; strings.Contains(page, "data-density") ||
		!strings.Contains(page, `name="density" value="compact"`) {
		t.Error("rows begin compact, or cannot be")
	}
	got := h.Post(t, cookie, "/me", "density", "compact", "back", "/orders?lang=en")
	if got.Status != http.StatusSeeOther || got.Header.Get("Location") != "/orders?lang=en" {
		t.Fatalf("%d to %q", got.Status, got.Header.Get("Location"))
	}
	both := cookie + "; " + webtest.CookieOf(got)
	for _, path := range []string{"/orders", "/me"} {
		if page := h.Page(t, both, path).Body; !strings.Contains(page, `data-density="compact"`) {
			t.Errorf("%s is not compact", path)
		}
	}
	if got := h.Post(t, cookie, "/me", "density", "tiny"); got.Status != http.StatusUnprocessableEntity {
		t.Errorf("an unknown height: %d", got.Status)
	}
}
