package main

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/command/bench"
	"backstop/migrations"

	"github.com/jackc/pgx/v5"
)

// The replay leaves the same rows as the program: inserts, updates of older and of new rows,
// deletes, and partitions. Writes that do not belong to each order are left out.
func TestTheFloorWritesTheSameRows(t *testing.T) {
	t.Parallel()
	const orders = 150 // three batches
	url := dbtest.PostgresURL(t)
	b := &bench.Bench{Options: bench.Options{DatabaseURL: url}, Report: &bench.Report{}}
	open := func() string {
		schema, drop, err := b.Schema(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(drop)
		return schema
	}
	program, own := open(), open()
	d, err := db.Open(t.Context(), db.Options{URL: program, Pool: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := migrations.Apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Partition(t.Context(), d, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	// An older row, and a new one with all kinds of values.
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TABLE old_rows (id BIGINT PRIMARY KEY, status TEXT, n BIGINT)")
	exec("CREATE TABLE new_rows (id BIGINT NOT NULL, body JSONB, raw BYTEA, yes BOOLEAN, PRIMARY KEY (id)) PARTITION BY RANGE (id)")
	exec("CREATE TABLE new_rows_1 PARTITION OF new_rows FOR VALUES FROM (0) TO (100)")
	exec("CREATE TABLE new_rows_2 PARTITION OF new_rows FOR VALUES FROM (100) TO (1000)")
	exec("CREATE TABLE gone (id BIGINT PRIMARY KEY)")
	exec("CREATE TABLE figures (id BIGINT PRIMARY KEY)")
	exec("INSERT INTO old_rows SELECT i, 'pending', i FROM generate_series(1, ?) AS i", 2*orders)
	f, err := openFloor(t.Context(), program, own, orders)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	for _, name := range []string{"old_rows", "new_rows", "new_rows_1", "new_rows_2", "gone", "figures"} {
		create := fmt.Sprintf("CREATE TABLE %s (LIKE %s.%s INCLUDING ALL)", f.name(name), f.program, name)
		switch name {
		case "new_rows":
			create += " PARTITION BY RANGE (id)"
		case "new_rows_1", "new_rows_2":
			from, to := 0, 100
			if name == "new_rows_2" {
				from, to = 100, 1000
			}
			create = fmt.Sprintf("CREATE TABLE %s PARTITION OF %s FOR VALUES FROM (%d) TO (%d)", f.name(name), f.name("new_rows"), from, to)
		}
		exec(create)
	}
	if err := f.record(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= orders; i++ {
		exec("BEGIN; UPDATE old_rows SET status = 'paid' WHERE id = ?0;"+
			" INSERT INTO new_rows VALUES (?0, CAST('{\"a\": [1, null, \"ü\"]}' AS JSONB), '\\x00ff', NULL); INSERT INTO gone VALUES (?0); COMMIT", i)
		exec("BEGIN; UPDATE new_rows SET yes = TRUE, raw = NULL WHERE id = ?0; DELETE FROM gone WHERE id = ?0; COMMIT", i)
		if i%5 == 0 {
			exec("INSERT INTO figures VALUES (?)", i)
		}
	}
	if err := f.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	kinds, err := f.transactions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const want = "update old_rows, insert new_rows, insert gone; then update new_rows, delete gone"
	if got := describe(kinds); got != want {
		t.Errorf("the floor is %s, want %s", got, want)
	}
	if got := kinds[1][0].text; strings.Contains(got, "body") || !strings.Contains(got, "raw") || !strings.Contains(got, "yes") {
		t.Errorf("not just what changed is updated: %s", got)
	}
	nothing := func() error { return nil }
	if err := f.replay(t.Context(), kinds, nothing, nothing); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"old_rows", "new_rows", "gone"} {
		rows := func(table string) string {
			all, err := list(t.Context(), f.conn, pgx.RowTo[string], "SELECT r::text FROM "+table+" AS r ORDER BY id")
			if err != nil {
				t.Fatal(err)
			}
			return strings.Join(all, "\n")
		}
		if got, want := rows(f.name(name)), rows(f.program+"."+name); got != want {
			t.Errorf("%s has\n%s\nand not\n%s", name, got, want)
		}
	}
}

// The processes of the test's PostgreSQL are on this machine.
func TestPostgresCPUTimeIsSeen(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresURL(t)
	pid, err := bench.Postmaster(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	before, err := bench.FamilyTime(pid)
	if err != nil {
		t.Fatal(err)
	}
	// The connection's process has ended when its time is read.
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "SELECT sum(sqrt(i)) FROM generate_series(1, 2000000) AS i"); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := bench.FamilyTime(pid)
	if err != nil || after-before < 50_000_000 {
		t.Errorf("a query of two million rows took %s, %v", after-before, err)
	}
}
