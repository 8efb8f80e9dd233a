// Package dbtest provides tests with a real database: SQLite in a temporary folder, and
// PostgreSQL with a database per test, both as copies of one that was migrated once.
package dbtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/servertest"
	"backstop/migrations"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx", which creates schemas
)

// poolSize bounds the connections to each database: hundreds of tests run at the same time, and the
// server allows maxConnections in all.
const poolSize = 8

// engineEnv names the one engine of Engines and Default: "sqlite" or "postgres".
const engineEnv = "TEST_DATABASE"

// Engines returns the engines to test: both, or the one in TEST_DATABASE.
func Engines() []string {
	if engine := os.Getenv(engineEnv); engine != "" {
		return []string{engine}
	}
	return []string{"sqlite", "postgres"}
}

// Each runs the test on fresh migrated databases of all Engines at the same time.
func Each(t *testing.T, test func(t *testing.T, d *db.DB)) {
	for _, engine := range Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			test(t, on(t, engine))
		})
	}
}

// Default opens a fresh migrated database for a test that does not depend on the engine:
// SQLite, unless TEST_DATABASE is set.
func Default(t testing.TB) *db.DB {
	t.Helper()
	return on(t, Engines()[0])
}

func on(t testing.TB, engine string) *db.DB {
	t.Helper()
	switch engine {
	case "sqlite":
		return SQLite(t)
	case "postgres":
		return Postgres(t)
	default:
		t.Fatalf("%s=%s: use sqlite or postgres", engineEnv, engine)
		return nil
	}
}

// SQLite opens a fresh migrated database file.
func SQLite(t testing.TB) *db.DB {
	t.Helper()
	dir := t.TempDir()
	WriteSQLite(t, dir)
	return joined(t, db.Options{Dir: dir})
}

// WriteSQLite writes a migrated database that no node has joined into a folder, where a program
// expects it.
func WriteSQLite(t testing.TB, dir string) {
	t.Helper()
	file, err := migratedFile()
	if err != nil {
		t.Fatalf("migrate: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, db.File), file, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Postgres opens a fresh migrated database.
func Postgres(t testing.TB) *db.DB {
	t.Helper()
	return joined(t, db.Options{URL: PostgresMigratedURL(t)})
}

// PostgresMigratedURL creates a migrated database that no node has joined, and returns its URL.
func PostgresMigratedURL(t testing.TB) string {
	t.Helper()
	if os.Getenv(envURL) == "" {
		return clone(t)
	}
	url := PostgresURL(t) // its account may not be allowed to create databases
	if err := migrate(db.Options{URL: url}); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	return url
}

// PostgresWithSkew opens a fresh migrated schema whose clock is behind this node's by
// skew.
func PostgresWithSkew(t testing.TB, skew time.Duration) *db.DB {
	t.Helper()
	address, err := url.Parse(PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	// The schema's functions come before PostgreSQL's own.
	q := address.Query()
	q.Set("search_path", q.Get("search_path")+",pg_catalog")
	address.RawQuery = q.Encode()
	own, err := sql.Open("pgx", address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	_, err = own.Exec(fmt.Sprintf("CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql AS"+
		" $$ SELECT pg_catalog.clock_timestamp() - interval '%d microseconds' $$", skew.Microseconds()))
	if err != nil {
		t.Fatalf("set the clock: %v", err)
	}
	return Open(t, db.Options{URL: address.String()})
}

// Open migrates, opens and joins a database, for example as a second node on the same URL.
func Open(t testing.TB, o db.Options) *db.DB {
	t.Helper()
	if err := migrate(o); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	return joined(t, o)
}

func migrate(o db.Options) error {
	ctx := context.Background()
	d, err := db.Open(ctx, o)
	if err != nil {
		return err
	}
	_, err = migrations.Apply(ctx, d)
	if err == nil {
		err = migrations.Partition(ctx, d, slog.New(slog.DiscardHandler))
	}
	return errors.Join(err, d.Close())
}

// joined opens and joins a migrated database.
func joined(t testing.TB, o db.Options) *db.DB {
	t.Helper()
	ctx := context.Background()
	if o.Pool == 0 {
		o.Pool = poolSize
	}
	d, err := db.Open(ctx, o)
	if err != nil {
		t.Fatalf("open the database: %v", err)
	}
	t.Cleanup(func() { d.Close() })
	if _, err := d.RegisterNode(ctx, migrations.Files); err != nil {
		t.Fatalf("join: %v", err)
	}
	return d
}

// PostgresURL creates an empty schema for this test and returns a URL that uses it.
func PostgresURL(t testing.TB) string {
	t.Helper()
	name := newName()
	base := owned(t, "CREATE SCHEMA "+name, "DROP SCHEMA "+name+" CASCADE")
	return with(base, "", name)
}

// newName returns a unique name for a schema or a database.
func newName() string { return "t_" + strings.ToLower(rand.Text()[:16]) }

// owned runs create on the server, and drop after the test. It returns the server's URL.
func owned(t testing.TB, create, drop string) string {
	t.Helper()
	servertest.Need(t)
	base, err := server()
	if err != nil {
		t.Fatalf("PostgreSQL for tests: %v", err)
	}
	admin, err := sql.Open("pgx", base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	if _, err := admin.Exec(create); err != nil {
		t.Fatalf("%s: %v", create, err)
	}
	t.Cleanup(func() { _, _ = admin.Exec(drop) })
	return base
}

// with returns the server's URL with a schema and, unless empty, another database.
func with(base, database, schema string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base // opening it returns the error
	}
	if database != "" {
		u.Path = "/" + database
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}
