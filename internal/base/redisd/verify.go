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

// ErrEvicts means that Redis may throw keys away when it is full. With any
// policy but noeviction it drops the bodies of accepted tasks without an error
// and then stalls the queue on what is left of them, so the program must not run
// on it.
var ErrEvicts = errors.New("maxmemory-policy is not noeviction")

// Verify asks a Redis that is reachable whether it can be worked with. An error that
// is ErrEvicts is final; any other means that Redis could not be asked yet. It may
// be called again at any time, e.g. after another master took over.
func (r *Redis) Verify(ctx context.Context) error {
	if r.engine == InProcess {
		return r.Check(ctx)
	}
	err := r.eachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		info, err := readInfo(ctx, node, "server")
		if err != nil && !redis.HasErrorPrefix(err, "NOPERM") {
			return r.explain(err)
		}
		if info["redis_mode"] == "sentinel" {
			return errSentinel
		}
		if tooOld(info["redis_version"]) {
			r.warnOnce("redis is older than 6.2, which the queue's scripts need: tasks that are given up cannot be put away")
		}
		if err := r.verifyPolicy(ctx, node); err != nil {
			return err
		}
		return r.verifyAOF(ctx, node)
	})
	if err != nil {
		return err
	}
	return r.probe(ctx)
}

// errSentinel: a sentinel answers, and has no queues.
var errSentinel = unfit{errors.New("what answers is a sentinel: write the URL as redis-sentinel://hosts/master-name")}

// probe writes to every queue without changing anything. What INFO tells is not
// all: another node of a cluster may hold the queue, or none, and a user or a disk
// may not take writes.
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

// warnOnce says what is not ideal once in the life of the program, however often
// Verify is called and however many nodes a cluster has.
func (r *Redis) warnOnce(message string) {
	if _, said := r.warned.LoadOrStore(message, true); !said {
		r.log.Warn(message)
	}
}

// tooOld tells a version below 6.2; one that cannot be read is taken as new.
func tooOld(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errMajor := strconv.Atoi(major)
	b, errMinor := strconv.Atoi(minor)
	return errMajor == nil && errMinor == nil && (a < 6 || a == 6 && b < 2)
}

// verifyPolicy reads the policy twice over, as managed servers forbid CONFIG.
func (r *Redis) verifyPolicy(ctx context.Context, node *redis.Client) error {
	policy, err := setting(ctx, node, "maxmemory-policy", "memory", "maxmemory_policy")
	switch {
	case err != nil:
		return r.explain(err)
	case policy == "":
		r.warnOnce("redis does not tell its maxmemory-policy; make sure that it is noeviction")
	case policy != "noeviction":
		return fmt.Errorf("redis: %w but %s: it would lose accepted work when full; set maxmemory-policy noeviction", ErrEvicts, policy)
	}
	return nil
}

func (r *Redis) verifyAOF(ctx context.Context, node *redis.Client) error {
	aof, err := setting(ctx, node, "appendonly", "persistence", "aof_enabled")
	if err != nil {
		return r.explain(err)
	}
	if aof == "no" || aof == "0" {
		r.warnOnce("redis keeps no append-only file: after its restart queued work waits a few seconds for the database tick; set appendonly yes")
	}
	return nil
}

// setting reads a value by CONFIG GET, or where that is refused from INFO. It is
// empty where neither tells; the error is one of the connection.
func setting(ctx context.Context, node *redis.Client, name, section, field string) (string, error) {
	values, err := node.ConfigGet(ctx, name).Result()
	if err == nil && values[name] != "" {
		return values[name], nil
	}
	if err != nil && !refused(err) {
		return "", err
	}
	info, err := readInfo(ctx, node, section)
	if err != nil && !refused(err) {
		return "", err
	}
	return info[field], nil
}

// refused tells an answer that says no from no answer.
func refused(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && !redis.HasErrorPrefix(err, "LOADING")
}

// Memory returns how many bytes Redis uses and may use, of the fullest node of a
// cluster. A limit of 0 is none.
func (r *Redis) Memory(ctx context.Context) (used, limit int64, err error) {
	if r.engine == InProcess {
		return 0, 0, nil
	}
	var mu sync.Mutex
	err = r.eachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		info, err := readInfo(ctx, node, "memory")
		if err != nil {
			return fmt.Errorf("ask redis for its memory: %w", err)
		}
		// A missing field reads as 0, which is no limit: nothing to judge by.
		u, _ := strconv.ParseInt(info["used_memory"], 10, 64)
		l, _ := strconv.ParseInt(info["maxmemory"], 10, 64)
		mu.Lock()
		defer mu.Unlock()
		if used == 0 || share(u, l) > share(used, limit) {
			used, limit = u, l
		}
		return nil
	})
	return used, limit, err
}

// takesWrites says why a Redis that answers cannot be worked with all the same.
// Where it does not tell, it is taken at its word.
func (r *Redis) takesWrites(ctx context.Context, node *redis.Client) error {
	info, err := readInfo(ctx, node)
	if err != nil && !refused(err) {
		return r.explain(err)
	}
	used, _ := strconv.ParseInt(info["used_memory"], 10, 64)
	limit, _ := strconv.ParseInt(info["maxmemory"], 10, 64)
	switch policy := info["maxmemory_policy"]; {
	case info["redis_mode"] == "sentinel":
		return errSentinel
	case info["role"] == "slave" && info["slave_read_only"] != "0":
		return unfit{errors.New("redis is a replica and takes no writes")}
	case share(used, limit) >= 1:
		return unfit{fmt.Errorf("redis is full: %d of %d bytes; raise maxmemory", used, limit)}
	case policy != "" && policy != "noeviction":
		return unfit{fmt.Errorf("redis: %w any more but %s: set it back", ErrEvicts, policy)}
	}
	return nil
}

// share is how full a server is, 0 where it has no limit.
func share(used, limit int64) float64 {
	if limit <= 0 {
		return 0
	}
	return float64(used) / float64(limit)
}

// eachMaster runs f against every server that takes writes, in parallel.
func (r *Redis) eachMaster(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	switch c := r.client.(type) {
	case *redis.ClusterClient:
		var asked atomic.Bool
		err := c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			asked.Store(true)
			return f(ctx, node)
		})
		if err != nil && !asked.Load() { // which nodes there are could not be learned
			return r.explain(err)
		}
		return err
	case *redis.Client:
		return f(ctx, c)
	default:
		return fmt.Errorf("redis client of unknown kind %T", c)
	}
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
