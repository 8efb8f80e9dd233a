package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/waittest"
	"backstop/internal/notify/fakemerchant"
)

// TestFlows walks through one running installation per engine; each flow has
// orders of its own.
func TestFlows(t *testing.T) {
	flows := []struct {
		claim string
		walk  func(w *world)
	}{
		{"a paid order's merchant is notified, signed", paidAndNotified},
		{"repeats are taken and change nothing", repeatsChangeNothing},
		{"repeats by the thousand leave a handful of rows", repeatsByTheThousand},
		{"a wrong amount is on the exception desk", wrongAmount},
		{"an unknown order is on the exception desk", unknownOrder},
		{"forgeries are answered 401", forgeries},
		{"the address list cannot be spoofed", spoofedAddress},
		{"a timeout closes in time and is notified", timeoutCloses},
		{"late money does not reopen an order", latePayment},
		{"late money is accepted by two people", latePaymentDecided},
		{"a payment that was started outlives the timeout", payingOutlivesTimeout},
		{"out_trade_no is idempotent", idempotentCreate},
		{"stock is sold once", stockIsSoldOnce},
		{"apply takes effect within two seconds", applyTakesEffect},
		{"another's order does not exist", othersOrders},
		{"the monitoring API tells of it", monitored},
	}
	each(t, options{}, func(t *testing.T, w *world) {
		w.start("")
		for _, flow := range flows {
			t.Run(flow.claim, func(t *testing.T) {
				mine := *w
				mine.t = t
				flow.walk(&mine)
			})
		}
		w.t = t
		w.books()
	})
}

// wantOrder waits until an order's fields are as wanted, at most as long as given or, on a busy machine, patience.
func (w *world) wantOrder(no string, most time.Duration, want map[string]string) answer {
	w.t.Helper()
	var a answer
	var wrong string
	if !waittest.Within(max(most, patience), func() bool {
		a, wrong = w.order(no), ""
		for field, value := range want {
			if got := a.json(field); got != value {
				wrong = fmt.Sprintf("%s is %q, want %q", field, got, value)
			}
		}
		return wrong == ""
	}) {
		w.t.Fatalf("order %s: %s: %s", no, wrong, a.body)
	}
	return a
}

// wantAccepted sends a callback that must be taken.
func (w *world) wantAccepted(form url.Values) {
	w.t.Helper()
	if a := w.mustPostCallback("sp-main", form); !a.accepted() {
		w.t.Fatalf("callback: %d %q", a.status, a.body)
	}
}

func paidAndNotified(w *world) {
	no := w.create("paid-1", nil)
	w.wantAccepted(callbackForm("sp-main", no, "T-paid-1", 1999))
	w.wantOrder(no, 5*time.Second, map[string]string{
		"status": "paid", "notify_status": "delivered", "paid_amount": "1999", "supplier_trade_no": "T-paid-1", "version": "2",
	})
	list := w.notifications(no)
	if len(list) != 1 {
		w.t.Fatalf("notified %d times", len(list))
	}
	if err := fakemerchant.Verify(list[0], secret); err != nil {
		w.t.Error(err)
	}
	said := answer{body: string(list[0].Body)}
	if said.json("type") != "order.paid" || said.json("id") != list[0].ID || said.json("data", "out_trade_no") != "paid-1" ||
		said.json("data", "version") != "2" {
		w.t.Errorf("received %s", list[0].Body)
	}
	if err := fakemerchant.Verify(list[0], []byte("another secret of 32 bytes ......")); err == nil {
		w.t.Error("the signature fits every secret")
	}
}

func repeatsChangeNothing(w *world) {
	no := w.create("repeat-1", nil)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if a, err := w.postCallback("sp-main", callbackForm("sp-main", no, "T-repeat-1", 1999), nil); err != nil || !a.accepted() {
				w.t.Errorf("repeat: %d %q %v", a.status, a.body, err)
			}
		})
	}
	wg.Wait()
	w.wantOrder(no, 5*time.Second, map[string]string{"status": "paid", "notify_status": "delivered", "version": "2"})
	if n := len(w.notifications(no)); n != 1 {
		w.t.Errorf("notified %d times", n)
	}
	if kinds := w.exceptions(no); len(kinds) != 0 {
		w.t.Errorf("exceptions %v", kinds)
	}
}

// One genuine message, sent again with as much padding as is taken: it must not grow
// the database with every call.
func repeatsByTheThousand(w *world) {
	no := w.create("repeat-2", nil)
	body := callbackForm("sp-main", no, "T-repeat-2", 1999).Encode()
	send := func(padding int) answer {
		a, err := w.do(http.MethodPost, "/callback/sp-main", "", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
			body+strings.Repeat("&", padding))
		if err != nil {
			w.t.Error(err)
		}
		return a
	}
	if a := send(0); !a.accepted() {
		w.t.Fatalf("callback: %d %q", a.status, a.body)
	}
	if a := send(200_000); a.status != http.StatusBadRequest {
		w.t.Errorf("200,000 unsigned bytes: %d %q", a.status, a.body)
	}
	const repeats, at = 3000, 16
	var wg sync.WaitGroup
	for range at {
		wg.Go(func() {
			for range repeats / at {
				if a := send(3000); !a.accepted() {
					w.t.Errorf("a repeat: %d %q", a.status, a.body)
				}
			}
		})
	}
	wg.Wait()
	var rows int
	w.within(10*time.Second, "the kept repeats", func() bool {
		a := w.request(http.MethodGet, "/api/v1/admin/callbacks?limit=100&order_no="+no, w.token, "")
		rows = strings.Count(a.body, `"outcome":`)
		return rows == 1+5
	})
	w.wantOrder(no, 5*time.Second, map[string]string{"status": "paid", "notify_status": "delivered", "version": "2"})
}

func wrongAmount(w *world) {
	no := w.create("amount-1", nil)
	w.wantAccepted(callbackForm("sp-main", no, "T-amount-1", 1))
	w.wantOrder(no, 0, map[string]string{"status": "pending", "version": "1", "notify_status": "none"})
	if kinds := w.exceptions(no); !slices.Equal(kinds, []string{"amount_mismatch"}) {
		w.t.Errorf("exceptions %v", kinds)
	}
	w.wantAccepted(callbackForm("sp-main", no, "T-amount-2", 1999))
	w.wantOrder(no, 5*time.Second, map[string]string{"status": "paid"})
}

func unknownOrder(w *world) {
	w.wantAccepted(callbackForm("sp-main", "no-such-order", "T-unknown-1", 1999))
	if kinds := w.exceptions("no-such-order"); !slices.Equal(kinds, []string{"unknown_order"}) {
		w.t.Errorf("exceptions %v", kinds)
	}
}

func forgeries(w *world) {
	no := w.create("forged-1", nil)
	genuine := callbackForm("sp-main", no, "T-forged-1", 1999)
	forge := func(name, value string) url.Values {
		form := url.Values{}
		for k, v := range genuine {
			form[k] = slices.Clone(v)
		}
		form.Set(name, value)
		return form
	}
	unsigned := forge("sign", "")
	unsigned.Del("sign")
	for _, form := range []url.Values{
		forge("amount", "1"), forge("trade", "T-other"), forge("order", "1"), forge("status", "NO"), forge("extra", "1"),
		forge("sign", strings.Repeat("0", 32)), forge("sign", ""), unsigned,
	} {
		if a := w.mustPostCallback("sp-main", form); a.status != http.StatusUnauthorized || a.body != "fail" {
			w.t.Errorf("%v: %d %q", form, a.status, a.body)
		}
	}
	w.wantOrder(no, 0, map[string]string{"status": "pending", "version": "1"})
	w.wantAccepted(genuine) // only the forged part was wrong with them
	if a := w.mustPostCallback("sp-nobody", genuine); a.status != http.StatusNotFound {
		w.t.Errorf("unknown supplier: %d", a.status)
	}
}

func spoofedAddress(w *world) {
	no := w.create("listed-1", requestBody{"supplier": "sp-listed"})
	form := callbackForm("sp-listed", no, "T-listed-1", 1999)
	for _, lines := range [][]string{
		nil, {"203.0.113.7"}, {"203.0.113.7, 203.0.113.7"}, {"203.0.113.7", "203.0.113.8"}, {"::ffff:203.0.113.7"}, {"garbage"},
	} {
		a, err := w.postCallback("sp-listed", form, http.Header{
			"X-Forwarded-For": lines, "X-Real-Ip": {"203.0.113.7"}, "Forwarded": {"for=203.0.113.7"},
		})
		if err != nil || a.status != http.StatusForbidden {
			w.t.Errorf("%q: %d %v", lines, a.status, err)
		}
	}
	w.wantOrder(no, 0, map[string]string{"status": "pending"})
}

// TestTrustedProxyIsBelievedOnlyForItsOwnHop: what the proxy appended counts,
// what a client wrote before it does not.
func TestTrustedProxyIsBelievedOnlyForItsOwnHop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{environ: []string{"BACKSTOP_TRUSTED_PROXIES=127.0.0.0/8"}})
	w.start("")
	no := w.create("proxy-1", requestBody{"supplier": "sp-listed"})
	form := callbackForm("sp-listed", no, "T-proxy-1", 1999)
	for _, step := range []struct {
		lines  []string
		status int
	}{
		{nil, http.StatusForbidden},
		{[]string{"198.51.100.9"}, http.StatusForbidden},
		{[]string{"203.0.113.7, 198.51.100.9"}, http.StatusForbidden},
		{[]string{"203.0.113.7", "198.51.100.9"}, http.StatusForbidden},
		{[]string{"203.0.113.7, garbage"}, http.StatusForbidden},
		{[]string{"198.51.100.9, 203.0.113.7"}, http.StatusOK},
	} {
		a, err := w.postCallback("sp-listed", form, http.Header{"X-Forwarded-For": step.lines})
		if err != nil || a.status != step.status {
			t.Errorf("%q: %d, want %d %v", step.lines, a.status, step.status, err)
		}
	}
	w.wantOrder(no, 5*time.Second, map[string]string{"status": "paid"})
}

// moments reads two times of an order.
func moments(w *world, a answer, first, second string) (time.Time, time.Time) {
	w.t.Helper()
	one, err := time.Parse(time.RFC3339Nano, a.json(first))
	if err != nil {
		w.t.Fatalf("%s: %v", first, err)
	}
	two, err := time.Parse(time.RFC3339Nano, a.json(second))
	if err != nil {
		w.t.Fatalf("%s: %v", second, err)
	}
	return one, two
}

// closeTime is how late after expires_at an order may close.
const closeTime = 2 * time.Second

func timeoutCloses(w *world) {
	no := w.create("timeout-1", requestBody{"expires_in": 1})
	a := w.wantOrder(no, 10*time.Second, map[string]string{"status": "closed", "close_reason": "timeout", "notify_status": "delivered"})
	expires, closed := moments(w, a, "expires_at", "closed_at")
	if late := closed.Sub(expires); late < 0 || late > closeTime {
		w.t.Errorf("closed %s after expires_at", late)
	}
	list := w.notifications(no)
	if len(list) != 1 || (answer{body: string(list[0].Body)}).json("type") != "order.closed" {
		w.t.Fatalf("notified %d times: %+v", len(list), list)
	}
	if err := fakemerchant.Verify(list[0], secret); err != nil {
		w.t.Error(err)
	}
}

func latePayment(w *world) {
	no := w.create("late-1", requestBody{"expires_in": 1})
	w.wantOrder(no, 10*time.Second, map[string]string{"status": "closed"})
	w.wantAccepted(callbackForm("sp-main", no, "T-late-1", 1999))
	w.wantOrder(no, 0, map[string]string{"status": "closed", "version": "2", "paid_amount": "0"})
	if kinds := w.exceptions(no); !slices.Equal(kinds, []string{"late_payment"}) {
		w.t.Errorf("exceptions %v", kinds)
	}
}

func payingOutlivesTimeout(w *world) {
	no := w.create("paying-1", requestBody{"expires_in": 1})
	if a := w.request(http.MethodPost, "/api/v1/orders/"+no+"/pay", apiKey, ""); a.json("status") != "paying" {
		w.t.Fatalf("pay: %d %s", a.status, a.body)
	}
	w.wantOrder(no, 10*time.Second, map[string]string{"status": "closing"})
	w.wantAccepted(callbackForm("sp-main", no, "T-paying-1", 1999))
	w.wantOrder(no, 5*time.Second, map[string]string{"status": "paid", "notify_status": "delivered", "version": "4"})
}

func idempotentCreate(w *world) {
	no := w.create("same-1", nil)
	again := w.request(http.MethodPost, "/api/v1/orders", apiKey, newOrder("same-1", nil).text())
	if again.status != http.StatusOK || again.json("order_no") != no {
		w.t.Errorf("again: %d %s", again.status, again.body)
	}
	other := w.request(http.MethodPost, "/api/v1/orders", apiKey, newOrder("same-1", requestBody{"amount": 2000}).text())
	if other.status != http.StatusConflict || other.json("error", "code") != "idempotency_conflict" {
		w.t.Errorf("other content: %d %s", other.status, other.body)
	}
	if a := w.request(http.MethodGet, "/api/v1/orders?out_trade_no=same-1", apiKey, ""); a.json("order_no") != no {
		w.t.Errorf("by out_trade_no: %d %s", a.status, a.body)
	}
}

func stockIsSoldOnce(w *world) {
	two := requestBody{"items": []requestBody{{"sku": "tea", "quantity": 2}}}
	first, second := w.create("stock-1", two), w.create("stock-2", two) // of five
	full := w.request(http.MethodPost, "/api/v1/orders", apiKey, newOrder("stock-3", two).text())
	if full.status != http.StatusConflict || full.json("error", "code") != "out_of_stock" {
		w.t.Errorf("too many: %d %s", full.status, full.body)
	}
	w.wantAccepted(callbackForm("sp-main", first, "T-stock-1", 1999))
	if a := w.request(http.MethodPost, "/api/v1/orders/"+second+"/cancel", apiKey, ""); a.json("status") != "closed" {
		w.t.Fatalf("cancel: %d %s", a.status, a.body)
	}
	w.create("stock-4", requestBody{"items": []requestBody{{"sku": "tea", "quantity": 3}}}) // what is left
	last := w.request(http.MethodPost, "/api/v1/orders", apiKey,
		newOrder("stock-5", requestBody{"items": []requestBody{{"sku": "tea", "quantity": 1}}}).text())
	if last.status != http.StatusConflict {
		w.t.Errorf("sold twice: %d %s", last.status, last.body)
	}
}

// applyTime is the promise about a running server.
const applyTime = 2 * time.Second

func applyTakesEffect(w *world) {
	extra := func(enabled bool) string {
		return fmt.Sprintf("\n  - {code: sp-extra, kind: sortedparams, enabled: %t, config: %s}", enabled, supplierConfig("sp-extra"))
	}
	for _, step := range []struct {
		enabled bool
		status  int
	}{{true, http.StatusCreated}, {false, http.StatusUnprocessableEntity}, {true, http.StatusCreated}} {
		w.apply(w.config(extra(step.enabled)))
		n := 0
		w.within(applyTime, fmt.Sprintf("enabled=%t answers %d", step.enabled, step.status), func() bool {
			n++
			order := newOrder(fmt.Sprintf("extra-%t-%d-%d", step.enabled, time.Now().UnixNano(), n), requestBody{"supplier": "sp-extra"})
			return w.request(http.MethodPost, "/api/v1/orders", apiKey, order.text()).status == step.status
		})
		// The money of a disabled supplier may be under way: its callbacks are read all the same.
		if a := w.mustPostCallback("sp-extra", url.Values{"sign": {"x"}}); a.status != http.StatusUnauthorized {
			w.t.Errorf("enabled=%t: a forged callback is answered %d", step.enabled, a.status)
		}
	}
	if again := w.apply(w.config(extra(true))); !strings.Contains(again, "unchanged") {
		w.t.Errorf("applied again: %q", again)
	}
	w.apply(w.config(extra(false)))
}

func othersOrders(w *world) {
	no := w.create("mine-1", nil)
	for _, path := range []string{"/api/v1/orders/" + no, "/api/v1/orders/" + no + "x"} {
		if a := w.request(http.MethodGet, path, "sk_live_of_nobody", ""); a.status != http.StatusUnauthorized {
			w.t.Errorf("%s with a wrong key: %d", path, a.status)
		}
	}
	if a := w.order(no + "x"); a.status != http.StatusNotFound {
		w.t.Errorf("an order that is not there: %d", a.status)
	}
	if a := w.request(http.MethodGet, "/api/v1/admin/exceptions", apiKey, ""); a.status != http.StatusUnauthorized &&
		a.status != http.StatusForbidden {
		w.t.Errorf("a merchant reads the exception desk: %d", a.status)
	}
}
