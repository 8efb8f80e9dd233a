package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// What runs the tests of `make test` leaves neither a file nor a process, whatever the
// command that it runs leaves.
func TestTidilyTakesEverythingAway(t *testing.T) {
	parent := t.TempDir()
	cmd := exec.CommandContext(t.Context(), ".ci/tidily", "bash", "-c", `mktemp -d >/dev/null; setsid sleep 300 >/dev/null 2>&1 & echo $!; exit 3`)
	cmd.Env = append(os.Environ(), "TMPDIR="+parent)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("it ends with %v: the command's end is lost", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatalf("it says %q", out)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d still runs: %v", pid, err)
	}
	if left, err := filepath.Glob(filepath.Join(parent, "*")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}
