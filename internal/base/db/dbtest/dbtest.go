// Package dbtest gives tests a real database: SQLite in a temporary folder, and
// PostgreSQL with one schema per test.
package dbtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
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

// SQLite opens a fresh migrated database file.
func SQLite(t testing.TB) *db.DB {
	t.Helper()
	return open(t, db.Options{Dir: t.TempDir()})
}

// Postgres opens a fresh migrated schema.
func Postgres(t testing.TB) *db.DB {
	t.Helper()
	return open(t, db.Options{URL: PostgresURL(t)})
}

// PostgresWithSkew opens a fresh migrated schema whose clock is off: this node's is
// ahead of it by skew.
func PostgresWithSkew(t testing.TB, skew time.Duration) *db.DB {
	t.Helper()
	address, err := url.Parse(PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	// What the schema defines goes before what PostgreSQL brings along.
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
	return open(t, db.Options{URL: address.String()})
}

// Open opens a database beside others, e.g. a second node on the same URL.
func Open(t testing.TB, o db.Options) *db.DB {
	t.Helper()
	return open(t, o)
}

func open(t testing.TB, o db.Options) *db.DB {
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
