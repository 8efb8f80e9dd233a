package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A release that cannot be right is refused before anything is built.
func TestAReleaseNeedsAVersionACleanTreeAndItsNotes(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	run := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil && name != "./.ci/release" {
			t.Fatalf("%s %v: %v %s", name, args, err, out)
		}
		if err == nil && name == "./.ci/release" {
			t.Errorf("release %v was built: %s", args, out)
		}
		return string(out)
	}
	for _, file := range []string{".ci/release", "CHANGELOG.md"} {
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(place, file)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(place, file), text, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run(place, "git", "init", "-q")
	run(place, "git", "add", ".")
	run(place, "git", "-c", "user.name=a", "-c", "user.email=a@example.invalid", "commit", "-qm", "x")
	for version, want := range map[string]string{
		"": "VERSION is missing", "0.1.0": "give one such as v0.1.0", "v1": "give one such as v0.1.0", "v99.0.0": "says nothing under ## 99.0.0",
	} {
		if out := run(place, "./.ci/release", version); !strings.Contains(out, want) {
			t.Errorf("version %q: %s", version, out)
		}
	}
	if err := os.WriteFile(filepath.Join(place, "new.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := run(place, "./.ci/release", "v0.1.0"); !strings.Contains(out, "the tree has changes") {
		t.Errorf("a tree with changes: %s", out)
	}
}
