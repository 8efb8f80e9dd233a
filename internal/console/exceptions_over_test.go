package console

import (
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/list"
)

// What is over is found however much of it there is and however old it is, by its index: 21,000 resolved exceptions are behind 26,000 newer open ones, more than any list searches.
func TestWhatIsOverIsReadByItsIndex(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const rows, open = 47_000, 26_000
		for _, query := range []string{
			"WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < ?0)" +
				" INSERT INTO exceptions (id, kind, state, merchant_id, order_no, subject, amount, currency, detail, opened_at, updated_at)" +
				" SELECT i, CASE WHEN i % 2 = 0 THEN 'late_payment' ELSE 'unknown_order' END, CASE WHEN i > ?0 - ?1 THEN 'open' WHEN i % 5000 = 0 THEN 'ignored' ELSE 'resolved' END, 1, 'O' || i, CAST(i AS TEXT), 1, 'CNY', '{}', 1, 1 FROM n",
			"ANALYZE exceptions",
		} {
			if _, err := d.NewRaw(query, rows, open).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		b := newBreakers(t, d)
		for state, first := range map[string]int64{"resolved": rows - open, "ignored": 20_000} {
			for _, terms := range [][]string{{"state", state}, {"state", state, "kind", "late_payment"}} {
				seen := new(dbtest.Statements)
				unhook := dbtest.HookReads(d, seen)
				page, err := b.Exceptions(t.Context(), ask(ExceptionList, terms...), list.Slice{})
				unhook()
				if err != nil || len(page.Rows) == 0 || page.Reached != 0 {
					t.Fatalf("%v: %d rows, reached %d, %v", terms, len(page.Rows), page.Reached, err)
				}
				if got := page.Rows[0].ID; got != first && got != first-1 { // the newest, or the newest of the kind
					t.Errorf("%v: the first is %d, want %d", terms, got, first)
				}
				if len(terms) > 2 || !d.IsPostgres() { // SQLite may prefer the order of the ids
					continue
				}
				for _, text := range seen.Texts {
					if plan := strings.Join(dbtest.Plan(t, d, text), "\n"); !strings.Contains(plan, "exceptions_"+state) ||
						strings.Contains(plan, "Sort") || strings.Contains(plan, "TEMP B-TREE") {
						t.Errorf("%v: %s\n%s", terms, text, plan)
					}
				}
			}
		}
	})
}
