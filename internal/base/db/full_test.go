package db_test

import (
	"context"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// fill makes the disk of the database full; the returned function frees some space.
func fill(t *testing.T, d *db.DB) (free func()) {
	t.Helper()
	run := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if _, err := d.ExecContext(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !d.IsPostgres() {
		run("PRAGMA max_page_count = 1") // no more than there are
		return func() { run("PRAGMA max_page_count = 1000000") }
	}
	run("CREATE OR REPLACE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END $$",
		"CREATE TRIGGER no_room BEFORE INSERT ON parts FOR EACH ROW EXECUTE FUNCTION no_room()",
		"CREATE TRIGGER no_room BEFORE INSERT ON form_keys FOR EACH ROW EXECUTE FUNCTION no_room()")
	return func() { run("DROP TRIGGER no_room ON parts", "DROP TRIGGER no_room ON form_keys") }
}

// On a full disk, reads, beginning transactions and even small writes succeed. A node whose
// write found the disk full is not ready until there is room for a large write.
func TestAFullDiskIsNotReadyUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if _, err := d.ExecContext(t.Context(), "CREATE TABLE parts (text TEXT)"); err != nil {
			t.Fatal(err)
		}
		large := func(ctx context.Context, q db.Session) error {
			_, err := q.NewRaw("INSERT INTO parts (text) VALUES (?)", strings.Repeat("x", 200_000)).Exec(ctx)
			return err
		}
		tx := func(ctx context.Context, tx db.Tx) error { return large(ctx, tx) }
		for name, write := range map[string]func() error{
			"tx":           func() error { return d.Tx(t.Context(), tx) },
			"shared":       func() error { return d.SharedTx(t.Context(), tx) },
			"async commit": func() error { return d.AsyncCommitTx(t.Context(), large) },
		} {
			free := fill(t, d)
			if err := d.Writable(t.Context()); err != nil {
				t.Errorf("%s: before any write: %v", name, err)
			}
			if err := write(); !db.IsFull(err) {
				t.Fatalf("%s: a write to a full disk: %v", name, err)
			}
			for range 2 {
				// A transaction that writes nothing does not prove that there is room.
				if err := d.Tx(t.Context(), func(context.Context, db.Tx) error { return nil }); err != nil {
					t.Fatal(err)
				}
				if err := d.Writable(t.Context()); !db.IsFull(err) || !strings.Contains(db.Kind(err), "free some space") {
					t.Errorf("%s: while it is full: %v", name, err)
				}
			}
			free()
			for range 2 {
				if err := d.Writable(t.Context()); err != nil {
					t.Errorf("%s: once there is room: %v", name, err)
				}
			}
			if err := write(); err != nil {
				t.Errorf("%s: a write once there is room: %v", name, err)
			}
		}
		var left int
		if err := d.NewRaw("SELECT count(*) FROM form_keys").Scan(t.Context(), &left); err != nil || left != 0 {
			t.Errorf("%d rows are left, %v", left, err)
		}
	})
}

// The server logs the text of a failed statement: the probe of a full disk must not fill its
// log.
func TestTheProbeForRoomIsShortAndItsRowsAreLong(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if _, err := d.ExecContext(t.Context(), "CREATE TABLE parts (text TEXT)"); err != nil {
			t.Fatal(err)
		}
		var statements dbtest.Statements
		d.DB = d.DB.WithQueryHook(&statements)
		free := fill(t, d)
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			_, err := tx.NewRaw("INSERT INTO parts (text) VALUES (?)", strings.Repeat("x", 200_000)).Exec(ctx)
			return err
		})
		if !db.IsFull(err) {
			t.Fatalf("a write to a full disk: %v", err)
		}
		statements.Texts = nil
		if err := d.Writable(t.Context()); !db.IsFull(err) {
			t.Fatalf("while it is full: %v", err)
		}
		free()
		probe := ""
		for _, text := range statements.Texts {
			if strings.Contains(text, "INTO form_keys") {
				probe = text
			}
		}
		if probe == "" || len(probe) > 500 {
			t.Fatalf("the probe for room has %d bytes: %.200s", len(probe), probe)
		}
		if _, err := d.ExecContext(t.Context(), probe); err != nil {
			t.Fatal(err)
		}
		var rows, texts, bytes int
		err = d.NewRaw("SELECT count(*), count(DISTINCT form_key), sum(length(form_key)) FROM form_keys").Scan(t.Context(), &rows, &texts,
			&bytes)
		if err != nil || rows < 64 || texts != rows || bytes < 64_000 {
			t.Errorf("it writes %d rows with %d texts of %d bytes, %v", rows, texts, bytes, err)
		}
	})
}
