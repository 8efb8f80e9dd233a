package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"backstop/internal/access"
)

// put sends an object with the version that the caller saw; "" = none.
func (h *harness) put(t *testing.T, key, path, version, body string) (status string, answer map[string]any) {
	t.Helper()
	header := []string{"Authorization", "Bearer " + key}
	if version != "" {
		header = append(header, "If-Match", version)
	}
	got := h.Call(t, "PUT", settingsPath+path, body, header...)
	_ = json.Unmarshal([]byte(got.Body), &answer)
	return got.Problem(), answer
}

const newMerchant = `{"object": {"name": "Shop ☕ 7", "api_key": "sk_live_0123456789abcdef9",
	"signing_secret": "whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=",
	"notify": {"urls": ["https://shop.example/notify"], "timeout": "3s", "max_in_flight": 7}}, "reason": "a new contract"}`

func TestOneObjectIsReadAndChangedByItsVersion(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, admin := h.person(t, "ada", access.Admin)
	const path = "merchants/shop"
	if got := h.Api(t, admin, "GET", settingsPath+path, "").Problem(); got != "404 not_found" {
		t.Errorf("before it is made: %s", got)
	}
	if got, made := h.put(t, admin, path, "", newMerchant); got != "200" || fmt.Sprint(made["outcome"]) != "[merchant shop created]" {
		t.Fatalf("%s %v", got, made)
	}
	is := h.Api(t, admin, "GET", settingsPath+path, "")
	etag, read := is.Header.Get("ETag"), is.Object(t)
	object := read["object"].(map[string]any)
	notify := object["notify"].(map[string]any)
	if object["name"] != "Shop ☕ 7" || object["api_key"] != "stored:api_key" || notify["max_in_flight"] != 7.0 || notify["timeout"] != "3s" {
		t.Errorf("%v", object)
	}
	for _, want := range []string{"field:signing_secret last_used_at:<nil> set_at:20", "field:api_key last_used_at:<nil> set_at:20"} {
		if secrets := fmt.Sprint(read["secrets"]); !strings.Contains(secrets, want) || strings.Contains(is.Body, "whsec") {
			t.Errorf("%s", is.Body)
		}
	}
	if got := h.Api(t, "sk_live_0123456789abcdef9", "GET", "/api/v1/orders/none", ""); got.Problem() != "404 not_found" {
		t.Errorf("the merchant's key: %s", got.Problem())
	}
	used := fmt.Sprint(h.Api(t, admin, "GET", settingsPath+path, "").Object(t)["secrets"])
	if !strings.Contains(used, "field:api_key last_used_at:20") || !strings.Contains(used, "field:signing_secret last_used_at:<nil>") {
		t.Errorf("after a request: %s", used)
	}
	body := func(change string) string {
		raw, _ := json.Marshal(object)
		return fmt.Sprintf(`{"object": %s, "reason": "as agreed"}`, strings.Replace(string(raw), `"timeout":"3s"`, change, 1))
	}
	changed := body(`"timeout":"4s"`)
	for _, c := range [][3]string{
		{"", changed, "428 version_needed"},
		{`"1"`, changed, "412 changed"},
		{"x", changed, "412 changed"},
		{etag, body(`"timeout":"4m"`), "422 invalid_field notify.timeout"},
		{etag, body(`"timeout":4`), "422 invalid_field notify.timeout"},
		{etag, body(`"colour":"red"`), "422 invalid_field notify.colour"},
		{etag, `{"object": {"name": "x"}, "reason": "short"}`, "422 invalid_field reason"},
		{etag, `{"object": null}`, "422 invalid_field object"},
		{etag, `{"object": [1]}`, "422 invalid_field object"},
		{etag, `{"object": {"signing_secret": "file:/etc/hostname"}}`, "422 invalid_field signing_secret"},
	} {
		if got, answer := h.put(t, admin, path, c[0], c[1]); got != c[2] {
			t.Errorf("%s %s: %s, want %s: %v", c[0], c[1], got, c[2], answer)
		}
	}
	got, dry := h.put(t, admin, path+"?dry_run=true", etag, changed)
	if got != "200" || dry["dry_run"] != true || fmt.Sprint(dry["differences"]) != "[map[field:notify.timeout new:4s old:3s waits:false]]" {
		t.Errorf("%s %v", got, dry)
	}
	if got, done := h.put(t, admin, path, etag, changed); got != "200" || fmt.Sprint(done["outcome"]) != "[merchant shop changed: notify.timeout]" {
		t.Errorf("%s %v", got, done)
	}
	if got, _ := h.put(t, admin, path, etag, changed); got != "412 changed" {
		t.Errorf("with the version before: %s", got)
	}
	if m := h.Settings.Merchants().ByCode("shop"); m == nil || m.Settings.TimeoutMS != 4000 {
		t.Errorf("the server uses %+v", m)
	}
}

func TestSettingsAreForPeopleWhoMay(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, admin := h.person(t, "ada", access.Admin)
	_, lead := h.person(t, "lu", access.Lead)
	service := h.token(t, "monitor,control,compensate")
	for _, path := range []string{"schema", "merchants/m1", "suppliers/wx", "approval"} {
		if got := h.Api(t, service, "GET", settingsPath+path, "").Problem(); got != "403 person_needed" {
			t.Errorf("%s by a service: %s", path, got)
		}
		if got := h.Api(t, lead, "GET", settingsPath+path, "").Status; got != 403 {
			t.Errorf("%s by a lead: %d", path, got)
		}
		if got := h.Api(t, admin, "GET", settingsPath+path, "").Status; got != 200 {
			t.Errorf("%s by an admin: %d", path, got)
		}
	}
	if got, _ := h.put(t, service, "merchants/shop", "", newMerchant); got != "403 person_needed" {
		t.Errorf("changed by a service: %s", got)
	}
}

func TestAnotherPersonApprovesWhatThePutProposed(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, admin := h.person(t, "ada", access.Admin)
	_, lead := h.person(t, "lu", access.Lead)
	h.put(t, admin, "merchants/shop", "", newMerchant)
	if got, answer := h.put(t, admin, "approval", h.Api(t, admin, "GET", settingsPath+"approval", "").Header.Get("ETag"),
		`{"object": {"apply": true}}`); got != "200" || len(answer["approvals"].([]any)) != 0 {
		t.Fatalf("%s %v", got, answer)
	}
	h.Notify(t, "ord_1", 1) // now there are orders
	etag := h.Api(t, admin, "GET", settingsPath+"merchants/shop", "").Header.Get("ETag")
	const fees = `{"object": {"fees": [{"rate": "1.2%"}]}, "reason": "the new contract"}`
	got, done := h.put(t, admin, "merchants/shop", etag, fees)
	ids, _ := done["approvals"].([]any)
	if got != "200" || len(ids) != 1 || !strings.Contains(fmt.Sprint(done["outcome"]), "fees proposed apr_") {
		t.Fatalf("%s %v", got, done)
	}
	if got, _ := h.put(t, admin, "merchants/shop", etag, strings.Replace(fees, "1.2", "1.3", 1)); got != "409 proposed" {
		t.Errorf("another change of it: %s", got)
	}
	path := approvals + "/" + ids[0].(string)
	hash := h.Api(t, lead, "GET", path, "").Object(t)["hash"].(string)
	approve := fmt.Sprintf(`{"hash": %q, "reason": "as agreed with them"}`, hash)
	if got := h.Api(t, admin, "POST", path+"/approve", approve).Status; got != 403 {
		t.Errorf("by who proposed it: %d", got)
	}
	if got := h.Api(t, lead, "POST", path+"/approve", approve); got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	is := h.Api(t, admin, "GET", settingsPath+"merchants/shop", "").Object(t)["object"].(map[string]any)
	if !strings.Contains(fmt.Sprint(is["fees"]), "rate:1.2%") {
		t.Errorf("fees %v", is["fees"])
	}
}
