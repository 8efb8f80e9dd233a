package db_test

import (
	"os"
	"path/filepath"
	"testing"

	"backstop/internal/base/db"
)

// TestTheLogOfSQLiteShrinksAgain makes the log long, as a reader of several minutes does on a
// busy server: the space must not stay in use.
func TestTheLogOfSQLiteShrinksAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := db.Open(t.Context(), db.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	write := func(size int) {
		t.Helper()
		if _, err := d.ExecContext(t.Context(), "INSERT INTO large (body) VALUES (zeroblob(?))", size); err != nil {
			t.Fatal(err)
		}
	}
	length := func() int64 {
		t.Helper()
		info, err := os.Stat(filepath.Join(dir, db.File+"-wal"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if _, err := d.ExecContext(t.Context(), "CREATE TABLE large (body BLOB)"); err != nil {
		t.Fatal(err)
	}
	const long = 40 << 20
	write(long)
	if n := length(); n < long {
		t.Fatalf("the log has %d bytes: this test makes none that is long", n)
	}
	for range 3 { // the first one may still find the log in use
		write(1)
	}
	if n := length(); n > 17<<20 {
		t.Errorf("the log keeps %d bytes", n)
	}
}
