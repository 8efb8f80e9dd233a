package redisd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The socket is in the data folder, where an ended program leaves nothing behind for others. If
// no socket can be there, because its path is too long for the kernel or the file system has no
// sockets, it is in a folder of its own below the temporary folder.
const (
	socketPrefix  = "backstop-redis-"
	socketName    = "redis.sock"
	maxSocketPath = 103 // 104 bytes with the final zero on BSD and macOS, 108 on Linux
)

// leftoverPoll is how often a left-over child is checked until it has ended.
const leftoverPoll = 5 * time.Millisecond

// socketFor returns the path of the socket of a data folder, accessible to our user only. A
// socket that an earlier program left there is removed.
func socketFor(data string) (string, error) {
	var problems []error
	if socket := filepath.Join(data, socketName); len(socket) <= maxSocketPath {
		if err := ignoreMissing(os.Remove(socket)); err != nil {
			return "", err
		}
		trial, err := net.Listen("unix", socket)
		if err == nil {
			return socket, trial.Close() // which removes it
		}
		problems = append(problems, err)
	}
	for _, parent := range []string{os.TempDir(), "/tmp", "/run"} {
		folder, err := os.MkdirTemp(parent, socketPrefix) // mode 0700
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if socket := filepath.Join(folder, socketName); len(socket) <= maxSocketPath {
			return socket, nil
		}
		problems = append(problems, fmt.Errorf("%s is too long for a socket", parent), os.Remove(folder))
	}
	return "", fmt.Errorf("no place for a socket, set TMPDIR to a short writable folder: %w", errors.Join(problems...))
}

// removeSocket removes the socket and the folder that was made for it, and nothing else.
func removeSocket(socket string) error {
	err := ignoreMissing(os.Remove(socket))
	if ownFolder(socket) {
		err = errors.Join(err, ignoreMissing(os.Remove(filepath.Dir(socket))))
	}
	return err
}

func ownFolder(socket string) bool {
	return strings.HasPrefix(filepath.Base(filepath.Dir(socket)), socketPrefix)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writePID records which process serves which socket, for a start after a crash.
func writePID(path string, pid int, socket string) error {
	temp := path + ".new"
	if err := os.WriteFile(temp, fmt.Appendf(nil, "%d\n%s\n", pid, socket), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// readPID returns what writePID recorded beside the file; ok is false if the socket is not one of
// ours.
func readPID(path string) (pid int, socket string, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, "", false
	}
	number, rest, _ := strings.Cut(string(text), "\n")
	socket = strings.TrimSuffix(rest, "\n")
	pid, err = strconv.Atoi(number)
	ok = err == nil && pid > 1 && filepath.IsAbs(socket) && filepath.Base(socket) == socketName &&
		(ownFolder(socket) || filepath.Dir(socket) == filepath.Dir(path))
	return pid, socket, ok
}

// stopLeftover stops the child of an earlier run that did not end with it: two servers must
// not write the same file. It checks that the process is still the redis-server of that
// socket, since its id may have been reused.
func stopLeftover(ctx context.Context, pidFile string, log *slog.Logger) error {
	pid, socket, ok := readPID(pidFile)
	if !ok {
		return nil
	}
	// The process is opened before it is verified: the handle (a pidfd on Linux) stays that of
	// this process even if its id is reused.
	process, err := os.FindProcess(pid)
	if err != nil {
		return nil
	}
	defer process.Release()
	if serves(ctx, pid, socket) {
		log.Warn("stopping the redis-server that an earlier run left over", "pid", pid)
		if err := endProcess(ctx, process, func() bool { return serves(ctx, pid, socket) }); err != nil {
			return fmt.Errorf("stop left-over redis-server %d: %w", pid, err)
		}
	}
	return removeSocket(socket)
}

// endProcess terminates a process that is not our child, then kills it.
func endProcess(ctx context.Context, process *os.Process, running func() bool) error {
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		for deadline := time.Now().Add(stopTimeout); time.Now().Before(deadline); pause(ctx, leftoverPoll) {
			if !running() {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return errors.New("the process does not end")
}

// serves reports whether the process is a redis-server on that socket. The socket is one of
// its arguments, and remains so when redis-server rewrites its title. A zombie has an empty
// command line.
func serves(ctx context.Context, pid int, socket string) bool {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if errors.Is(err, fs.ErrNotExist) && !exists("/proc/self") {
		line, err = exec.CommandContext(ctx, "ps", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	}
	return err == nil && bytes.Contains(line, []byte("redis-server")) && bytes.Contains(line, []byte(socket))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
