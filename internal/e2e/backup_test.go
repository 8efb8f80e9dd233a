package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestABackupIsRestoredAsThePageSays follows docs/operations.md word for word: a backup
// beside a server at work, and its restore where that server was killed, not stopped.
func TestABackupIsRestoredAsThePageSays(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sqlite3"); err != nil {
		t.Skip("sqlite3 is not on this machine: the page's backup is not run")
	}
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "\n## Backup and restore\n")
	part, _, _ = strings.Cut(part, "\n## ")
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(part, -1)
	if len(blocks) != 2 {
		t.Fatalf("the page has %d commands, want one to back up and one to restore", len(blocks))
	}

	w := newWorld(t, options{})
	place := t.TempDir() // where the page's folders lie
	if err := os.Symlink(w.folder, filepath.Join(place, "data")); err != nil {
		t.Fatal(err)
	}
	do := func(commands string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", strings.ReplaceAll(commands, "/backup/", place+"/"))
		cmd.Dir = place
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s%v: %s", commands, err, out)
		}
	}

	w.start("")
	tr := newTraffic(w)
	stop := load(tr, 4)
	w.flows(20)
	do(blocks[0][1])
	w.flows(20)
	stop()
	w.kill()
	if log, err := os.Stat(filepath.Join(w.folder, "backstop.db-wal")); err != nil || log.Size() == 0 {
		t.Fatalf("the killed server left no write-ahead log: this test would prove nothing: %v", err)
	}
	do(blocks[1][1])
	w.start("")
	w.books()
	no := w.create("restored", nil)
	w.wantAccepted(callbackForm("sp-main", no, "T-restored", 1999))
	w.wantOrder(no, againWithin, map[string]string{"status": "paid", "notify_status": "delivered"})
}
