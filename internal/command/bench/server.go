package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Program returns how to start a program, or else this one, as a separate server in a temporary
// folder, without this process's configuration.
func Program(file string) func(context.Context, Server) (*Process, error) {
	return func(ctx context.Context, s Server) (*Process, error) { return startServer(ctx, file, s) }
}

func startServer(ctx context.Context, self string, s Server) (*Process, error) {
	if self == "" {
		var err error
		if self, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", "backstop-bench-data-")
	if err != nil {
		return nil, fmt.Errorf("make a data folder: %w", err)
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	// One key for the server and its commands: with a database URL none is created.
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	env := childEnv(s, dir, addr)
	if s.Extra["BACKSTOP_MASTER_KEY"] == "" {
		env = append(env, "BACKSTOP_MASTER_KEY="+hex.EncodeToString(key))
	}
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		return nil, fmt.Errorf("open the server's log: %w", err)
	}
	server := exec.Command(self, "serve")
	server.Env, server.Dir, server.Stderr = env, dir, log
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	stop := func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		ended := time.AfterFunc(20*time.Second, func() { _ = server.Process.Kill() })
		_ = server.Wait()
		ended.Stop()
		log.Close()
		_ = os.RemoveAll(dir)
	}
	return &Process{
		URL: "http://" + addr, PID: server.Process.Pid, Data: dir, Stop: stop,
		Apply: func(ctx context.Context, yaml []byte) error {
			file := filepath.Join(dir, "bench.yaml")
			if err := os.WriteFile(file, yaml, 0o600); err != nil {
				return fmt.Errorf("write the declaration: %w", err)
			}
			apply := exec.CommandContext(ctx, self, "apply", file)
			var errOut bytes.Buffer
			apply.Env, apply.Dir, apply.Stderr = env, dir, &errOut
			if err := apply.Run(); err != nil {
				return fmt.Errorf("%w: %s", err, errOut.String())
			}
			return nil
		},
	}, nil
}

func childEnv(s Server, dir, addr string) []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "BACKSTOP_") {
			env = append(env, e)
		}
	}
	env = append(env, "BACKSTOP_LISTEN="+addr, "BACKSTOP_DATA="+dir,
		"BACKSTOP_DATABASE_URL="+s.DatabaseURL, "BACKSTOP_REDIS_URL="+s.RedisURL)
	for name, value := range s.Extra {
		env = append(env, name+"="+value)
	}
	return env
}
