package dbtest

import (
	"strings"
	"testing"

	"backstop/internal/base/db"
)

// Hostile are texts that break out of SQL, or that a column cannot be compared with.
var Hostile = []string{
	"", "x')) OR 1=1; UPDATE operators SET role = 'lead'; --", "' OR 1=1 --", `"; DELETE FROM orders; --`, "a\x00b", "\xff\xfe",
	"99999999999999999999999999", "-1", strings.Repeat("9a", 5000), "%", `\`, "１２３",
}

// Counts returns the number of rows of each table.
func Counts(t *testing.T, d *db.DB) map[string]int {
	t.Helper()
	query := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if d.IsPostgres() {
		query = "SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'"
	}
	var names []string
	if err := d.NewRaw(query).Scan(t.Context(), &names); err != nil || len(names) == 0 {
		t.Fatalf("%d tables: %v", len(names), err)
	}
	all := map[string]int{}
	for _, name := range names {
		var n int
		if err := d.NewRaw("SELECT count(*) FROM "+name).Scan(t.Context(), &n); err != nil {
			t.Fatal(err)
		}
		all[name] = n
	}
	return all
}
