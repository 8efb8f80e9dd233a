package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The wrapper of the tests in `make test` leaves neither a file nor a process, whatever the
// command leaves.
func TestWithTmpdirRemovesEverything(t *testing.T) {
	parent := t.TempDir()
	cmd := exec.CommandContext(t.Context(), ".ci/with-tmpdir", "bash", "-c",
		`mktemp -d >/dev/null; setsid sleep 300 >/dev/null 2>&1 & echo $!; exit 3`)
	cmd.Env = append(os.Environ(), "TMPDIR="+parent)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("it ends with %v: the command's exit is lost", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatalf("output %q", out)
	}
	// A process that has ended stays in the list until its parent reaps it.
	if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("process %d still runs: %s", pid, stat)
	}
	if left, err := filepath.Glob(filepath.Join(parent, "*")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}
