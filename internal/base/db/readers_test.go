package db_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"

	"github.com/uptrace/bun"
)

const (
	change   = "UPDATE settings SET value = '2'"
	original = "SELECT count(*) FROM settings WHERE name = 'x' AND value = '1'"
)

// hostile are texts that change something, each in its own way. The database refuses each. Before
// version 16, PostgreSQL does not refuse to create large objects.
func hostile(postgres bool, folder string) []string {
	common := []string{
		change,
		"INSERT INTO settings (name, value) VALUES ('y', '2')",
		"DELETE FROM settings",
		"CREATE TABLE made (id BIGINT)",
		"DROP TABLE settings",
		"SELECT 1; " + change,
	}
	if postgres {
		return append(common,
			"WITH w AS (UPDATE settings SET value = '2' RETURNING 1) SELECT * FROM w",
			"SELECT 1 FROM settings FOR UPDATE",
			"CREATE TEMPORARY TABLE settings AS SELECT 'x' AS name, '2' AS value",
			"SET TRANSACTION READ WRITE; "+change,
			"SET default_transaction_read_only = off; COMMIT; "+change,
			"COMMIT; BEGIN READ WRITE; "+change,
			"SELECT set_config('transaction_read_only', 'off', false)",
			"DO $$ BEGIN UPDATE settings SET value = '2'; END $$",
			"SELECT query_to_xml('UPDATE settings SET value = 2 RETURNING 1', true, true, '')",
			"SELECT lo_import('/etc/passwd')",
			"SELECT pg_read_file('/etc/passwd')",
			"COPY settings TO '"+folder+"/copied'",
			"COPY settings TO PROGRAM 'cat'",
		)
	}
	other := filepath.Join(folder, "other.db")
	return append(common,
		"PRAGMA query_only = 0; "+change,
		"CREATE TEMP TABLE settings (name, value)",
		"ATTACH 'file:"+other+"?mode=rwc' AS other",
		"PRAGMA query_only = 0; ATTACH 'file:"+other+"?mode=rwc' AS other; CREATE TABLE other.t (id)",
		"ATTACH 'file:"+filepath.Join(folder, db.File)+"?mode=rw' AS again",
		"VACUUM INTO '"+other+"'",
		"PRAGMA query_only = 0; VACUUM INTO '"+other+"'",
		"PRAGMA query_only = 0; PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = ''",
		"PRAGMA query_only = 0; PRAGMA user_version = 7; "+change,
		"PRAGMA query_only = 0; PRAGMA journal_mode = DELETE; "+change,
		"SELECT load_extension('x')",
	)
}

// switches are texts that make the session writable, or change what it reads.
func switches(postgres bool) []string {
	if postgres {
		return []string{
			"SET default_transaction_read_only = off",
			"SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
			"SELECT set_config('default_transaction_read_only', 'off', false)",
			"SELECT query_to_xml('SELECT set_' || 'config(''default_transaction_read_only'', ''off'', false)', true, true, '')",
			"RESET default_transaction_read_only", "RESET ALL", "DISCARD ALL", "SET search_path = pg_catalog",
		}
	}
	return []string{
		"PRAGMA query_only = 0",
		"PRAGMA query_only = 0; CREATE TEMP TABLE settings AS SELECT 'x' AS name, '2' AS value",
		"SELECT 1; PRAGMA query_only = 0; CREATE TEMP VIEW settings AS SELECT 'x' AS name, '2' AS value",
		"/* */ PRAGMA query_only = 0", "EXPLAIN SELECT 1; PRAGMA query_only = 0",
	}
}

func TestReadersCannotWrite(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o, folder := db.Options{Dir: t.TempDir()}, ""
			if engine == "postgres" {
				o, folder = db.Options{URL: asPlainRole(t), Pool: 4}, os.TempDir()
			} else {
				dbtest.WriteSQLite(t, o.Dir)
				folder = o.Dir
			}
			d, err := db.Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if _, err := d.ExecContext(t.Context(), "INSERT INTO settings (name, value) VALUES ('x', '1')"); err != nil {
				t.Fatal(err)
			}
			for reader, name := range map[*bun.DB]string{d.Read: "Read", d.Lists: "Lists"} {
				reader.DB.SetMaxOpenConns(1) // so that what one text leaves would meet the next
				stillOriginal := func(after string) {
					t.Helper()
					for _, by := range []*bun.DB{reader, d.DB} {
						var n int
						if err := by.NewRaw(original).Scan(t.Context(), &n); err != nil || n != 1 {
							t.Errorf("%s: after %s, the row is not the original: %v", name, after, err)
						}
					}
				}
				for way, try := range ways {
					for _, text := range hostile(d.IsPostgres(), folder) {
						if err := try(t.Context(), reader, text); !db.IsAnswer(err) {
							t.Errorf("%s: %s %s: %v, want a refusal of the database", name, way, text, err)
						}
						stillOriginal(text)
					}
					for _, text := range switches(d.IsPostgres()) {
						_ = try(t.Context(), reader, text)
						if err := try(t.Context(), reader, change); !db.IsReadOnly(err) {
							t.Errorf("%s: %s after %s: %v", name, way, text, err)
						}
						stillOriginal(text)
						_ = try(t.Context(), reader, text)
						stillOriginal(text)
					}
				}
			}
			for _, made := range []string{"other.db", "copied"} {
				if _, err := os.Stat(filepath.Join(folder, made)); err == nil {
					t.Errorf("%s was written", made)
				}
			}
		})
	}
}

// asPlainRole creates a migrated database, and a role that may do anything with its tables but is
// no superuser, and returns the URL with that role.
func asPlainRole(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(dbtest.PostgresMigratedURL(t))
	if err != nil {
		t.Fatal(err)
	}
	admin, err := db.Open(t.Context(), db.Options{URL: u.String(), Pool: 2})
	if err != nil {
		t.Fatal(err)
	}
	if !admin.Superuser() {
		t.Error("a superuser is not recognized")
	}
	t.Cleanup(func() { admin.Close() })
	schema := u.Query().Get("search_path")
	role := fmt.Sprintf("plain_%d", time.Now().UnixNano())
	for _, text := range []string{
		"CREATE ROLE " + role + " LOGIN", "GRANT ALL ON SCHEMA " + schema + " TO " + role,
		"GRANT ALL ON ALL TABLES IN SCHEMA " + schema + " TO " + role,
	} {
		if _, err := admin.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = admin.Exec("DROP OWNED BY " + role); _, _ = admin.Exec("DROP ROLE " + role) })
	u.User = url.User(role)
	return u.String()
}

func TestAQueryOfAListEndsByItself(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		d := dbtest.Postgres(t)
		var limit string
		if err := d.Lists.NewRaw("SHOW statement_timeout").Scan(t.Context(), &limit); err != nil || limit != "10s" {
			t.Errorf("the limit is %q, %v", limit, err)
		}
		if err := d.Read.NewRaw("SHOW statement_timeout").Scan(t.Context(), &limit); err != nil || limit != "30s" {
			t.Errorf("the limit of other reads is %q, %v", limit, err)
		}
		if testing.Short() {
			return
		}
		begin := time.Now()
		if _, err := d.Lists.ExecContext(t.Context(), "SELECT pg_sleep(60)"); !errors.Is(err, db.ErrTooLong) || time.Since(begin) > 20*time.Second {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
		// A query that lifts the server's limit does not lift that of the program.
		_, _ = d.Lists.ExecContext(t.Context(), "SELECT set_config('statement_timeout', '0', false)")
		begin = time.Now()
		if _, err := d.Lists.ExecContext(t.Context(), "SELECT pg_sleep(60)"); !errors.Is(err, db.ErrTooLong) || time.Since(begin) > 20*time.Second {
			t.Errorf("after %s without the server's limit: %v", time.Since(begin), err)
		}
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dbtest.SQLite(t)
		dir := t.TempDir()
		dbtest.WriteSQLite(t, dir)
		const endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
		reader := db.LiteReader(filepath.Join(dir, db.File), 200*time.Millisecond)
		defer reader.Close()
		for _, text := range []string{endless + "count(*) FROM n", endless + "i FROM n"} {
			rows, err := reader.QueryContext(t.Context(), text)
			if err == nil {
				for rows.Next() {
				}
				err = rows.Err()
				rows.Close()
			}
			if !errors.Is(err, db.ErrTooLong) {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}
