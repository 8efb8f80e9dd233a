package dbtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/servertest"
	"backstop/internal/base/waittest"
)

const useEnv = "TEST_POSTGRES_USE"

// TestUseTheServer is run by TestNothingIsLeftBehind in a separate process.
func TestUseTheServer(t *testing.T) {
	t.Parallel()
	if os.Getenv(useEnv) == "" {
		return
	}
	Postgres(t)
	SQLite(t)
	os.Exit(0) // without any clean-up, as if the test were killed
}

// TestNothingIsLeftBehind twice runs tests that end without cleaning up after themselves: the
// second run finds the server of the first, and afterwards no process and no file remains.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	servertest.Need(t)
	if _, err := binaries(); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, f := range []string{folder, filepath.Dir(folder)} {
		if err := os.Chmod(f, 0o755); err != nil { // PostgreSQL's account must be able to enter it
			t.Fatal(err)
		}
	}
	for range 2 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUseTheServer$")
		cmd.Env = append(os.Environ(), useEnv+"=1", envURL+"=", "TMPDIR="+folder)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	started := running(t, folder)
	if len(started) < 2 { // the server and the watch
		t.Fatalf("the server that is looked for does not run: %q", started)
	}
	home := filepath.Join(folder, filepath.Base(privateHome()))
	if !waittest.Within(linger+30*time.Second, func() bool {
		_, err := os.Stat(home) // to read all processes is expensive
		return os.IsNotExist(err) && len(running(t, folder)) == 0
	}) {
		t.Fatalf("these still run: %q", running(t, folder))
	}
	if left, err := filepath.Glob(filepath.Join(folder, "backstop-*")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// running returns the processes with the folder in their command or environment.
func running(t *testing.T, folder string) (commands []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		command, _ := os.ReadFile(file)
		environ, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if strings.Contains(string(command), folder) || strings.Contains(string(environ), folder) {
			commands = append(commands, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return commands
}
