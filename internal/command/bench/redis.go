package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisServer is a redis-server of this run; nil if the program is not installed.
type redisServer struct {
	addr    string
	client  *redis.Client
	process *exec.Cmd
}

// openRedis starts a redis-server with the settings of the product's embedded Redis.
func (b *Bench) openRedis(ctx context.Context) (*redisServer, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		b.Report.Skip("the memory of Redis: redis-server is not installed")
		return nil, nil
	}
	dir := filepath.Join(b.dir, "redis")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for redis: %w", err)
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	r := &redisServer{addr: addr, client: redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})}
	r.process = exec.Command(program, "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction")
	if err := r.process.Start(); err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for r.client.Ping(ctx).Err() != nil {
		if ctx.Err() != nil {
			r.close()
			return nil, errors.New("redis did not answer within 5 s")
		}
		time.Sleep(5 * time.Millisecond)
	}
	return r, nil
}

// URL returns the server's URL; empty if there is none.
func (r *redisServer) URL() string {
	if r == nil {
		return ""
	}
	return "redis://" + r.addr
}

// memory returns used_memory in bytes.
func (r *redisServer) memory(ctx context.Context) (int64, error) {
	info, err := r.client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, fmt.Errorf("read the memory of redis: %w", err)
	}
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, "used_memory:"); ok {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, errors.New("redis reports no used_memory")
}

func (r *redisServer) close() {
	if r == nil {
		return
	}
	_ = r.client.Close()
	_ = r.process.Process.Kill() // its data is not needed
	_ = r.process.Wait()
}

// freeAddr returns a free loopback address and port.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}
