package dbtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"backstop/internal/base/waittest"
)

// Files in the server's folder. Each test process locks usersFile as long as it runs: the
// kernel releases the lock however the process ends.
const (
	homeLock   = "lock"
	usersFile  = "users"
	watchFile  = "watch"
	dataFolder = "data"
)

const (
	// watchEnv is set to the server's folder to make a test program run as its watch.
	watchEnv = "TEST_POSTGRES_WATCH"
	// linger is how long the server runs unused before it is stopped: the tests of one package
	// often begin a moment after those of another.
	linger = 15 * time.Second
	// endTime is how long the server may take to stop before it is killed.
	endTime = 5 * time.Second
)

// A test program that is started as the watch never runs its tests.
func init() {
	if home := os.Getenv(watchEnv); home != "" {
		if err := watch(home); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// locked opens a file and locks it; with LOCK_NB it fails if another process has the lock.
func locked(file string, how int) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// lockHome creates the server's folder and locks it. It tries again if the watch deletes the
// folder meanwhile.
func lockHome(home string) (*os.File, error) {
	for range 100 {
		if err := os.MkdirAll(home, 0o755); err != nil { // PostgreSQL's account goes through it
			return nil, err
		}
		if err := os.Chmod(home, 0o755); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		lock, err := locked(filepath.Join(home, homeLock), syscall.LOCK_EX)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		held, err := lock.Stat()
		if there, statErr := os.Stat(lock.Name()); err == nil && statErr == nil && os.SameFile(held, there) {
			return lock, nil
		}
		lock.Close()
	}
	return nil, fmt.Errorf("%s is deleted again and again while it is being locked", home)
}

// startWatch starts a watch if none is running: this test program as a separate process that
// outlives the tests.
func startWatch(home string) error {
	free, err := locked(filepath.Join(home, watchFile), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return nil // a watch is running
	}
	free.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env, cmd.Dir = append(os.Environ(), watchEnv+"="+home), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// watch stops the server and removes its folder when no test process has used it for a
// while.
func watch(home string) error {
	mine, err := locked(filepath.Join(home, watchFile), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return nil // another watch runs
	}
	defer mine.Close()
	idle := time.Duration(0)
	for range time.Tick(time.Second) {
		users, err := locked(filepath.Join(home, usersFile), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != nil {
			idle = 0
			continue
		}
		users.Close()
		if idle += time.Second; idle < linger {
			continue
		}
		if ended, err := endServer(home); ended || err != nil {
			return err
		}
	}
	return nil
}

// endServer stops the server unless a process uses it again.
func endServer(home string) (bool, error) {
	lock, err := lockHome(home)
	if err != nil {
		return false, err
	}
	defer lock.Close()
	users, err := locked(filepath.Join(home, usersFile), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return false, nil
	}
	defer users.Close()
	if text, err := os.ReadFile(filepath.Join(home, dataFolder, "postmaster.pid")); err == nil {
		first, _, _ := strings.Cut(string(text), "\n")
		if pid, err := strconv.Atoi(strings.TrimSpace(first)); err == nil && pid > 1 {
			end(pid)
		}
	}
	// The folder goes at once, with its lock: whoever locks it from now on begins a new one,
	// of which nothing is removed.
	old := fmt.Sprintf("%s-ended-%d", home, os.Getpid())
	if err := os.Rename(home, old); err != nil {
		return true, err
	}
	waittest.Within(endTime, func() bool { // processes of the server may outlive it for a moment and still write
		err = os.RemoveAll(old)
		return err == nil
	})
	return true, err
}

// end stops PostgreSQL at once, without a checkpoint: its data is deleted anyway.
func end(pid int) {
	_ = syscall.Kill(pid, syscall.SIGQUIT)
	if !waittest.Within(endTime, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
