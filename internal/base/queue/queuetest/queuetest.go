// Package queuetest gives a test its own Redis, which it can stop, suspend, empty and start
// again.
package queuetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"backstop/internal/base/servertest"
	"backstop/internal/base/waittest"

	"github.com/redis/go-redis/v9"
)

// startTimeout bounds one start; 20 ms is usual.
const startTimeout = time.Minute

// Server is a redis-server on loopback, with an append-only file as in
// production. It ends with the test.
type Server struct {
	Addr string // 127.0.0.1:port, unchanged by restarts

	t      testing.TB
	args   []string
	dir    string
	cmd    *exec.Cmd
	client *redis.Client
}

// Start runs a redis-server. args are further arguments, which override the default ones.
// The test is skipped if no redis-server is installed.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	servertest.Need(t)
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("this test needs redis-server on PATH")
	}
	s := &Server{t: t, args: args, dir: t.TempDir()}
	t.Cleanup(s.end)
	var err error
	for range 5 { // another process may take the port before the server does
		s.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(FreePort(t)))
		s.client = redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true, MaxRetries: -1, DisableIdentity: true})
		if err = s.up(); err == nil {
			return s
		}
		s.end()
	}
	t.Fatal(err)
	return nil
}

func (s *Server) end() {
	s.Resume()
	s.Down()
	_ = s.client.Close() // a second time after a failed start
}

// FreePort is a port on loopback below the range of ephemeral ports, for this test alone until it
// ends: the port of the same number in UDP is held as long, so that no test of another process
// takes it while a killed program is down. The port 10,000 higher, which the nodes of a cluster
// use among themselves, is free too.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 200 {
		port := 12000 + rand.IntN(10000)
		held, err := net.ListenPacket("udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if free(port) && free(port+10000) {
			t.Cleanup(func() { _ = held.Close() })
			return port
		}
		_ = held.Close()
	}
	t.Fatal("no free port on loopback")
	return 0
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// URL is the server's address for BACKSTOP_REDIS_URL.
func (s *Server) URL() string { return "redis://" + s.Addr }

// Client is a client for the test's own commands.
func (s *Server) Client() *redis.Client { return s.client }

// Up starts the server again with the data of its file, and waits until it answers.
func (s *Server) Up() {
	s.t.Helper()
	if err := s.up(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) up() error {
	_, port, _ := net.SplitHostPort(s.Addr)
	path := filepath.Join(s.dir, "redis.log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = exec.Command("redis-server", append([]string{
		"--port", port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", "everysec",
	}, s.args...)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := servertest.Start(s.cmd); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if !waittest.Within(startTimeout, func() bool { return answers(s.client.Ping(ctx).Err()) }) {
		text, _ := os.ReadFile(path)
		return fmt.Errorf("redis-server does not answer on %s:\n%s", s.Addr, text)
	}
	// If INFO is forbidden, there is nothing to compare.
	info, err := s.client.Info(ctx, "server").Result()
	if err == nil && !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", s.cmd.Process.Pid)) {
		return fmt.Errorf("another redis-server answers on %s", s.Addr)
	}
	return nil
}

// answers is also true for a refusal, such as for a missing password.
func answers(err error) bool {
	var reply redis.Error
	return err == nil || errors.As(err, &reply) && !redis.HasErrorPrefix(err, "LOADING")
}

// Down kills the server, as a crash of its machine would.
func (s *Server) Down() {
	s.t.Helper()
	if s.cmd == nil || s.cmd.Process == nil || s.cmd.ProcessState != nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // the error is that it was killed
}

// Hang suspends the server: it keeps its connections open and answers nothing.
func (s *Server) Hang() { s.signal(syscall.SIGSTOP) }

// Resume ends a Hang.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	if s.cmd != nil && s.cmd.Process != nil && s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(sig)
	}
}

// Flush deletes everything (FLUSHALL).
func (s *Server) Flush() {
	s.t.Helper()
	if err := s.client.FlushAll(context.Background()).Err(); err != nil {
		s.t.Fatal(fmt.Errorf("flush: %w", err))
	}
}

// Memory returns how many bytes the server uses.
func (s *Server) Memory() int64 {
	s.t.Helper()
	info, err := s.Client().Info(context.Background(), "memory").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				s.t.Fatalf("used_memory: %v", err)
			}
			return n
		}
	}
	s.t.Fatal("Redis does not say how much memory it uses")
	return 0
}
