package console

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"
)

// The page says of the chain what verify says: what holds, what does not, and
// where a key is missing.
func TestTheAuditPageSaysWhatTheChainProves(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, err := d.NewRaw(
			"INSERT INTO audit (number, at, actor, action, object, object_id, params, remote_addr, hash) VALUES (1, 5, 'operator:old', 'order.note', 'order', 'O', '{}', '', ?)",
			"cd8b8b2a27ec6b9a8c0c6d3ec9ac7ba8b5dd4c4db3f6a3a9b4b05b9d0a1fe54a").Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h := openOn(t, d)
		cookie := h.SignIn(t, access.Auditor)
		check := func() string { return h.Page(t, cookie, "/audit?check=1&lang=en").Body }
		if got := check(); !strings.Contains(got, "The chain breaks at row 1") {
			t.Error("the page does not report the row without a key")
		}
		err = d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			return audit.New(d, sealtest.Ring(t, 9)).Write(ctx, tx, audit.Act{
				Actor: "command:x", Action: "token.add", Object: "token",
				ObjectID: "x",
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := check(); !strings.Contains(got, "Key needed: rows from ") || strings.Contains(got, "Chain verified") {
			t.Error("it does not say that a key is missing")
		}
		if plain := h.Page(t, cookie, "/audit?lang=en").Body; strings.Contains(plain, "Key needed") ||
			strings.Contains(plain, "The chain breaks") {
			t.Error("it reports a result without having checked")
		}
	})
}

// Who may not read the whole audit reads what people with the same role did, on the page and in files.
func TestOpsReadsTheAuditOfOps(t *testing.T) {
	t.Parallel()
	h := open(t)
	lead, ops := h.SignIn(t, access.Lead), h.SignIn(t, access.Ops)
	for _, path := range []string{"/audit?lang=en", "/audit?lang=en&role=lead", "/audit?lang=en&check=1", "/audit?lang=en&format=csv"} {
		body := h.Page(t, ops, path).Body
		if strings.Contains(body, "operator:the.lead") || strings.Contains(body, ">the.lead<") {
			t.Errorf("%s shows what a lead did", path)
		}
		if path == "/audit?lang=en" && (!strings.Contains(body, "the.ops") || !strings.Contains(body, "Only what people with the role Operations did.")) {
			t.Errorf("%s does not show what ops did", path)
		}
		if strings.Contains(body, `href="/audit?check=1"`) || strings.Contains(body, "The chain") {
			t.Errorf("%s offers the check of the chain", path)
		}
	}
	if body := h.Page(t, lead, "/audit?lang=en").Body; !strings.Contains(body, "the.ops") || !strings.Contains(body, "the.lead") {
		t.Error("a lead does not see all of the audit")
	}
	finance := ""
	for _, role := range []string{access.Viewer, access.Support, access.Finance} {
		finance = h.SignIn(t, role)
		if got := h.Page(t, finance, "/audit"); got.Status != http.StatusForbidden {
			t.Errorf("%s: %d", role, got.Status)
		}
	}
	// Who shares one of several roles.
	if _, err := h.DB.NewRaw("UPDATE operators SET role = 'finance,ops' WHERE name = 'the.finance'").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if body := h.Page(t, ops, "/audit?lang=en").Body; !strings.Contains(body, "the.finance") || strings.Contains(body, "the.lead") {
		t.Error("ops does not see what somebody did who is ops too, or sees others")
	}
	if got := h.Page(t, finance, "/audit?lang=en"); !strings.Contains(got.Body, "the.ops") {
		t.Errorf("who is ops too does not see what ops did: %d", got.Status)
	}
}
