package api

import (
	"net/http"
	"testing"

	"backstop/internal/notify"
	"backstop/web/webtest"
)

func TestAMerchantReadsAndResendsItsNotifications(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := map[string]string{}
	for _, x := range []struct {
		order    string
		merchant int64
	}{{"MINE", 1}, {"OTHERS", 2}} {
		h.Notify(t, x.order, x.merchant, notify.Attempt{
			URL: "https://u:p@m.example/hook?token=s3cret", Class: "bad_status", HTTPStatus: 502, TookUS: 1500,
		})
		var subject int64
		if err := h.DB.NewRaw("SELECT id FROM orders WHERE order_no = ?", x.order).Scan(t.Context(), &subject); err != nil {
			t.Fatal(err)
		}
		if _, err := h.DB.NewRaw("INSERT INTO events (id, merchant_id, subject_id, type, version, body, created_at) VALUES (?, ?, ?, 'order.paid', 2, '{}', ?)",
			subject, x.merchant, subject, h.DB.Now()).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		ids[x.order] = notify.PublicID(subject, "order.paid")
	}
	if _, err := h.DB.NewRaw("UPDATE deliveries SET status = 'exhausted', next_at = NULL, attempts = 1").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	const path = "/api/v1/notifications"
	for query, want := range map[string]int{"": 1, "?status=exhausted": 1, "?status=delivered": 0, "?order_no=OTHERS": 0, "?type=order.paid&limit=1": 1} {
		got := h.Api(t, webtest.KeyOfGalaxy, http.MethodGet, path+query, "").Object(t)["items"].([]any)
		if len(got) != want || want == 1 && got[0].(map[string]any)["id"] != ids["MINE"] {
			t.Errorf("%s: %v", query, got)
		}
	}
	for what, problem := range map[string]string{
		"?status=odd": "422 invalid_field status", "?merchant=m2": "422 invalid_field merchant", "/" + ids["OTHERS"]: "404 not_found",
		"/ntf_odd": "404 not_found",
	} {
		if got := h.Api(t, webtest.KeyOfGalaxy, http.MethodGet, path+what, "").Problem(); got != problem {
			t.Errorf("%s: %s, want %s", what, got, problem)
		}
	}
	one := h.Api(t, webtest.KeyOfGalaxy, http.MethodGet, path+"/"+ids["MINE"], "").Object(t)
	log := one["log"].([]any)[0].(map[string]any)
	if one["http_status"] != 502.0 || one["status"] != "exhausted" || one["body"] == "" || log["url"] != "https://m.example/hook" {
		t.Errorf("%v", one)
	}
	// The same notification went by a connection, too: each is read, and sent again, by its channel.
	if _, err := h.DB.NewRaw("INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, attempts, created_at)"+
		" SELECT ?, event_id, recipient_id, subject_id, event_type, 'websocket', '', 'exhausted', 1, created_at FROM deliveries WHERE recipient_id = 1",
		h.DB.NewID()).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	for query, channel := range map[string]string{"": "websocket", "?channel=webhook": "webhook", "?channel=websocket": "websocket"} {
		if got := h.Api(t, webtest.KeyOfGalaxy, http.MethodGet, path+"/"+ids["MINE"]+query, "").Object(t); got["channel"] != channel {
			t.Errorf("%q: %v", query, got)
		}
	}
	for query, problem := range map[string]string{"?channel=kafka": "404 not_found", "?channel=pigeon": "422 invalid_field channel"} {
		if got := h.Api(t, webtest.KeyOfGalaxy, http.MethodGet, path+"/"+ids["MINE"]+query, "").Problem(); got != problem {
			t.Errorf("%s: %s, want %s", query, got, problem)
		}
	}
	if got := h.Api(t, webtest.KeyOfGalaxy, http.MethodPost, path+"/"+ids["MINE"]+"/resend", `{"channel": "pigeon"}`); got.Problem() !=
		"422 invalid_field channel" {
		t.Errorf("resent by a pigeon: %d %s", got.Status, got.Body)
	}
	if got := h.Api(t, webtest.KeyOfGalaxy, http.MethodPost, path+"/"+ids["OTHERS"]+"/resend", ""); got.Problem() != "404 not_found" {
		t.Errorf("the other merchant's: %d %s", got.Status, got.Body)
	}
	if got := h.Api(t, webtest.PayoutKeyOfGalaxy, http.MethodPost, path+"/"+ids["MINE"]+"/resend", ""); got.Status != http.StatusForbidden {
		t.Errorf("with the payout key: %d", got.Status)
	}
	got := h.Api(t, webtest.KeyOfGalaxy, http.MethodPost, path+"/"+ids["MINE"]+"/resend", `{"reason": "we are back again", "channel": "webhook"}`)
	if got.Status != http.StatusAccepted || got.Object(t)["status"] != "retry_wait" || got.Object(t)["channel"] != "webhook" {
		t.Errorf("resent: %d %s", got.Status, got.Body)
	}
	var actors []string
	if err := h.DB.NewRaw("SELECT actor FROM audit WHERE action = ?", notify.ResendAct).Scan(t.Context(), &actors); err != nil || len(actors) != 1 ||
		actors[0] != "merchant:m1" {
		t.Errorf("the audit has %v: %v", actors, err)
	}
	var waiting int
	if err := h.DB.NewRaw("SELECT count(*) FROM deliveries WHERE status = 'retry_wait'").Scan(t.Context(), &waiting); err != nil || waiting != 1 {
		t.Errorf("%d wait: %v", waiting, err)
	}
}
