package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// The list of batches is filtered, counted and exported like every other.
func TestBatchesAreAListLikeAnyOther(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		h.InTrouble(t)
		exhaust(t, d, 2)
		ops := h.SignIn(t, access.Ops)
		plan := h.Post(t, ops, "/batches/plan/notifications/resend?status=exhausted", "pick", "all").Header.Get("Location")
		if !strings.HasPrefix(plan, "/batches/bat_") {
			t.Fatalf("no plan: %q", plan)
		}
		for text, found := range map[string]bool{
			`state:planned maker:the.ops action:resend`: true, `state:planned`: true, `状态：待执行`: true, `state:done`: false,
			`maker:nobody`: false, `action:close`: false,
		} {
			address := h.Page(t, ops, "/batches?q="+url.QueryEscape(text)).Header.Get("Location")
			if got := h.Page(t, ops, address); address == "" || got.Status != http.StatusOK || strings.Contains(got.Body, plan) != found {
				t.Errorf("%s: at %q, %d, found is not %t", text, address, got.Status, found)
			}
		}
		if got := h.Page(t, ops, "/batches?q=state:nowhere"); got.Status != http.StatusUnprocessableEntity ||
			!strings.Contains(got.Body, "planned, waiting") {
			t.Errorf("an unknown state: %d", got.Status)
		}
		rows := cells(t, h.Page(t, ops, "/batches?state=planned&lang=en&format=csv").Body)
		if rows[2][0] != strings.TrimPrefix(plan, "/batches/") || !slices.Contains(rows[2], "20.00 CNY") {
			t.Errorf("exported: %q", rows)
		}
	})
}
