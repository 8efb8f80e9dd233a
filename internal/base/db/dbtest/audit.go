package dbtest

import (
	"testing"

	"backstop/internal/base/db"
)

// UnlockAudit removes the triggers that protect the audit's rows against changes, as an owner
// of the database can.
func UnlockAudit(t testing.TB, d *db.DB) {
	t.Helper()
	statements := []string{"DROP TRIGGER audit_no_update", "DROP TRIGGER audit_no_delete", "DROP TRIGGER audit_no_replace"}
	if d.IsPostgres() {
		statements = []string{"DROP TRIGGER audit_append_only ON audit"}
	}
	for _, s := range statements {
		if _, err := d.NewRaw(s).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
