package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"backstop/internal/app"
	"backstop/internal/base/db"
)

func TestABackupThatCannotBeMadeLeavesNothing(t *testing.T) {
	folder := install(t)
	place := t.TempDir()
	file := filepath.Join(place, "a.db")
	if code, out, stderr := backstop(t.Context(), "backup", file); code != exitDone || !strings.Contains(out, "Its books are right") {
		t.Fatalf("exit %d, %q, %q", code, out, stderr)
	}
	garbage := filepath.Join(place, "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(folder, db.File))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(want string, args ...string) {
		t.Helper()
		if code, _, stderr := backstop(t.Context(), args...); code != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d, %q, want %q", args, code, stderr, want)
		}
	}
	refused("exists: name another file", "backup", file)
	refused("no such file or directory", "backup", filepath.Join(place, "nowhere", "a.db"))
	refused("was not restored", "restore", garbage)
	server, err := app.LockFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	refused("in use by another backstop server", "restore", file)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(filepath.Join(folder, db.File)); err != nil || string(now) != string(before) {
		t.Errorf("a refused restore changed the database: %v", err)
	}
	for dir, want := range map[string]string{place: "a.db garbage.db", folder: ""} {
		found, err := filepath.Glob(filepath.Join(dir, "*.db"))
		if err != nil {
			t.Fatal(err)
		}
		hidden, err := filepath.Glob(filepath.Join(dir, ".*"))
		if err != nil || len(hidden) > 0 {
			t.Errorf("left behind: %v %v", hidden, err)
		}
		if want != "" && len(found) != len(strings.Fields(want)) {
			t.Errorf("%s has %v, want %s", dir, found, want)
		}
	}
	t.Setenv("BACKSTOP_DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")
	refused("use pg_dump", "backup", filepath.Join(place, "b.db"))
	refused("use pg_dump", "restore", file)
}
