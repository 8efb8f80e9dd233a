package queuetest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/waittest"

	"github.com/redis/go-redis/v9"
)

// topologyTimeout bounds how long several servers take to find each other.
const topologyTimeout = time.Minute

// StartCluster runs three masters that share the slots, and returns a URL with two of them:
// a client finds the third.
func StartCluster(t testing.TB) (url string) {
	t.Helper()
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("this test needs redis-cli on PATH")
	}
	var addrs []string
	for range 3 {
		s := Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
		addrs = append(addrs, s.Addr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), topologyTimeout)
	defer cancel()
	create := exec.CommandContext(ctx, cli, append([]string{"--cluster", "create"}, append(addrs, "--cluster-yes")...)...)
	if text, err := create.CombinedOutput(); err != nil {
		t.Fatalf("create the cluster: %v\n%s", err, text)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	defer client.Close()
	waittest.Until(t, "every node sees the whole cluster", func() bool {
		return client.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			info, err := node.ClusterInfo(ctx).Result()
			if err == nil && !strings.Contains(info, "cluster_state:ok") {
				err = fmt.Errorf("not yet: %s", info)
			}
			return err
		}) == nil
	})
	return "redis-cluster://" + addrs[0] + "," + addrs[1]
}

// StartSentinel runs a master, its replica and a sentinel that promotes the replica within
// seconds when the master is down. The URL is the sentinel's.
func StartSentinel(t testing.TB) (url string, master *Server) {
	t.Helper()
	master = Start(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := Start(t, "--replicaof", host+" "+port)

	dir, sentinelPort := t.TempDir(), FreePort(t)
	config := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor main %s %s 1\n"+
		"sentinel down-after-milliseconds main 60000\nsentinel failover-timeout main 2000\n", sentinelPort, dir, host, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("redis-server", config, "--sentinel")
	cmd.SysProcAttr = EndWithUs()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	addr := fmt.Sprintf("127.0.0.1:%d", sentinelPort)
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: addr})
	defer sentinel.Close()
	ctx, cancel := context.WithTimeout(context.Background(), topologyTimeout)
	defer cancel()
	waittest.Until(t, "the sentinel lists the replica", func() bool {
		replicas, err := sentinel.Replicas(ctx, "main").Result()
		return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
	})
	waittest.Until(t, "the replica is in sync", func() bool {
		info, err := replica.Client().Info(ctx, "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
	// Not before: on a busy machine it would take a slow master for dead and promote the replica.
	if err := sentinel.Set(ctx, "main", "down-after-milliseconds", "500").Err(); err != nil {
		t.Fatal(err)
	}
	return "redis-sentinel://" + addr + "/main", master
}
