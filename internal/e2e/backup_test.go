package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestABackupIsRestoredAsThePageSays rehearses what docs/operations/storage.md says, by its commands: a backup
// beside a server at work, more traffic, and the restore where that server was killed, not stopped.
func TestABackupIsRestoredAsThePageSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations/storage.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "\n## Backup and restore\n")
	part, _, _ = strings.Cut(part, "\n## ")
	commands := regexp.MustCompile("(?s)```sh\nbackstop (.*?)\n```").FindAllStringSubmatch(part, -1)
	if len(commands) != 2 {
		t.Fatalf("the page has %d commands, want one to back up and one to restore", len(commands))
	}
	place := t.TempDir()
	w := newWorld(t, options{})
	do := func(command string) (out string) {
		t.Helper()
		return w.run(strings.Fields(strings.ReplaceAll(command, "/backup/", place+"/"))...)
	}

	w.start("")
	before := w.create("before", nil)
	w.wantAccepted(callbackForm("sp-main", before, "T-before", 1999))
	w.wantOrder(before, againWithin, map[string]string{"status": "paid", "notify_status": "delivered"})
	after := w.create("after", nil)
	tr := newTraffic(w)
	stop := load(tr, 4)
	w.flows(20)
	if out := do(commands[0][1]); !strings.Contains(out, "Its books are right") {
		t.Errorf("the backup says %q", out)
	}
	lost := w.create("lost", nil)
	paid := callbackForm("sp-main", after, "T-after", 1999)
	w.wantAccepted(paid)
	w.wantOrder(after, againWithin, map[string]string{"status": "paid", "notify_status": "delivered"})
	w.flows(20)
	stop()
	w.kill()
	if log, err := os.Stat(filepath.Join(w.folder, "backstop.db-wal")); err != nil || log.Size() == 0 {
		t.Fatalf("the killed server left no write-ahead log: this test would prove nothing: %v", err)
	}
	do(commands[1][1])
	if kept, err := filepath.Glob(filepath.Join(w.folder, "backstop.db.before-restore-*")); err != nil || len(kept) == 0 {
		t.Errorf("the database that was replaced is gone: %v", err)
	}
	w.start("")
	w.books()

	// What was notified before the backup is not notified again; what was paid after it is, once the
	// supplier repeats its callback, under the same id; what was created after it does not exist.
	w.wantAccepted(paid)
	w.wantOrder(after, againWithin, map[string]string{"status": "paid", "notify_status": "delivered"})
	twice := w.notifications(after)
	if len(twice) != 2 || twice[0].Header.Get("webhook-id") != twice[1].Header.Get("webhook-id") {
		t.Errorf("%d notifications of what was paid after the backup, want the same twice", len(twice))
	}
	if n := len(w.notifications(before)); n != 1 {
		t.Errorf("%d notifications of what was notified before the backup", n)
	}
	w.wantAccepted(callbackForm("sp-main", lost, "T-lost", 1999))
	if kinds := w.exceptions(lost); len(kinds) != 1 {
		t.Errorf("an order that was created after the backup: exceptions %v", kinds)
	}
}
