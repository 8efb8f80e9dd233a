package api

import (
	"fmt"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/recipient"
	"backstop/web/webtest"
)

// The merchant is shown its notifications as parked only where they are: not while none of its
// addresses is in use.
func TestTheAPISaysParkedOfWhatIsParked(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.InTrouble(t)
	h.Notify(t, "O1", 1)
	says := func(want string) {
		t.Helper()
		if got := h.Api(t, webtest.KeyOfGalaxy, "GET", "/api/v1/orders/O1", "").Object(t)["notify_status"]; got != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	says("parked")
	for _, q := range []string{
		"UPDATE endpoint_health SET disabled_at = 1",
		"UPDATE settings SET value = value + 1 WHERE name = 'config_version'",
	} {
		if _, err := h.DB.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	h.ReadSettings(t)
	says("retrying")
	if page := h.Page(t, h.SignIn(t, access.Viewer), "/merchants/m1?lang=en").Body; !strings.Contains(page,
		"The breaker holds nothing back") || strings.Contains(page, "as a probe at") {
		t.Error("the merchant's page reports parked notifications")
	}
}

func TestABreakerIsOpenedAndClosedByHandOnTheRecord(t *testing.T) {
	t.Parallel()
	h := open(t)
	act := func(key, path, body string) webtest.Answer {
		return h.Api(t, key, "POST", webtest.Monitoring+"breakers/"+path, body)
	}
	const reason = `{"reason":"they moved to a new address"}`
	for path, want := range map[string]string{
		"m1/open":   "422 invalid_field reason",
		"none/open": "404 not_found",
		"m1/burn":   "404 not_found",
	} {
		body := reason
		if path == "m1/open" {
			body = `{"reason":"why"}`
		}
		if got := act(webtest.MonitorToken, path, body).Problem(); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	for range 2 { // asking twice is no error, and one act
		got := act(webtest.MonitorToken, "m1/open", reason).Object(t)
		if got["state"] != "open" || got["by_hand"] != true || got["open_until"] != nil {
			t.Errorf("opened: %v", got)
		}
	}
	if !h.Breakers.Of(recipient.OfMerchant(1)).Tripped() {
		t.Error("this node has not seen the change")
	}
	if got := h.pages(t, webtest.Monitoring+"merchants?merchant=m1")[0]["breaker"]; got != "open" {
		t.Errorf("among the merchants: %v", got)
	}
	if got := h.Api(t, webtest.MonitorToken, "GET", webtest.Monitoring+"realtime", "").Object(t)["breakers_open"]; got != 1.0 {
		t.Errorf("in realtime: %v", got)
	}
	ops := webtest.BearerOf(h.SignIn(t, access.Ops))
	if got := act(ops, "m1/close", reason).Object(t); got["state"] != "closed" {
		t.Errorf("closed: %v", got)
	}
	if got := act(webtest.BearerOf(h.SignIn(t, access.Viewer)), "m1/open", reason).Problem(); got != "403 forbidden" {
		t.Errorf("a viewer: %s", got)
	}
	one := h.pages(t, webtest.Monitoring+"breakers?merchant=m1")[0]
	var history []string
	for _, x := range one["history"].([]any) {
		x := x.(map[string]any)
		history = append(history, fmt.Sprint(x["from"], ">", x["to"], " ", x["actor"]))
	}
	if strings.Join(history, ", ") != "open>closed operator:the.ops, closed>open token:grafana" {
		t.Errorf("history %v", history)
	}
	if all := h.pages(t, webtest.Monitoring+"breakers?limit=1"); len(all) != 1 || all[0]["merchant"] != "m1" || all[0]["history"] != nil {
		t.Errorf("list %v", all)
	}
	if well := h.pages(t, webtest.Monitoring+"breakers?merchant=m2"); len(well) != 1 || well[0]["state"] != "closed" ||
		well[0]["changed_at"] != nil {
		t.Errorf("a merchant without a breaker must be healthy: %v", well)
	}
	acts, err := audit.List(t.Context(), h.DB.Read, audit.Query{Object: "merchant", ObjectID: "m1", Limit: 9})
	if err != nil || len(acts) != 2 || acts[1].Action != "breaker.open" || !strings.Contains(acts[1].Params, "new address") {
		t.Errorf("on the record: %+v, %v", acts, err)
	}
}
