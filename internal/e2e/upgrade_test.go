package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNodesAreUpgradedOneAfterTheOther replaces the release before by this program, one node after the
// other and under load: the node that started first, which leads, before the other one, and after it.
func TestNodesAreUpgradedOneAfterTheOther(t *testing.T) {
	before := releaseBefore(t)
	t.Parallel()
	for name, first := range map[string]int{"the first node first": 0, "the second node first": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := newWorld(t, options{postgres: true, ownRedis: true, before: before})
			nodes := []*world{one, one.beside()}
			for _, w := range nodes {
				w.start("")
			}
			front := balanced(nodes[0], nodes[1])
			tr := newTraffic(front)
			stop := load(tr, 8)
			front.flows(100)
			for i := range nodes {
				w := nodes[(first+i)%len(nodes)]
				w.terminate()
				w.program = ""
				w.start("")
				front.flows(100)
			}
			stop()
			front.program = ""
			repeated := tr.settle(patience)
			t.Logf("%d orders, %d notified more than once", len(tr.made), repeated)
		})
	}
}

// TestAServerIsUpgraded replaces the release before by this program while notifications wait, on SQLite.
func TestAServerIsUpgraded(t *testing.T) {
	w := newWorld(t, options{before: releaseBefore(t)})
	w.start("")
	tr := newTraffic(w)
	stop := load(tr, 8)
	w.flows(100)
	w.terminate()
	w.program = ""
	w.start("")
	w.flows(100)
	stop()
	repeated := tr.settle(patience)
	t.Logf("%d orders, %d notified more than once", len(tr.made), repeated)
}

// releaseBefore builds the newest release that this commit comes after.
func releaseBefore(t *testing.T) (file string) {
	t.Helper()
	if !full() {
		t.Skip("only make soak builds the release before")
	}
	root := filepath.Join("..", "..")
	tag, err := exec.CommandContext(t.Context(), "git", "-C", root, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^").Output()
	if err != nil {
		t.Skip("there is no release before this commit")
	}
	release, folder := strings.TrimSpace(string(tag)), t.TempDir()
	file = filepath.Join(folder, "backstop-"+release)
	build := fmt.Sprintf("git -C %s archive %s | tar -x -C %s && cd %[3]s && go build -buildvcs=false -trimpath -ldflags=-w -o %[4]s .",
		root, release, folder, file)
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", build).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", release, err, out)
	}
	return file
}
