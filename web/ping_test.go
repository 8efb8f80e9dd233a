package web

import (
	"context"
	"strings"
	"sync"
	"testing"

	"backstop/internal/audit"
	"backstop/internal/notify"
)

// lines is a channel that answers 200 "pong", or 410 at addresses that are gone.
type lines struct {
	mu   sync.Mutex
	sent []notify.Message
}

func (l *lines) Send(_ context.Context, m notify.Message) notify.Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = append(l.sent, m)
	if strings.Contains(m.URL, "gone") {
		return notify.Result{Class: notify.BadStatus, Status: 410, Error: "answered 410"}
	}
	return notify.Result{Class: notify.OK, Status: 200, ResponseHeader: "Content-Type: text/plain", ResponseBody: []byte("pong"), Took: 7_000_000}
}

func TestAPingAnswersWhatTheAddressSaid(t *testing.T) {
	h := open(t)
	for _, q := range []string{
		`UPDATE merchants SET notify = '{"urls":["https://a.test/n"],"endpoints":[{"name":"old","channel":"webhook","url":"https://gone.test"}]}' WHERE code = 'm1'`,
		`INSERT INTO subscriptions (id, code, name, merchants, signing_secrets, notify, created_at, updated_at) VALUES (9, 'crm', 'crm', 'null', '[]', '{"urls":["https://crm.test"]}', 0, 0)`,
		"UPDATE settings SET value = value + 1 WHERE name = 'config_version'",
	} {
		if _, err := h.db.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.o.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := h.api(t, monitorToken, "POST", "/api/v1/admin/merchants/m1/ping", "").object(t)
	if got["ok"] != true || got["class"] != "ok" || got["http_status"] != 200.0 || got["took_ms"] != 7.0 || got["response_body"] != "pong" ||
		got["endpoint"] != "https://a.test/n" || got["response_header"] != "Content-Type: text/plain" {
		t.Errorf("ping: %v", got)
	}
	m := h.lines.sent[0]
	if m.Type != "ping" || m.ID != got["id"] || !strings.Contains(string(m.Body), `"type":"ping"`) || !strings.Contains(string(m.Body), m.ID) {
		t.Errorf("sent %s: %s", m.ID, m.Body)
	}
	got = h.api(t, monitorToken, "POST", "/api/v1/admin/merchants/m1/ping", `{"endpoint":"old"}`).object(t)
	if got["ok"] != false || got["class"] != "bad_status" || got["http_status"] != 410.0 || got["error"] != "answered 410" {
		t.Errorf("ping of a dead address: %v", got)
	}
	if got := h.api(t, monitorToken, "POST", "/api/v1/admin/subscriptions/crm/ping", "{}").object(t); got["url"] != "https://crm.test" {
		t.Errorf("ping of a system of the house: %v", got)
	}
	var kept []string
	err := h.db.NewRaw("SELECT d.status FROM deliveries AS d JOIN events AS e ON e.id = d.event_id JOIN notify_attempts AS a ON a.delivery_id = d.id"+
		" WHERE d.event_type = 'ping' AND d.next_at IS NULL ORDER BY d.id").Scan(t.Context(), &kept)
	if err != nil || strings.Join(kept, " ") != "delivered exhausted delivered" {
		t.Errorf("kept %v, %v", kept, err)
	}
	acts, err := audit.List(t.Context(), h.db.Read, audit.Query{Limit: 10})
	if err != nil || len(acts) != 3 || acts[1].Action != "merchant.ping" || acts[1].Actor != "token:grafana" || acts[1].ObjectID != "m1" || !strings.Contains(acts[1].Params, `"old"`) {
		t.Errorf("audit %+v, %v", acts, err)
	}
}

func TestAPingOfNothingSaysWhatIsWrong(t *testing.T) {
	h := open(t)
	if err := h.o.Settings.Refresh(t.Context()); err != nil {
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
		if got := h.api(t, monitorToken, "POST", "/api/v1/admin/"+path+"/ping", body).problem(); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	if got := h.api(t, keyOfGalaxy, "POST", "/api/v1/admin/merchants/m1/ping", ""); got.status != 401 {
		t.Errorf("a merchant pings: %d", got.status)
	}
	if len(h.lines.sent) != 0 {
		t.Errorf("%d pings of nothing", len(h.lines.sent))
	}
}
