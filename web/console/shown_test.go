package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/notify"
	"backstop/web/webtest"
)

// Rows that are needed to send hold an address whole. No page, file or answer shows its token.
func TestAddressesAreShownWithoutTheirTokens(t *testing.T) {
	t.Parallel()
	const address = "https://m.example/hook?token=canary-0815&b=2"
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		script(t, d, d.Now()-200_000_000, "plain")
		run := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		now := d.Now()
		run("UPDATE notify_attempts SET url = ?", notify.Shown(address))
		run("UPDATE deliveries SET url = ?, endpoint = ?", address, address)
		run("UPDATE orders SET notify_url = ?", address)
		run("UPDATE merchants SET notify = ? WHERE id = 1", `{"urls":["`+address+`"],"ack":"status","schedule":"day","max_in_flight":10}`)
		run("INSERT INTO endpoint_health (recipient_id, endpoint, failures, last_failed_at, last_error, disabled_at, reason) VALUES (1, ?, 5, ?, 'connection refused', ?, 'answered 410')", address, now, now)
		run("INSERT INTO events (id, merchant_id, subject_id, type, version, body, created_at) VALUES (77, 1, 77, 'ping', 1, ?, ?)",
			fmt.Sprintf(`{"id":"ntf_25-ping-0","type":"ping","timestamp":"t","data":{"merchant":"m1","endpoint":%q}}`, address), now)
		run("INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, endpoint, status, attempts, created_at) VALUES (?, 77, 1, 77, 'ping', 'webhook', '', ?, 'exhausted', 1, ?)", d.NewID(), address, now)
		run("INSERT INTO notify_attempts (id, delivery_id, recipient_id, number, url, class, http_status, started_at, took_us, node, request_header, response_header, response_body, error)"+
			" SELECT ?, id, 1, 1, ?, 'bad_status', 301, ?, 1, 'n', '', ?, ?, 'answered 301' FROM deliveries WHERE event_id = 77", d.NewID(),
			notify.Shown(address), now, "", []byte{})
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			return h.Audit.Write(ctx, tx, audit.Act{
				Actor: "operator:li", Action: "merchant.ping", Object: "merchant", ObjectID: "m1",
				Params: map[string]any{"endpoint": address, "reason": "is it there?"},
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		run("UPDATE settings SET value = value + 1 WHERE name = 'config_version'")
		h.ReadSettings(t)
		lead := h.SignIn(t, access.Lead)
		clean := func(path string, got webtest.Answer, want string) {
			t.Helper()
			if got.Status != http.StatusOK || strings.Contains(got.Body, "canary") || !strings.Contains(got.Body, want) {
				at := max(0, strings.Index(got.Body, "canary")-100)
				t.Errorf("%s: %d, shows %q", path, got.Status, got.Body[at:min(len(got.Body), at+200)])
			}
		}
		var told int64
		if err := d.NewRaw("SELECT subject_id FROM deliveries WHERE event_type = 'order.paid' LIMIT 1").Scan(t.Context(), &told); err != nil {
			t.Fatal(err)
		}
		const shown = "https://m.example/hook?***"
		for path, want := range map[string]string{
			scripted:                           shown,
			scripted + "/evidence":             shown,
			scripted + "/evidence?format=json": shown,
			"/notifications":                   "ntf_",
			"/notifications/" + notify.PublicID(told, "order.paid"): shown,
			"/notifications/" + notify.PublicID(77, "ping"):         shown,
			"/merchants/m1": shown,
			"/merchants/m1?pinged=" + notify.PublicID(77, "ping"): shown,
			"/audit":  shown,
			"/orders": "",
		} {
			clean(path, h.Page(t, lead, path), want)
		}
		for _, path := range []string{"logs", "merchants", "breakers", "health", "realtime"} {
			clean(path, h.Api(t, webtest.MonitorToken, "GET", webtest.Monitoring+path, ""), "")
		}
		clean("exceptions", h.Api(t, webtest.MonitorToken, "GET", "/api/v1/admin/exceptions", ""), "")
		clean("the order", h.Api(t, webtest.KeyOfGalaxy, "GET", "/api/v1/orders/"+scriptedNo, ""), "")
		if strings.Contains(h.Logged(), "canary") {
			t.Error("the log contains a token")
		}
	})
}
