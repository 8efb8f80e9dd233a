package db_test

import (
	"net/url"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/migrations"
)

func TestADatabaseThatTakesNoWritesSaysSo(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if err := d.Writable(t.Context()); err != nil {
			t.Errorf("a healthy one: %v", err)
		}
	})
	const write = "INSERT INTO settings (name, value) VALUES ('x', 1)"
	t.Run("postgres standby", func(t *testing.T) {
		u, err := url.Parse(dbtest.PostgresURL(t))
		if err != nil {
			t.Fatal(err)
		}
		dbtest.Open(t, db.Options{URL: u.String()}) // makes the schema
		q := u.Query()
		q.Set("default_transaction_read_only", "on")
		u.RawQuery = q.Encode()
		d, err := db.Open(t.Context(), db.Options{URL: u.String()})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := d.Writable(t.Context()); err == nil {
			t.Error("it accepts writes")
		}
		if _, err := d.ExecContext(t.Context(), write); !db.IsReadOnly(err) || !db.IsUnavailable(err) {
			t.Errorf("a write ends with %v", err)
		}
		if _, err := d.Migrate(t.Context(), migrations.Files); err == nil || !strings.Contains(err.Error(), "to the primary") {
			t.Errorf("the start ends with %v, which does not contain what to fix", err)
		}
	})
	t.Run("sqlite", func(t *testing.T) {
		d := dbtest.SQLite(t)
		if _, err := d.ExecContext(t.Context(), "PRAGMA query_only = 1"); err != nil {
			t.Fatal(err)
		}
		if _, err := d.ExecContext(t.Context(), write); !db.IsReadOnly(err) || !db.IsUnavailable(err) {
			t.Errorf("a write ends with %v", err)
		}
		if _, err := d.ExecContext(t.Context(), "PRAGMA query_only = 0"); err != nil {
			t.Fatal(err)
		}
		if _, err := d.ExecContext(t.Context(), "NOT SQL"); err == nil || db.IsReadOnly(err) {
			t.Errorf("another error: %v", err)
		}
	})
}
