package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that was being written during a power failure may contain zeros.
func TestADamagedNodeFileIsMadeAnew(t *testing.T) {
	t.Parallel()
	f := &Folder{Path: t.TempDir()}
	file := filepath.Join(f.Path, "node")
	for content, keep := range map[string]bool{
		"node-ab12cd34\n": true, "pay.1_A\n": true, "": false, "\x00\x00\x00\x00": false, "a b": false, strings.Repeat("a", 65): false,
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		name, err := f.nodeName("")
		if err != nil || (name == strings.TrimSpace(content)) != keep || !goodName.MatchString(name) {
			t.Errorf("%q: %q, %v", content, name, err)
		}
		if again, err := f.nodeName(""); err != nil || again != name {
			t.Errorf("%q: then %q, now %q, %v", content, name, again, err)
		}
	}
}
