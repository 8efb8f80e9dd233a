package notify

import (
	"strings"
	"testing"

	"backstop/internal/db/dbtest"
)

// A claim costs what it claims, however much else is due: with the condition on the
// moment left open to the planner, each claim walked all of it.
func TestAClaimDoesNotWalkTheBacklog(t *testing.T) {
	d := dbtest.Postgres(t)
	const rows = "INSERT INTO deliveries (id, event_id, merchant_id, subject_id, event_type, channel, url, status, next_at, created_at)" +
		" SELECT i, i, i % 20, i, 'order.paid', 'webhook', '', 'queued', "
	// What is known of the table dates from a quiet hour, as it usually does.
	for _, text := range []string{
		rows + "CASE WHEN i % 300 = 0 THEN i END, 1 FROM generate_series(1, 20000) AS i", "ANALYZE deliveries",
		rows + "i, 1 FROM generate_series(20001, 40000) AS i",
	} {
		if _, err := d.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	plan := func(text string) string {
		var lines []string
		args := claimArgs(d, 2, []int64{5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, []int64{0}, d.Now())
		if err := d.Prepared(t.Context(), d.DB, &lines, "EXPLAIN "+text, args...); err != nil {
			t.Fatal(err)
		}
		return strings.Join(lines, "\n")
	}
	if got := plan(claimUpdate); !strings.Contains(got, "deliveries_pkey") || strings.Contains(got, "deliveries_due") {
		t.Errorf("a claim is planned as\n%s", got)
	}
	// The control: what the planner makes of the same question asked plainly.
	if got := plan(strings.Replace(claimUpdate, "coalesce(next_at, 9223372036854775807)", "next_at", 1)); !strings.Contains(got, "deliveries_due") {
		t.Errorf("the plain question is planned well too, the trap is gone:\n%s", got)
	}
}
