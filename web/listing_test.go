package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/order"
)

func TestDaysOfAListAreDaysInThePersonsZone(t *testing.T) {
	h := open(t)
	cookie := h.signIn(t, access.Viewer)
	shanghai, _ := time.LoadLocation("Asia/Shanghai")
	late := time.Date(2026, 11, 8, 23, 59, 59, 900_000_000, shanghai)
	id := db.IDAt(late.UnixMicro()) + 1
	o := order.Order{ID: id, OrderNo: "LATE-ORDER", OutTradeNo: "L", MerchantID: 1, SupplierID: 1, Amount: 1, Currency: "CNY", Exponent: 2, Status: order.Paid, Version: 1, CreatedAt: late.UnixMicro()}
	if _, err := h.db.NewInsert().Model(&o).Exec(t.Context()); err != nil {
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
		h.post(t, cookie, "/me", "zone", c.zone)
		if got := h.page(t, cookie, "/orders?window=24h&to="+c.day); strings.Contains(got.body, "LATE-ORDER") != c.there {
			t.Errorf("in %s on %s: %d, there is %t", c.zone, c.day, got.status, !c.there)
		}
	}
}

func TestAListThatTakesTooLongSaysWhatToDo(t *testing.T) {
	h := open(t)
	seed(t, h.db)
	cookie := h.signIn(t, access.Ops)
	h.listTime = time.Nanosecond
	for _, path := range []string{"/orders", "/callbacks?outcome=paid", "/notifications", "/exceptions", "/search?q=123456"} {
		join := "?"
		if strings.Contains(path, "?") {
			join = "&"
		}
		if got := h.page(t, cookie, path+join+"lang=en"); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "narrow the filter") {
			t.Errorf("%s: %d", path, got.status)
		}
	}
	if got := h.page(t, cookie, orderOne); got.status != http.StatusOK {
		t.Errorf("the rest of the console: %d", got.status)
	}
}

func TestEmptyListsSayWhyTheyAreEmpty(t *testing.T) {
	h := open(t)
	cookie := h.signIn(t, access.Viewer)
	holds := func(path string, texts ...string) {
		t.Helper()
		body := h.page(t, cookie, path).body
		for _, text := range texts {
			if !strings.Contains(body, text) {
				t.Errorf("%s does not say %q", path, text)
			}
		}
	}
	holds("/orders?lang=en", "No orders yet", "backstop apply")
	holds("/exceptions?lang=en", "All clear")
	seed(t, h.db)
	holds("/orders?lang=en&status=failed&merchant=m2", "Nothing matches", `href="/orders?merchant=m2"`, `href="/orders?status=failed"`, "Look further back")
	holds("/orders?lang=en&to=2026-01-01", "Nothing in this time", `href="/orders?window=31d"`)
	holds("/exceptions?lang=en&kind=decrypt_failed", "Nothing matches", `href="/exceptions"`)
	change(t, h.db, "UPDATE exceptions SET state = 'resolved'")
	for _, path := range []string{"/exceptions?lang=en&state=needs", "/exceptions?lang=en&risk=mismatch", "/orders?lang=en&risk=stuck"} {
		holds(path, "All clear")
	}
}

func TestTheAuditIsReadByDayToo(t *testing.T) {
	h := open(t)
	cookie := h.signIn(t, access.Auditor) // which is an act
	if got := h.page(t, cookie, "/audit"); !strings.Contains(got.body, "data-row") {
		t.Errorf("all of the time: %d", got.status)
	}
	if got := h.page(t, cookie, "/audit?window=31d&to=2026-01-31"); got.status != http.StatusOK || strings.Contains(got.body, "data-row") {
		t.Errorf("January: %d, there are rows", got.status)
	}
}

// TestAnAmountIsSearched opens the one order that has it, and lists several;
// digits that may be the end of a number are asked about.
func TestAnAmountIsSearched(t *testing.T) {
	h := open(t)
	seed(t, h.db)
	cookie := h.signIn(t, access.Viewer)
	for q, want := range map[string]string{
		"%C2%A53,499.00+CNY": orderOne,
		"1980":               "/orders/2026112000000002", // JPY has no minor unit
		"12.345":             "/orders/2026112000000003",
		"0.77":               "/orders?amount=0.77&window=31d",
	} {
		if got := h.page(t, cookie, "/search?q="+q); got.status != http.StatusSeeOther || got.header.Get("Location") != want {
			t.Errorf("%s: %d to %q, want %q", q, got.status, got.header.Get("Location"), want)
		}
	}
	comeIn(t, h.db, 2, order.Paid)
	got := h.page(t, cookie, "/search?q=0.01")
	if to := got.header.Get("Location"); to != "/orders?amount=0.01&window=31d" || strings.Count(h.page(t, cookie, to).body, "data-row") != 2 {
		t.Errorf("two orders of an amount: %d to %q", got.status, to)
	}
	if got := h.page(t, cookie, "/search?q=349900&lang=en"); !strings.Contains(got.body, "Orders of the amount 349900") || !strings.Contains(got.body, `href="/orders?amount=349900&amp;window=31d"`) {
		t.Errorf("digits that may be both: %d %s", got.status, got.body)
	}
	if got := h.page(t, cookie, "/orders?amount=%3Cb%3E"); got.status != http.StatusUnprocessableEntity {
		t.Errorf("what is no amount: %d", got.status)
	}
}
