package api

import (
	"strings"
	"testing"

	"backstop/internal/audit"
	"backstop/web/webtest"
)

func TestAPingAnswersWhatTheAddressSaid(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, q := range []string{
		`UPDATE merchants SET notify = '{"urls":["https://a.test/n"],"endpoints":[{"name":"old","channel":"webhook","url":"https://gone.test"}]}' WHERE code = 'm1'`,
		`INSERT INTO subscriptions (id, code, name, merchants, signing_secrets, notify, created_at, updated_at) VALUES (9, 'crm', 'crm', 'null', '[]', '{"urls":["https://crm.test"]}', 0, 0)`,
		"UPDATE settings SET value = value + 1 WHERE name = 'config_version'",
	} {
		if _, err := h.DB.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := h.Api(t, webtest.MonitorToken, "POST", "/api/v1/admin/merchants/m1/ping", "").Object(t)
	if got["ok"] != true || got["class"] != "ok" || got["http_status"] != 200.0 || got["took_ms"] != 7.0 ||
		got["response_body"] != "pong" ||
		got["endpoint"] != "https://a.test/n" || got["response_header"] != "Content-Type: text/plain" {
		t.Errorf("ping: %v", got)
	}
	m := h.Lines.Sent[0]
	if m.Type != "ping" || m.ID != got["id"] || !strings.Contains(string(m.Body), `"type":"ping"`) ||
		!strings.Contains(string(m.Body), m.ID) {
		t.Errorf("sent %s: %s", m.ID, m.Body)
	}
	got = h.Api(t, webtest.MonitorToken, "POST", "/api/v1/admin/merchants/m1/ping", `{"endpoint":"old"}`).Object(t)
	if got["ok"] != false || got["class"] != "gone" || got["http_status"] != 410.0 || got["error"] != "answered 410" {
		t.Errorf("ping of a dead address: %v", got)
	}
	if got := h.Api(t, webtest.MonitorToken, "POST", "/api/v1/admin/subscriptions/crm/ping",
		"{}").Object(t); got["url"] != "https://crm.test" {
		t.Errorf("ping of a subscriber: %v", got)
	}
	var kept []string
	err := h.DB.NewRaw("SELECT d.status FROM deliveries AS d JOIN notify_attempts AS a ON a.delivery_id = d.id"+
		" WHERE d.event_type = 'ping' AND d.next_at IS NULL ORDER BY d.id").Scan(t.Context(), &kept)
	if err != nil || strings.Join(kept, " ") != "delivered exhausted delivered" {
		t.Errorf("stored %v, %v", kept, err)
	}
	acts, err := audit.List(t.Context(), h.DB.Read, audit.Query{Limit: 10})
	if err != nil || len(acts) != 3 || acts[1].Action != "merchant.ping" || acts[1].Actor != "token:grafana" || acts[1].ObjectID != "m1" ||
		!strings.Contains(acts[1].Params, `"old"`) {
		t.Errorf("audit %+v, %v", acts, err)
	}
}

func TestAPingOfNothingSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	h := open(t)
	if err := h.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for request, want := range map[string]string{
		"merchants/nobody {}":                       "404 not_found",
		"subscriptions/m1 {}":                       "404 not_found",
		"merchants/m1 {}":                           "422 invalid_field endpoint",
		`merchants/m1 {"endpoint":"crm"}`:           "422 invalid_field endpoint",
		`merchants/m1 {"endpoint":7}`:               "422 invalid_field endpoint",
		`merchants/m1 {"url":"https://evil.test/"}`: "422 invalid_field url",
		`merchants/m1 [`:                            "400 bad_json",
	} {
		path, body, _ := strings.Cut(request, " ")
		if got := h.Api(t, webtest.MonitorToken, "POST", "/api/v1/admin/"+path+"/ping", body).Problem(); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	if got := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/admin/merchants/m1/ping", ""); got.Status != 401 {
		t.Errorf("a merchant pings: %d", got.Status)
	}
	if len(h.Lines.Sent) != 0 {
		t.Errorf("%d pings of nothing", len(h.Lines.Sent))
	}
}
