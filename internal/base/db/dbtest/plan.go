package dbtest

import (
	"testing"

	"backstop/internal/base/db"
)

// Plan returns the database's plan of a query, line by line.
func Plan(t testing.TB, d *db.DB, query string) (lines []string) {
	t.Helper()
	explain := "EXPLAIN QUERY PLAN "
	if d.IsPostgres() {
		explain = "EXPLAIN "
	}
	rows, err := d.Read.DB.QueryContext(t.Context(), explain+query) // bun would look for placeholders in the text
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var line string
		cells := make([]any, len(columns))
		for i := range cells {
			cells[i] = new(any)
		}
		cells[len(cells)-1] = &line // SQLite has three numbers before it
		if err := rows.Scan(cells...); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}
