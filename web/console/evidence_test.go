package console

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/console"
	"backstop/internal/evidence"
	"backstop/web/webtest"
)

func TestEvidenceIsSignedWholeAndAudited(t *testing.T) {
	t.Parallel()
	h := open(t)
	script(t, h.DB, shanghai2026, webtest.Hostile+"\u2028\u202e")
	h.ReadSettings(t)
	cookie := h.SignIn(t, access.Auditor)
	rows, head, err := audit.Head(t.Context(), h.DB.Read)
	if err != nil {
		t.Fatal(err)
	}
	got := h.Page(t, cookie, scripted+"/evidence?format=json")
	if got.Status != http.StatusOK || got.Header.Get("Content-Disposition") != `attachment; filename="evidence-`+scriptedNo+`.json"` {
		t.Fatalf("%d %v", got.Status, got.Header)
	}
	f, err := evidence.Check([]byte(got.Body), h.Keys.SigningKeys()[0].Public)
	if err != nil {
		t.Fatal(err)
	}
	var e console.Evidence
	if err := json.Unmarshal(f.Evidence, &e); err != nil {
		t.Fatal(err)
	}
	if e.ExportedBy != "operator:the.auditor" || e.Zone != "Asia/Shanghai" || e.AuditRows != rows || e.AuditHead != head || !e.Complete ||
		!strings.HasSuffix(e.ExportedAt, "+08:00") {
		t.Errorf("made by %s in %s after %d %s, at %s", e.ExportedBy, e.Zone, e.AuditRows, e.AuditHead, e.ExportedAt)
	}
	var kinds []string
	for _, event := range e.Events {
		kinds = append(kinds, event["kind"].(string))
	}
	if want := []string{"status", "callback", "status", "notification", "attempt", "callback", "attempt", "exception"}; !slices.Equal(kinds,
		want) {
		t.Errorf("events %v, want %v", kinds, want)
	}
	if at := e.Events[1]["at"]; at != "2026-11-20T14:31:08.204000+08:00" {
		t.Errorf("the callback arrived at %v", at)
	}
	if len(e.Ledger) != 1 || e.Ledger[0]["amount"] != "349900" || e.Order["amount"] != "349900" {
		t.Errorf("money %v of %v", e.Ledger, e.Order)
	}
	if strings.Contains(got.Body, "secret-openid") {
		t.Error("the file contains personal data")
	}
	acts, err := audit.List(t.Context(), h.DB.Read, audit.Query{Object: "order", ObjectID: scriptedNo, Limit: 9})
	if err != nil || len(acts) != 1 || acts[0].Action != "order.evidence" || !strings.Contains(acts[0].Params, f.SHA256) {
		t.Errorf("the audit has %+v, %v", acts, err)
	}
	keys := h.Call(t, http.MethodGet, "/evidence-keys", "").Body
	if !strings.Contains(keys, f.Signature.PublicKey) || !strings.Contains(keys, f.Signature.KeyID) {
		t.Errorf("published keys are %s", keys)
	}
}

func TestEvidenceIsASheetForPaperToo(t *testing.T) {
	t.Parallel()
	h := open(t)
	script(t, h.DB, shanghai2026, webtest.Hostile)
	h.ReadSettings(t)
	cookie := h.SignIn(t, access.Finance)
	body := h.Page(t, cookie, scripted+"/evidence?lang=en").Body
	inOrder(t, body, "Exported by", "the.finance", "Asia/Shanghai", "SHA-256", "Ed25519", "Public key", "Head of the audit chain",
		"supplier:wx → merchant:m1",
		"Order created", "Callback received", "Attempt 1", "Attempt 2", "Exception opened", "backstop-evidence/1")
	if strings.Contains(body, "secret-openid") || strings.Contains(body, "<script>alert") || strings.Contains(body, "<img") {
		t.Error("the sheet contains personal data, or a stranger's text as markup")
	}
	for path, want := range map[string]int{"/evidence?format=pdf": http.StatusUnprocessableEntity, "0/evidence": http.StatusNotFound} {
		if got := h.Page(t, cookie, scripted+path); got.Status != want {
			t.Errorf("%s: %d, want %d", path, got.Status, want)
		}
	}
	if got := h.Call(t, http.MethodGet, scripted+"/evidence", "", "Cookie", cookie, "Sec-Fetch-Site",
		"cross-site"); got.Status != http.StatusForbidden {
		t.Errorf("from another site: %d", got.Status)
	}
}
