package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/breaker"
	"backstop/internal/recipient"
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

// The rows of a batch say what came of them, its approval shows what the plan shows, both lead to
// each other, and to the breaker that rows wait for.
func TestABatchAndItsApprovalSayTheSame(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		h.Nudge = func([]queue.Nudge) {}
		exhaust(t, d, 4)
		const each = 5_000_000 // of a limit of 10,000,000
		for _, table := range []string{"deliveries", "orders", "exceptions"} {
			change(t, d, "UPDATE "+table+" SET amount = ?", each)
		}
		change(t, d, "UPDATE deliveries SET url = 'https://a.test/n'")
		if _, err := d.NewInsert().Model(&breaker.Row{
			OwnerID: 2, OwnerKind: recipient.Merchant, State: breaker.Open, Cause: breaker.InARow, ChangedAt: d.Now(),
			OpenUntil: d.Now() + 3600_000_000, UpdatedAt: d.Now(),
		}).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := h.Breakers.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		ops, lead := h.SignIn(t, access.Ops), h.SignIn(t, access.Lead)
		plan := h.Post(t, ops, "/batches/plan/notifications/resend?status=exhausted", "pick", "all").Header.Get("Location")
		shows := func(path string, texts ...string) {
			t.Helper()
			page := h.Page(t, lead, path+"?lang=en").Body
			for _, text := range texts {
				if !strings.Contains(page, text) {
					t.Errorf("%s lacks %q", path, text)
				}
			}
		}
		const closes = `href="/merchants/m2#breaker-title"`
		shows(plan, "Waits for the breaker")
		if page := h.Page(t, ops, plan+"?lang=en").Body; !strings.Contains(page, closes) {
			t.Error("the plan does not lead to the breaker")
		}
		h.onBatch(t, ops, plan, "start", "amount_CNY", "200000.00")
		proposed := fmt.Sprintf("/approvals/apr_%d", number(t, d, "SELECT approval_id FROM batches"))
		shows(plan, `href="`+proposed+`"`)
		shows(proposed, `href="`+plan+`"`, "Waits for the breaker", "4 of them wait for a breaker", "¥200,000.00", closes)
		if page := h.Page(t, lead, proposed+"?lang=en").Body; strings.Contains(page, "&#34;currency") || strings.Contains(page, " (4)") {
			t.Error("the approval shows what it stores")
		}
		approve := append(formOf(t, h.Page(t, lead, proposed).Body, proposed+"/approve"), "reason", "as planned with them")
		if got := h.Post(t, lead, proposed+"/approve", approve...); got.Status != http.StatusSeeOther {
			t.Fatalf("approve: %d %s", got.Status, got.Body)
		}
		h.over(t, plan)
		ids := numbers(t, d, "SELECT object_id FROM batch_rows ORDER BY number")
		change(t, d, "UPDATE deliveries SET status = 'delivered', next_at = NULL WHERE id = ?", ids[0])
		change(t, d, "UPDATE deliveries SET next_at = ? WHERE id = ?", d.Now()+60_000_000, ids[1])
		_, rows, _ := strings.Cut(h.Page(t, lead, plan+"?lang=en").Body, `id="rows"`)
		for text, want := range map[string]int{"Notified": 1, "Refused": 1, "Waits for the breaker": 2, "Will run": 0, "Not processed": 1} {
			if got := strings.Count(rows, text); got != want {
				t.Errorf("%d rows say %q, want %d\n%s", got, text, want, rows)
			}
		}
	})
}
