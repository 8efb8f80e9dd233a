package console

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// Disputes are found by the deadline of their evidence, the next one first, and the to-do names that one.
func TestDisputesAreFoundByTheirDeadline(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		now := d.Now()
		for id, x := range map[int64]struct {
			status string
			due    time.Duration
		}{
			1: {"opened", 50 * time.Hour}, 2: {"opened", 2 * time.Hour}, 3: {"opened", -time.Hour}, 4: {"answered", time.Hour},
			5: {"opened", 30 * 24 * time.Hour},
		} {
			change(t, d, "INSERT INTO disputes (id, dispute_no, supplier_id, account_id, supplier_dispute_no, trade_no, amount, currency, status,"+
				" due_by, opened_at) VALUES (?, ?, 1, 1, ?, '', 100, 'CNY', ?, ?, 5)", id, "D"+string(rune('0'+id)), id, x.status,
				now+x.due.Microseconds())
		}
		change(t, d, "INSERT INTO disputes (id, dispute_no, supplier_id, account_id, supplier_dispute_no, trade_no, amount, currency, status, opened_at)"+
			" VALUES (6, 'D6', 1, 1, '6', '', 100, 'CNY', 'opened', 5)")
		lead := h.SignIn(t, access.Lead)
		number := regexp.MustCompile(`href="/disputes/(D\d)"`)
		for due, want := range map[string]string{"any": "D3 D2 D1 D5", "over": "D3", "1d": "D2", "3d": "D2 D1", "7d": "D2 D1"} {
			page := h.Page(t, lead, "/disputes?lang=en&due="+due).Body
			var got []string
			for _, m := range number.FindAllStringSubmatch(page, -1) {
				got = append(got, m[1])
			}
			if !slices.Equal(slices.Compact(got), strings.Fields(want)) || !strings.Contains(page, "the next deadline first") {
				t.Errorf("due %s: %v, not %s", due, got, want)
			}
		}
		change(t, d, "INSERT INTO exceptions (id, kind, state, supplier_id, subject, amount, currency, detail, opened_at, updated_at)"+
			" VALUES (7, 'dispute_opened', 'open', 1, '2', 100, 'CNY', '{}', 5, 5)")
		if page := h.Page(t, lead, "/?lang=en").Body; !strings.Contains(page, "next evidence due: D2, ") {
			t.Error("the to-do does not name the next deadline")
		}
	})
}
