package web

import (
	"net/http"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/breaker"
)

// inTrouble gives merchant m1 two addresses, one of them disabled, and a breaker
// that is open.
func (h *house) inTrouble(t *testing.T) {
	t.Helper()
	now := h.db.Now()
	for _, q := range []string{
		`UPDATE merchants SET notify = '{"urls":["https://a.test/n"],"ack":"text","ack_text":"success","schedule":"day","max_in_flight":10,"rate_per_second":50,
			"endpoints":[{"name":"old","channel":"webhook","url":"https://gone.test","events":["order.paid"]}]}' WHERE code = 'm1'`,
		"UPDATE settings SET value = value + 1 WHERE name = 'config_version'",
	} {
		if _, err := h.db.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	row := breaker.Row{MerchantID: 1, State: breaker.Open, Generation: 2, Failures: 5, Cause: breaker.InARow, ChangedAt: now - 60e6, OpenUntil: now + 240e6, UpdatedAt: now}
	history := []breaker.Change{
		{ID: 1, MerchantID: 1, Generation: 1, From: breaker.Open, To: breaker.Closed, Cause: breaker.ByHand, Actor: "operator:wang.min", Reason: "they say it works " + hostile, At: now - 3600e6},
		{ID: 2, MerchantID: 1, Generation: 2, From: breaker.Closed, To: breaker.Open, Cause: breaker.InARow, Failures: 5, At: now - 60e6},
	}
	if _, err := h.db.NewInsert().Model(&row).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.db.NewInsert().Model(&history).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := h.db.NewRaw("INSERT INTO endpoint_health (owner_id, endpoint, failures, last_ok_at, last_failed_at, last_error, disabled_at, reason)"+
		" VALUES (1, 'old', 1, ?, ?, 'answered 410', ?, 'HTTP 410'), (1, 'https://a.test/n', 5, ?, ?, 'connection refused', NULL, '')",
		now-7200e6, now-3600e6, now-3600e6, now-120e6, now-60e6).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.o.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.o.Breakers.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestPeopleClosePingAndEnable(t *testing.T) {
	h := open(t)
	h.inTrouble(t)
	ops := h.signIn(t, access.Ops)
	see := func(cookie, path string) string {
		t.Helper()
		got := h.call(t, "GET", path, "", "Cookie", cookie)
		if got.status != http.StatusOK {
			t.Fatalf("%s: %d", path, got.status)
		}
		return got.body
	}
	page := see(ops, "/merchants/m1?lang=en")
	for _, want := range []string{"failures in a row: 5", "One notification goes as a probe at", "https://gone.test", "answered 410", "50/s, all nodes together", "2xx and the text success"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if list := see(ops, "/merchants?lang=en"); !strings.Contains(list, "Breaker open") || !strings.Contains(list, "/merchants/m2") {
		t.Error("the list does not say whose breaker is open")
	}

	reason := "their server is back since noon"
	send := func(path, key string, more ...string) string {
		t.Helper()
		got := h.post(t, ops, path, append([]string{"reason", reason, "form_key", key}, more...)...)
		if got.status != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", path, got.status, got.body)
		}
		return got.header.Get("Location")
	}
	if to := send("/merchants/m1/breaker/close", "k1"); to != "/merchants/m1?form=k1" {
		t.Errorf("closed: %s", to)
	}
	if r := h.o.Breakers.Of(1); r.State != breaker.Closed || r.Generation != 3 {
		t.Errorf("breaker %+v", r)
	}
	if page := see(ops, "/merchants/m1?form=k1&lang=en"); !strings.Contains(page, "the.ops closed a breaker") {
		t.Error("the page does not say what was done")
	}
	for _, other := range []string{"/merchants/m2?form=k1&lang=en", "/merchants/m1?form=k9&lang=en", "/merchants/m1?done=breaker&lang=en"} {
		if strings.Contains(see(ops, other), "notice ok") {
			t.Errorf("%s says that something was done", other)
		}
	}
	if got := h.post(t, ops, "/merchants/m1/breaker/close", "reason", reason, "form_key", "k2"); got.status != http.StatusConflict {
		t.Errorf("closed again: %d", got.status)
	}
	if to := send("/merchants/m1/breaker/open", "k3"); to != "/merchants/m1?form=k3" || !h.o.Breakers.Of(1).ByHand {
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
	if len(h.lines.sent) != 1 {
		t.Errorf("one form sent %d pings", len(h.lines.sent))
	}
	if got := h.post(t, ops, "/merchants/m1/ping", "reason", reason, "form_key", "k5", "endpoint", "no such"); got.status != http.StatusUnprocessableEntity {
		t.Errorf("a ping to nowhere: %d", got.status)
	}
	send("/merchants/m1/enable", "k6", "endpoint", "old")
	if err := h.o.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h.o.Settings.Merchants().ByCode("m1").Endpoint("old").Disabled {
		t.Error("the address is still disabled")
	}
	acts, err := audit.List(t.Context(), h.db.Read, audit.Query{Object: "merchant", Limit: 20})
	if err != nil || len(acts) != 4 {
		t.Fatalf("audit %d, %v", len(acts), err)
	}
	for i, want := range []string{"merchant.enable_address", "merchant.ping", "breaker.open", "breaker.close"} {
		if acts[i].Action != want || acts[i].Actor != "operator:the.ops" || !strings.Contains(acts[i].Params, reason) {
			t.Errorf("audit %d: %+v, want %s", i, acts[i], want)
		}
	}
	if got := h.call(t, "GET", "/merchants/nobody", "", "Cookie", ops); got.status != http.StatusNotFound {
		t.Errorf("nobody: %d", got.status)
	}
	viewer := h.signIn(t, access.Viewer)
	if page := see(viewer, "/merchants/m1"); strings.Contains(page, "data-open") {
		t.Error("a viewer is offered acts")
	}
}

// A plain address may hold a token. The page shows none of it, nor does the audit,
// and its ping still finds it.
func TestMerchantPagesShowNoTokenOfAnAddress(t *testing.T) {
	h := open(t)
	h.inTrouble(t)
	for _, q := range []string{
		`UPDATE merchants SET notify = '{"urls":["https://127.0.0.1:1/n?token=canary"],"ack":"status","schedule":"day","max_in_flight":10}' WHERE code = 'm1'`,
		"UPDATE settings SET value = value + 1 WHERE name = 'config_version'",
	} {
		if _, err := h.db.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.o.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	lead := h.signIn(t, access.Ops)
	page := h.page(t, lead, "/merchants/m1").body
	if strings.Contains(page, "canary") || !strings.Contains(page, "https://127.0.0.1:1/n?***") {
		t.Errorf("the page shows a token: %t", strings.Contains(page, "canary"))
	}
	key := h.o.Settings.Merchants().ByCode("m1").Endpoints[0].Key()
	if !strings.Contains(page, `value="`+key+`"`) {
		t.Error("the page does not name the address in its form")
	}
	got := h.post(t, lead, "/merchants/m1/ping", "reason", "is it there again?", "form_key", "k9", "endpoint", key)
	if got.status != http.StatusSeeOther || !strings.Contains(got.header.Get("Location"), "pinged=") {
		t.Errorf("ping: %d to %s", got.status, got.header.Get("Location"))
	}
	if page := h.page(t, lead, got.header.Get("Location")).body; strings.Contains(page, "canary") {
		t.Error("the answer shows a token")
	}
	var kept int
	if err := h.db.NewRaw("SELECT count(*) FROM audit WHERE params LIKE '%canary%'").Scan(t.Context(), &kept); err != nil || kept != 0 {
		t.Errorf("%d audit rows hold a token, %v", kept, err)
	}
}

func TestAMerchantThatCannotBeIsNotAskedFor(t *testing.T) {
	h := open(t)
	ops := h.signIn(t, access.Ops)
	for _, code := range []string{"%00", "%ff", "%0a", "nobody"} {
		if got := h.page(t, ops, "/merchants/"+code); got.status != http.StatusNotFound {
			t.Errorf("page of %s: %d", code, got.status)
		}
		got := h.api(t, monitorToken, http.MethodPost, monitoring+"breakers/"+code+"/open", `{"reason":"they asked for it"}`)
		if got.status != http.StatusNotFound {
			t.Errorf("breaker of %s: %d %s", code, got.status, got.body)
		}
	}
}

// A schedule of one's own is shown as its waits, and a rate as it is.
func TestAMerchantsOwnScheduleAndRateAreShown(t *testing.T) {
	h := open(t)
	for _, q := range []string{
		`UPDATE merchants SET notify = '{"urls":["https://a.test/n"],"schedule":"list","waits_ms":[1000,30000,600000,5400000,7200000],"rate_per_second":0.5}' WHERE code = 'm1'`,
		"UPDATE settings SET value = value + 1 WHERE name = 'config_version'",
	} {
		if _, err := h.db.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.o.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := h.page(t, h.signIn(t, access.Viewer), "/merchants/m1?lang=en").body
	for _, want := range []string{">1s 30s 10m 1h30m 2h<", "0.5/s, all nodes together"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
