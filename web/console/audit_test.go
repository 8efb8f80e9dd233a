package console

import (
	"context"
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
