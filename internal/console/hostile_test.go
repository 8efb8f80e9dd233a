package console

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/invalid"
	"backstop/internal/list"
)

// TestHostileTextsMatchNothing reads every list by each of its fields with each hostile text: it
// is refused as a wrong value, or matches nothing.
func TestHostileTextsMatchNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBreakers(t, d)
		putOrders(t, d, 10)
		for _, query := range []string{
			"INSERT INTO operators (id, name, role, password_hash, must_change, created_at, updated_at) VALUES (1, 'vi', 'viewer', '', FALSE, 0, 0)",
		} {
			if _, err := d.NewRaw(query).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		before := dbtest.Counts(t, d)
		read, now := readers(t, b), d.Now()
		for _, spec := range list.Registered() {
			for _, f := range spec.Fields {
				for _, text := range dbtest.Hostile {
					q := list.Query{Spec: spec, Scope: list.All(), Terms: []list.Term{{Name: f.Name, Value: text}}}
					s := list.Slice{To: now + 3600_000_000, Totals: true}
					ids, err := q.IDs(t.Context(), d, s, now, 10)
					_, _, failed := q.Count(t.Context(), d, s, 10)
					var wrong *invalid.FieldError
					for _, err := range []error{err, failed, read[spec](q, s)} {
						if err != nil && !errors.As(err, &wrong) {
							t.Errorf("%s by %s of %.40q: %v", spec.Name, f.Name, text, err)
						}
					}
					if len(ids) > 0 {
						t.Errorf("%s by %s of %.40q matches %v", spec.Name, f.Name, text, ids)
					}
				}
			}
		}
		for table, n := range dbtest.Counts(t, d) {
			if n != before[table] {
				t.Errorf("%s has %d rows after the reads, want %d", table, n, before[table])
			}
		}
		var leads int
		if err := d.NewRaw("SELECT count(*) FROM operators WHERE role <> 'viewer'").Scan(t.Context(), &leads); err != nil || leads > 0 {
			t.Errorf("%d operators are leads: %v", leads, err)
		}
	})
}

// TestEveryListIsRegistered finds lists that are declared without list.New.
func TestEveryListIsRegistered(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"../*/*.go", "../*/*/*.go", "../../*.go", "../../web/*/*.go", "../../views/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s matches %d files: %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			rest := strings.ReplaceAll(string(text), "list.New(list.Spec{", "")
			if !strings.HasSuffix(file, "_test.go") && strings.Contains(rest, "list.Spec{") {
				t.Errorf("%s declares a list without list.New", file)
			}
		}
	}
}
