package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// folder is the locked data folder.
type folder struct {
	Path string
	lock *os.File
}

// lockFolder creates the data folder and locks it for this process: two servers on one folder
// would release each other's leases.
func lockFolder(path string) (*folder, error) {
	if err := MakeFolder(path); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, unwritable(path, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("the data folder %s is in use by another backstop server: stop it, or set BACKSTOP_DATA", path)
	}
	return &folder{Path: path, lock: lock}, nil
}

// MakeFolder creates the data folder if it does not exist.
func MakeFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return unwritable(path, err)
	}
	return nil
}

func unwritable(path string, err error) error {
	return fmt.Errorf("the data folder %s cannot be written (%w): give it to user %d, or set BACKSTOP_DATA", path, err, os.Getuid())
}

// Close unlocks the folder.
func (f *folder) Close() error { return f.lock.Close() }

// goodName matches generated names and names allowed by BACKSTOP_NODE_NAME.
var goodName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// nodeName returns the node's permanent name: configured, or generated once and stored. A file
// left empty or full of zeros by a machine crash is replaced.
func (f *folder) nodeName(configured string) (string, error) {
	if configured != "" {
		return configured, nil
	}
	file := filepath.Join(f.Path, "node")
	raw, err := os.ReadFile(file)
	if name := strings.TrimSpace(string(raw)); err == nil && goodName.MatchString(name) {
		return name, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", unwritable(f.Path, err)
	}
	name := "node-" + strings.ToLower(rand.Text()[:8])
	if err := os.WriteFile(file, []byte(name+"\n"), 0o600); err != nil {
		return "", unwritable(f.Path, err)
	}
	return name, nil
}
