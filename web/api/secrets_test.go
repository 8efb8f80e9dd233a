package api

import (
	"net/http"
	"strings"
	"testing"

	"backstop/web/webtest"
)

func TestAMerchantsSystemRotatesItsSigningSecret(t *testing.T) {
	t.Parallel()
	h := open(t)
	if _, err := h.DB.NewRaw("UPDATE merchants SET signing_secrets = '[]', notify = ?",
		`{"urls":[],"ack":"status","format":"standard","schedule":"day","timeout_ms":5000,"max_in_flight":9}`).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.ReadSettings(t)
	const path = "/api/v1/secrets/rotate"
	rotate := func(key, idempotency string) webtest.Answer {
		return h.Call(t, http.MethodPost, path, "", "Authorization", "Bearer "+key, "Idempotency-Key", idempotency)
	}
	secrets := func() int { return len(h.Settings.Merchants().ByCode("m1").Secrets) }
	if got := rotate(webtest.PayoutKeyOfGalaxy, "a"); got.Status != http.StatusForbidden {
		t.Errorf("with the payout key: %d", got.Status)
	}
	if got := rotate(webtest.KeyOfGalaxy, strings.Repeat("a", 65)); got.Problem() != "422 invalid_field Idempotency-Key" {
		t.Errorf("a long key: %s", got.Problem())
	}
	got := rotate(webtest.KeyOfGalaxy, "a")
	secret, _ := got.Object(t)["signing_secret"].(string)
	if got.Status != http.StatusOK || !strings.HasPrefix(secret, "whsec_") || got.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	if now := secrets(); now != 1 {
		t.Errorf("%d secrets sign", now)
	}
	if got := rotate(webtest.KeyOfGalaxy, "a"); got.Status != http.StatusOK || got.Object(t)["signing_secret"] != nil {
		t.Errorf("repeated: %d %s", got.Status, got.Body)
	}
	if got := rotate(webtest.KeyOfGalaxy, ""); got.Status != http.StatusOK || secrets() != 2 {
		t.Errorf("with an overlap: %d, %d secrets", got.Status, secrets())
	}
	if got := rotate(webtest.KeyOfOther, "a"); got.Status != http.StatusOK {
		t.Errorf("the other merchant: %d", got.Status)
	}
	if _, err := h.DB.NewRaw("UPDATE merchants SET notify = ? WHERE code = 'm2'",
		`{"urls":["http://10.0.0.1/n"],"ack":"status","format":"standard","schedule":"day","timeout_ms":5000,"max_in_flight":9}`).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := rotate(webtest.KeyOfOther, "c"); got.Problem() != "409 settings_invalid" {
		t.Errorf("with stored settings that are not allowed any more: %s", got.Problem())
	}
	if got := rotate(webtest.KeyOfGalaxy, "b"); got.Problem() != "429 rotated_recently" {
		t.Errorf("at once again: %s", got.Problem())
	}
	if strings.Contains(h.Logged(), secret) {
		t.Error("the log has the secret")
	}
	var actors []string
	if err := h.DB.NewRaw("SELECT actor FROM audit WHERE action = 'merchant.rotate_secret'").Scan(t.Context(), &actors); err != nil ||
		len(actors) != 3 || actors[0] != "merchant:m1" || actors[2] != "merchant:m2" {
		t.Errorf("the audit has %v, %v", actors, err)
	}
}
