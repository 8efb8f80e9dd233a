package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/recipient"
	"backstop/web/webtest"
)

func TestPeopleClosePingAndEnable(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.InTrouble(t)
	ops := h.SignIn(t, access.Ops)
	see := func(cookie, path string) string {
		t.Helper()
		got := h.Call(t, "GET", path, "", "Cookie", cookie)
		if got.Status != http.StatusOK {
			t.Fatalf("%s: %d", path, got.Status)
		}
		return got.Body
	}
	page := see(ops, "/merchants/m1?lang=en")
	for _, want := range []string{
		"failures in a row: 5", "One notification is sent as a probe at", "https://gone.test", "answered 410",
		"50/s, all nodes together", "2xx and the text success",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if list := see(ops, "/merchants?lang=en"); !strings.Contains(list, "Breaker open") || !strings.Contains(list, "/merchants/m2") {
		t.Error("the list does not say whose breaker is open")
	}

	reason := "their server is back since noon"
	send := func(path, key string, more ...string) string {
		t.Helper()
		got := h.Post(t, ops, path, append([]string{"reason", reason, "form_key", key}, more...)...)
		if got.Status != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", path, got.Status, got.Body)
		}
		return got.Header.Get("Location")
	}
	if to := send("/merchants/m1/breaker/close", "k1"); to != "/merchants/m1?form=k1" {
		t.Errorf("closed: %s", to)
	}
	if r := h.Breakers.Of(recipient.OfMerchant(1)); r.State != breaker.Closed || r.Generation != 3 {
		t.Errorf("breaker %+v", r)
	}
	if page := see(ops, "/merchants/m1?form=k1&lang=en"); !strings.Contains(page, "the.ops closed a breaker") {
		t.Error("the page does not say what was done")
	}
	for _, other := range []string{"/merchants/m2?form=k1&lang=en", "/merchants/m1?form=k9&lang=en", "/merchants/m1?done=breaker&lang=en"} {
		if strings.Contains(see(ops, other), "notice ok") {
			t.Errorf("%s reports that something was done", other)
		}
	}
	if got := h.Post(t, ops, "/merchants/m1/breaker/close", "reason", reason, "form_key", "k2"); got.Status != http.StatusConflict {
		t.Errorf("closed again: %d", got.Status)
	}
	if to := send("/merchants/m1/breaker/open", "k3"); to != "/merchants/m1?form=k3" || !h.Breakers.Of(recipient.OfMerchant(1)).ByHand {
		t.Errorf("opened: %s", to)
	}
	send("/merchants/m1/breaker/open", "k3") // the same form again: nothing

	to := send("/merchants/m1/ping", "k4", "endpoint", "old")
	if !strings.HasPrefix(to, "/merchants/m1?pinged=ntf_") {
		t.Fatalf("pinged: %s", to)
	}
	if page := see(ops, to+"&lang=en"); !strings.Contains(page, "HTTP 410") || !strings.Contains(page, "The answer to the ping") {
		t.Error("the page does not show what the address answered")
	}
	send("/merchants/m1/ping", "k4", "endpoint", "old")
	if len(h.Lines.Sent) != 1 {
		t.Errorf("one form sent %d pings", len(h.Lines.Sent))
	}
	if got := h.Post(t, ops, "/merchants/m1/ping", "reason", reason, "form_key", "k5", "endpoint",
		"no such"); got.Status != http.StatusUnprocessableEntity {
		t.Errorf("a ping to nowhere: %d", got.Status)
	}
	send("/merchants/m1/enable", "k6", "endpoint", "old")
	if err := h.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h.Settings.Merchants().ByCode("m1").Endpoint("old").Disabled {
		t.Error("the address is still disabled")
	}
	acts, err := audit.List(t.Context(), h.DB.Read, audit.Query{Object: "merchant", Limit: 20})
	if err != nil || len(acts) != 4 {
		t.Fatalf("audit %d, %v", len(acts), err)
	}
	for i, want := range []string{"merchant.enable_address", "merchant.ping", "breaker.open", "breaker.close"} {
		if acts[i].Action != want || acts[i].Actor != "operator:the.ops" || !strings.Contains(acts[i].Params, reason) {
			t.Errorf("audit %d: %+v, want %s", i, acts[i], want)
		}
	}
	if got := h.Call(t, "GET", "/merchants/nobody", "", "Cookie", ops); got.Status != http.StatusNotFound {
		t.Errorf("nobody: %d", got.Status)
	}
	viewer := h.SignIn(t, access.Viewer)
	if page := see(viewer, "/merchants/m1"); strings.Contains(page, "data-open") {
		t.Error("a viewer is offered acts")
	}
}

// A plain address may hold a token. The page shows none of it, nor does the audit,
// and its ping still finds it.
func TestMerchantPagesShowNoTokenOfAnAddress(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.InTrouble(t)
	for _, q := range []string{
		`UPDATE merchants SET notify = '{"urls":["https://127.0.0.1:1/n?token=canary"],"ack":"status","schedule":"day","max_in_flight":10}' WHERE code = 'm1'`,
		"UPDATE settings SET value = value + 1 WHERE name = 'config_version'",
	} {
		if _, err := h.DB.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	lead := h.SignIn(t, access.Ops)
	page := h.Page(t, lead, "/merchants/m1").Body
	if strings.Contains(page, "canary") || !strings.Contains(page, "https://127.0.0.1:1/n?***") {
		t.Errorf("the page shows a token: %t", strings.Contains(page, "canary"))
	}
	key := h.Settings.Merchants().ByCode("m1").Endpoints[0].Key()
	if !strings.Contains(page, `value="`+key+`"`) {
		t.Error("the page does not name the address in its form")
	}
	got := h.Post(t, lead, "/merchants/m1/ping", "reason", "is it there again?", "form_key", "k9", "endpoint", key)
	if got.Status != http.StatusSeeOther || !strings.Contains(got.Header.Get("Location"), "pinged=") {
		t.Errorf("ping: %d to %s", got.Status, got.Header.Get("Location"))
	}
	if page := h.Page(t, lead, got.Header.Get("Location")).Body; strings.Contains(page, "canary") {
		t.Error("the answer shows a token")
	}
	var kept int
	if err := h.DB.NewRaw("SELECT count(*) FROM audit WHERE params LIKE '%canary%'").Scan(t.Context(), &kept); err != nil || kept != 0 {
		t.Errorf("%d audit rows contain a token, %v", kept, err)
	}
}

func TestAMerchantThatCannotBeIsNotAskedFor(t *testing.T) {
	t.Parallel()
	h := open(t)
	ops := h.SignIn(t, access.Ops)
	for _, code := range []string{"%00", "%ff", "%0a", "nobody"} {
		if got := h.Page(t, ops, "/merchants/"+code); got.Status != http.StatusNotFound {
			t.Errorf("page of %s: %d", code, got.Status)
		}
		got := h.Api(t, webtest.MonitorToken, http.MethodPost, webtest.Monitoring+"breakers/"+code+"/open",
			`{"reason":"they asked for it"}`)
		if got.Status != http.StatusNotFound {
			t.Errorf("breaker of %s: %d %s", code, got.Status, got.Body)
		}
	}
}

// A schedule of one's own is shown as its waits, and a rate as it is.
func TestAMerchantsOwnScheduleAndRateAreShown(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, q := range []string{
		`UPDATE merchants SET notify = '{"urls":["https://a.test/n"],"schedule":"list","waits_ms":[1000,30000,600000,5400000,7200000],"rate_per_second":0.5}' WHERE code = 'm1'`,
		"UPDATE settings SET value = value + 1 WHERE name = 'config_version'",
	} {
		if _, err := h.DB.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := h.Page(t, h.SignIn(t, access.Viewer), "/merchants/m1?lang=en").Body
	for _, want := range []string{">1s 30s 10m 1h30m 2h<", "0.5/s, all nodes together"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// The list of merchants is filtered by code, by name and by state; a filter has no time.
func TestMerchantsAreFoundByTheirNames(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		change(t, d, "UPDATE merchants SET name = 'Green Tea' WHERE code = 'm1'")
		change(t, d, "UPDATE merchants SET disabled_at = 5 WHERE code = 'm2'")
		cookie := h.SignIn(t, access.Viewer)
		for text, want := range map[string][]string{
			"merchant:m1": {"m1"}, `merchant:"green tea"`: {"m1"}, "商户：m2": {"m2"}, "state:disabled": {"m2"}, "state:enabled": {"m1"},
			"state:已启用 merchant:m2": nil,
		} {
			address := h.Page(t, cookie, "/merchants?q="+url.QueryEscape(text)).Header.Get("Location")
			rows := cells(t, h.Page(t, cookie, address+"&lang=en&format=csv").Body)
			var got []string
			for _, r := range rows[2:] {
				got = append(got, r[0])
			}
			page := h.Page(t, cookie, address)
			if !slices.Equal(got, want) || page.Status != http.StatusOK ||
				strings.Contains(page.Body, `href="/merchants/m1"`) != slices.Contains(want, "m1") {
				t.Errorf("%s: %q at %s, want %q", text, got, address, want)
			}
		}
		for _, text := range []string{"from:14:05", "state:on", "cause:timeout"} {
			if got := h.Page(t, cookie, "/merchants?q="+url.QueryEscape(text)); got.Status != http.StatusUnprocessableEntity {
				t.Errorf("%s: %d", text, got.Status)
			}
		}
		if page := h.Page(t, cookie, "/merchants").Body; strings.Contains(page, `name="window"`) || !strings.Contains(page, `name="q"`) {
			t.Error("the list has a time, or no filter as text")
		}
	})
}
