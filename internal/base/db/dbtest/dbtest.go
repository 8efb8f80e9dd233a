// Package dbtest provides tests with a real database: SQLite in a temporary folder, and
// PostgreSQL with one schema per test.
package dbtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/migrations"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx", for making schemas
)

// Each runs the test on both engines, with the schema in place.
func Each(t *testing.T, test func(t *testing.T, d *db.DB)) {
	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, Postgres(t)) })
}

// defaultEngine names the engine of Default: "sqlite", which is used without it, or
// "postgres".
const defaultEngine = "BACKSTOP_TEST_DATABASE"

// Default opens a fresh migrated database for a test that is not about an engine: on
// SQLite, or on the engine that BACKSTOP_TEST_DATABASE names.
func Default(t testing.TB) *db.DB {
	t.Helper()
	switch engine := os.Getenv(defaultEngine); engine {
	case "", "sqlite":
		return SQLite(t)
	case "postgres":
		return Postgres(t)
	default:
		t.Fatalf("%s=%s: use sqlite or postgres", defaultEngine, engine)
		return nil
	}
}

// SQLite opens a fresh migrated database file.
func SQLite(t testing.TB) *db.DB {
	t.Helper()
	return Open(t, db.Options{Dir: t.TempDir()})
}

// Postgres opens a fresh migrated schema.
func Postgres(t testing.TB) *db.DB {
	t.Helper()
	return Open(t, db.Options{URL: PostgresURL(t)})
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

// Open opens, migrates and joins a database, such as a second node on one URL.
func Open(t testing.TB, o db.Options) *db.DB {
	t.Helper()
	ctx := context.Background()
	d, err := db.Open(ctx, o)
	if err != nil {
		t.Fatalf("open the database: %v", err)
	}
	t.Cleanup(func() { d.Close() })
	if _, err := migrations.Apply(ctx, d); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	if err := migrations.Partition(ctx, d, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Join(ctx); err != nil {
		t.Fatalf("join: %v", err)
	}
	return d
}

// PostgresURL makes a schema for this test and returns a URL that uses it.
func PostgresURL(t testing.TB) string {
	t.Helper()
	base, err := server()
	if err != nil {
		t.Fatalf("PostgreSQL for tests: %v", err)
	}
	admin, err := sql.Open("pgx", base)
	if err != nil {
		t.Fatal(err)
	}
	schema := "t_" + strings.ToLower(rand.Text()[:16])
	if _, err := admin.Exec("CREATE SCHEMA " + schema); err != nil {
		admin.Close()
		t.Fatalf("create schema: %v", err)
	}
	t.Cleanup(func() {
		_, _ = admin.Exec("DROP SCHEMA " + schema + " CASCADE")
		admin.Close()
	})
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}
