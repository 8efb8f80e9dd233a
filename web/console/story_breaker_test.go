package console

import (
	"fmt"
	"strings"
	"testing"

	"backstop/internal/access"
)

// A merchant whose breaker is open is named as the reason, with what proves it and
// when it is tried again; nothing is planned that the breaker holds back.
func TestASentenceNamesTheBreaker(t *testing.T) {
	t.Parallel()
	h := open(t)
	start := h.DB.Now() - 200_000_000
	script(t, h.DB, start, "plain")
	h.ReadSettings(t)
	cookie := h.SignIn(t, access.Viewer)
	exec := func(queries ...string) {
		t.Helper()
		for _, q := range queries {
			if _, err := h.DB.ExecContext(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.Breakers.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	now := h.DB.Now()
	setNotify(t, h.DB, "waits_ms", []int{1000, 17000})
	exec("DELETE FROM exceptions",
		fmt.Sprintf("UPDATE deliveries SET status = 'retry_wait', finished_at = NULL, next_at = %d WHERE id = 9301", now+5_000_000),
		fmt.Sprintf("INSERT INTO breakers (owner_id, state, generation, failures, cause, changed_at, open_until, updated_at)"+
			" VALUES (1, 'open', 1, 5, 'failures_in_a_row', %[1]d, %[2]d, %[1]d)", start+140_000_000, now+240_000_000),
		fmt.Sprintf("INSERT INTO breaker_history (id, owner_id, generation, from_state, to_state, cause, failures, at)"+
			" VALUES (9900, 1, 1, 'closed', 'open', 'failures_in_a_row', 5, %d), (9000, 1, 0, 'closed', 'open', 'by_hand', 77, %[1]d)",
			start+140_000_000))
	h.ReadSettings(t)
	page := h.Page(t, cookie, scripted+"?lang=en").Body
	inOrder(t, page, "Parked", "breaker is open (failures in a row: 5)", "Evidence", "breaker: failures_in_a_row, 5",
		"Breaker 1", "Attempt 2", "failures in a row: 5", "Planned: one notification is sent as a probe")
	for _, wrong := range []string{"Planned: attempt", "by an operator"} {
		if strings.Contains(page, wrong) {
			t.Errorf("the story contains %q", wrong)
		}
	}
	exec("UPDATE breakers SET by_hand = TRUE, open_until = 0, cause = 'by_hand', generation = 2")
	if page := h.Page(t, cookie, scripted+"?lang=en").Body; !strings.Contains(page, "An operator opened this merchant&#39;s breaker") ||
		strings.Contains(page, "Planned:") {
		t.Error("the story does not say that a person opened the breaker, or plans something")
	}
	exec("UPDATE breakers SET by_hand = FALSE, state = 'closed', failures = 0, cause = 'probe_taken', generation = 3",
		fmt.Sprintf(
			"INSERT INTO breaker_history (id, owner_id, generation, from_state, to_state, cause, failures, at) VALUES (9901, 1, 3, 'open', 'closed', 'probe_taken', 0, %d)", h.DB.Now()))
	inOrder(t, h.Page(t, cookie, scripted+"?lang=en").Body, "attempt 2 failed", "Breaker 1", "the probe succeeded", "Planned: attempt 3")
}
