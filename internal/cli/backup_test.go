package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"backstop/internal/app"
	"backstop/internal/base/db"
)

// A restore replaces a database in use by nobody else, and keeps it, broken or not.
func TestARestoreKeepsWhatItReplaces(t *testing.T) {
	folder := install(t)
	file := filepath.Join(t.TempDir(), "a.db")
	if code, out, stderr := backstop(t.Context(), "backup", file); code != exitDone {
		t.Fatalf("exit %d, %q, %q", code, out, stderr)
	}
	other, err := db.Open(t.Context(), db.Options{Dir: folder, Pool: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.NewRaw("CREATE TABLE newer (id BIGINT)").Exec(t.Context()); err != nil { // as a command at work
		t.Fatal(err)
	}
	if code, _, stderr := backstop(t.Context(), "restore", file); code != exitFailed || !strings.Contains(stderr, "another command works") {
		t.Errorf("beside a command: exit %d, %q", code, stderr)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	kept := func(want int) []string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(folder, db.File+".before-restore-*"))
		if err != nil || len(found) != want {
			t.Fatalf("%d databases were kept, want %d: %v", len(found), want, err)
		}
		return found
	}
	if code, out, stderr := backstop(t.Context(), "restore", file); code != exitDone || !strings.Contains(out, "is now "+kept(1)[0]) {
		t.Errorf("exit %d, %q, %q", code, out, stderr)
	}
	if text, err := os.ReadFile(kept(1)[0]); err != nil || !strings.Contains(string(text), "CREATE TABLE newer") {
		t.Errorf("what was replaced is not what was kept: %v", err)
	}
	if err := os.Remove(kept(1)[0]); err != nil { // the next one may have its name: it is of the same second
		t.Fatal(err)
	}
	broken := strings.Repeat("no database ", 400)
	if err := os.WriteFile(filepath.Join(folder, db.File), []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := backstop(t.Context(), "restore", file); code != exitDone {
		t.Errorf("over a broken one: exit %d, %q, %q", code, out, stderr)
	}
	if text, err := os.ReadFile(kept(1)[0]); err != nil || string(text) != broken {
		t.Errorf("the broken one was not kept: %v", err)
	}
	if code, out, stderr := backstop(t.Context(), "migrate", "status"); code != exitDone {
		t.Errorf("afterwards: exit %d, %q, %q", code, out, stderr)
	}
}

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
