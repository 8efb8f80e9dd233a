package dbtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// While an unused server's folder is removed, another test process begins a new one, and keeps it.
func TestANewFolderOutlivesTheEndOfTheOldOne(t *testing.T) {
	t.Parallel()
	for range 20 {
		home := filepath.Join(t.TempDir(), "server")
		for i := range 200 { // so that removing takes a while
			dir := filepath.Join(home, dataFolder, fmt.Sprint(i))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "rows"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		lock, err := lockHome(home)
		if err != nil {
			t.Fatal(err)
		}
		lock.Close()
		done := make(chan error, 1)
		go func() {
			_, err := endServer(home)
			done <- err
		}()
		for {
			lock, err := lockHome(home)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(home, dataFolder, "199", "rows")); err != nil { // it has been removed, or is about to
				if err := os.MkdirAll(filepath.Join(home, dataFolder), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if _, err := os.Stat(filepath.Join(home, dataFolder)); err != nil {
					t.Fatalf("the new folder was removed with the old one: %v", err)
				}
				lock.Close()
				break
			}
			lock.Close()
		}
	}
}
