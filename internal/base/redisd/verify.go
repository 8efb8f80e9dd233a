package redisd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"backstop/internal/base/queue"

	"github.com/redis/go-redis/v9"
)

// ErrEvicts means that Redis may delete keys when it is full. With any policy but noeviction
// it deletes the bodies of accepted tasks without an error, and what is left of those tasks
// blocks the queue, so the program must not run on it.
var ErrEvicts = errors.New("maxmemory-policy is not noeviction")

// Verify checks whether a reachable Redis can be used. ErrEvicts is final; any other error
// means that Redis could not be checked yet. It may be called again at any time, such as
// after a failover.
func (r *Redis) Verify(ctx context.Context) error {
	if r.engine == InProcess {
		return r.Check(ctx)
	}
	err := r.eachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		info, err := r.serverInfo(ctx, node)
		if err != nil {
			return err
		}
		if tooOld(info["redis_version"]) {
			r.warnOnce("redis is older than 6.2, which the queue's scripts need: tasks that are given up cannot be archived; upgrade it")
		}
		if info["aof_enabled"] == "0" {
			r.warnOnce("redis has no append-only file: after a restart of redis, queued work waits a few seconds for the database tick; set appendonly yes")
		}
		switch policy := info["maxmemory_policy"]; policy {
		case "noeviction":
		case "":
			r.warnOnce("redis does not show its maxmemory-policy; make sure that it is noeviction")
		default:
			return fmt.Errorf("redis: %w but %s: a full redis would lose accepted work; set maxmemory-policy noeviction", ErrEvicts, policy)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.probe(ctx)
}

// Check checks within a second whether the queues can be used.
func (r *Redis) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if r.engine != InProcess {
		if err := r.eachMaster(ctx, r.takesWrites); err != nil {
			return err
		}
	}
	return r.probe(ctx)
}

// takesWrites returns why a Redis that answers cannot be used. A property that it does not
// show counts as usable.
func (r *Redis) takesWrites(ctx context.Context, node *redis.Client) error {
	info, err := r.serverInfo(ctx, node)
	if err != nil {
		return err
	}
	used, limit := memory(info)
	switch policy := info["maxmemory_policy"]; {
	case info["role"] == "slave" && info["slave_read_only"] != "0":
		return unusable{errors.New("redis is a read-only replica: use its master")}
	case share(used, limit) >= 1:
		return unusable{fmt.Errorf("redis is full: %d of %d bytes; raise maxmemory", used, limit)}
	case policy != "" && policy != "noeviction":
		return unusable{fmt.Errorf("redis: %w any more but %s: set it to noeviction", ErrEvicts, policy)}
	}
	return nil
}

// probe writes to every queue without changing anything. INFO does not show everything: the
// queue may be on another node of a cluster, or on none, and the user may lack permission or
// the disk may be full.
func (r *Redis) probe(ctx context.Context) error {
	pipe := r.client.Pipeline()
	for _, key := range queue.ProbeKeys() {
		pipe.Del(ctx, key)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return r.explain(err)
	}
	return nil
}

// warnOnce logs a warning once in the life of the program, however often Verify is called and
// however many nodes a cluster has.
func (r *Redis) warnOnce(message string) {
	if _, logged := r.warned.LoadOrStore(message, true); !logged {
		r.log.Warn(message)
	}
}

// tooOld reports a version below 6.2; one that cannot be read counts as new.
func tooOld(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errMajor := strconv.Atoi(major)
	b, errMinor := strconv.Atoi(minor)
	return errMajor == nil && errMinor == nil && (a < 6 || a == 6 && b < 2)
}

// Memory returns how many bytes Redis uses and may use; of a cluster, those of its fullest
// node. A limit of 0 means no limit.
func (r *Redis) Memory(ctx context.Context) (used, limit int64, err error) {
	if r.engine == InProcess {
		return 0, 0, nil
	}
	var mu sync.Mutex
	err = r.eachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		info, err := readInfo(ctx, node, "memory")
		if err != nil {
			return fmt.Errorf("read redis's memory: %w", err)
		}
		u, l := memory(info)
		mu.Lock()
		defer mu.Unlock()
		if used == 0 || share(u, l) > share(used, limit) {
			used, limit = u, l
		}
		return nil
	})
	return used, limit, err
}

// memory returns the memory that a server uses and may use, in bytes. A missing field reads
// as 0, which means no limit.
func memory(info map[string]string) (used, limit int64) {
	used, _ = strconv.ParseInt(info["used_memory"], 10, 64)
	limit, _ = strconv.ParseInt(info["maxmemory"], 10, 64)
	return used, limit
}

// share is how full a server is; 0 if it has no limit.
func share(used, limit int64) float64 {
	if limit <= 0 {
		return 0
	}
	return float64(used) / float64(limit)
}

// eachMaster calls f in parallel for every server that takes writes.
func (r *Redis) eachMaster(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	switch c := r.client.(type) {
	case *redis.ClusterClient:
		var called atomic.Bool
		err := c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			called.Store(true)
			return f(ctx, node)
		})
		if err != nil && !called.Load() { // the list of nodes could not be read
			return r.explain(err)
		}
		return err
	case *redis.Client:
		return f(ctx, c)
	default:
		return fmt.Errorf("redis client of unknown kind %T", c)
	}
}

// serverInfo reads INFO of a server that may hold queues. It is empty if the user may not
// read it.
func (r *Redis) serverInfo(ctx context.Context, node *redis.Client) (map[string]string, error) {
	info, err := readInfo(ctx, node)
	switch {
	case redis.HasErrorPrefix(err, "NOPERM"), redis.HasErrorPrefix(err, "unknown command"):
		return nil, nil
	case err != nil:
		return nil, r.explain(err)
	case info["redis_mode"] == "sentinel":
		return nil, errSentinel
	}
	return info, nil
}

// readInfo reads INFO, or one section of it.
func readInfo(ctx context.Context, node *redis.Client, section ...string) (map[string]string, error) {
	text, err := node.Info(ctx, section...).Result()
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}
