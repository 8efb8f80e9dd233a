package queuetest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"backstop/internal/base/servertest"
	"backstop/internal/base/waittest"

	"github.com/redis/go-redis/v9"
)

// StartCluster runs three masters that share the slots, and returns a URL with two of them:
// a client finds the third.
func StartCluster(t testing.TB) (url string) {
	t.Helper()
	const masters, slots = 3, 16384
	var nodes []*redis.Client
	var addrs []string
	for i := range masters {
		s := Start(t, "--cluster-enabled", "yes")
		addrs, nodes = append(addrs, s.Addr), append(nodes, s.Client())
		from, to := i*slots/masters, (i+1)*slots/masters-1
		if err := s.Client().ClusterAddSlotsRange(t.Context(), from, to).Err(); err != nil {
			t.Fatal(err)
		}
		if err := s.Client().Do(t.Context(), "cluster", "set-config-epoch", i+1).Err(); err != nil {
			t.Fatal(err)
		}
	}
	waittest.Until(t, "every node sees the whole cluster", func() bool {
		joined := true
		for _, node := range nodes {
			info, err := node.ClusterInfo(t.Context()).Result()
			joined = joined && err == nil && strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", masters))
		}
		if !joined {
			// Again and again: a node forgets a handshake that a busy machine makes slow.
			for _, addr := range addrs[1:] {
				host, port, _ := net.SplitHostPort(addr)
				_ = nodes[0].ClusterMeet(t.Context(), host, port).Err()
			}
		}
		return joined
	})
	return "redis-cluster://" + addrs[0] + "," + addrs[1]
}

// StartSentinel runs a master, its replica and a sentinel that promotes the replica within
// seconds when the master is down. The URL is the sentinel's.
func StartSentinel(t testing.TB) (url string, master *Server) {
	t.Helper()
	master = Start(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := Start(t, "--replicaof", host+" "+port)
	// Before the sentinel starts: it asks what it knows of only every ten seconds.
	waittest.Until(t, "the replica is in sync", func() bool {
		info, err := replica.Client().Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	})

	dir, sentinelPort := t.TempDir(), FreePort(t)
	config := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor main %s %s 1\n"+
		"sentinel down-after-milliseconds main 60000\nsentinel failover-timeout main 2000\n", sentinelPort, dir, host, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("redis-server", config, "--sentinel")
	if err := servertest.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	addr := fmt.Sprintf("127.0.0.1:%d", sentinelPort)
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: addr})
	defer sentinel.Close()
	waittest.Until(t, "the sentinel lists the replica", func() bool {
		replicas, err := sentinel.Replicas(t.Context(), "main").Result()
		return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
	})
	// Not before: on a busy machine it would take a slow master for dead and promote the replica.
	if err := sentinel.Set(t.Context(), "main", "down-after-milliseconds", "500").Err(); err != nil {
		t.Fatal(err)
	}
	return "redis-sentinel://" + addr + "/main", master
}
