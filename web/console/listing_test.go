package console

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/order"
	"backstop/internal/report"
)

func TestDaysOfAListAreDaysInThePersonsZone(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Viewer)
	shanghai, _ := time.LoadLocation("Asia/Shanghai")
	late := time.Date(2026, 11, 8, 23, 59, 59, 900_000_000, shanghai)
	id := db.IDAt(late.UnixMicro()) + 1
	o := order.Order{
		ID: id, OrderNo: "LATE-ORDER", OutTradeNo: "L", MerchantID: 1, SupplierID: 1, Amount: 1, Currency: "CNY", Exponent: 2,
		Status: order.Paid, Version: 1, CreatedAt: late.UnixMicro(),
	}
	if _, err := h.DB.NewInsert().Model(&o).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		zone, day string
		there     bool
	}{
		{"Asia/Shanghai", "2026-11-08", true},
		{"Asia/Shanghai", "2026-11-09", false},
		{"UTC", "2026-11-08", true}, // 15:59
		{"America/New_York", "2026-11-08", true},
		{"Asia/Tokyo", "2026-11-08", false}, // 00:59 of the next day
		{"Asia/Tokyo", "2026-11-09", true},
	} {
		h.Post(t, cookie, "/me", "zone", c.zone)
		if got := h.Page(t, cookie, "/orders?window=24h&to="+c.day); strings.Contains(got.Body, "LATE-ORDER") != c.there {
			t.Errorf("in %s on %s: %d, there is %t", c.zone, c.day, got.Status, !c.there)
		}
	}
}

func TestAListThatTakesTooLongSaysWhatToDo(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Ops)
	h.in.listTime = time.Nanosecond
	for _, path := range []string{"/orders", "/callbacks?outcome=paid", "/notifications", "/exceptions", "/search?q=123456"} {
		join := "?"
		if strings.Contains(path, "?") {
			join = "&"
		}
		if got := h.Page(t, cookie, path+join+"lang=en"); got.Status != http.StatusServiceUnavailable ||
			!strings.Contains(got.Body, "narrow the filter") {
			t.Errorf("%s: %d", path, got.Status)
		}
	}
	if got := h.Page(t, cookie, orderOne); got.Status != http.StatusOK {
		t.Errorf("the rest of the console: %d", got.Status)
	}
}

func TestEmptyListsSayWhyTheyAreEmpty(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Viewer)
	holds := func(path string, texts ...string) {
		t.Helper()
		body := h.Page(t, cookie, path).Body
		for _, text := range texts {
			if !strings.Contains(body, text) {
				t.Errorf("%s does not say %q", path, text)
			}
		}
	}
	holds("/orders?lang=en", "No orders yet", "backstop apply")
	holds("/exceptions?lang=en", "All clear")
	seed(t, h.DB)
	holds("/orders?lang=en&status=failed&merchant=m2", "Nothing matches", `href="/orders?merchant=m2"`, `href="/orders?status=failed"`,
		"Look further back")
	holds("/orders?lang=en&to=2026-01-01", "No rows in this time range", `href="/orders?window=31d"`)
	holds("/exceptions?lang=en&kind=decrypt_failed", "Nothing matches", `href="/exceptions"`)
	change(t, h.DB, "UPDATE exceptions SET state = 'resolved'")
	for _, path := range []string{"/exceptions?lang=en&state=needs", "/exceptions?lang=en&risk=mismatch", "/orders?lang=en&risk=stuck"} {
		holds(path, "All clear")
	}
}

func TestAnEmptyListNamesTheFilterToDrop(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Viewer)
	seed(t, h.DB)
	drops := func(query string) []string {
		_, empty, _ := strings.Cut(h.Page(t, cookie, "/orders?lang=en&"+query).Body, "Rows appear without:")
		empty, _, _ = strings.Cut(empty, "</section>")
		var words []string
		for _, m := range regexp.MustCompile(`aria-label="Remove the filter ([^:]+):`).FindAllStringSubmatch(empty, -1) {
			words = append(words, m[1])
		}
		return words
	}
	for query, want := range map[string][]string{
		"status=failed&merchant=m1":              {"State"},
		"status=paid&merchant=nobody":            {"Merchant"},
		"status=failed&merchant=nobody":          nil,
		"status=paid&merchant=m1&amount=1234567": {"Amount"},
	} {
		if got := drops(query); !slices.Equal(got, want) {
			t.Errorf("%s: drop one of %q, want %q", query, got, want)
		}
	}
}

// Merchants and suppliers are shown by name with the code beside it; files have codes. The number leads
// to the row and is first.
func TestListsNameMerchantsAndSuppliers(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Ops)
	seed(t, h.DB)
	change(t, h.DB, "UPDATE suppliers SET name = 'Quick Pay' WHERE code = 'quick'")
	for _, table := range []string{"orders", "callbacks"} {
		change(t, h.DB, "UPDATE "+table+" SET supplier_id = (SELECT id FROM suppliers WHERE code = 'quick')")
	}
	h.ReadSettings(t)
	for path, wants := range map[string][]string{
		"/orders?lang=en&merchant=m1": {`title="Galaxy · m1">Galaxy</td>`, `title="Quick Pay · quick">Quick Pay</td>`, `<b>Galaxy</b>`},
		orderOne + "?lang=en":         {`title="Galaxy · m1">Galaxy</dd>`, `title="Quick Pay · quick">Quick Pay</dd>`},
		"/suppliers?lang=en":          {`title="quick">Quick Pay</a>`},
		"/callbacks?lang=en":          {`title="Quick Pay · quick">Quick Pay</td>`},
	} {
		body := h.Page(t, cookie, path).Body
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %s", path, want)
			}
		}
	}
	if file := h.Page(t, cookie, "/orders?lang=en&format=csv&window=31d").Body; !strings.Contains(file, ",m1,quick,") || strings.Contains(file, "Galaxy") {
		t.Errorf("the file does not have the codes:\n%s", file)
	}
	number := regexp.MustCompile(`<tr data-row><td><span class="id"><a href="/orders/`)
	if body := h.Page(t, cookie, "/orders?window=31d").Body; !number.MatchString(body) {
		t.Error("the number is not first")
	}
}

func TestTheAuditIsReadByDayToo(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Auditor) // which is an act
	if got := h.Page(t, cookie, "/audit"); !strings.Contains(got.Body, "data-row") {
		t.Errorf("all of the time: %d", got.Status)
	}
	if got := h.Page(t, cookie, "/audit?window=31d&to=2026-01-31"); got.Status != http.StatusOK || strings.Contains(got.Body, "data-row") {
		t.Errorf("January: %d, there are rows", got.Status)
	}
}

// TestAnAmountIsSearched opens the one order that has it, and lists several;
// digits that may be the end of a number are asked about.
func TestAnAmountIsSearched(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Viewer)
	for q, want := range map[string]string{
		"%C2%A53,499.00+CNY": orderOne,
		"1980":               "/orders/2026112000000002", // JPY has no minor unit
		"12.345":             "/orders/2026112000000003",
		"0.77":               "/orders?amount=0.77&window=31d",
	} {
		if got := h.Page(t, cookie, "/search?q="+q); got.Status != http.StatusSeeOther || got.Header.Get("Location") != want {
			t.Errorf("%s: %d to %q, want %q", q, got.Status, got.Header.Get("Location"), want)
		}
	}
	comeIn(t, h.DB, 2, order.Paid)
	got := h.Page(t, cookie, "/search?q=0.01")
	if to := got.Header.Get("Location"); to != "/orders?amount=0.01&window=31d" || strings.Count(h.Page(t, cookie, to).Body,
		"data-row") != 2 {
		t.Errorf("two orders of an amount: %d to %q", got.Status, to)
	}
	if got := h.Page(t, cookie, "/search?q=349900&lang=en"); !strings.Contains(got.Body, "Orders with the amount 349900") ||
		!strings.Contains(got.Body, `href="/orders?amount=349900&amp;window=31d"`) {
		t.Errorf("digits that may be both: %d %s", got.Status, got.Body)
	}
	if got := h.Page(t, cookie, "/orders?amount=%3Cb%3E"); got.Status != http.StatusUnprocessableEntity {
		t.Errorf("what is no amount: %d", got.Status)
	}
}

// The chart above a list is drawn only while it counts what the list shows.
func TestTheChartAboveAListFollowsItsFilter(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Lead)
	h.Happen(t, func(x *report.Delta) { x.Attempt(1, report.OK, time.Second) })
	for path, drawn := range map[string]bool{
		"/notifications": true, "/notifications?merchant=m1": true, "/notifications?status=delivered": false,
		"/notifications?merchant=m1&status=delivered": false, "/notifications?cause=timeout": false,
	} {
		if strings.Contains(h.Page(t, cookie, path).Body, `class="body histogram"`) != drawn {
			t.Errorf("%s: a chart is drawn: %t", path, !drawn)
		}
	}
}
