package redisd

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"backstop/internal/base/servertest"
	"backstop/internal/base/waittest"

	"github.com/redis/go-redis/v9"
)

// logbook collects log lines of concurrent writers.
type logbook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), s)
}

// logger returns a logger whose lines of the level and above can be counted.
func logger(level slog.Level) (*slog.Logger, *logbook) {
	book := &logbook{}
	return slog.New(slog.NewTextHandler(book, &slog.HandlerOptions{Level: level})), book
}

func needRedisServer(t *testing.T) {
	t.Helper()
	servertest.Need(t)
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("this test needs redis-server on PATH")
	}
}

func openEmbedded(t *testing.T, data string, log *slog.Logger) *Redis {
	t.Helper()
	r, err := Open(t.Context(), Config{DataDir: data, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil && !errors.Is(err, redis.ErrClosed) {
			t.Error(err)
		}
	})
	return r
}

func pidOf(t *testing.T, r *Redis) int {
	t.Helper()
	info, err := r.Client().Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(info, "process_id:")
	number, _, _ := strings.Cut(after, "\r\n")
	pid, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestEmbeddedStartsStopsAndKeepsItsData(t *testing.T) {
	t.Parallel()
	needRedisServer(t)
	// A folder whose path is longer than that of any socket may be, with a character that a
	// configuration file would need quoted.
	data := filepath.Join(t.TempDir(), strings.Repeat("long folder/", 12))
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	log, book := logger(slog.LevelInfo)
	began := time.Now()
	r := openEmbedded(t, data, log)
	t.Logf("ready after %s", time.Since(began))
	if r.Engine() != Child {
		t.Errorf("engine %q", r.Engine())
	}
	socket := r.opts.Addrs[0]
	if info, err := os.Stat(filepath.Dir(socket)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("socket folder: %v, %v", info, err)
	}
	if err := r.Client().Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if used, limit, err := r.Memory(t.Context()); err != nil || used <= 0 || limit != 0 {
		t.Errorf("memory %d of %d, %v", used, limit, err)
	}
	pid := pidOf(t, r)
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !gone(pid) || exists(filepath.Dir(socket)) || exists(filepath.Join(data, "redis.pid")) {
		t.Error("something of the child is left")
	}

	again := openEmbedded(t, data, log)
	if v, err := again.Client().Get(t.Context(), "k").Result(); v != "v" {
		t.Errorf("after a restart: %q, %v", v, err)
	}
	if n := book.count("\n"); n != 0 {
		t.Errorf("%d lines at info or above in a quiet life", n)
	}
}

func TestKilledChildComesBackWithItsData(t *testing.T) {
	t.Parallel()
	needRedisServer(t)
	log, _ := logger(slog.LevelWarn)
	r := openEmbedded(t, t.TempDir(), log)
	if err := r.Client().Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		pid := pidOf(t, r)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "another child answers", func() bool { return gone(pid) && r.Check(t.Context()) == nil })
		if v, err := r.Client().Get(t.Context(), "k").Result(); v != "v" {
			t.Errorf("after kill -9: %q, %v", v, err)
		}
	}
}

// A program that is killed leaves nothing outside of its data folder, and the next one serves
// there.
func TestTheSocketIsInTheDataFolder(t *testing.T) {
	needRedisServer(t)
	data, err := os.MkdirTemp("/tmp", "bs") // a test's own folder may be too long
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(data)
	socket := filepath.Join(data, socketName)
	killed, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	killed.SetUnlinkOnClose(false)
	killed.Close()
	log, _ := logger(slog.LevelWarn)
	r := openEmbedded(t, data, log)
	if r.opts.Addrs[0] != socket {
		t.Errorf("it serves at %s, want %s", r.opts.Addrs[0], socket)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exists(socket) || !exists(data) {
		t.Error("the socket is left, or the data folder is not")
	}
}

func TestCloseKillsAHangingChild(t *testing.T) {
	t.Parallel()
	needRedisServer(t)
	log, _ := logger(slog.LevelError)
	r := openEmbedded(t, t.TempDir(), log)
	pid := pidOf(t, r)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if !gone(pid) {
		t.Error("the child still runs")
	}
}

func TestLeftoverChildIsStopped(t *testing.T) {
	t.Parallel()
	needRedisServer(t)
	data := t.TempDir()
	log, book := logger(slog.LevelWarn)
	left, err := launch(t.Context(), "redis-server", filepath.Join(data, "redis"), filepath.Join(data, "redis.pid"), log)
	if err != nil {
		t.Fatal(err)
	}
	left.stopOnce.Do(func() { close(left.stopping) }) // its supervisor is dead: it is not restarted
	left.mu.Lock()
	pid := left.process.Pid
	left.mu.Unlock()

	r := openEmbedded(t, data, log)
	<-left.stopped
	if !gone(pid) || left.socket != r.opts.Addrs[0] && exists(left.socket) {
		t.Error("the left-over child or its socket is still there")
	}
	if err := r.Check(t.Context()); err != nil || book.count("left over") != 1 {
		t.Errorf("%v, logged %d times", err, book.count("left over"))
	}
}

func TestLeftoverSparesStrangers(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	stranger := exec.Command("sleep", "60")
	if err := stranger.Start(); err != nil {
		t.Skip(err)
	}
	defer func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
	}()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	path := filepath.Join(data, "redis.pid")
	for _, note := range []string{
		strconv.Itoa(stranger.Process.Pid) + "\n/tmp/" + socketPrefix + "gone/" + socketName + "\n",
		strconv.Itoa(stranger.Process.Pid) + "\n" + data + "/" + socketName + "\n", "", "1\n", "x\ny\n", "-1\n/a/b\n",
	} {
		if err := os.WriteFile(path, []byte(note), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := stopLeftover(t.Context(), path, log); err != nil {
			t.Errorf("%q: %v", note, err)
		}
	}
	if gone(stranger.Process.Pid) || !exists(data) {
		t.Error("a process or folder that is not ours was removed")
	}
}

func TestUnreadableFileIsMovedAside(t *testing.T) {
	t.Parallel()
	needRedisServer(t)
	data := t.TempDir()
	log, book := logger(slog.LevelWarn)
	r := openEmbedded(t, data, log)
	for i := range 100 {
		if err := r.Client().Set(t.Context(), strconv.Itoa(i), "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(data, "redis", "*", "*.aof"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no append-only file: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || len(text) == 0 {
			t.Fatal(err, file)
		}
		copy(text[len(text)/2:], "no longer Redis' own") // in the middle: Redis repairs a torn end
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := openEmbedded(t, data, log)
	if n, err := again.Client().DBSize(t.Context()).Result(); n != 0 || err != nil {
		t.Errorf("%d keys, %v", n, err)
	}
	if !exists(filepath.Join(data, "redis.unreadable")) || book.count("could not read its file") != 1 {
		t.Error("the file is not moved aside, or that is not logged")
	}
}

func TestServerThatCannotStartIsAnErrorWithTheCause(t *testing.T) {
	data, bin := t.TempDir(), t.TempDir()
	keep := filepath.Join(data, "redis", "keep")
	if err := os.MkdirAll(filepath.Dir(keep), 0o700); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho no luck today\nexit 3\n"
	for path, text := range map[string]string{keep: "x", filepath.Join(bin, "redis-server"): script} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	log, _ := logger(slog.LevelWarn)
	_, err := Open(t.Context(), Config{DataDir: data, Logger: log})
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no luck today") {
		t.Errorf("Open: %v", err)
	}
	if !exists(keep) {
		t.Error("the folder was moved aside although it was not the cause")
	}
}

func TestChildSeesNoSecretsOfOurs(t *testing.T) {
	needRedisServer(t)
	t.Setenv("BACKSTOP_MASTER_KEY", "s3cret")
	log, _ := logger(slog.LevelWarn)
	r := openEmbedded(t, t.TempDir(), log)
	environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pidOf(t, r)), "environ"))
	if err != nil {
		t.Skip(err)
	}
	if strings.Contains(string(environ), "s3cret") {
		t.Error("the master key is in the child's environment")
	}
}
