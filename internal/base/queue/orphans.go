package queue

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// orphanGrace is how long a body must have been seen without a task before
	// it is deleted. One look suffices, as it is atomic; the second guards
	// against a version of asynq that keeps tasks somewhere else as well.
	orphanGrace = 5 * time.Minute
	// orphanStep is how many of Redis' keys one step looks at: under a
	// millisecond of its time.
	orphanStep = 100
	// maxSuspects bounds the memory of bodies seen once.
	maxSuspects = 10_000
	// suspectLife is when a suspect is forgotten that did not come up again.
	suspectLife = time.Hour
	// maxSearch is the longest list that is searched for an id. In a longer one
	// a task counts as present: a window is much shorter.
	maxSearch = 10_000
)

// OrphanCount is what one call of Orphans came to.
type OrphanCount struct {
	Looked    int // keys of Redis passed by, of any kind
	Suspected int // bodies without a task, seen for the first time or too recently
	Deleted   int
}

// orphanHunt is where the last call stopped.
type orphanHunt struct {
	grace time.Duration

	mu     sync.Mutex
	queue  int // index in Names
	cursor uint64
	seen   map[string]time.Time // by key, when first suspected
}

// orphanScript tells, of the ids given, which have a body that no list and no
// set of the queue names, and deletes it if asked to. asynq moves tasks by
// scripts too, so that here every task is in exactly one place.
//
// KEYS: pending, active, lease, scheduled, retry, archived, completed.
// ARGV: "1" to delete, prefix of the bodies' keys, longest list to search, ids.
var orphanScript = redis.NewScript(`
local function listed(list, id)
  if redis.call("LLEN", list) > tonumber(ARGV[3]) then return true end
  return redis.call("LPOS", list, id)
end
local function held(id, state)
  if state == "aggregating" then return true end
  if state == "pending" and listed(KEYS[1], id) then return true end
  for i = 3, 7 do
    if redis.call("ZSCORE", KEYS[i], id) then return true end
  end
  return listed(KEYS[2], id) or listed(KEYS[1], id)
end
local orphans = {}
for i = 4, #ARGV do
  local body = ARGV[2] .. ARGV[i]
  if redis.call("EXISTS", body) == 1 and not held(ARGV[i], redis.call("HGET", body, "state")) then
    if ARGV[1] == "1" then redis.call("DEL", body) end
    orphans[#orphans + 1] = ARGV[i]
  end
end
return orphans
`)

// Orphans looks for task bodies in Redis that no queue leads to any more and
// deletes them. They come from scripts of asynq that fail in the middle, and
// from "archive all" on a large queue, and would stay for ever. Each call passes
// by about limit keys and the next one goes on from there; one call ends after
// one round over all queues. The count is valid with an error, too.
func (c *Client) Orphans(ctx context.Context, limit int) (OrphanCount, error) {
	h := &c.orphans
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget()
	var count OrphanCount
	for rounds := 0; count.Looked < limit && rounds < len(Names); {
		queue := Names[h.queue]
		if err := c.orphanStep(ctx, queue, &count); err != nil {
			return count, fmt.Errorf("orphans of queue %s: %w", queue, err)
		}
		if h.cursor == 0 {
			h.queue = (h.queue + 1) % len(Names)
			rounds++
		}
	}
	return count, nil
}

// orphanStep is called with the hunt's lock held.
func (c *Client) orphanStep(ctx context.Context, queue string, count *OrphanCount) error {
	node, err := c.nodeOf(ctx, queue)
	if err != nil {
		return err
	}
	prefix := key(queue, "t:")
	keys, cursor, err := node.ScanType(ctx, c.orphans.cursor, prefix+"*", orphanStep, "hash").Result()
	if err != nil {
		return err
	}
	c.orphans.cursor = cursor
	count.Looked += orphanStep

	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = strings.TrimPrefix(k, prefix)
	}
	suspects, err := c.askOrphans(ctx, queue, ids, false)
	if err != nil {
		return err
	}
	ripe := c.orphans.judge(prefix, suspects)
	deleted, err := c.askOrphans(ctx, queue, ripe, true)
	if err != nil {
		return err
	}
	for _, id := range deleted {
		delete(c.orphans.seen, prefix+id)
	}
	count.Suspected += len(suspects) - len(deleted)
	count.Deleted += len(deleted)
	return nil
}

// askOrphans runs the script on the ids.
func (c *Client) askOrphans(ctx context.Context, queue string, ids []string, remove bool) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var keys []string
	for _, name := range []string{"pending", "active", "lease", "scheduled", "retry", "archived", "completed"} {
		keys = append(keys, key(queue, name))
	}
	args := []any{0, key(queue, "t:"), maxSearch}
	if remove {
		args[0] = 1
	}
	for _, id := range ids {
		args = append(args, id)
	}
	return orphanScript.Run(ctx, c.rdb, keys, args...).StringSlice()
}

// nodeOf is the server that holds the queue: SCAN is one server's command.
func (c *Client) nodeOf(ctx context.Context, queue string) (redis.Cmdable, error) {
	if cluster, ok := c.rdb.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key(queue, "pending"))
	}
	return c.rdb, nil
}

// judge remembers new suspects and returns those seen long enough ago.
func (h *orphanHunt) judge(prefix string, suspects []string) (ripe []string) {
	now := time.Now()
	for _, id := range suspects {
		first, known := h.seen[prefix+id]
		switch {
		case known && now.Sub(first) >= h.grace:
			ripe = append(ripe, id)
		case !known && len(h.seen) < maxSuspects:
			h.seen[prefix+id] = now
		}
	}
	return ripe
}

// forget drops suspects that did not come up again.
func (h *orphanHunt) forget() {
	if h.seen == nil {
		h.seen = make(map[string]time.Time)
	}
	for k, first := range h.seen {
		if time.Since(first) > suspectLife {
			delete(h.seen, k)
		}
	}
}
