package list

import (
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// TestIDsFollowTheKey has what reads a whole list neither sort nor scan the table: each
// query is a range of keys, or an index.
func TestIDsFollowTheKey(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ids := fill(t, d, 300)
		if _, err := d.NewRaw("ANALYZE exceptions").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := Slice{From: db.IDTime(ids[0]), To: d.Now() + 1_000_000}
		for name, terms := range map[string][]Term{
			"all": nil, "scanned": {{"state", "open"}}, "by an index": {{"no", "O3"}}, "of a merchant": nil,
		} {
			q := Query{exceptions(40), All(), terms}
			if name == "of a merchant" {
				q.Scope = Of(2)
			}
			seen := new(dbtest.Statements)
			unhook := dbtest.HookReads(d, seen)
			_, err := q.IDs(t.Context(), d, s, ids[299], 1000)
			unhook()
			if err != nil || len(seen.Texts) < 1 {
				t.Fatalf("%s: %d queries, %v", name, len(seen.Texts), err)
			}
			for _, text := range seen.Texts {
				for _, line := range dbtest.Plan(t, d, text) {
					whole := strings.Contains(line, "Seq Scan") || strings.Contains(line, "SCAN x") ||
						strings.Contains(line, "SCAN exceptions")
					sorts := strings.Contains(line, "USE TEMP B-TREE FOR ORDER BY") || strings.Contains(line, "Sort Key: x.id")
					if whole && !strings.Contains(line, "INDEX") || sorts && name != "by an index" { // which has few rows to sort
						t.Errorf("%s: %s\n%s", name, text, line)
					}
				}
			}
		}
	})
}
